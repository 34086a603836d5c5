"""The traces have the statistics that they are made with."""

from __future__ import annotations

from statistics import mean, median

import pytest

from rtlang.bench.agents.traces import DELAY_S, MEAN_TURNS, NUM_KINDS, TraceOptions, Turn, make_tasks


def test_traces_have_the_published_statistics() -> None:
    tasks = make_tasks(TraceOptions(num_tasks=300, scale=0.002))
    turns = [turn for task in tasks for turn in task.turns]
    assert mean(len(task.turns) + 1 for task in tasks) == pytest.approx(MEAN_TURNS, rel=0.06)
    assert median(turn.delay_s for turn in turns) == pytest.approx(2.0, rel=0.1)
    assert all(DELAY_S[0] <= turn.delay_s <= DELAY_S[1] for turn in turns)
    assert min(turn.delay_s for turn in turns) == DELAY_S[0]
    assert max(turn.delay_s for turn in turns) > 0.6 * DELAY_S[1]
    assert mean(bool(turn.fork) for turn in turns) == pytest.approx(0.05, abs=0.01)
    assert not any(inner.fork for turn in turns for inner in turn.fork)
    assert len({task.system for task in tasks}) == NUM_KINDS
    assert len({(task.system, task.tools[0]["function"]["name"]) for task in tasks}) == NUM_KINDS


def test_texts_are_scaled_and_turns_are_not() -> None:
    small, large = (make_tasks(TraceOptions(num_tasks=40, scale=scale)) for scale in (0.01, 0.04))
    assert mean(task.num_chars for task in large) / mean(task.num_chars for task in small) == pytest.approx(4, rel=0.25)
    kept = [[(turn.delay_s, len(turn.fork)) for task in tasks for turn in task.turns] for tasks in (small, large)]
    assert kept[0] == kept[1]


def test_the_same_options_give_the_same_tasks() -> None:
    options = TraceOptions(num_tasks=3, mean_turns=4, scale=0.01, seed=5)
    assert make_tasks(options) == make_tasks(options)
    assert make_tasks(options) != make_tasks(TraceOptions(num_tasks=3, mean_turns=4, scale=0.01, seed=6))
    assert all(isinstance(turn, Turn) for task in make_tasks(options) for turn in task.turns)
