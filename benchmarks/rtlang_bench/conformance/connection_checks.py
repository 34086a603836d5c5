"""Checks of sections 1, 2 and 9: handshake, greeting, values, limits and close codes."""

from __future__ import annotations

import json
from typing import Any

from rtlang_bench.conformance.wire import JSON, MSGPACK, Server, SkipError, check, expect

LIMITS = ("max_frame_bytes", "max_streams", "max_depth", "max_array_entries", "max_map_entries", "max_values")


@check("1.1", "MessagePack is chosen when both subprotocols are offered")
def _both(server: Server) -> None:
    with server.connect(JSON, MSGPACK) as wire:
        expect(wire.socket.subprotocol == MSGPACK, f"chosen: {wire.socket.subprotocol}")


@check("1.1", "each subprotocol alone is served")
def _each(server: Server) -> None:
    for name in (JSON, MSGPACK):
        with server.connect(name) as wire:
            expect(wire.socket.subprotocol == name, f"chosen: {wire.socket.subprotocol}")


@check("1.1", "an unknown subprotocol is refused with 4406")
def _unknown_subprotocol(server: Server) -> None:
    with server.connect("rtlang.v9.xml", greets=False) as wire:
        wire.expect_close(4406)


@check("1.2", "a wrong key is refused with 4401")
def _wrong_key(server: Server) -> None:
    if server.key is None:
        raise SkipError("the server has no key")
    with server.connect(greets=False) as wire:
        wire.send(t="hello", v=1, auth="not " + server.key)
        wire.expect_close(4401)


@check("1.3", "a first message other than hello is refused with 4400")
def _no_hello(server: Server) -> None:
    with server.connect(greets=False) as wire:
        wire.send(t="ping")
        wire.expect_close(4400)


@check("1.3", "another version is refused with 4400")
def _version(server: Server) -> None:
    with server.connect(greets=False) as wire:
        wire.send(t="hello", v=2)
        wire.expect_close(4400)


@check("5.1", "welcome has version, epoch, limits, models and abilities")
def _welcome(server: Server) -> None:
    with server.connect() as wire:
        welcome = wire.welcome
    expect(welcome["v"] == 1, "v is not 1")
    expect(isinstance(welcome["epoch"], str) and welcome["epoch"], "no epoch")
    expect(all(type(welcome["limits"].get(name)) is int for name in LIMITS), f"limits lacks one of {LIMITS}")
    expect(isinstance(welcome["models"], list), "models is no array")
    expect({"program", "generate", "chat"} & set(welcome["caps"]), "no kind of open is served")


@check("4.1", "a second hello is an error that does not end the connection")
def _second_hello(server: Server) -> None:
    with server.connect() as wire:
        wire.refusal(t="hello", v=1)
        _answers(wire)


@check("2", "an unknown type is an error that names t and does not end the connection")
def _unknown_type(server: Server) -> None:
    with server.connect() as wire:
        expect(wire.refusal(t="dance").get("param") == "t", "param is not t")
        _answers(wire)


@check("2", "unknown fields of a message are ignored")
def _unknown_field(server: Server) -> None:
    with server.connect() as wire:
        wire.send(t="ping", n=3, later="version")
        expect(wire.receive() == {"t": "pong", "n": 3}, "no pong")


@check("4.9", "bye is answered by close code 1000")
def _bye(server: Server) -> None:
    with server.connect() as wire:
        wire.send(t="bye")
        wire.expect_close(1000)


def _malformed(name: str, subprotocol: str, data: Any, *codes: int) -> None:
    @check("2", f"{name} closes with {' or '.join(map(str, codes))}")
    def run(server: Server) -> None:
        with server.connect(subprotocol) as wire:
            wire.send_raw(data(wire.welcome["limits"]) if callable(data) else data)
            wire.expect_close(*codes)


_malformed("text on a MessagePack connection", MSGPACK, "{}", 1002)
_malformed("binary on a JSON connection", JSON, b"\x80", 1002)
_malformed("an array of maps from a client", JSON, '[{"t": "ping"}]', 1002)
_malformed("JSON that is no JSON", JSON, "{", 1007)
_malformed("a number that is not finite", JSON, '{"t": "ping", "x": NaN}', 1007)
_malformed("a key that occurs twice", JSON, '{"t": "ping", "t": "ping"}', 1007)
_malformed("a lone surrogate", JSON, '{"t": "ping", "x": "\\ud800"}', 1007)
_malformed("an integer beyond 64 bits", JSON, '{"t": "ping", "x": 18446744073709551616}', 1007)
_malformed("nesting beyond the limit", JSON, lambda limits: "[" * (limits["max_depth"] + 2), 1007)
_malformed("a map with keys that are no text", MSGPACK, b"\x82\xa1t\xa4ping\x01\x02", 1007)
_malformed("an extension type", MSGPACK, b"\x82\xa1t\xa4ping\xa1x\xd4\x01\x00", 1007)
_malformed("a binary value", MSGPACK, b"\x82\xa1t\xa4ping\xa1x\xc4\x01\x00", 1007)
_malformed("a truncated value", MSGPACK, b"\x82\xa1t", 1007)
_malformed(
    "an array beyond the limit",
    JSON,
    lambda limits: json.dumps({"t": "ping", "x": [0] * (limits["max_array_entries"] + 1)}),
    *(1007, 1009),
)
_malformed("a message beyond the limit", JSON, lambda limits: " " * (limits["max_frame_bytes"] + 1), 1009)


def _answers(wire: Any) -> None:
    wire.send(t="ping", n=9)
    expect(wire.receive() == {"t": "pong", "n": 9}, "the connection does not answer any more")
