"""A remote runtime is a Target like a local one: same events, same errors, one end for every graph, whatever breaks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rtlang.client.address import ServerAddresses
from rtlang.client.client_session import Link
from rtlang.client.connect import connect
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import (
    AbortedError,
    ConnectionLostError,
    ConstraintError,
    DeadlineError,
    DependencyError,
    EngineDeadError,
    GraphError,
    OverloadError,
    RtlangError,
    SlowConsumerError,
)
from rtlang.contract.events import Completion, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import Constraint, ConstraintKind, FinishReason, SamplingParams, SelectMethod
from rtlang.contract.request_graph import Arg, Generate, Node, Ref, RequestGraph, Select, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.protocol.serialization import Encoding
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.programs.fake_target import FakeTarget, by_name
from tests.support.programs.graph_ear import Ear
from tests.support.servers.html_check import read_html
from tests.support.servers.serving import serving
from tests.support.waiting import wait_until

TIMEOUT_S = 20.0
P = SamplingParams()


@contextlib.contextmanager
def remote(target: FakeTarget | None = None, **settings: Any) -> Iterator[tuple[FakeTarget, RemoteRuntime]]:
    with (
        target or FakeTarget() as fake,
        running_server(fake, ServeConfig(port=0, **settings)) as url,
        connect(url, timeout_s=TIMEOUT_S) as runtime,
    ):
        yield fake, runtime


def chain(num: int, start: int = 0, parent: int | None = None) -> tuple[Node, ...]:
    """Text, generate, text, generate, ... one after the other."""
    nodes: list[Node] = []
    for number in range(num):
        nodes.append(Text(start + 2 * number, parent, (f"part {start + number} ",)))
        nodes.append(Generate(start + 2 * number + 1, start + 2 * number, f"g{start + number}", P))
        parent = start + 2 * number + 1
    return tuple(nodes)


RICH = RequestGraph(
    (
        Text(0, None, ("Hello ", Arg("who"))),
        Generate(1, 0, "one", SamplingParams(logprobs=0)),
        Select(2, 1, "pick", ("left", "right"), SelectMethod.FULL_LIKELIHOOD),
        Generate(3, 0, "many", SamplingParams(n=3)),
        Text(4, 2, ("then ", Ref(3, 1))),
        Generate(5, 4, "bad", P, Constraint(ConstraintKind.REGEX, "[0-9]")),
        Text(6, 5, ("after",)),
        Generate(7, 6, "lost", P),
    ),
    ("who",),
)


def plain(event: Event) -> Any:
    """An event with its error as comparable facts."""
    if isinstance(event, (NodeFailed, GraphFailed)):
        error = event.error
        return (type(event), event.graph_id, getattr(event, "node_id", None), type(error), error.message, error.facts)
    return event


def test_a_remote_graph_yields_the_same_events_as_a_local_one() -> None:
    script = by_name({"one": "größe 🙂", "bad": ConstraintError("no digit", "1:2"), "many": ["a", "b", "c"]})
    with remote(FakeTarget(script, chunk=1)) as (fake, runtime):
        ear = Ear()
        run = runtime.submit(RICH, ear, RunOptions(inputs={"who": "Ada"}, priority=2, deadline_s=1.5))
        assert isinstance(ear.end(), GraphFinished)
        there = fake.runs[0]
        assert (there.graph, there.inputs, there.priority, there.deadline_s) == (RICH, {"who": "Ada"}, 2, 1.5)
        assert [plain(event) for event in ear.events] == [
            plain(replace(event, graph_id=run.graph_id)) for event in there.events
        ]
        kinds = {type(event) for event in ear.events}
        assert kinds == {TextDelta, NodeFinished, NodeFailed, GraphFinished}
        assert any(isinstance(event, NodeFailed) and isinstance(event.error, DependencyError) for event in ear.events)


def test_many_graphs_share_the_connection_from_many_threads() -> None:
    with remote() as (_, runtime):
        ears = [Ear() for _ in range(60)]
        runs: list[Any] = [None] * 60

        def submit(numbers: range) -> None:
            for number in numbers:
                runs[number] = runtime.submit(RequestGraph(chain(3)), ears[number])

        threads = [threading.Thread(target=submit, args=(range(start, 60, 6),)) for start in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        texts = []
        for ear, run in zip(ears, runs, strict=True):
            end = ear.end()
            assert isinstance(end, GraphFinished)
            assert {event.graph_id for event in ear.events} == {run.graph_id}
            texts.append(end.values)
        assert texts == [texts[0]] * 60
        assert len({run.graph_id for run in runs}) == 60


def test_a_running_graph_is_extended_and_closed() -> None:
    with remote() as (fake, runtime):
        ear = Ear()
        run = runtime.submit(RequestGraph(chain(1)), ear, RunOptions(is_open=True))
        ear.wait_for(NodeFinished)
        run.extend(chain(1, 2, 1))
        ear.wait_for(NodeFinished)
        run.extend([])
        run.close()
        run.close()
        end = ear.end()
        assert isinstance(end, GraphFinished)
        assert set(end.values) == {"g0", "g2"}
        assert fake.runs[0].extensions == [chain(1, 2, 1), ()]
        with pytest.raises(GraphError, match="ended"):
            run.extend(chain(1, 4, 3))
        run.close()
        run.cancel()


def refuse_as_overloaded(nodes: Sequence[Node]) -> None:
    raise OverloadError("no room", 1.0)


def test_a_refused_extension_is_raised_and_the_graph_goes_on() -> None:
    with remote() as (fake, runtime):
        fake.hold("g0")
        ear = Ear()
        run = runtime.submit(RequestGraph(chain(1)), ear, RunOptions(is_open=True))
        with pytest.raises(GraphError, match="no earlier node") as caught:
            run.extend([Generate(2, 9, "x", P)])
        assert caught.value.node_id == 2
        # What only the server can know is raised here too.
        fake.runs[0].is_open = False
        with pytest.raises(GraphError, match="closed"):
            run.extend(chain(1, 2, 1))
        fake.runs[0].is_open = True
        with pytest.MonkeyPatch.context() as patch:  # the server has no room now; the same nodes may be given again
            patch.setattr(fake.runs[0], "extend", refuse_as_overloaded)
            with pytest.raises(OverloadError, match="no room"):
                run.extend(chain(1, 2, 1))
        run.extend(chain(1, 2, 1))
        run.close()
        fake.release("g0")
        end = ear.end()
        assert isinstance(end, GraphFinished)
        assert set(end.values) == {"g0", "g2"}
        closed = runtime.submit(RequestGraph(chain(1)), Ear())
        with pytest.raises(GraphError):
            closed.extend([])


@pytest.mark.parametrize(
    "error",
    [
        OverloadError("full", 2.5),
        EngineDeadError("the engine has stopped"),
        GraphError(3, "parent", "why"),
        RtlangError("odd"),
    ],
)
def test_a_refused_graph_is_raised_as_the_same_error(error: RtlangError) -> None:
    with remote() as (fake, runtime):
        fake.refuse(error)
        ear = Ear()
        with pytest.raises(type(error)) as caught:
            runtime.submit(RequestGraph(chain(1)), ear)
        assert (caught.value.message, caught.value.facts) == (error.message, error.facts)
        runtime.submit(RequestGraph(chain(1)), ear)
        assert isinstance(ear.end(), GraphFinished)


def test_a_malformed_graph_never_leaves_the_client() -> None:
    with remote() as (fake, runtime):
        with pytest.raises(GraphError):
            runtime.submit(RequestGraph((Generate(1, 7, "x", P),)), Ear())
        with pytest.raises(GraphError, match="inputs"):
            runtime.submit(RICH, Ear(), RunOptions(inputs={}))
        assert fake.runs == []


def test_cancelling_ends_a_graph_once() -> None:
    with remote() as (fake, runtime):
        fake.hold("g0")
        ear = Ear()
        run = runtime.submit(RequestGraph(chain(1)), ear)
        run.cancel()
        run.cancel()
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, AbortedError)
        run.cancel()
        assert len(ear.events) == 1


@pytest.mark.parametrize("deadline_s", [1e300, float("inf"), 10**400], ids=["1e300", "inf", "digits"])
def test_a_deadline_in_the_far_future_is_no_deadline(deadline_s: float) -> None:
    with remote() as (fake, runtime):
        ear = Ear()
        runtime.submit(RequestGraph(chain(1)), ear, RunOptions(deadline_s=deadline_s))
        assert isinstance(ear.end(), GraphFinished)
        assert fake.runs[0].deadline_s == 1e9


def test_a_deadline_and_a_dead_engine_arrive_as_themselves() -> None:
    with remote() as (fake, runtime):
        fake.hold("g0")
        late, doomed = Ear(), Ear()
        runtime.submit(RequestGraph(chain(1)), late, RunOptions(deadline_s=100))
        runtime.submit(RequestGraph(chain(1)), doomed)
        fake.expire()
        end = late.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, DeadlineError)
        fake.die("out of memory")
        end = doomed.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, EngineDeadError)
        with pytest.raises(EngineDeadError, match="the engine has stopped"):
            runtime.submit(RequestGraph(chain(1)), Ear())


def test_a_graph_larger_than_a_frame_is_sent_in_batches() -> None:
    with remote(max_frame_bytes=4096) as (fake, runtime):
        ear = Ear()
        graph = RequestGraph((*chain(200), Text(400, None, (Arg("who"),))), ("who",))
        run = runtime.submit(graph, ear, RunOptions(inputs={"who": "x"}, is_open=True))
        assert len(graph.to_msgpack()) > 3 * 4096
        run.extend(chain(200, 401, 399))
        run.close()
        end = ear.end()
        assert isinstance(end, GraphFinished)
        assert len(end.values) == 400
        assert tuple(fake.runs[0].nodes.values()) == (*graph.nodes, *chain(200, 401, 399))
        closed = Ear()
        runtime.submit(RequestGraph(chain(200)), closed)
        assert isinstance(closed.end(), GraphFinished)


def test_a_node_larger_than_a_frame_is_refused_and_leaves_nothing_behind() -> None:
    with remote(max_frame_bytes=4096) as (fake, runtime):
        big = Text(2, 1, ("x" * 5000,))
        with pytest.raises(GraphError, match="4096"):
            runtime.submit(RequestGraph((*chain(1), big)), Ear())
        ear = Ear()
        run = runtime.submit(RequestGraph(chain(1)), ear, RunOptions(is_open=True))
        with pytest.raises(GraphError, match="4096"):
            run.extend([big])
        run.extend(chain(1, 2, 1))
        run.close()
        assert isinstance(ear.end(), GraphFinished)
        assert len(fake.runs) == 1


# Listeners that talk back, and listeners that fail


def test_a_listener_may_extend_and_submit() -> None:
    with remote() as (_, runtime):
        ear, second = Ear(), Ear()
        started = threading.Event()

        def listen(event: Event) -> None:
            if isinstance(event, NodeFinished) and event.name == "g0":
                assert started.wait(TIMEOUT_S)
                run.extend(chain(1, 2, 1))
                run.close()
                runtime.submit(RequestGraph(chain(1)), second)
            ear(event)

        run = runtime.submit(RequestGraph(chain(1)), listen, RunOptions(is_open=True))
        started.set()
        end = ear.end()
        assert isinstance(end, GraphFinished)
        assert set(end.values) == {"g0", "g2"}
        assert isinstance(second.end(), GraphFinished)


def test_a_refusal_during_a_listener_ends_the_graph() -> None:
    with remote() as (fake, runtime):
        first, second, third = Ear(), Ear(), Ear()
        started = threading.Event()

        def listen(event: Event) -> None:
            if isinstance(event, NodeFinished):
                assert started.wait(TIMEOUT_S)
                fake.runs[0].is_open = False
                run.extend(chain(1, 2, 1))
                fake.refuse(OverloadError("full", 1.0))
                runtime.submit(RequestGraph(chain(1)), second)
                runtime.submit(RequestGraph(chain(1)), third)
            first(event)

        run = runtime.submit(RequestGraph(chain(1)), listen, RunOptions(is_open=True))
        started.set()
        end = second.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, OverloadError)
        assert isinstance(third.end(), GraphFinished)
        assert len([event for event in first.events if isinstance(event, (GraphFailed, GraphFinished))]) == 1


def test_a_raising_listener_does_not_affect_other_graphs(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise ValueError("bug in a listener")

    with remote() as (fake, runtime):
        runtime.submit(RequestGraph(chain(2)), broken)
        ear = Ear()
        runtime.submit(RequestGraph(chain(2)), ear)
        assert isinstance(ear.end(), GraphFinished)
        assert len(ear.events) == len(fake.runs[1].events)
    assert "bug in a listener" in caplog.text


# Ends of the connection


def finals(ear: Ear) -> list[RtlangError]:
    return [event.error for event in ear.events if isinstance(event, GraphFailed)]


def test_closing_ends_every_graph_once_and_is_idempotent() -> None:
    before = set(threading.enumerate())
    with FakeTarget() as fake, running_server(fake) as url:
        fake.hold("g0")
        runtime = connect(url)
        ears = [Ear() for _ in range(3)]
        runs = [runtime.submit(RequestGraph(chain(1)), ear, RunOptions(is_open=True)) for ear in ears]
        runtime.close()
        runtime.close()
        for ear in ears:
            assert [type(error) for error in finals(ear)] == [AbortedError]
        wait_until(lambda: all(run.was_cancelled for run in fake.runs))
        for attempt in (
            lambda: runs[0].extend(chain(1, 2, 1)),
            lambda: runtime.submit(RequestGraph(chain(1)), Ear()),
            lambda: runtime.generate("x"),
        ):
            with pytest.raises(ConnectionLostError, match="closed by this client"):
                attempt()
        runs[0].cancel()
        runs[0].close()
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_a_listener_may_close_the_connection() -> None:
    with FakeTarget() as fake, running_server(fake) as url:
        runtime = connect(url)
        ear = Ear()

        def listen(event: Event) -> None:
            ear(event)
            runtime.close()

        runtime.submit(RequestGraph(chain(1)), listen, RunOptions(is_open=True))
        end = ear.end()
        assert isinstance(end, GraphFailed)
        runtime.close()
        assert len(finals(ear)) == 1


def test_a_broken_connection_ends_every_graph_once() -> None:
    with FakeTarget() as fake, running_server(fake) as url, connect(url) as runtime:
        fake.hold("g0")
        ears = [Ear() for _ in range(3)]
        runs = [runtime.submit(RequestGraph(chain(1)), ear, RunOptions(is_open=True)) for ear in ears]
        runtime._link.websocket.socket.shutdown(2)
        for ear in ears:
            ear.end()
            assert [type(error) for error in finals(ear)] == [ConnectionLostError]
        wait_until(lambda: all(run.was_cancelled for run in fake.runs))
        with pytest.raises(ConnectionLostError):
            runs[0].extend(chain(1, 2, 1))
        with pytest.raises(ConnectionLostError):
            runtime.submit(RequestGraph(chain(1)), Ear())
        runs[0].cancel()
    assert all(len(finals(ear)) == 1 for ear in ears)


def test_a_server_that_ends_is_named_in_the_error() -> None:
    fake = FakeTarget()
    fake.hold("g0")
    with running_server(fake, ServeConfig(port=0, drain_timeout_s=0.05)) as url:
        runtime = connect(url)
        ear = Ear()
        runtime.submit(RequestGraph(chain(1)), ear)
    end = ear.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, ConnectionLostError)
    assert "shutting down (1001)" in end.error.message
    runtime.close()
    fake.close()


def test_a_draining_server_lets_graphs_end_and_refuses_new_ones() -> None:
    fake = FakeTarget()
    fake.hold("g0")
    leaving = threading.Event()

    def serve(give: Callable[[str], None]) -> None:
        with running_server(fake) as url:
            give(url)
            leaving.wait(TIMEOUT_S)

    urls: queue.SimpleQueue[str] = queue.SimpleQueue()
    thread = threading.Thread(target=serve, args=(urls.put,))
    thread.start()
    with connect(urls.get(timeout=TIMEOUT_S)) as runtime:
        ear = Ear()
        runtime.submit(RequestGraph(chain(1)), ear)
        leaving.set()

        def is_refused() -> bool:
            try:
                runtime.submit(RequestGraph(chain(1)), Ear()).cancel()
            except OverloadError:
                return True
            return False

        wait_until(is_refused)
        fake.release("g0")
        assert isinstance(ear.end(), GraphFinished)
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    fake.close()


def test_an_unanswered_submit_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeTarget() as fake, running_server(fake) as url, connect(url) as runtime:
        monkeypatch.setattr(runtime._transport, "send", lambda link, *packed: None)
        runtime._timeout_s = 0.05
        ear = Ear()
        with pytest.raises(ConnectionLostError, match="no answer"):
            runtime.submit(RequestGraph(chain(1)), ear)
        monkeypatch.undo()
        assert ear.events == []


class Told:
    """Stands in for a socket: gives the messages of a script, then waits for the end."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.pending = [Encoding.MSGPACK.pack(message) for message in messages]
        self.sent: list[bytes] = []
        self.may_read = threading.Event()

    def recv(self) -> bytes:
        assert self.may_read.wait(TIMEOUT_S)
        return self.pending.pop(0)

    def send(self, data: bytes) -> None:
        self.sent.append(data)
        self.may_read.set()

    def close(self) -> None:
        pass


ACK = {"t": "ack", "s": 1, "rid": "r", "epoch": "e"}


@pytest.mark.parametrize(
    "broken",
    [
        {"t": "delta", "s": 1, "n": 1, "o": 1, "d": "a piece is missing"},
        {"t": "delta", "s": 1, "n": 1, "o": 0},
        {"t": "event", "s": 1, "e": "end"},
        {"t": "end", "s": 1},
        {"t": "end", "s": 1, "values": {"x": 3}, "usage": {}, "failed": []},
    ],
)
def test_a_server_that_breaks_the_protocol_ends_the_connection(broken: dict[str, Any]) -> None:
    told = Told([ACK, broken])
    link = Link(told, {})
    runtime = RemoteRuntime(ServerAddresses("ws://test"), lambda url: link, TIMEOUT_S, None)
    runtime.start()
    ear = Ear()
    runtime.submit(RequestGraph(chain(1)), ear)
    end = ear.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, ConnectionLostError)
    assert "protocol" in end.error.message
    runtime.close()
    assert len(ear.events) == 1


def test_unknown_message_types_are_ignored() -> None:
    usage = {"prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0}
    finished: dict[str, Any] = {"t": "end", "s": 1, "values": {}, "usage": usage, "failed": []}
    news = [
        {"t": "news"},
        {"t": "news", "s": 1},
        {"t": "drain", "deadline_ms": 5},
        {"t": "error", "code": "x", "message": "m"},
    ]
    told = Told([ACK, *news, finished])
    link = Link(told, {})
    runtime = RemoteRuntime(ServerAddresses("ws://test"), lambda url: link, TIMEOUT_S, None)
    runtime.start()
    ear = Ear()
    runtime.submit(RequestGraph(chain(1)), ear)
    assert isinstance(ear.end(), GraphFinished)
    runtime.close()


# generate


def test_generate_gives_a_future_of_the_finished_node() -> None:
    with remote(FakeTarget(by_name({"text": "four"}))) as (fake, runtime):
        ear = Ear()
        future = runtime.generate("2 + 2 = ", params=SamplingParams(max_tokens=3), listener=ear)
        assert future.result(TIMEOUT_S).completions == (Completion("four", tuple(map(ord, "four")), FinishReason.STOP),)
        assert isinstance(ear.end(), GraphFinished)
        chat = runtime.generate([{"role": "user", "content": "Hi"}])
        assert chat.result(TIMEOUT_S).name == "text"
        assert fake.runs[0].graph.nodes[1] == Generate(1, 0, "text", SamplingParams(max_tokens=3))


def test_generate_is_awaitable() -> None:
    with remote() as (_, runtime):

        async def body() -> list[str]:
            futures = [asyncio.wrap_future(runtime.generate(f"{number}")) for number in range(20)]
            return [finished.completions[0].text for finished in await asyncio.gather(*futures)]

        assert len(set(asyncio.run(body()))) == 20


def test_generate_fails_with_the_error_of_its_node_or_graph() -> None:
    with remote(FakeTarget(by_name({"text": ConstraintError("cannot")}))) as (fake, runtime):
        with pytest.raises(ConstraintError, match="cannot"):
            runtime.generate("x").result(TIMEOUT_S)
        fake.hold("text")
        future = runtime.generate("x")
        fake.die()
        with pytest.raises(EngineDeadError):
            future.result(TIMEOUT_S)


def test_a_slow_reader_gets_a_slow_consumer_error_and_others_continue() -> None:
    """A listener that does not return stops its own connection only."""
    released = threading.Event()
    with (
        serving(send_buffer_bytes=1 << 16, slow_timeout_s=3600.0) as server,
        connect(server.url) as slow,
        connect(server.url) as quick,
    ):
        stuck, ear = Ear(), Ear()

        def listen(event: Event) -> None:
            assert released.wait(TIMEOUT_S)
            stuck(event)

        graph = RequestGraph((Text(0, None, ("x",)), Generate(1, 0, "x", SamplingParams(max_tokens=1000))))
        slow.submit(graph, listen)
        quick.submit(graph, ear)
        while not server.target.runs[0].was_cancelled:
            server.target.step("x" * 100_000)
            ear.wait_for(TextDelta)
        released.set()
        end = stuck.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, SlowConsumerError)
        assert "4503" in end.error.message
        assert not server.target.runs[1].was_cancelled
        server.target.finish()
        assert isinstance(ear.end(), GraphFinished)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_cannot_use_its_parents_connection() -> None:
    with serving() as server, connect(server.url) as runtime:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                runtime.submit(RequestGraph((Text(0, None, ("a",)),)), Ear())
                said = "it was submitted"
            except ConnectionLostError as error:
                said = error.message
            was_alive = runtime.is_alive
            runtime.close()
            os.write(theirs, f"{was_alive} {said}".encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        assert said.startswith("False")
        assert f"pid {os.getpid()}" in said
        assert runtime.is_alive
        runtime.submit(RequestGraph((Text(0, None, ("a",)),)), Ear())  # which waits for the server's word


def test_the_view_of_a_connection_names_the_server_its_models_and_its_state() -> None:
    info = TokenizerInfo("some/model", 99, 4096)
    with FakeTarget() as target, running_server(target, tokenizer_info=info) as url:
        runtime = connect(url)
        words = read_html(runtime._repr_html_()).words
        assert url in words
        assert "connected" in words
        assert "some/model, up to 4096 tokens" in words
        runtime.close()
        assert repr(runtime) == f"<RemoteRuntime {url}, closed>"
