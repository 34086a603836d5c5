"""Work of one graph that hangs or ends its engine's process: the graph fails, once, and says what happened; the texts of others stay.

Engines are real processes, with faults of `tests/support/servers/faulty_worker.py`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import InternalError
from rtlang.contract.events import GraphFailed
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Apply, Const, Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines import engine_link, engine_target
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.engines.launcher import ProcessLauncher
from tests.support.programs.graph_ear import Ear
from tests.support.servers.faulty_worker import CRASH_LEFT, HANGS, HOLDS, MATCHER_LEFT, SIGNAL
from tests.support.waiting import wait_until

NUM_BYSTANDERS = 4
SETTINGS = RuntimeConfig(dtype="float32", num_pages=400, fault_injection=True)


def story(index: int, **params: str) -> RequestGraph:
    sampling = SamplingParams(max_tokens=200, temperature=1.0, ignore_eos=True, **params)  # type: ignore[arg-type]
    return RequestGraph((Text(0, None, (f"Story {index}:",)), Generate(1, 0, "x", sampling)))


def value(text: str) -> RequestGraph:
    return RequestGraph((Apply(0, "upper", (Const(text),)),))


def constrained(num_left: int = MATCHER_LEFT) -> RequestGraph:
    params, words = SamplingParams(max_tokens=num_left), Constraint(ConstraintKind.REGEX, "[a-z ]{200,300}")
    return RequestGraph((Text(0, None, ("Story:",)), Generate(1, 0, "x", params, words)))


@dataclass(frozen=True)
class Fault:
    graph: RequestGraph
    num_restarts: int | Collection[int]
    message: str
    signal: int = signal.SIGSEGV
    place: str = ""


LONG = " " * 500_000

FAULTS = {
    "function": Fault(value(HANGS), 0, "node 0 held the engine thread for 2 s and was stopped"),
    "native function": Fault(value(HOLDS), 1, "the graph held a thread of its engine", place="match"),
    "function on a thread": Fault(value(HANGS + LONG), 0, "node 0 held a thread for 30 s and was stopped"),
    # Those with rows in a step that waits for the interpreter are suspects as well, if there are any at that moment.
    "native function on a thread": Fault(value(HOLDS + LONG), (1, 2), "the graph held a thread of its engine"),
    "matcher": Fault(constrained(), 1, "the graph held a thread of its engine", place="match"),
    "segmentation fault": Fault(
        story(99, x_fault="exit:3"), 2, "was ended by SIGSEGV, again while it worked on this graph", place="leave"
    ),
    "out of memory": Fault(
        story(99, x_fault="exit:3"), 2, "ran out of memory, again while it worked on this graph", signal.SIGKILL
    ),
}
USUAL = ("function", "native function")


@pytest.fixture(scope="module")
def targets() -> Iterator[Callable[[int], EngineTarget]]:
    """A target whose engines end by the signal, which the tests share."""
    with ExitStack() as stack:

        @cache
        def target_of(number: int) -> EngineTarget:
            launcher = ProcessLauncher(
                module="tests.support.servers.faulty_worker", environment={SIGNAL: str(int(number))}
            )
            return stack.enter_context(EngineTarget((launcher,), SETTINGS))

        yield target_of


def submitted(target: EngineTarget, indices: range) -> list[Ear]:
    ears = [Ear() for _ in indices]
    for index, ear in zip(indices, ears, strict=True):
        target.submit(story(index), ear, RunOptions(seed=index))
    return ears


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, id=name, marks=() if name in USUAL else pytest.mark.long) for name, each in FAULTS.items()],
)
def test_one_graph_fails_and_the_others_have_their_texts(
    fault: Fault,
    targets: Callable[[int], EngineTarget],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(engine_target, "BEAT_S", 0.3)
    target = targets(fault.signal)
    expected = [ear.values() for ear in submitted(target, range(2 * NUM_BYSTANDERS))]
    (link,) = target._links.values()
    num_restarts = link.num_restarts
    if fault.signal == signal.SIGKILL:  # as the kernel counts them
        monkeypatch.setattr(engine_link, "count_oom_kills", lambda: link.num_restarts)
    culprit, before = Ear(), submitted(target, range(NUM_BYSTANDERS))
    target.submit(fault.graph, culprit, RunOptions(principal=Principal("ana")))
    after = submitted(target, range(NUM_BYSTANDERS, 2 * NUM_BYSTANDERS))
    end = culprit.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, InternalError)
    assert fault.message in end.error.message
    assert end.error.id in caplog.text or not fault.num_restarts  # else it is in the engine's log
    assert [ear.values() for ear in (*before, *after)] == expected
    expected_restarts = (fault.num_restarts,) if isinstance(fault.num_restarts, int) else fault.num_restarts
    assert link.num_restarts - num_restarts in expected_restarts
    assert link._num_deaths == 0, "nobody waits for a pause"
    assert f"graph {culprit.events[0].graph_id} of principal ana" in caplog.text
    assert fault.place in caplog.text


@pytest.mark.long
@pytest.mark.parametrize("num_spares", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL], ids=["segmentation fault", "out of memory"])
def test_neighbours_of_a_graph_that_crashes_several_engines_move_once(
    number: int, num_spares: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launchers = [
        ProcessLauncher(
            f"e{index}", module="tests.support.servers.faulty_worker", environment={SIGNAL: str(int(number))}
        )
        for index in range(2)
    ]
    with EngineTarget(launchers, SETTINGS, num_spares=num_spares) as target:
        links = list(target._links.values())
        wait_until(lambda: all(link.is_ready for link in links))
        if number == signal.SIGKILL:
            monkeypatch.setattr(engine_link, "count_oom_kills", lambda: sum(link.num_restarts for link in links))
        expected = [ear.values() for ear in submitted(target, range(2 * NUM_BYSTANDERS))]
        ears, ends = submitted(target, range(2 * NUM_BYSTANDERS)), list[float]()
        for num_crashes in (2, 3):
            culprit = Ear()
            target.submit(constrained(CRASH_LEFT), culprit, RunOptions(principal=Principal("ana")))
            end = culprit.end()
            assert isinstance(end, GraphFailed)
            assert isinstance(end.error, InternalError)
            assert "again while it worked on this graph" in end.error.message
            ends.append(sum(link.num_restarts for link in links))
            assert ends[-1] == num_crashes, "the graph is known when it is run again"
        assert [ear.values() for ear in ears] == expected
        for ear in ears:
            account = ear.end().account
            assert account is not None
            assert len(account.moves) <= 1, "the second crash is that of an engine without other graphs"
        assert not any(link._num_deaths for link in links)
