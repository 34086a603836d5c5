"""Programs over simulated time: what the order of service and the plan of steps do to latencies and token gaps."""

from __future__ import annotations

from statistics import mean

import pytest

from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.scheduling.policy import SERVICE_QUANTUM_S
from tests.support.engine.policy_simulation import Call, SimulatedProgram, Simulation, machine_s, office, percentile

DECODING = 8


def warmed(programs: list[SimulatedProgram]) -> list[SimulatedProgram]:
    """Programs behind others from which the cost of steps is learned."""
    return [SimulatedProgram(0.0, "first", [Call(60 + each, 20)]) for each in range(12)] + programs


def test_a_long_prompt_beside_decoding_rows_keeps_their_gap() -> None:
    decoding = [SimulatedProgram(20.0, "stream", [Call(100, 300)]) for _ in range(DECODING)]
    long = SimulatedProgram(25.0, "book", [Call(8000, 1)])
    Simulation(warmed([*decoding, long]), policy="program").run()
    plain = machine_s(StepSize(DECODING, DECODING, DECODING * 400))
    gaps = [gap for each in decoding for gap in each.token_gaps_s]
    assert percentile(gaps, 0.99) <= 1.3 * 4 * plain
    alone = sum(machine_s(StepSize(1024, 0, 1024 * 1024 * (2 * part + 1) // 2)) for part in range(8))
    assert long.latency_s <= 3.0 * alone  # most of each step computes the prompt


@pytest.mark.parametrize("priority", [0, -100])
def test_a_short_request_starts_within_two_steps_of_a_long_prompt(priority: int) -> None:
    long = SimulatedProgram(20.0, "book", [Call(12_000, 1)])
    short = SimulatedProgram(22.0, "question", [Call(40, 4)], priority=priority)
    Simulation(warmed([long, short]), policy="program").run()
    assert short.first_step_s is not None
    step = machine_s(StepSize(1024, 0, 1024 * 6000))
    assert short.first_step_s - short.arrival_s <= 2 * step
    assert (short.end_s or 0.0) < (long.end_s or 0.0)


def test_equal_prompts_do_not_take_turns() -> None:
    programs = [SimulatedProgram(20.0 + each / 1000, "equal", [Call(3000, 1)]) for each in range(4)]
    Simulation(warmed(programs), policy="program").run()
    ends = [each.end_s or 0.0 for each in programs]
    assert ends == sorted(ends)
    service = ends[0] - 20.0
    assert [end - 20.0 for end in ends] == pytest.approx([service * count for count in (1, 2, 3, 4)], rel=0.1)


def test_a_long_program_waits_at_most_its_own_service_for_those_that_pass_it() -> None:
    """A stream of short programs as large as the machine: a book would starve if they always went first."""
    shorts = [SimulatedProgram(20.0 + 0.5 * each, "short", [Call(300, 1)]) for each in range(200)]
    book = SimulatedProgram(21.0, "book", [Call(6000, 1)])
    Simulation(warmed([*shorts, book]), policy="program").run()
    alone = sum(machine_s(StepSize(1000, 0, 1000 * 1000 * (2 * part + 1) // 2)) for part in range(6))
    assert book.latency_s <= 3 * alone + 4 * SERVICE_QUANTUM_S + 5.0


def test_programs_with_less_to_do_pass_long_ones_under_load() -> None:
    results = {}
    for policy in ("fcfs", "program"):
        programs = office(60, 2.0, 3)
        Simulation(programs, policy=policy).run()
        results[policy] = [each.latency_s for each in programs]
    assert mean(results["program"]) <= 0.95 * mean(results["fcfs"])
    assert percentile(results["program"], 0.9) <= percentile(results["fcfs"], 0.9)
