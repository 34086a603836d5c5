"""A real engine behind a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.serve.server import running_server
from tests.support.models.tiny_models import make_checkpoint

LIMIT_S = 120.0
NUM_CLIENTS = 64


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rt.Runtime]:
    path = make_checkpoint(tmp_path_factory.mktemp("model") / "llama", "llama")
    with rt.Runtime(model=str(path), dtype="float32", num_threads=1) as made:
        yield made


def graph(number: int) -> RequestGraph:
    params = SamplingParams(max_tokens=60, ignore_eos=True, temperature=1.0, seed=number)
    return RequestGraph((Text(0, None, ("A shared beginning. ", str(number % 7))), Generate(1, 0, "text", params)))


class Listener:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.some, self.done = threading.Event(), threading.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if sum(isinstance(e, TextDelta) for e in self.events) >= 3:
            self.some.set()
        if isinstance(event, GraphFinished | GraphFailed):
            self.some.set()
            self.done.set()


def test_clients_that_go_away_take_nothing_from_the_others(runtime: rt.Runtime) -> None:
    expected = {}
    for number in range(NUM_CLIENTS):
        local = Listener()
        runtime.submit(graph(number), local)
        assert local.done.wait(LIMIT_S)
        last = local.events[-1]
        assert isinstance(last, GraphFinished)
        expected[number] = last.values["text"]
    before = set(threading.enumerate())
    with running_server(runtime, ServeConfig(port=0)) as url:
        clients = [rt.connect(url) for _ in range(NUM_CLIENTS)]
        listeners = [Listener() for _ in clients]
        for number, (client, listener) in enumerate(zip(clients, listeners, strict=True)):
            client.submit(graph(number), listener)
        for number, (client, listener) in enumerate(zip(clients, listeners, strict=True)):
            if number % 3 == 0:
                assert listener.some.wait(LIMIT_S)
                client.close()
        for number, listener in enumerate(listeners):
            assert listener.done.wait(LIMIT_S), "every graph ends in a final event at its client"
            if number % 3:
                last = listener.events[-1]
                assert isinstance(last, GraphFinished)
                assert last.values["text"] == expected[number]
                assert "".join(e.text for e in listener.events if isinstance(e, TextDelta)) == expected[number]
        for client in clients:
            client.close()
        other = Listener()
        runtime.submit(graph(0), other)  # goes through the engine behind every cancellation
        assert other.done.wait(LIMIT_S)
    stats = runtime.stats()
    assert stats["num_pages_in_use"] == 0
    assert stats["num_graphs"] == 0
    assert stats["num_requests_running"] == stats["num_requests_waiting"] == 0
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert left <= {"thread-watch"}  # of the tests: one for the process, begun with the first loop


def test_a_program_runs_at_the_far_end_as_it_does_here(runtime: rt.Runtime) -> None:
    @rt.program
    def tell(s: rt.State, name: str) -> object:
        s += rt.text("Tell of ", name, ": ")
        left, right = s.fork(2)
        left += rt.gen("part", max_tokens=10)
        right += rt.text("Also, ") + rt.gen("part", max_tokens=10, temperature=1.0, seed=4)
        s += rt.text(left["part"], " / ", right["part"])
        if len(str(left["part"])) > 3:  # a graph break
            s += rt.gen("more", schema={"type": "integer", "maximum": 99, "minimum": 0}, max_tokens=20)
        s += rt.select("mood", ["good", "bad"])
        return s["mood"]

    here = tell.run(name="Ada", runtime=runtime)
    with running_server(runtime, ServeConfig(port=0)) as url, rt.connect(url) as remote:
        there = tell.run(name="Ada", runtime=remote)
    assert there.error is None
    assert there.value == here.value
    assert [there.text(name) for name in ("more", "mood")] == [here.text(name) for name in ("more", "mood")]
