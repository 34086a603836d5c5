"""Busy time and gaps of overlapping kernels."""

from __future__ import annotations

from rtlang_bench.device.goals.profile import Profile, profiled, summary


def test_kernels_are_summed_and_gaps_found() -> None:
    found = summary([(5000.0, 6000.0, "b"), (0.0, 2000.0, "a" * 80), (1000.0, 3000.0, "b"), (1500.0, 1600.0, "c")])
    assert found == Profile(4, 4.0, 2.0, {"b": 3.0, "a" * 60: 2.0, "c": 0.1})
    assert list(found.kernels_ms) == ["b", "a" * 60, "c"]
    assert summary([]) == Profile(0, 0.0, 0.0, {})


def test_a_function_without_kernels_has_an_empty_profile() -> None:
    ran: list[int] = []
    assert profiled(lambda: ran.append(1)).num_kernels == 0
    assert ran == [1]
