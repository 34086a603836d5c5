"""The asyncio client against a real engine, behind a proxy whose connections can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import pytest

import rtlang as rt
from rtlang.client import async_runtime
from rtlang.client.async_runtime import AsyncRemoteRuntime, connect_async
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import AbortedError, ConnectionLostError, GraphError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Call, Const, Generate, Ref, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.serve.server import running_server
from tests.support.servers.cut_proxy import cut_proxy

PARAMS = SamplingParams(max_tokens=40, ignore_eos=True, temperature=0.7, seed=3)
GRAPH = RequestGraph((Text(0, None, ("Once upon a time",)), Generate(1, 0, "x", PARAMS)))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with (
        rt.Runtime(speculation="off") as runtime,
        running_server(runtime, ServeConfig(port=0, api_key="secret")) as address,
    ):
        yield address


@pytest.fixture(autouse=True)
def _small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_runtime, "WINDOW", 8)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


async def events_of(remote: AsyncRemoteRuntime, graph: RequestGraph = GRAPH, **options: Any) -> list[Event]:
    return [event async for event in remote.stream(graph, **options)]


def ids_of(events: list[Event]) -> list[int]:
    return [token_id for event in events if isinstance(event, TextDelta) for token_id in event.token_ids]


def test_a_stream_wider_than_its_window_arrives_whole_and_equals_a_generation(url: str) -> None:
    async def work() -> None:
        async with connect_async(url, api_key="secret") as remote:
            assert remote.models is not None
            first, second = await asyncio.gather(events_of(remote), events_of(remote))
            assert ids_of(first) == ids_of(second)
            assert len(ids_of(first)) == 40
            assert isinstance(first[-1], GraphFinished)
            done = await remote.generate("Once upon a time", params=PARAMS)
            assert done.completions[0].token_ids == tuple(ids_of(first))

    run(work())


def test_leaving_the_loop_cancels_the_graph_and_close_ends_the_others(url: str) -> None:
    async def work() -> None:
        ended: list[Event] = []
        async with connect_async(url, api_key="secret") as remote:
            async with aclosing(remote.stream(GRAPH)) as events:  # type: ignore[type-var]
                async for _ in events:
                    break
            await remote.submit(GRAPH, ended.append, RunOptions(credit=0))
        (failed,) = ended
        assert isinstance(failed, GraphFailed)
        assert isinstance(failed.error, AbortedError)
        with pytest.raises(ConnectionLostError):
            await remote.submit(GRAPH, ended.append)

    run(work())


def test_host_calls_and_refusals(url: str) -> None:
    called = RequestGraph(
        (Call(0, "double", (Const(4),), "eight"), Text(1, None, ("n", Ref(0))), Generate(2, 1, "y", PARAMS))
    )

    async def work() -> None:
        async with connect_async(url, api_key="secret") as remote:
            events = await events_of(remote, called, functions={"double": lambda args: 2 * args[0]})
            assert isinstance(events[-1], GraphFinished)
            assert events[-1].values["eight"] == 8
            with pytest.raises(GraphError, match="missing"):
                await remote.submit(RequestGraph((Text(0, None, ()),), ("a",)), lambda event: None)

    run(work())


def test_a_wrong_key_and_a_server_that_is_not_there_are_connection_lost(url: str) -> None:
    for address, key in ((url, "wrong"), ("ws://127.0.0.1:1", None)):
        with pytest.raises(ConnectionLostError):
            run(connect_async(address, api_key=key).start())


def test_a_stream_goes_on_behind_a_cut(url: str) -> None:
    async def work() -> None:
        with cut_proxy(url) as proxy:
            async with connect_async(proxy.url, api_key="secret", resume_s=30) as remote:
                whole = ids_of(await events_of(remote))
                found: list[Event] = []
                async for event in remote.stream(GRAPH):
                    found.append(event)
                    if len(found) in (3, 20):
                        proxy.cut()
                assert ids_of(found) == whole
                assert proxy.num_connections == 3

    run(work())


def test_without_resumption_a_cut_ends_the_graphs(url: str) -> None:
    async def work() -> None:
        with cut_proxy(url) as proxy:
            async with connect_async(proxy.url, api_key="secret") as remote:
                ended: list[Event] = []
                await remote.submit(GRAPH, ended.append, RunOptions(credit=0))
                proxy.cut()
                while not ended:
                    await asyncio.sleep(0.01)
                (failed,) = ended
                assert isinstance(failed, GraphFailed)
                assert isinstance(failed.error, ConnectionLostError)

    run(work())
