"""Connections that break under running graphs: with `resume_s` the graphs go on where they were."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rtlang as rt
from rtlang.client.client_session import Link
from rtlang.client.connect import connect
from rtlang.client.remote_run import RemoteGraphRun
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.errors import ConfigError, ConnectionLostError, GraphError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.serve.server import TokenizerInfo, running_server
from tests.client.test_remote_runtime import TIMEOUT_S, Ear
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.cut_proxy import CutProxy, cut_proxy
from tests.support.servers.serving import Serving, serving
from tests.support.waiting import wait_until


def graph(max_tokens: int) -> RequestGraph:
    return RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=max_tokens))))


def pieces(ear: Ear) -> list[str]:
    return [event.text for event in ear.events if isinstance(event, TextDelta)]


@contextmanager
def behind_a_proxy(
    timeout_s: float = TIMEOUT_S, resume_s: float = TIMEOUT_S, **settings: Any
) -> Iterator[tuple[Serving, CutProxy, RemoteRuntime]]:
    """A server with these settings, a proxy whose connections can be cut, and a runtime that is connected through it."""
    with (
        serving(**settings) as server,
        cut_proxy(server.url) as proxy,
        connect(proxy.url, timeout_s=timeout_s, resume_s=resume_s) as runtime,
    ):
        yield server, proxy, runtime


def test_graphs_continue_after_every_cut() -> None:
    with serving() as server, cut_proxy(server.url) as proxy:
        with connect(proxy.url, timeout_s=TIMEOUT_S, resume_s=TIMEOUT_S) as runtime:
            ears = [Ear() for _ in range(3)]
            for ear in ears:
                runtime.submit(graph(12), ear)
            expected = []
            for number in range(12):
                if number % 3 == 1:
                    proxy.cut()
                expected.append(f"<{number}>")
                server.target.step(expected[-1])  # some while nobody is there
            server.target.finish()
            for ear in ears:
                end = ear.end()
                assert isinstance(end, GraphFinished)
                assert end.values == {"x": "".join(expected)}
                assert pieces(ear) == expected
            assert runtime.is_alive
            assert proxy.num_connections > 1
        assert not any(run.was_cancelled for run in server.target.runs)


def test_messages_sent_while_disconnected_arrive() -> None:
    with behind_a_proxy() as (server, proxy, runtime):
        ear, other, late = Ear(), Ear(), Ear()
        run = runtime.submit(graph(1), ear, RunOptions(is_open=True))
        doomed = runtime.submit(graph(5), other)
        proxy.is_open = False
        proxy.cut()
        wait_until(lambda: server.count("ws_connections") == 0)
        later = threading.Timer(0.3, lambda: setattr(proxy, "is_open", True))
        later.start()
        doomed.cancel()
        run.extend([Generate(2, 1, "y", SamplingParams(max_tokens=1))])  # waits for the server's word
        with pytest.raises(GraphError):
            run.extend([Generate(2, 1, "y", SamplingParams(max_tokens=1))])
        run.close()
        runtime.submit(graph(1), late)
        later.join()
        wait_until(lambda: server.target.runs[1].was_cancelled)
        wait_until(lambda: not server.target.runs[0].is_open)
        assert len(server.target.runs[0].nodes) == 3
        server.target.finish()
        assert isinstance(ear.end(), GraphFinished)
        assert isinstance(late.end(), GraphFinished)
        assert isinstance(other.end(), GraphFailed)


@pytest.mark.parametrize("cut_after", [1, 4, 9])
def test_a_large_graph_that_is_cut_at_its_submission_arrives_whole(cut_after: int) -> None:
    nodes: list[Node] = [Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=1))]
    nodes += [Text(number, number - 1, ("x" * 300,)) for number in range(2, 120)]
    with behind_a_proxy(max_frame_bytes=8192) as (server, proxy, runtime):
        ear = Ear()
        num_sent, send = 0, runtime._transport.send

        def cutting_send(link: Link, *packed: bytes) -> None:
            nonlocal num_sent
            for data in packed:
                if num_sent == cut_after:
                    proxy.cut()
                num_sent += 1
                send(link, data)

        runtime._transport.send = cutting_send  # type: ignore[method-assign]
        runtime.submit(RequestGraph(tuple(nodes)), ear)
        assert num_sent > 9
        wait_until(lambda: any(not run.is_open and len(run.nodes) == 120 for run in server.target.runs))
        assert len(server.target.runs) == 1
        server.target.finish()
        assert isinstance(ear.end(), GraphFinished)


def test_extensions_during_many_cuts_are_done_once() -> None:
    with behind_a_proxy() as (server, proxy, runtime):
        ears = [Ear() for _ in range(3)]
        runs = [runtime.submit(graph(1), ear, RunOptions(is_open=True)) for ear in ears]

        def extend(run: RemoteGraphRun) -> None:
            for number in range(2, 22):
                run.extend([Text(number, number - 1, ("x",))])
            run.close()

        threads = [threading.Thread(target=extend, args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        num_before = 0
        while any(thread.is_alive() for thread in threads):
            num_now = sum(len(run.nodes) for run in server.target.runs)
            if num_now > num_before:  # a slow machine gets on, too
                num_before = num_now
                proxy.cut()
            time.sleep(0.02)
        for thread in threads:
            thread.join()
        wait_until(lambda: all(not run.is_open for run in server.target.runs))
        assert [len(run.nodes) for run in server.target.runs] == [22] * 3
        server.target.finish()
        assert all(isinstance(ear.end(), GraphFinished) for ear in ears)


def test_a_listener_may_submit_extend_and_cancel_while_disconnected() -> None:
    with behind_a_proxy() as (server, proxy, runtime):
        inner, doomed_ear = Ear(), Ear()

        def listen(event: Event) -> None:
            if isinstance(event, TextDelta):
                proxy.cut()
                run = runtime.submit(graph(1), inner, RunOptions(is_open=True))
                run.extend([Text(2, 1, ("x",))])
                run.close()
                runtime.submit(graph(5), doomed_ear).cancel()

        runtime.submit(graph(1), listen)
        server.target.step()
        wait_until(lambda: any(not run.is_open and len(run.nodes) == 3 for run in server.target.runs))
        wait_until(lambda: any(run.was_cancelled for run in server.target.runs))
        server.target.finish()
        assert isinstance(inner.end(), GraphFinished)
        assert isinstance(doomed_ear.end(), GraphFailed)


def test_an_awaited_answer_may_arrive_after_a_long_outage() -> None:
    with behind_a_proxy(timeout_s=0.3) as (server, proxy, runtime):
        ear = Ear()
        run = runtime.submit(graph(1), ear, RunOptions(is_open=True))
        proxy.is_open = False
        proxy.cut()
        wait_until(lambda: server.count("ws_connections") == 0)
        later = threading.Timer(1.5, lambda: setattr(proxy, "is_open", True))
        later.start()
        run.extend([Text(2, 1, ("x",))])
        run.close()
        later.join()
        wait_until(lambda: not server.target.runs[0].is_open)
        server.target.finish()
        assert isinstance(ear.end(), GraphFinished)


def test_reconnects_are_delayed_when_connections_break_at_once() -> None:
    with behind_a_proxy(resume_s=1.0) as (server, proxy, runtime):
        ear = Ear()
        runtime.submit(graph(5), ear)
        before = proxy.num_connections

        def cut_all() -> None:
            while runtime.is_alive:
                wait_until(lambda: server.count("ws_connections") > 0 or not runtime.is_alive)
                proxy.cut()

        proxy.swallows = True  # what the server says after the greeting does not arrive
        cutter = threading.Thread(target=cut_all)
        cutter.start()
        end = ear.end()
        cutter.join()
        assert isinstance(end, GraphFailed)
        assert type(end.error) is ConnectionLostError
        assert proxy.num_connections - before < 15


def test_a_server_that_does_not_come_back_ends_the_graphs_in_time() -> None:
    with serving() as server, cut_proxy(server.url) as proxy:
        with connect(proxy.url, timeout_s=TIMEOUT_S, resume_s=0.2) as runtime:
            ear = Ear()
            runtime.submit(graph(5), ear)
            proxy.is_open = False
            proxy.cut()
            end = ear.end()
            assert isinstance(end, GraphFailed)
            assert type(end.error) is ConnectionLostError
            assert not runtime.is_alive
            with pytest.raises(ConnectionLostError):
                runtime.submit(graph(5), ear)
        wait_until(lambda: server.target.runs[0].was_cancelled)


def test_another_server_in_its_place_goes_on_behind_the_pieces_that_arrived() -> None:
    with (
        serving() as first,
        serving() as second,
        cut_proxy(first.url) as proxy,
        connect(proxy.url, timeout_s=TIMEOUT_S, resume_s=TIMEOUT_S) as runtime,
    ):
        ears = [Ear(), Ear()]
        for number, ear in enumerate(ears):
            runtime.submit(graph(4 + number), ear)
        for number in range(3):
            first.target.step(f"<{number}>")
        wait_until(lambda: all(len(pieces(ear)) == 3 for ear in ears))
        proxy.lead_to(second.url)
        proxy.cut()
        second.target.wait_for(2)
        for number in range(3, 7):
            second.target.step(f"<{number}>")
        for number, ear in enumerate(ears):
            end = ear.end()
            assert isinstance(end, GraphFinished)
            assert pieces(ear) == [f"<{each}>" for each in range(4 + number)]
            assert end.values["x"] == "".join(pieces(ear))


def test_a_server_of_another_model_is_refused() -> None:
    ours, theirs = TokenizerInfo("m", identity="m@1"), TokenizerInfo("m", identity="m@2")
    first, second, third = ScriptedTarget(), ScriptedTarget(), ScriptedTarget()
    with (
        running_server(second, tokenizer_info=theirs) as other,
        running_server(third, tokenizer_info=ours) as same,
        running_server(first, tokenizer_info=ours) as url,
        cut_proxy(url) as proxy,
        connect(proxy.url, timeout_s=TIMEOUT_S, resume_s=60) as alone,
        connect([proxy.url, other, same], timeout_s=TIMEOUT_S, resume_s=60) as moving,
    ):
        assert alone.model_identity == moving.model_identity == "m@1"
        ears = [Ear(), Ear()]
        for runtime, ear in zip((alone, moving), ears, strict=True):
            runtime.submit(graph(2), ear)
        first.step("<0>")
        wait_until(lambda: all(len(pieces(ear)) == 1 for ear in ears))
        proxy.lead_to(other)
        proxy.cut()
        end = ears[0].end()
        assert isinstance(end, GraphFailed)
        assert re.search("it serves m@2, and this connection began with m@1", str(end.error))
        third.wait_for(1)
        third.step("<1>")
        third.step("<2>")
        assert isinstance(ears[1].end(), GraphFinished)
        assert pieces(ears[1]) == ["<0>", "<1>"]
        assert moving.url == same
        assert second.runs == []


def test_graphs_leave_a_server_that_shuts_down() -> None:
    first = ScriptedTarget()
    with (
        serving() as second,
        contextlib.ExitStack() as exits,
        connect(
            [exits.enter_context(running_server(first)), second.url], timeout_s=TIMEOUT_S, resume_s=TIMEOUT_S
        ) as runtime,
    ):
        ear = Ear()
        runtime.submit(graph(2), ear)
        first.step("<0>")
        wait_until(lambda: len(pieces(ear)) == 1)
        stopping = threading.Thread(target=exits.close)
        stopping.start()
        second.target.wait_for(1)
        assert runtime.url == second.url
        second.target.step("<1>")
        second.target.step("<2>")
        assert isinstance(ear.end(), GraphFinished)
        assert pieces(ear) == ["<0>", "<1>"]
        wait_until(lambda: first.runs[0].was_cancelled)
        first.step()
        stopping.join()


def test_the_first_address_that_answers_is_used_and_none_is_an_error() -> None:
    closed = "ws://127.0.0.1:9"
    with serving() as server, connect([closed, server.url], timeout_s=TIMEOUT_S) as runtime:
        assert runtime.url == server.url
        assert runtime.cache._requests.url.startswith(server.url.replace("ws", "http"))
    with pytest.raises(ConnectionLostError, match=r"127.0.0.1:9: .*; ws://127.0.0.1:10: "):
        connect([closed, "ws://127.0.0.1:10"], timeout_s=TIMEOUT_S)
    with pytest.raises(ConfigError, match="url"):
        connect([])


def test_without_resume_the_connection_ends_its_graphs() -> None:
    with serving() as server, cut_proxy(server.url) as proxy, connect(proxy.url, timeout_s=TIMEOUT_S) as runtime:
        ear = Ear()
        runtime.submit(graph(5), ear)
        proxy.cut()
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert type(end.error) is ConnectionLostError
        wait_until(lambda: server.target.runs[0].was_cancelled)


def test_closing_while_the_connection_is_broken_ends_soon() -> None:
    with serving() as server, cut_proxy(server.url) as proxy:
        runtime = connect(proxy.url, timeout_s=TIMEOUT_S, resume_s=600)
        ear = Ear()
        runtime.submit(graph(5), ear)
        proxy.is_open = False
        proxy.cut()
        wait_until(lambda: server.count("ws_connections") == 0)
        begun = time.monotonic()
        runtime.close()
        assert time.monotonic() - begun < TIMEOUT_S
        assert isinstance(ear.end(), GraphFailed)


def test_programs_run_through_cuts_on_a_real_model() -> None:
    @rt.program
    def story(s: rt.State) -> None:
        s += "Once upon a time"
        s += rt.gen("text", max_tokens=300, ignore_eos=True)

    with rt.Runtime(num_pages=512) as local:
        whole = story.run(runtime=local)["text"]
        with running_server(local) as url, cut_proxy(url) as proxy, connect(proxy.url, resume_s=TIMEOUT_S) as runtime:
            stream = story.stream(runtime=runtime)
            seen = []
            for number, text in enumerate(stream.text("text")):
                seen.append(text)
                if number % 7 == 3:
                    proxy.cut()
            assert "".join(seen) == whole
            assert proxy.num_connections > 1


@pytest.mark.parametrize("resume_s", [0, -1, 601, float("nan"), True, "30"])
def test_an_invalid_resume_time_is_refused(resume_s: object) -> None:
    with pytest.raises(ConfigError, match="resume_s"):
        connect("ws://127.0.0.1:9", resume_s=resume_s)  # type: ignore[arg-type]
