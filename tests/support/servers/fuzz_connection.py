"""One fuzzed connection in memory: any bytes become messages of a client, in order, for the state machine of the server."""

from __future__ import annotations

from typing import Any

from rtlang.contract.errors import OverloadError
from rtlang.protocol.messages import ExtendNodes
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.client_messages import SubmitMessage
from rtlang.serve.connection import Close, Connection, ServerInfo

INFO = ServerInfo("epoch", max_streams=3)
LIMITS = DecodeLimits()
TYPES = {"welcome", "ack", "delta", "event", "end", "error", "drain", "pong"}


def one_input(data: bytes) -> None:
    """Feed a connection; raises AssertionError if what it answers breaks the protocol.

    The first byte chooses the encoding, whether hello was said, and whether graphs are refused. Each message begins with its length in
    two bytes.
    """
    choice, data = data[0] if data else 0, data[1:]
    encoding = list(Encoding)[choice % 2]
    connection = Connection(encoding, INFO)
    if not choice & 2:
        connection.receive(encoding.pack({"t": "hello", "v": 1}), is_text=encoding.is_text)
    is_full = bool(choice & 4)
    while data and connection.close_code is None:
        length = int.from_bytes(data[:2], "big")
        message, data = data[2 : 2 + length], data[2 + length :]
        for action in connection.receive(message, is_text=encoding.is_text):
            _act(connection, action, is_full)
    for packed in connection.take_output():
        found: Any = encoding.unpack(packed, LIMITS)
        for each in found if isinstance(found, list) else [found]:
            assert each["t"] in TYPES, each
    assert connection.close_code is None or 1000 <= connection.close_code < 5000
    if connection.close_code is not None:
        assert connection.receive(b"{}", is_text=encoding.is_text) == []


def _act(connection: Connection, action: Any, is_full: bool) -> None:
    if isinstance(action, SubmitMessage):
        if is_full:
            connection.refused(action.stream, OverloadError("full", 1.0))
        else:
            action.graph.validate()
            connection.opened(action.stream, "rid")
    elif isinstance(action, ExtendNodes):
        connection.extend_refused(action.stream, action.request, OverloadError("full", 1.0))
    else:
        assert hasattr(action, "stream") or isinstance(action, Close)
