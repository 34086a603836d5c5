"""Programs on two ranks: the texts of one process, also constrained, preempted and drafted; and the death of a rank."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.events import GraphFailed, NodeFinished
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.engine_link import EngineState
from rtlang.fleet.engines.engine_process import EngineProcess
from rtlang.model.host_runner import HostRunner
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import end_words
from rtlang.model.rank_worker import work
from rtlang.model.runner import Runner
from rtlang.runtime.runtime import Runtime
from tests.support.programs.graph_ear import Ear
from tests.support.waiting import wait_until

TIMEOUT_S = 150.0  # an engine and its rank are started twice
ONE = RuntimeConfig(dtype="float32", num_pages=40, num_threads=1, max_rows=8)
TWO = replace(ONE, tensor_parallel=2)


def num_drafted(ear: Ear) -> int:
    return sum(use.num_drafted for event in ear.events if isinstance(event, NodeFinished) for use in event.drafts)


def run(target: Runtime | EngineProcess, *graphs: RequestGraph) -> list[Ear]:
    ears = [Ear() for _ in graphs]
    for graph, ear in zip(graphs, ears, strict=True):
        target.submit(graph, ear, RunOptions(seed=1))
    for ear in ears:
        ear.values()
    return ears


def graph(prompt: str, constraint: Constraint | None = None, **params: Any) -> RequestGraph:
    return RequestGraph(
        (Text(0, None, (prompt,)), Generate(1, 0, "x", SamplingParams(**params), constraint=constraint))
    )


class RankedRuntime(Runtime):
    """A runtime whose other rank is a thread."""

    def __init__(self, config: RuntimeConfig, group: RankGroup) -> None:
        super().__init__(config=config)
        self._ranks = group

    def _new_runner(self) -> Runner:
        return HostRunner(self.config, self._ranks)


@contextmanager
def ranked_runtime(config: RuntimeConfig) -> Iterator[Runtime]:
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(1) as pool:
        path = Path(directory) / "store"
        other = pool.submit(work, config, 1, path)
        group = RankGroup.connect(path, 0, 2)
        with RankedRuntime(config, group) as runtime:
            yield runtime
            runtime._running_loop().run(lambda: group.send(end_words()))
        other.result(TIMEOUT_S)


STORY = "Once upon a time"
GRAPHS = {
    "constrained": [graph(STORY, Constraint(ConstraintKind.REGEX, "[a-f]{4}-[0-9]{3}"), max_tokens=20)],
    "drafted": [graph("one two three one two three one two three one", max_tokens=24, ignore_eos=True)],
    # 4 texts of 4 pages each in a pool of 9
    "preempted": [graph(f"{STORY} {index}", max_tokens=50, ignore_eos=True) for index in range(4)],
}
SETTINGS: dict[str, dict[str, Any]] = {"preempted": {"num_pages": 9, "speculation": "off"}}


@pytest.mark.parametrize("name", GRAPHS)
def test_two_ranks_give_the_texts_of_one_process(name: str) -> None:
    settings = SETTINGS.get(name, {})
    with Runtime(config=replace(ONE, **settings)) as runtime:
        expected = run(runtime, *GRAPHS[name])
    with ranked_runtime(replace(TWO, **settings)) as runtime:
        found = run(runtime, *GRAPHS[name])
        num_preempted = runtime._engine.scheduler.num_preemptions if runtime._engine is not None else 0
    assert [ear.values() for ear in found] == [ear.values() for ear in expected]
    assert [ear.text for ear in found] == [ear.text for ear in expected]
    if name == "drafted":
        assert num_drafted(found[0]) > 0
    if name == "preempted":
        assert num_preempted > 0


def test_the_end_of_a_rank_is_one_error_that_names_it() -> None:
    with Runtime(config=TWO) as runtime:
        (expected,) = run(runtime, graph(STORY, max_tokens=8))
        assert expected.text
        ears = [Ear(), Ear()]
        for ear in ears:
            runtime.submit(graph(STORY, max_tokens=250, ignore_eos=True), ear)
        wait_until(lambda: all(ear.text for ear in ears), TIMEOUT_S)
        runner: Any = runtime._runner
        os.kill(runner.ranks.pids[0], signal.SIGKILL)
        for ear in ears:
            end = ear.end()
            assert isinstance(end, GraphFailed)
            assert isinstance(end.error, EngineDeadError)
            assert "rank 1 of 2 ended with code -9" in str(end.error)
        assert not runtime.is_alive
        with pytest.raises(EngineDeadError, match="rank 1 of 2"):
            runtime.submit(graph(STORY), Ear())


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(each)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for each in (task / "children").read_text().split()
    ]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")
def test_an_engine_that_lost_a_rank_is_started_again_and_its_texts_go_on() -> None:
    long = graph(STORY, max_tokens=70, ignore_eos=True)
    with Runtime(config=ONE) as runtime:
        (expected,) = run(runtime, long)
    with EngineProcess(TWO) as target:
        assert target.pid is not None
        (rank,) = children(target.pid)
        ear = Ear()
        target.submit(long, ear, RunOptions(seed=1))
        wait_until(lambda: ear.num_tokens > 2, TIMEOUT_S)
        os.kill(rank, signal.SIGKILL)
        assert (ear.values(), ear.text) == (expected.values(), expected.text)
        first = target.pid
        assert target.state is EngineState.READY
        # Without a program it is noticed as well.
        assert first is not None
        os.kill(children(first)[0], signal.SIGKILL)
        wait_until(lambda: target.pid not in (first, None), TIMEOUT_S)
