"""Logs of streams that outlive their connection: what they keep, for how long, and for whom."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from rtlang.contract.errors import AbortedError, GoneError, RtlangError
from rtlang.contract.events import (
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFinished,
    TextDelta,
    Timing,
    TokenLogprob,
)
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.contract.service.metrics import Metrics
from rtlang.protocol.messages import OpenKey
from rtlang.serve.resumable import ResumableStream, ResumeRegistry
from tests.support.programs.scripted_target import ScriptedRun

GRAPH = RequestGraph((Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=2))))
END = GraphFinished(1, {"x": "ab"}, Usage(1, 0, 2))


class Reader:
    """A connection that only notes what it loses."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.lost: list[tuple[int, RtlangError]] = []

    def deliver(self, events: list[tuple[int, Event]]) -> None:
        raise AssertionError("the event_bridge delivers, not the log")

    def abort(self) -> None:
        raise AssertionError

    def lose_stream(self, stream: int, error: RtlangError) -> None:
        self.lost.append((stream, error))


def piece(text: str, choice: int = 0) -> TextDelta:
    return TextDelta(1, 1, choice, text, ())


def on_loop(
    body: Callable[[ResumeRegistry], Coroutine[Any, Any, None]],
    max_bytes: int = 1 << 20,
    metrics: Metrics | None = None,
) -> None:
    async def run() -> None:
        await body(ResumeRegistry(asyncio.get_running_loop(), "epoch", max_bytes, metrics or Metrics()))

    asyncio.run(run())


def begin(runs: ResumeRegistry, reader: Reader, resume_timeout_s: float = 5.0) -> tuple[ResumableStream, ScriptedRun]:
    resumable = runs.begin(reader, 1, resume_timeout_s)
    run = ScriptedRun(1, GRAPH, resumable.take, {}, is_open=False)
    resumable.run = run
    return resumable, run


def overfill(resumable: ResumableStream) -> None:
    """More than a log may hold where all together have 16,000 bytes."""
    for _ in range(200):
        resumable.take(piece("x" * 100))


def test_a_later_connection_receives_missed_events_with_continuing_offsets() -> None:
    async def body(runs: ResumeRegistry) -> None:
        first, second = Reader(), Reader()
        resumable, run = begin(runs, first)
        events = [piece("a"), piece("b"), piece("c", 1), piece("d")]
        assert [resumable.take(event) for event in events] == [(first, 1)] * 4
        resumable.detach(first)
        assert resumable.take(piece("e")) is None
        assert runs.find(resumable.rid, "epoch") is resumable
        replay = resumable.attach(second, 7, 3)
        assert replay.events == (piece("d"), piece("e"))
        assert replay.offsets == {(1, 0): 2, (1, 1): 1}
        assert resumable.take(piece("f")) == (second, 7)
        assert not first.lost
        assert not run.was_cancelled

    on_loop(body)


def test_attach_accepts_any_logged_position_and_no_later_one() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader = Reader()
        resumable, _ = begin(runs, reader)
        resumable.take(piece("a"))
        assert resumable.attach(reader, 2, 0).events == (piece("a"),)
        assert resumable.attach(reader, 3, 1).events == ()
        with pytest.raises(GoneError, match=r"from = 2: the log holds messages 0 to 1") as caught:
            resumable.attach(reader, 4, 2)
        assert caught.value.param == "from"

    on_loop(body)


def test_attaching_takes_the_stream_from_its_reader() -> None:
    async def body(runs: ResumeRegistry) -> None:
        first, second = Reader(), Reader()
        resumable, run = begin(runs, first)
        resumable.attach(second, 3, 0)
        assert [(stream, type(error)) for stream, error in first.lost] == [(1, GoneError)]
        resumable.detach(first)  # its end is no longer the stream's
        assert not resumable.is_detached
        assert not run.was_cancelled

    on_loop(body)


def test_the_graph_is_cancelled_after_the_resume_timeout() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader = Reader()
        resumable, run = begin(runs, reader, resume_timeout_s=0.01)
        resumable.take(piece("a"))
        resumable.detach(reader)
        await asyncio.sleep(0.1)
        assert run.was_cancelled
        assert runs.num_bytes == 0
        assert resumable.take(GraphFailed(1, AbortedError("cancelled"))) is None
        assert runs.num_bytes == 0
        with pytest.raises(GoneError, match="unknown or expired"):
            runs.find(resumable.rid, "epoch")

    on_loop(body)


def test_attaching_stops_the_resume_timeout() -> None:
    async def body(runs: ResumeRegistry) -> None:
        first, second = Reader(), Reader()
        resumable, run = begin(runs, first, resume_timeout_s=0.05)
        resumable.detach(first)
        resumable.attach(second, 1, 0)
        await asyncio.sleep(0.2)
        assert not run.was_cancelled
        assert runs.find(resumable.rid, "epoch") is resumable

    on_loop(body)


def test_an_ended_stream_can_be_attached_until_its_timeout() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader, late = Reader(), Reader()
        resumable, run = begin(runs, reader, resume_timeout_s=0.1)
        resumable.take(piece("a"))
        assert resumable.take(END) == (reader, 1)
        resumable.detach(reader)
        assert resumable.attach(late, 1, 1).events == (END,)
        await asyncio.sleep(0.3)
        assert not run.was_cancelled  # it had ended
        with pytest.raises(GoneError):
            runs.find(resumable.rid, "epoch")

    on_loop(body)


def test_ended_streams_make_room_for_running_ones() -> None:
    async def body(runs: ResumeRegistry) -> None:
        ended = [begin(runs, Reader())[0] for _ in range(40)]
        for resumable in ended:
            for _ in range(5):
                resumable.take(piece("x" * 100))
            resumable.take(END)
        reader = Reader()
        running, _ = begin(runs, reader)
        for number in range(10):
            running.take(piece(str(number)))
        assert len(running.attach(reader, 2, 0).events) == 10
        assert runs.num_bytes <= 64_000
        with pytest.raises(GoneError):
            runs.find(ended[0].rid, "epoch")
        assert runs.find(ended[-1].rid, "epoch") is ended[-1]

    on_loop(body, max_bytes=64_000)


def test_a_stream_with_dropped_events_cannot_be_attached() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader = Reader()
        resumable, run = begin(runs, reader)
        overfill(resumable)
        with pytest.raises(GoneError):
            resumable.attach(Reader(), 2, 0)
        assert not run.was_cancelled  # somebody reads it
        assert (reader.lost, resumable.take(piece("y"))) == ([], (reader, 1))
        resumable.detach(reader)
        with pytest.raises(GoneError):
            resumable.attach(Reader(), 2, 0)
        assert run.was_cancelled
        assert runs.num_bytes == 0

    on_loop(body, max_bytes=16_000)


def test_bye_ends_the_stream_unless_another_connection_has_attached() -> None:
    async def body(runs: ResumeRegistry) -> None:
        first, second = Reader(), Reader()
        resumable, run = begin(runs, first)
        resumable.attach(second, 2, 0)
        resumable.leave(first)
        assert runs.find(resumable.rid, "epoch") is resumable
        resumable.leave(second)
        assert run.was_cancelled
        with pytest.raises(GoneError):
            runs.find(resumable.rid, "epoch")

    on_loop(body)


def test_the_graph_of_an_ended_stream_is_released() -> None:
    async def body(runs: ResumeRegistry) -> None:
        resumable, run = begin(runs, Reader())
        resumable.take(piece("a"))
        assert resumable.run is run
        resumable.take(END)
        assert resumable.run is None
        resumable.end()
        assert not run.was_cancelled

    on_loop(body)


def test_attaching_after_the_last_message_is_gone() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader, other = Reader(), Reader()
        resumable, _ = begin(runs, reader)
        resumable.take(piece("a"))
        resumable.take(END)
        with pytest.raises(GoneError, match="has ended and has no further messages"):
            resumable.attach(other, 1, 2)
        assert resumable.attach(other, 2, 1).events == (END,)
        assert not reader.lost  # it saw the end

    on_loop(body)


def test_streams_of_an_earlier_server_process_are_gone() -> None:
    async def body(runs: ResumeRegistry) -> None:
        resumable, _ = begin(runs, Reader())
        with pytest.raises(GoneError, match="has restarted") as caught:
            runs.find(resumable.rid, "before")
        assert caught.value.param == "epoch"
        with pytest.raises(GoneError, match="unknown or expired stream") as caught:
            runs.find("0" * 32, "epoch")
        assert caught.value.param == "rid"

    on_loop(body)


def test_a_full_log_drops_its_oldest_events() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader = Reader()
        resumable, _ = begin(runs, reader)
        overfill(resumable)
        assert runs.num_bytes <= 1000
        replay = resumable.attach(reader, 3, 199)
        assert replay.offsets == {(1, 0): 199}
        assert len(replay.events) == 1
        with pytest.raises(GoneError, match="from = 0: the log holds messages"):
            resumable.attach(reader, 4, 0)

    on_loop(body, max_bytes=16_000)


def test_all_logs_together_stay_within_their_memory() -> None:
    async def body(runs: ResumeRegistry) -> None:
        all_runs = [begin(runs, Reader())[0] for _ in range(40)]
        for _ in range(50):
            for resumable in all_runs:
                resumable.take(piece("x" * 100))
        assert runs.num_bytes <= 16_000 + 40 * 300  # each keeps its last event
        for resumable in all_runs:
            resumable.end()
        assert runs.num_bytes == 0

    on_loop(body, max_bytes=16_000)


def test_large_results_count_with_what_they_hold() -> None:
    async def body(runs: ResumeRegistry) -> None:
        resumable, _ = begin(runs, Reader())
        top = tuple((i, -1.0) for i in range(20))
        done = Completion("ab", (1, 2), FinishReason.STOP, None, (TokenLogprob(1, -0.5, top),) * 100)
        resumable.take(NodeFinished(1, 1, "x", (done,), Usage(1, 0, 2), Timing(), prompt_logprobs=done.logprobs))
        assert runs.num_bytes > 200_000
        before = runs.num_bytes
        resumable.take(GraphFinished(1, {"x": ["y" * 1000] * 10}, Usage(1, 0, 2)))
        assert runs.num_bytes > before + 10_000

    on_loop(body, max_bytes=1 << 30)


def test_after_closing_no_stream_survives_its_connection() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader, other = Reader(), Reader()
        attached, its_run = begin(runs, reader)
        detached, other_run = begin(runs, other)
        detached.detach(other)
        runs.close()
        assert other_run.was_cancelled
        assert not its_run.was_cancelled
        attached.detach(reader)
        assert its_run.was_cancelled

    on_loop(body)


def test_late_messages_of_a_broken_connection_do_not_take_a_stream_back() -> None:
    async def body(runs: ResumeRegistry) -> None:
        first, broken, second = Reader(), Reader(), Reader()
        resumable, _ = begin(runs, first)
        resumable.attach(second, 2, 0)
        with pytest.raises(GoneError):
            resumable.attach(broken, 2, 0)
        assert (first.lost, broken.lost, second.lost) == (first.lost[:1], [], [])
        assert resumable.take(piece("a")) == (second, 2)
        resumable.detach(second)
        with pytest.raises(GoneError):
            resumable.attach(broken, 2, 0)
        assert resumable.take(piece("b")) is None
        resumable.attach(second, 3, 1)
        assert resumable.take(piece("c")) == (second, 3)

    on_loop(body)


def test_metrics_count_detached_streams_and_logged_bytes() -> None:
    metrics = Metrics()

    def counts() -> tuple[float | None, float | None]:
        value = metrics.registry.get_sample_value
        return value("rtlang_ws_streams_detached"), value("rtlang_ws_resume_buffer_bytes")

    async def body(runs: ResumeRegistry) -> None:
        reader, other = Reader(), Reader()
        first, _ = begin(runs, reader)
        second, _ = begin(runs, reader)
        assert counts() == (0, 0)
        first.take(piece("a"))
        assert counts() == (0, runs.num_bytes)
        first.detach(reader)
        second.detach(reader)
        assert counts()[0] == 2
        first.attach(other, 7, 0)
        assert counts()[0] == 1
        first.detach(other)
        first.take(END)  # nobody reads it, but it no longer runs either
        assert counts()[0] == 1
        first.end()
        second.end()
        assert counts() == (0, 0)

    on_loop(body, metrics=metrics)


def test_a_stream_belongs_to_its_principal() -> None:
    async def body(runs: ResumeRegistry) -> None:
        ana, bo, key = Principal("ana"), Principal("bo"), OpenKey("k", "digest")
        streams = [runs.begin(Reader(), 1, 5.0, key, each) for each in (ana, bo)]
        assert [runs.opened_as(key, each) for each in (ana, bo)] == streams
        assert runs.find(streams[0].rid, "epoch", replace(ana, client="other connection")) is streams[0]
        with pytest.raises(GoneError, match="unknown"):
            runs.find(streams[0].rid, "epoch", bo)
        for stream in streams:
            stream.end()
        assert runs.opened_as(key, ana) is None

    on_loop(body)


def test_a_principal_may_have_so_many_detached_streams() -> None:
    async def body(runs: ResumeRegistry) -> None:
        limited, other = Principal("a", limits=PrincipalLimits(max_detached=2)), Principal("b")
        started = []
        for principal in (limited, limited, limited, other, other, other):
            reader, run = Reader(), ScriptedRun(1, GRAPH, lambda event: None, {}, False)
            stream = runs.begin(reader, 1, 5.0, None, principal)
            stream.run = run
            started.append((stream, reader, run))
        for stream, reader, _ in started:
            stream.detach(reader)
        assert [run.was_cancelled for *_, run in started] == [False, False, True, False, False, False]
        started[0][0].attach(Reader(), 1, 0)
        assert runs.may_detach(limited)

    on_loop(body)


def test_the_streams_of_a_principal_that_is_gone_end() -> None:
    async def body(runs: ResumeRegistry) -> None:
        reader, found = Reader(), []
        for number, name in enumerate(("ana", "bo", "bo"), 1):
            resumable = runs.begin(reader, number, 60.0, principal=Principal(name))
            resumable.run = ScriptedRun(number, GRAPH, resumable.take, {}, is_open=False)
            found.append((resumable, resumable.run))
        found[1][0].detach(reader)
        runs.end_streams(lambda principal: principal.name == "bo")
        assert [run.was_cancelled for _, run in found] == [False, True, True]
        with pytest.raises(GoneError):
            runs.find(found[1][0].rid, "epoch", Principal("bo"))
        assert runs.find(found[0][0].rid, "epoch", Principal("ana")) is found[0][0]

    on_loop(body)
