"""One graph for one request: its events in order, and cancellation in every way that a request can end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import OverloadError, SlowConsumerError
from rtlang.contract.events import GraphFinished, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.generation import generation_graph
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.connection import ServerInfo
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.graph_stream import GraphStream, events_of
from rtlang.serve.service import StreamService
from tests.support.programs.scripted_target import ScriptedTarget

GRAPH = generation_graph("p", SamplingParams(max_tokens=3))


def with_service(test: Callable[[StreamService, ScriptedTarget], Awaitable[None]], **settings: int) -> None:
    async def run() -> None:
        target = ScriptedTarget()
        config = ServeConfig(port=0, **settings)
        service = StreamService(target, config, ServerInfo("e"), Metrics(), asyncio.get_running_loop())
        await test(service, target)
        assert not service.http_streams

    asyncio.run(run())


def test_events_come_in_order_and_end_with_the_final_one() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        events = []
        async for event in events_of(service, GRAPH, RunOptions(priority=3)):
            events.append(type(event))
            target.step()
        assert events == [TextDelta, TextDelta, TextDelta, NodeFinished, GraphFinished]
        assert target.runs[0].priority == 3

    async def stepping(service: StreamService, target: ScriptedTarget) -> None:
        asyncio.get_running_loop().call_soon(target.step)
        await test(service, target)

    with_service(stepping)


def test_a_refusal_is_raised_before_the_first_event() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        target.refusal = OverloadError("full", 2.0)
        with pytest.raises(OverloadError):
            await anext(events_of(service, GRAPH))
        target.refusal = None
        service.is_draining = True
        with pytest.raises(HttpError, match="shutting down") as refused:
            await anext(events_of(service, GRAPH))
        assert (refused.value.status, refused.value.retry_after) == (503, service.config.drain_timeout_s)
        assert not target.runs

    with_service(test)


def test_a_reader_that_stops_early_cancels_the_graph() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        async with GraphStream(service, GRAPH) as stream:
            target.step()
            async for _ in stream.batches():
                break
            assert stream.num_running == 1
        assert target.runs[0].was_cancelled
        assert stream.num_running == 0

    with_service(test)


def test_a_graph_that_has_ended_is_not_cancelled() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        async with GraphStream(service, GRAPH) as stream:
            target.finish()
            assert [len(events) async for events in stream.batches()] == [5]
        assert not target.runs[0].was_cancelled

    with_service(test)


def test_a_full_buffer_ends_the_stream() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        async with GraphStream(service, GRAPH) as stream:
            target.step("x" * 10_000)
            assert len(await anext(stream.batches())) == 1  # however large, one event can be taken
            target.step("x" * 1000)
            target.step("x" * 1000)
            with pytest.raises(SlowConsumerError):
                await anext(stream.batches())
        assert target.runs[0].was_cancelled

    with_service(test, send_buffer_bytes=1000)


def test_a_server_that_stops_waits_for_the_stream_and_then_ends_it() -> None:
    async def test(service: StreamService, target: ScriptedTarget) -> None:
        async with GraphStream(service, GRAPH) as stream:
            service.drain(5.0)
            assert not service.idle.is_set()
            service.close_all(1001, "the server is shutting down")
            with pytest.raises(HttpError, match="shutting down") as caught:
                await anext(stream.batches())
        assert caught.value.status == 503
        assert target.runs[0].was_cancelled
        assert service.idle.is_set()

    with_service(test)
