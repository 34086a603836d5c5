"""Server-sent events: what is written, errors before and after the start, heartbeats, and clients that leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from rtlang.contract.errors import GraphError
from rtlang.serve.http.events import sse
from rtlang.serve.http.events.sse import DONE, SSE, SseResponse, sse_event, unless_disconnected


class Client:
    """The other side of an ASGI response."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.leave = asyncio.Event()

    async def receive(self) -> Message:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def groups_of(*groups: Sequence[bytes] | Exception, log: list[str]) -> AsyncGenerator[Sequence[bytes], None]:
    try:
        for group in groups:
            if isinstance(group, Exception):
                raise group
            yield group
            await asyncio.sleep(0)
        if not log:
            return
        await asyncio.Event().wait()
    finally:
        log.append("closed")


def respond(client: Client, groups: AsyncGenerator[Sequence[bytes], None]) -> Any:
    return SseResponse(groups)({"type": "http"}, client.receive, client.send)


def test_an_event_is_one_line_of_json() -> None:
    assert sse_event({"a": "x\n\r ü"}, event="e", event_id="r:1") == (
        'id: r:1\nevent: e\ndata: {"a":"x\\n\\r ü"}\n\n'.encode()
    )
    assert sse_event({"a": "\ud800"}) == b'data: {"a":"?"}\n\n'


def test_groups_are_written_as_one_piece_each() -> None:
    async def run() -> None:
        log: list[str] = []
        client = Client()
        await respond(client, groups_of([b"a", b"b"], [b"c"], log=log))
        start, *bodies = client.sent
        assert (start["status"], dict(start["headers"])[b"content-type"][:17]) == (200, b"text/event-stream")
        assert [(body["body"], body["more_body"]) for body in bodies] == [(b"ab", True), (b"c", True), (b"", False)]
        assert log == ["closed"]

    asyncio.run(run())


def test_an_error_before_the_start_is_an_error_response() -> None:
    async def run() -> None:
        client = Client()
        await respond(client, groups_of(GraphError(3, "stop", "no"), log=[]))
        assert client.sent[0]["status"] == 400
        error = json.loads(client.body)["error"]
        assert (error["param"], error["type"], error["code"]) == ("stop", "invalid_request_error", "graph")

    asyncio.run(run())


def test_an_error_after_the_start_is_an_event() -> None:
    async def run() -> None:
        client = Client()
        await respond(client, groups_of([b"a"], ValueError("secret"), log=[]))
        assert client.sent[0]["status"] == 200
        assert client.body.startswith(b'adata: {"error":{')
        assert client.body.endswith(DONE)
        assert b"secret" not in client.body

    asyncio.run(run())


def test_a_client_that_leaves_closes_the_iterator() -> None:
    async def run() -> None:
        log = ["waits"]
        client = Client()
        task = asyncio.ensure_future(respond(client, groups_of([b"a"], log=log)))
        while not client.body:
            await asyncio.sleep(0)
        client.leave.set()
        await task
        assert log == ["waits", "closed"]

    asyncio.run(run())


def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.001)
    monkeypatch.setattr(sse, "_FIRST_WAIT_S", 0.001)

    async def run() -> None:
        client = Client()
        task = asyncio.ensure_future(respond(client, groups_of(log=["waits"])))
        while client.body.count(b": \n\n") < 3:
            await asyncio.sleep(0.001)
        client.leave.set()
        await task

    asyncio.run(run())


def test_work_is_cancelled_when_the_client_leaves() -> None:
    async def run() -> None:
        client = Client()
        request = Request({"type": "http", "headers": []}, client.receive)

        async def three() -> int:
            return 3

        assert await unless_disconnected(request, three()) == 3
        endless = asyncio.ensure_future(asyncio.Event().wait())
        client.leave.set()
        assert await unless_disconnected(request, endless) is None
        assert endless.cancelled()

    asyncio.run(run())


def test_a_protocol_has_its_own_heartbeat_after_the_first_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.001)
    monkeypatch.setattr(sse, "_FIRST_WAIT_S", 0.001)
    client = Client()

    async def groups() -> AsyncGenerator[Sequence[bytes], None]:
        while client.body.count(b":") < 2:
            await asyncio.sleep(0)
        yield [b"first"]
        while b"beat" not in client.body:
            await asyncio.sleep(0)

    asyncio.run(
        SseResponse(groups(), form=replace(SSE, heartbeat=b"beat"))({"type": "http"}, client.receive, client.send)
    )
    before, _, after = client.body.partition(b"first")
    assert set(before.split(b"\n\n")[:-1]) == {b": "}
    assert set(after.split(b"beat")) == {b""}
