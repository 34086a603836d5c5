"""Server-sent events.

A response carries groups of events, each written as one piece. A comment is sent when nothing else was for a while, so that proxies and
clients keep the connection. The iterator of the groups is closed as soon as the client leaves; a client that takes no bytes is dropped by
the connection (http_connection.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rtlang.serve.http.errors import described_error, response_of
from rtlang.serve.http.events.direct_events import DirectWriter
from rtlang.serve.json_parts import json_text

_T = TypeVar("_T")

HEARTBEAT_S = 15.0
DONE = b"data: [DONE]\n\n"
_HEARTBEAT = b": \n\n"
_FIRST_WAIT_S = 2.0  # an error that comes within this time is an error response; later ones are events of the stream
_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # nginx would hold the events back
}


def sse_data(data: bytes) -> bytes:
    """One event with packed JSON data."""
    return b"data: " + data + b"\n\n"


def sse_event(data: Mapping[str, Any], *, event: str | None = None, event_id: str | None = None) -> bytes:
    """One event with JSON data. `event` and `event_id` must not contain line breaks."""
    first = "" if event_id is None else f"id: {event_id}\n"
    return f"{first}{sse_text(data, event)}".encode(errors="replace")


def sse_text(data: Mapping[str, Any], event: str | None = None) -> str:
    """`sse_event` as text, which may have lone surrogates."""
    name = "" if event is None else f"event: {event}\n"
    return f"{name}data: {json_text(data)}\n\n"


def json_line(data: Mapping[str, Any], event: str | None = None) -> str:
    """One line of a stream of JSON lines; the name of the event is left out."""
    return f"{json_text(data)}\n"


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How the parts of a stream are written.

    Attributes:
        media_type: of the response.
        encode: a part as text; the second argument is the name of its type, if it has one.
        end: written last; may be empty.
        heartbeat: written when nothing else was for a while, after the first part; before it, a comment is. Empty for none at all.
        refuse: the response to a request that fails before the first part.
    """

    media_type: str = "text/event-stream; charset=utf-8"
    encode: Callable[[Mapping[str, Any], str | None], str] = sse_text
    end: bytes = DONE
    heartbeat: bytes = _HEARTBEAT
    refuse: Callable[[BaseException], Response] = response_of


SSE = StreamForm()


class SseResponse(Response):
    """A response of server-sent events, or of a stream in another form.

    Args:
        groups: groups of encoded events. Closed at the end of the response in every case, on the task of the response.
        on_error: the events that report an error after the start; default: one event with the error body, then `[DONE]`.
        direct: writes some events past this response, from its first group until its end.
    """

    def __init__(
        self,
        groups: AsyncGenerator[Sequence[bytes], None],
        *,
        on_error: Callable[[BaseException], Sequence[bytes]] | None = None,
        direct: DirectWriter | None = None,
        form: StreamForm = SSE,
    ) -> None:
        super().__init__(headers=_HEADERS | {"content-type": form.media_type})
        self._form = form
        del self.headers["content-length"]
        self._groups = groups
        self._on_error = on_error or _error_events
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._groups) as groups:
            leaving = asyncio.ensure_future(disconnected(receive))
            try:
                await self._respond(groups, leaving, scope, receive, send)
            finally:
                leaving.cancel()
                if self._direct is not None:
                    self._direct.close()

    async def _respond(
        self,
        groups: AsyncGenerator[Sequence[bytes], None],
        leaving: asyncio.Future[None],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        has_started = False
        direct, clock = self._direct, asyncio.get_running_loop().time
        written_at = clock()
        group: asyncio.Future[Sequence[bytes]] | None = None
        beat = _HEARTBEAT if self._form.heartbeat else b""

        async def write(data: bytes) -> None:
            nonlocal has_started, written_at
            if not has_started:
                has_started = True
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if direct is not None and direct.is_ready:
                direct.write(data)  # past the layers of the application
            else:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            written_at = clock()

        try:
            while True:
                group = group or asyncio.ensure_future(anext(groups))
                wait_s = max(0.0, written_at + (HEARTBEAT_S if has_started else _FIRST_WAIT_S) - clock())
                await asyncio.wait((group, leaving), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done():
                    return
                if not group.done():
                    if direct is not None and direct.written_at > written_at:
                        written_at = direct.written_at
                    elif beat:
                        await write(beat)
                    else:
                        written_at = clock()
                    continue
                try:
                    encoded = group.result()
                except StopAsyncIteration:
                    break
                except Exception as error:
                    if not has_started:
                        await self._form.refuse(error)(scope, receive, send)
                        return
                    await write(b"".join(self._on_error(error)))
                    break
                finally:
                    group = None
                await write(b"".join(encoded))
                beat = self._form.heartbeat
                if direct is not None:
                    direct.open(scope)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if group is not None:
                group.cancel()
                with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                    await group


async def disconnected(receive: Receive) -> None:
    """Wait until the client has left. Only after its request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(request: Request, work: Awaitable[_T]) -> _T | None:
    """The result of `work`, or None if the client left before; `work` is cancelled then."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        leaving.cancel()
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _error_events(error: BaseException) -> Sequence[bytes]:
    return sse_event(described_error(error)[1]), DONE
