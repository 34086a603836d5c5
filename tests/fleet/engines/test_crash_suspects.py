"""Strikes against graphs, the graphs that a record names, and the suspects that are opened apart from others."""

from __future__ import annotations

import random

import pytest

from rtlang.fleet.engines.crash_suspects import (
    CRASH,
    FATAL_STRIKES,
    FORGET_S,
    HARMLESS_S,
    KILL,
    MAX_BLAMED,
    PROBE_S,
    SUSPECT_STRIKES,
    CrashSuspects,
    Death,
    Verdict,
)
from tests.support.long_tests import sized

CRASHED, KILLED = Death(has_crashed=True), Death(has_crashed=False)


def crashed(*graph_ids: int) -> Death:
    """A crash while one of these graphs was worked on."""
    return Death(has_crashed=True, at_work=frozenset(graph_ids))


@pytest.mark.parametrize(("death", "strikes"), [(CRASHED, CRASH), (KILLED, KILL)])
def test_an_end_strikes_only_the_graphs_that_gave_nothing(death: Death, strikes: int) -> None:
    suspects = CrashSuspects()
    for graph_id in (1, 2):
        suspects.note_opened(graph_id, 0.0)
    suspects.clear(1)
    assert suspects.note_death("a", [1, 2], 0.0, death) == Verdict()
    assert (suspects.strikes(1), suspects.strikes(2)) == (0, strikes)


def test_a_graph_that_its_engine_survived_for_long_is_harmless() -> None:
    suspects = CrashSuspects()
    suspects.note_opened(1, 0.0)
    suspects.note_death("a", [1], HARMLESS_S, CRASHED)
    assert suspects.strikes(1) == CRASH
    suspects.note_opened(1, 1.0)
    suspects.note_death("a", [1], HARMLESS_S + 1.1, CRASHED)
    assert suspects.strikes(1) == 0


def probing() -> CrashSuspects:
    """A suspect that is open alone on the engine "a", and one that waits; no record names them."""
    suspects = CrashSuspects()
    for graph_id in (1, 2):
        for _ in range(SUSPECT_STRIKES // CRASH):
            suspects.note_opened(graph_id, 0.0)
            suspects.note_death("b", [graph_id], 0.0, CRASHED)
        assert suspects.is_suspect(graph_id)
    suspects.engine = "a"
    assert suspects.take_next() == [1]
    suspects.note_opened(1, 10.0)
    return suspects


def test_a_suspect_that_ends_its_engine_alone_is_the_culprit() -> None:
    suspects = probing()
    assert suspects.note_death("b", [], 10.0, CRASHED) == Verdict()
    assert suspects.note_death("a", [1], 10.0, CRASHED).culprit == 1
    assert suspects.strikes(1) == FATAL_STRIKES
    assert (suspects.engine, suspects.probed, suspects.waiting_ids) == (None, set(), [2])


def test_a_suspect_that_shared_its_engine_is_not_the_culprit_without_a_record() -> None:
    suspects = probing()
    suspects.note_opened(3, 9.0)
    assert suspects.note_death("a", [1, 3], 10.0, CRASHED).culprit is None
    assert suspects.waiting_ids == [1, 2]


def test_a_suspect_is_cleared_only_if_its_engine_works_after_it_was_opened() -> None:
    suspects = probing()
    suspects.tick(10.0 + PROBE_S)
    assert suspects.probed == {1}
    suspects.tick(10.1 + PROBE_S)
    assert not suspects.probed
    assert not suspects.is_suspect(1)


def test_a_suspect_that_is_taken_off_has_the_first_place_again() -> None:
    suspects = probing()
    suspects.requeue_probed(1)
    assert (suspects.probed, suspects.waiting_ids) == (set(), [1, 2])
    suspects.clear(1)
    assert suspects.waiting_ids == [2]


def test_a_graph_that_a_record_names_is_opened_alone_once_more_and_then_fails() -> None:
    suspects = CrashSuspects()
    for graph_id in (1, 2, 3):
        suspects.note_opened(graph_id, 0.0)
    suspects.note_output(2)
    verdict = suspects.note_death("a", [1, 2, 3], 1.0, crashed(2))
    assert (verdict.culprit, verdict.blames_graph) == (None, True)
    assert suspects.waiting_ids == [2], "though it had given something, and the others had not"
    suspects.engine = "a"
    suspects.take_next()
    suspects.note_opened(2, 2.0)
    assert suspects.note_death("a", [2], 3.0, crashed(2)).culprit == 2


def test_a_graph_that_gives_something_alone_and_crashes_again_soon_is_the_culprit() -> None:
    for again_at, culprit in ((FORGET_S, 1), (FORGET_S + 2.0, None)):
        suspects = CrashSuspects()
        suspects.note_opened(1, 0.0)
        suspects.note_death("a", [1], 1.0, crashed(1))
        suspects.engine = "a"
        suspects.take_next()
        suspects.note_opened(1, 2.0)
        suspects.note_output(1)
        suspects.engine = None
        assert suspects.note_death("a", [1, 2], again_at, crashed(1)).culprit == culprit


def test_the_graphs_of_a_step_are_opened_one_after_the_other_and_freed_when_the_culprit_is_found() -> None:
    suspects = CrashSuspects()
    for graph_id in range(1, 7):
        suspects.note_opened(graph_id, 0.0)
    suspects.note_output(5)
    suspects.note_death("a", range(1, 7), 1.0, crashed(2, 4, 5))
    assert suspects.waiting_ids == [4, 2, 5], "those that gave nothing first, the newest before others"
    suspects.engine = "a"
    suspects.take_next()
    suspects.note_opened(4, 2.0)
    verdict = suspects.note_death("a", [4], 3.0, crashed(4))
    assert (verdict.culprit, list(verdict.released)) == (4, [2, 5])
    assert not suspects.waiting


def test_a_graph_that_held_its_engine_is_the_culprit_at_once_and_the_probed_one_is_not() -> None:
    suspects = probing()
    suspects.clear(3)
    verdict = suspects.note_death("a", [1, 3], 11.0, Death(has_crashed=True, at_work=frozenset({3}), held_by=3))
    assert (verdict.culprit, verdict.blames_graph) == (3, True)
    assert suspects.waiting_ids == [1, 2]


def test_suspects_without_a_record_are_halved() -> None:
    """The group with the culprit ends its engine; without a record, log2 of their number."""
    suspects = CrashSuspects()
    graph_ids = list(range(1, 17))
    for _ in range(2):
        for graph_id in graph_ids:
            suspects.note_opened(graph_id, 0.0)
        suspects.note_death("a", graph_ids, 0.0, CRASHED)
    assert [len(group) for group in suspects.waiting] == [8, 8]
    num_deaths, culprit = 2, None
    while culprit is None:
        suspects.engine = "a"
        group = suspects.take_next()
        for graph_id in group:
            suspects.note_opened(graph_id, 1.0)
        if 11 in group:
            num_deaths += 1
            culprit = suspects.note_death("a", group, 1.0, CRASHED).culprit
        else:
            for graph_id in group:
                suspects.note_output(graph_id)
    assert (culprit, num_deaths) == (11, 2 + 4)


def test_engines_that_end_whatever_they_work_on_are_at_fault_themselves() -> None:
    suspects = CrashSuspects()
    blames = []
    for graph_id in range(1, MAX_BLAMED + 2):
        suspects.note_opened(graph_id, 0.0)
        blames.append(suspects.note_death("a", [graph_id], 0.0, crashed(graph_id)).blames_graph)
    assert blames == [True] * MAX_BLAMED + [False]
    suspects.note_output(1)
    suspects.note_opened(9, 0.0)
    assert suspects.note_death("a", [9], 0.0, crashed(9)).blames_graph
    assert not suspects.note_death("a", [9], 0.0, crashed()).blames_graph
    assert not suspects.note_death("a", [], 0.0, CRASHED).blames_graph


@pytest.mark.parametrize("seed", range(sized(400, usual=60)))
def test_with_a_record_each_culprit_ends_two_engines_at_most_and_nobody_else_fails(seed: int) -> None:
    """Random graphs share steps on one engine; those of `bad` crash it in a step of theirs, after some output or before any."""
    rng = random.Random(seed)
    suspects, now = CrashSuspects(), 0.0
    alive = set(range(1, rng.randrange(2, 12)))
    bad = {
        graph_id: rng.choice([0, 0, 3]) for graph_id in rng.sample(sorted(alive), rng.randrange(1, 2 + len(alive) // 2))
    }
    given: dict[int, int] = dict.fromkeys(alive, 0)
    deaths: dict[int, int] = dict.fromkeys(bad, 0)
    unplaced, on_engine, failed = set(alive), set[int](), set[int]()
    for _ in range(2000):
        if not alive - failed or all(given[each] > 20 for each in alive - failed):
            break
        now += 0.1
        if not suspects.probed:
            suspects.engine = None
            if suspects.waiting:
                suspects.engine = "a"
                opened = suspects.take_next()
            else:
                opened, unplaced = sorted(unplaced), set()
            for graph_id in opened:
                suspects.note_opened(graph_id, now)
            on_engine |= set(opened)
        step = {each for each in on_engine if rng.random() < 0.7}
        guilty = [each for each in step if each in bad and given[each] >= bad[each]]
        if guilty:
            deaths[guilty[0]] += 1
            verdict = suspects.note_death("a", on_engine, now, crashed(*step))
            if verdict.culprit is not None:
                assert verdict.culprit in bad, "nobody else fails"
                failed.add(verdict.culprit)
                suspects.forget(verdict.culprit)
            unplaced |= {each for each in on_engine - failed if not suspects.is_suspect(each)} | set(verdict.released)
            on_engine = set()
        else:
            for graph_id in step:
                given[graph_id] += 1
                was_probed = graph_id in suspects.probed
                suspects.note_output(graph_id)
                if was_probed and graph_id not in suspects.probed and suspects.waiting:  # the next one is alone
                    on_engine.remove(graph_id)
                    unplaced.add(graph_id)
    else:
        raise AssertionError("it comes to no end")
    assert failed == set(bad)
    shared = len(bad) - 1  # a step may have several culprits, of which only one can be noticed
    assert all(count <= 2 + shared for count in deaths.values()), deaths
    if len(bad) == 1:
        assert sum(deaths.values()) == 2
