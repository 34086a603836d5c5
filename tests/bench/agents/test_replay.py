"""Replays against a real server with a small random model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rtlang.bench.agents.catalogue import DOORS
from rtlang.bench.agents.model import write_model
from rtlang.bench.agents.replay import Marks, Replayed, replay, warm_up
from rtlang.bench.agents.traces import Task, TraceOptions, make_tasks
from rtlang.contract.errors import RtlangError
from rtlang.runtime.runtime import Runtime
from tests.support.servers.serving import serving

PAGE_SIZE = 16
MARKS = Marks(before=4, after=1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = write_model(
        tmp_path_factory.mktemp("agents"), num_hidden_layers=1, hidden_size=64, intermediate_size=64
    )
    with Runtime(model=str(directory), num_threads=1, num_pages=600) as runtime, serving(runtime) as server:  # type: ignore[arg-type]
        yield server.url.replace("ws", "http", 1)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    first, *rest = make_tasks(TraceOptions(num_tasks=len(DOORS), mean_turns=3, scale=0.004))
    turns = (replace(first.turns[0], fork=(first.turns[0],)), *first.turns[1:])
    return [replace(first, turns=turns), *rest]


@pytest.fixture(scope="module")
def found(url: str, tasks: list[Task]) -> Replayed:
    warm_up(url, tasks[:1], ["chat"])
    return replay(url, tasks, 2, MARKS, speed=100.0)


def test_every_turn_of_every_task_and_fork_is_asked_once(found: Replayed, tasks: list[Task]) -> None:
    num_turns = [sum(1 + bool(turn.fork) * (1 + len(turn.fork)) for turn in task.turns) + 1 for task in tasks]
    assert len(found.turns) == sum(num_turns)
    by_door = [sum(turn.door == name for turn in found.turns) for name in DOORS]
    assert by_door == num_turns
    assert sum(not turn.num_returning for turn in found.turns) == len(tasks)


def test_returning_tokens_are_those_of_the_turn_before(found: Replayed) -> None:
    assert all(turn.num_prompt > turn.num_returning for turn in found.turns)
    assert all(turn.num_cached <= turn.num_prompt for turn in found.turns)
    assert all(0 < turn.first_s < found.wall_s for turn in found.turns)
    later = [turn for turn in found.turns if turn.num_returning]
    # The pool holds everything; whole pages are found, and the last token of an output is not computed.
    assert all(turn.num_cached > turn.num_returning - PAGE_SIZE - 1 for turn in later)


def test_calls_are_looked_for_in_the_last_prompt(found: Replayed, tasks: list[Task]) -> None:
    calls = sum(len(task.turns) for task in tasks)
    forks = [
        number + 1 + len(turn.fork) for task in tasks for number, turn in enumerate(task.turns) if turn.fork
    ]  # the calls that a fork begins with, and its own
    assert found.num_checked == calls + sum(forks)
    assert found.num_different == 0


def test_a_server_that_refuses_a_turn_ends_the_replay(url: str, tasks: list[Task]) -> None:
    bad = replace(tasks[0], max_tokens=0)
    with pytest.raises(RtlangError, match="max_"):
        replay(url, [bad, bad, bad], 2, MARKS, speed=100.0)
