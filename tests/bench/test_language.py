"""The benchmark of the language: its target keeps the contract, and its verdicts follow its figures."""

from __future__ import annotations

import pytest

from rtlang.bench.language import (
    Cost,
    InstantTarget,
    Memory,
    breaking,
    measure_calls,
    measure_memory,
    straight,
    waiting,
)
from rtlang.contract.errors import AbortedError


@pytest.mark.parametrize("has_thread", [True, False])
def test_every_program_gets_its_answers(has_thread: bool) -> None:
    target = InstantTarget(has_thread=has_thread, validates=True)
    try:
        for program in (straight, breaking, waiting):
            result = program.run(num_calls=3, runtime=target)
            assert [result[f"answer {number}"] for number in range(3)] == ["no"] * 3
            assert len(result.breaks) == (0 if program is straight else 3)
    finally:
        target.close()
    assert not target.is_alive


def test_held_answers_come_when_they_are_released() -> None:
    target = InstantTarget(is_held=True)
    try:
        stream = straight.stream(num_calls=1, runtime=target, on_error="result")
        while not target.num_held:
            pass
        target.release()
        assert stream.result()["answer 0"] == "no"
        cancelled = straight.stream(num_calls=1, runtime=target, on_error="result")
        cancelled.close()
        assert cancelled.result().error is None or isinstance(cancelled.result().error, AbortedError)
    finally:
        target.close()


def test_costs_are_measured_per_call() -> None:
    costs = measure_calls(num_programs=2, num_calls=2, repeats=2)
    assert [cost.limit_us for cost in costs] == [60.0, 60.0, None, 90.0, 90.0, None]
    assert all(0 < cost.low_us <= cost.median_us <= cost.high_us for cost in costs)


@pytest.mark.parametrize(("median_us", "verdict"), [(60.0, "ok"), (60.1, "too slow")])
def test_a_cost_is_met_up_to_its_limit(median_us: float, verdict: str) -> None:
    cost = Cost("no breaks", median_us, 50.0, 70.0, 60.0)
    assert cost.is_met is (verdict == "ok")
    assert str(cost).endswith(f"limit 60 us: {verdict}")


def test_a_case_without_a_limit_is_always_met() -> None:
    cost = Cost("threads", 500.0, 1.0, 900.0, None)
    assert cost.is_met
    assert str(cost).endswith("500.0 us (1.0 to 900.0)")


def test_memory_is_that_of_programs_that_wait() -> None:
    memory = measure_memory(20, num_calls=2)
    assert memory.num_programs == 20
    assert memory.waiting_bytes > 1_000_000
    assert "20 async programs waiting at once" in str(memory)
    assert not Memory(10, 0, 2_000_000_000).is_met
