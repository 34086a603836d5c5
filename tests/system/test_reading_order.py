"""The order in which a body reads its values changes neither its requests nor their texts, at temperature 1 too."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import NO_MARKS, Generate
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import GraphRun

RUN_SEED = 20
SAMPLED = rt.Sampling(temperature=1.0, max_tokens=6, ignore_eos=True)


class Seeded:
    """A runtime whose runs all have the same seed."""

    tool_format = None
    is_alive = True

    def __init__(self, runtime: rt.Runtime, seed: int) -> None:
        self.runtime, self.seed = runtime, seed

    def submit(self, graph: rt.RequestGraph, listener: Any, options: RunOptions) -> GraphRun:
        return self.runtime.submit(graph, listener, replace(options, seed=self.seed))

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(device="cpu", dtype="float32") as runtime:
        yield runtime


@rt.program
def branching(s: Any, shuffle: random.Random | None, reads: list[str]) -> None:
    """Forks, messages and quotes; between any two steps it may read any value that exists."""
    found: dict[str, Any] = {}

    def pause() -> None:
        if shuffle is not None:
            for name in shuffle.sample(sorted(found), shuffle.randint(0, len(found))):
                str(found[name])
                reads.append(name)

    s += rt.user("Tell me ")
    pause()
    s += rt.assistant(rt.gen("start"))
    found["start"] = s["start"]
    pause()
    s += "A"
    forks = s.fork(3)
    for step in range(3):
        for index, fork in enumerate(forks):
            fork += f"part {step} "
            pause()
            fork += f"of {index}: "
            fork += rt.gen(f"part {step}", n=2 if step == 1 else 1)
            made = fork[f"part {step}"]
            for choice, value in enumerate(made if step == 1 else [made]):
                found[f"{index}.{step}.{choice}"] = value
            pause()
            fork += "; "
    for fork in forks:
        fork += rt.text("again ", found["start"], " and ")
        pause()
        fork += rt.gen("last", type=int)
        fork += "!"
    for index, fork in enumerate(forks):
        s += rt.text("(", fork["last"], ")")
        pause()
        found[f"{index}.last"] = fork["last"]
    s += rt.gen("end")


def run(runtime: rt.Runtime, shuffle: random.Random | None, seed: int = RUN_SEED) -> tuple[dict[str, Any], Any, int]:
    reads: list[str] = []
    result = branching.run(shuffle, reads, runtime=Seeded(runtime, seed), params=SAMPLED)
    nodes = sorted((replace(node, marks=NO_MARKS) for node in result.graph.nodes), key=lambda node: node.node_id)
    return {name: result.text(name) for name in result.names}, nodes, len(result.breaks)


def test_reading_in_any_order_makes_the_same_requests_and_texts(runtime: rt.Runtime) -> None:
    texts, nodes, num_breaks = run(runtime, None)
    assert num_breaks == 0
    assert sum(isinstance(node, Generate) for node in nodes) == 14
    counts = set()
    for number in range(12):
        found, found_nodes, num_breaks = run(runtime, random.Random(number))
        assert found_nodes == nodes
        assert found == texts
        counts.add(num_breaks)
    assert len(counts) > 1


def test_another_run_seed_gives_other_texts(runtime: rt.Runtime) -> None:
    texts = run(runtime, None)[0]
    assert run(runtime, None, seed=21)[0] != texts
    assert run(runtime, None)[0] == texts
    assert len(set(texts["part 0"])) > 1  # equal prompts of forks would differ too: every node has its own seed
