"""Strikes against graphs, and the suspect that is opened alone."""

from __future__ import annotations

import pytest

from rtlang.fleet.engines.crash_suspects import (
    CRASH,
    FATAL_STRIKES,
    HARMLESS_S,
    KILL,
    PROBE_S,
    SUSPECT_STRIKES,
    CrashSuspects,
)


@pytest.mark.parametrize(("has_crashed", "strikes"), [(True, CRASH), (False, KILL)])
def test_an_end_strikes_only_the_graphs_that_gave_nothing(has_crashed: bool, strikes: int) -> None:
    suspects = CrashSuspects()
    for graph_id in (1, 2):
        suspects.note_opened(graph_id, 0.0)
    suspects.clear(1)
    assert suspects.note_death("a", [1, 2], 0.0, has_crashed=has_crashed) is None
    assert (suspects.strikes(1), suspects.strikes(2)) == (0, strikes)


def test_a_graph_that_its_engine_survived_for_long_is_harmless() -> None:
    suspects = CrashSuspects()
    suspects.note_opened(1, 0.0)
    suspects.note_death("a", [1], HARMLESS_S, has_crashed=True)
    assert suspects.strikes(1) == CRASH
    suspects.note_opened(1, 1.0)
    suspects.note_death("a", [1], HARMLESS_S + 1.1, has_crashed=True)
    assert suspects.strikes(1) == 0


def probing() -> CrashSuspects:
    """A suspect that is open alone on the engine "a", and one that waits."""
    suspects = CrashSuspects()
    for graph_id in (1, 2):
        for _ in range(SUSPECT_STRIKES // CRASH):
            suspects.note_opened(graph_id, 0.0)
            suspects.note_death("b", [graph_id], 0.0, has_crashed=True)
        assert suspects.is_suspect(graph_id)
    suspects.enqueue([1, 2])
    suspects.engine = "a"
    assert suspects.take_next() == 1
    suspects.note_opened(1, 10.0)
    return suspects


def test_a_suspect_that_ends_its_engine_alone_is_the_culprit() -> None:
    suspects = probing()
    assert suspects.note_death("b", [], 10.0, has_crashed=True) is None
    assert suspects.note_death("a", [1], 10.0, has_crashed=True) == 1
    assert suspects.strikes(1) == FATAL_STRIKES
    assert (suspects.engine, suspects.probed, list(suspects.waiting)) == (None, None, [2])


def test_a_suspect_that_shared_its_engine_is_not_the_culprit() -> None:
    suspects = probing()
    suspects.note_opened(3, 9.0)
    assert suspects.note_death("a", [1, 3], 10.0, has_crashed=True) is None


def test_a_suspect_is_cleared_only_if_its_engine_works_after_it_was_opened() -> None:
    suspects = probing()
    suspects.tick(10.0 + PROBE_S)
    assert suspects.probed == 1
    suspects.tick(10.1 + PROBE_S)
    assert suspects.probed is None
    assert not suspects.is_suspect(1)


def test_a_suspect_that_is_taken_off_has_the_first_place_again() -> None:
    suspects = probing()
    suspects.requeue_probed()
    assert (suspects.probed, list(suspects.waiting)) == (None, [1, 2])
    suspects.clear(1)
    assert list(suspects.waiting) == [2]
