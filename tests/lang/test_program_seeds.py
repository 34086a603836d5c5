"""Seeds of runs: each generation has its own noise, which follows from the seed and from its place in the program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.request_graph import Generate, all_nodes, path_of
from rtlang.serve.server import running_server
from tests.support.programs.fake_target import FakeTarget


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


@rt.program
def forked(s: rt.State, number: int = 40) -> list[str]:
    s += "Once upon a time"
    return [str(fork["x"]) for fork in _grown(s, number)]


def _grown(s: rt.State, number: int) -> Any:
    forks = s.fork(number)
    forks += rt.gen("x", max_tokens=12, temperature=1.5)
    return forks


@rt.program
def seeded(s: rt.State, number: int = 40) -> Any:
    s += "Once upon a time"
    forks = s.fork(number)
    forks += rt.gen("x", max_tokens=12, temperature=1.5, seed=7)
    return forks["x"]


def test_seeded_forks_differ_and_a_run_with_the_seed_repeats_them(runtime: rt.Runtime) -> None:
    values = forked.run(runtime=runtime, seed=7).value
    assert len(set(values)) >= 39  # of 12 tokens at temperature 1.5
    assert forked.run(runtime=runtime, params=rt.Sampling(seed=7)).value == values
    assert forked.with_options(params=rt.Sampling(seed=8)).run(runtime=runtime, seed=7).value == values
    assert forked.run(runtime=runtime, seed=8).value != values
    assert len(set(seeded.run(runtime=runtime).value)) >= 39
    assert seeded.run(runtime=runtime).value == seeded.run(runtime=runtime, seed=9).value


def test_a_seeded_run_is_the_same_in_a_batch_in_a_stream_and_ahead_of_time(runtime: rt.Runtime) -> None:
    values = forked.run(6, runtime=runtime, seed=7).value
    rows = [{"number": 6}, {"number": 3}, {"number": 6}]
    assert [each.value for each in forked.run_batch(rows, runtime=runtime, seed=7)] == [values, values[:3], values]
    assert forked.stream(6, runtime=runtime, seed=7).result().value == values
    assert asyncio.run(forked.arun(6, runtime=runtime, seed=7)).value == values

    @rt.program
    def unread(s: rt.State) -> None:
        s += "Once upon a time"
        _grown(s, 6)

    graph = unread.with_options(seed=7).graph()
    assert graph.run(runtime)["x"] == values


def test_a_seeded_run_is_the_same_on_a_server_and_after_a_kill(runtime: rt.Runtime, tmp_path: Path) -> None:
    values = forked.run(6, runtime=runtime, seed=7).value
    with running_server(runtime) as url, rt.connect(url) as remote:
        assert forked.run(6, runtime=remote, seed=7).value == values
    path = tmp_path / "run.journal"
    with rt.journal(path, runtime, seed=7):
        assert forked.run(6).value == values
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):  # what a killed process leaves
        path.write_bytes(whole[: int(len(whole) * share)])
        with rt.journal(path, runtime):
            assert forked.run(6).value == values


def test_what_is_elsewhere_and_when_values_are_read_change_no_text(runtime: rt.Runtime) -> None:
    @rt.program
    def plain(s: rt.State, reads: bool, more: bool) -> Any:
        s += "A"
        if more:
            side = s.copy()
            side += "B" + rt.gen("side", max_tokens=3, temperature=1.0)
            rt.value(side["side"])
        s += rt.gen("first", max_tokens=5, temperature=1.0)
        if reads:
            rt.value(s["first"])
        for _ in range(3):
            s += "-" + rt.gen("step", max_tokens=5, temperature=1.0)
            if reads:
                str(s["step"])
        return s["first"], s.all("step")

    found = [plain.run(reads, more, runtime=runtime, seed=3).value for reads in (0, 1) for more in (0, 1)]
    assert all(each == found[0] for each in found)
    assert len(set(found[0][1])) == 3


def test_turns_of_a_loop_of_the_graph_have_their_own_noise(runtime: rt.Runtime) -> None:
    @rt.program
    def looped(s: rt.State) -> None:
        def body(b: rt.State) -> None:
            forks = b.fork(1)
            forks += rt.gen("x", max_tokens=12, temperature=1.5)

        s += "Once upon a time"
        rt.repeat(body, at_most=5)

    found = looped.run(runtime=runtime, seed=7)["x"]
    assert len(set(found)) == 5
    assert looped.run(runtime=runtime, seed=7)["x"] == found


def test_paths_name_the_place_of_each_node() -> None:
    @rt.program
    def inner(s: rt.State) -> None:
        s += rt.gen() + rt.gen()
        rt.call(len, s.last)

    @rt.program
    def outer(s: rt.State) -> None:
        with s.scope("draft"):
            s += rt.gen("x")
        for fork in s.fork(2):
            fork += inner.bind()
        s.copy().__iadd__(rt.gen("x"))
        inner(s)
        rt.repeat(lambda b: rt.switch(b["draft.x"], {"y/z": rt.gen("deep")}), at_most=2)
        rt.vote([s["draft.x"], "x"])
        s += rt.gen("many", n=2, temperature=1.0) + rt.select("x", ["a"])

    paths = [path for node in all_nodes(outer.graph(passes=False).nodes) if (path := path_of(node))]
    assert paths == [
        *("draft/x", "fork[0]/inner/gen", "fork[0]/inner/gen#2", "fork[0]/inner/len()"),
        *("fork[1]/inner/gen", "fork[1]/inner/gen#2", "fork[1]/inner/len()"),
        *("copy/x", "inner/gen", "inner/gen#2", "inner/len()"),
        *("repeat", "repeat[*]/switch", "repeat[*]/switch[y%2Fz]/deep", "vote()", "many", "x"),
    ]


def test_a_seed_of_a_generation_is_mixed_with_the_index_of_its_fork() -> None:
    with FakeTarget(lambda call: "x") as target:
        nodes = seeded.run(3, runtime=target).graph.nodes
    seeds = [node.params.seed for node in nodes if isinstance(node, Generate)]
    assert seeds == [7, mixed_seed(7, ".1"), mixed_seed(7, ".2")]
