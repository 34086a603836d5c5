"""Client messages are read into typed values, unknown fields are ignored, wrong ones named."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.messages import (
    AttachStream,
    Bye,
    CancelStream,
    ClientMessage,
    CloseStream,
    ExtendNodes,
    Hello,
    Open,
    OpenKey,
    Ping,
    RejectCall,
    ResolveCall,
    parse_client_message,
    stream_of,
)

KEY = "k" * 16
NAMED = {"t": "open", "s": 1, "kind": "x", "body": {"a": {"b": [1, "é"]}, "c": None}, "detach_ms": 1, "idem": KEY}
GOOD: list[tuple[dict[str, Any], ClientMessage]] = [
    ({"t": "hello", "v": 1}, Hello(1)),
    ({"t": "hello", "v": 2, "auth": "k", "client": "c"}, Hello(2, "k", "c")),
    (
        {"t": "open", "s": 1, "kind": "program", "body": {"a": 1}},
        Open(1, "program", {"a": 1}, {"reports_progress": False}),
    ),
    (
        {"t": "open", "s": 1, "kind": "x", "body": {}, "deadline_ms": 1500},
        Open(1, "x", {}, {"reports_progress": False, "deadline_s": 1.5}),
    ),
    (
        {"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 2500},
        Open(1, "x", {}, {"reports_progress": False}, 2.5),
    ),
    ({"t": "attach", "s": 4, "rid": "r", "epoch": "e", "from": 7, "q": 2}, AttachStream(4, "r", "e", 7, 2)),
    ({"t": "attach", "s": 4, "rid": "r", "epoch": "e", "from": 0}, AttachStream(4, "r", "e", 0)),
    ({"t": "extend", "s": 2, "nodes": [1], "q": 4, "close": True}, ExtendNodes(2, [1], 4, True)),
    ({"t": "extend", "s": 2, "nodes": []}, ExtendNodes(2, [])),
    ({"t": "close", "s": 3}, CloseStream(3)),
    ({"t": "cancel", "s": 3}, CancelStream(3)),
    ({"t": "resolve", "s": 3, "n": 2, "value": None}, ResolveCall(3, 2, None)),
    (
        {"t": "resolve", "s": 3, "n": 2, "value": {"$int": "99999999999999999999"}},
        ResolveCall(3, 2, 99999999999999999999),
    ),
    ({"t": "reject", "s": 3, "n": 2, "code": "call", "message": "m"}, RejectCall(3, 2, "call", "m")),
    ({"t": "ping"}, Ping(0)),
    ({"t": "ping", "n": 5}, Ping(5)),
    ({"t": "bye"}, Bye()),
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "t"),
    ({"t": 3}, "t"),
    ({"t": "unacknowledged of"}, "t"),
    ({"t": "attach", "s": 1, "epoch": "e", "from": 0}, "rid"),
    ({"t": "attach", "s": 1, "rid": "r", "from": 0}, "epoch"),
    ({"t": "attach", "s": 1, "rid": "r", "epoch": "e"}, "from"),
    ({"t": "attach", "s": 1, "rid": "r", "epoch": "e", "from": -1}, "from"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 0}, "detach_ms"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 600_001}, "detach_ms"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "idem": KEY}, "idem"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 1, "idem": KEY[1:]}, "idem"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 1, "idem": KEY * 9}, "idem"),
    ({"t": "open", "s": 1, "kind": "x", "body": {}, "detach_ms": 1, "idem": 7}, "idem"),
    ({"t": "hello"}, "v"),
    ({"t": "hello", "v": True}, "v"),
    ({"t": "hello", "v": 1, "auth": 3}, "auth"),
    ({"t": "open", "kind": "program", "body": {}}, "s"),
    ({"t": "open", "s": 0, "kind": "program", "body": {}}, "s"),
    ({"t": "open", "s": 1 << 53, "kind": "program", "body": {}}, "s"),
    ({"t": "open", "s": 1, "body": {}}, "kind"),
    ({"t": "open", "s": 1, "kind": "program"}, "body"),
    ({"t": "open", "s": 1, "kind": "program", "body": {}, "deadline_ms": 0}, "deadline_ms"),
    ({"t": "open", "s": 1, "kind": "program", "body": {}, "deadline_ms": 1.5}, "deadline_ms"),
    ({"t": "extend", "s": 1}, "nodes"),
    ({"t": "extend", "s": 1, "nodes": [], "q": 0}, "q"),
    ({"t": "resolve", "s": 1, "n": 2}, "value"),
    ({"t": "resolve", "s": 1, "n": 2, "value": "x" * 1_000_001}, "value"),
    ({"t": "resolve", "s": 1, "value": 1}, "n"),
    ({"t": "reject", "s": 1, "n": 2, "code": "call"}, "message"),
    ({"t": "close"}, "s"),
    ({"t": "cancel", "s": "1"}, "s"),
    ({"t": "ping", "n": "x"}, "n"),
]


@pytest.mark.parametrize(("message", "expected"), GOOD)
def test_a_message_is_read_and_unknown_fields_are_ignored(message: dict[str, Any], expected: ClientMessage) -> None:
    assert parse_client_message(message) == expected
    assert parse_client_message(message | {"future": [1, {"x": 2}]}) == expected


@pytest.mark.parametrize(("message", "param"), BAD)
def test_a_wrong_field_is_named_and_is_not_fatal(message: dict[str, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_client_message(message)
    assert caught.value.param == param
    assert caught.value.close_code is None


def key_of(**changes: Any) -> OpenKey:
    message = parse_client_message(NAMED | changes)
    assert isinstance(message, Open)
    assert message.key is not None
    return message.key


def test_an_idempotency_key_distinguishes_bodies() -> None:
    first = key_of()
    assert (first.name, len(first.digest)) == (KEY, 32)
    assert key_of(body={"c": None, "a": {"b": [1, "é"]}}, s=2, deadline_ms=7, detach_ms=9) == first
    renamed = key_of(idem=KEY + "k")
    assert (renamed.name, renamed.digest) == (KEY + "k", first.digest)
    others = [
        renamed,
        key_of(kind="y"),
        *(key_of(body=body) for body in ({}, {"a": {"b": [1, "e"]}, "c": None}, {"a": {"b": ["é", 1]}, "c": None})),
    ]
    assert first not in others


def test_only_a_valid_stream_id_is_read_from_a_message() -> None:
    assert stream_of({"s": 4}) == 4
    for value in (None, 0, -1, 1 << 53, "4", 4.0, True):
        assert stream_of({"s": value}) is None
