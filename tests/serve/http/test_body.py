"""Request bodies: sizes, and the same strict decoding as on the WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ProtocolError
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.protocol.serialization import DecodeLimits
from rtlang.serve.http.body import read_map
from rtlang.serve.http.errors import HttpError


def read(*chunks: bytes, declared: str | None = None, limit: int = 100_000) -> Any:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0)

    headers = [] if declared is None else [(b"content-length", declared.encode())]

    async def run(
        principal: Principal, price: float, fn: Callable[[], Any], *, kind: WorkKind, may_wait: bool, is_bounded: bool
    ) -> Any:
        assert principal is LOCAL
        assert (kind, may_wait, is_bounded) == (WorkKind.PARSE, False, True)
        assert price > 0 or not sum(map(len, chunks))
        return fn()

    service: Any = SimpleNamespace(
        config=SimpleNamespace(max_frame_bytes=limit),
        server_info=SimpleNamespace(decode_limits=DecodeLimits(max_depth=8)),
        run=run,
    )
    scope = {"type": "http", "headers": headers, "state": {"principal": LOCAL}}
    return asyncio.run(read_map(Request(scope, receive), service))


def test_a_body_is_joined_and_decoded() -> None:
    assert read(b'{"a": ', b"[1, 2]}") == {"a": [1, 2]}
    large = {"a": ["x" * 100] * 500}
    assert read(json.dumps(large).encode()) == large


@pytest.mark.parametrize("declared", ["100001", "-1", "1e3", "9" * 30])
def test_a_declared_length_beyond_the_limit_is_refused_unread(declared: str) -> None:
    with pytest.raises(HttpError) as caught:
        read(declared=declared)
    assert caught.value.status == 413


def test_a_body_that_turns_out_too_long_is_refused() -> None:
    with pytest.raises(HttpError) as caught:
        read(b"x" * 60, b"x" * 60, limit=100)
    assert caught.value.status == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"{",
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\xff"}',
        b"[" * 100,
        b'{"a":' * 9 + b"1" + b"}" * 9,
    ],
)
def test_a_malformed_body_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(body)
