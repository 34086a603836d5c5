"""Reads the JSON body of a request within the limits of the server.

The limits are those of messages on the WebSocket: `max_frame_bytes`, and `DecodeLimits` for nesting, entries and values. A large body is
parsed on a thread, in fair turns between principals, so that the event loop goes on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ProtocolError
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.service import StreamService
from rtlang.work.prices import READ_S_PER_BYTE, json_price


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request.

    Raises:
        HttpError: it is longer than `limit` bytes (413). The rest of it is not read.
        starlette.requests.ClientDisconnect: the client left.
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_map(request: Request, service: StreamService) -> dict[str, Any]:
    """The body of a request, which must be a JSON object.

    Raises:
        HttpError: the body is too long (413).
        OverloadError: too much work of the principal's client waits.
        ProtocolError: it is not JSON, breaks a limit, or is not an object.
        starlette.requests.ClientDisconnect: the client left.
    """
    data = await read_body(request, service.config.max_frame_bytes)
    request.state.num_body_bytes = len(data)
    parse = partial(_parse, data, service.server_info.decode_limits)
    value = await run_for(request, service, json_price(data), parse, kind=WorkKind.PARSE)
    if not isinstance(value, dict):
        raise ProtocolError(f"the body must be a JSON object, not {type(value).__name__}")
    return value


def reading_price(request: Request) -> float:
    """The price of making a request of the body that `read_map` has read."""
    return float(request.state.num_body_bytes) * READ_S_PER_BYTE


def _parse(data: bytes, limits: DecodeLimits) -> Any:
    return Encoding.JSON.unpack(data, limits)


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"the body is longer than {limit} bytes", code="body_too_large")
