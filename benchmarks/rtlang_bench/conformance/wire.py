"""A bare client for the checks, and the list of checks. Nothing here knows how a server or another client is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgpack
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

MSGPACK, JSON = "rtlang.v1.msgpack", "rtlang.v1.json"
TIMEOUT_S = 30.0
SILENCE_S = 0.3
"""Seconds that a check waits for a message that must not come."""

Message = dict[str, Any]


class CheckError(Exception):
    """The server does not do what the specification says."""


class SkipError(Exception):
    """The server does not offer an ability that the check needs."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server to check.

    Attributes:
        url: the full address of the WebSocket.
        key: its key, if it needs one.
    """

    url: str
    key: str | None = None

    def connect(self, *subprotocols: str, greets: bool = True) -> Wire:
        """A connection; by default in JSON, after `hello` and `welcome`."""
        wire = Wire(self, subprotocols or (JSON,))
        if greets:
            wire.greet()
        return wire


class Wire:
    """One connection. A context manager."""

    def __init__(self, server: Server, subprotocols: tuple[str, ...]) -> None:
        self.server = server
        self._exits = contextlib.ExitStack()
        connecting = connect(
            server.url,
            subprotocols=[Subprotocol(name) for name in subprotocols],
            compression=None,
            proxy=None,
            max_size=None,
            open_timeout=TIMEOUT_S,
            close_timeout=1,
        )
        self.socket: ClientConnection = self._exits.enter_context(connecting)
        self.is_text = self.socket.subprotocol != MSGPACK
        self.welcome: Message = {}
        self.pending: list[Message] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def drop(self) -> None:
        """End the TCP connection without a close frame."""
        self.socket.socket.close()

    def greet(self, **fields: Any) -> Message:
        """Exchange hello and welcome."""
        key = {} if self.server.key is None else {"auth": self.server.key}
        self.send(t="hello", v=1, client="conformance", **key | fields)
        self.welcome = self.receive()
        expect(self.welcome.get("t") == "welcome", f"hello was answered by {self.welcome}")
        return self.welcome

    def needs(self, *caps: str) -> None:
        """Skip the check unless the server has these abilities."""
        for cap in caps:
            if cap not in self.welcome["caps"]:
                raise SkipError(f"no {cap}")

    def send(self, **message: Any) -> None:
        """Send one map."""
        self.send_raw(json.dumps(message) if self.is_text else msgpack.packb(message))

    def send_raw(self, data: str | bytes) -> None:
        """Send a message as it is. If the server closes meanwhile, the next call that reads reports it."""
        with contextlib.suppress(ConnectionClosed):
            self.socket.send(data)

    def receive(self, timeout_s: float = TIMEOUT_S) -> Message:
        """The next map."""
        while not self.pending:
            try:
                data = self.socket.recv(timeout_s)
            except TimeoutError:
                raise CheckError("no message within the time limit") from None
            except ConnectionClosed as error:
                raise CheckError(f"the server closed the connection: {error}") from None
            expect(isinstance(data, str) is self.is_text, "a message of the other encoding")
            value = json.loads(data) if isinstance(data, str) else msgpack.unpackb(data)
            self.pending = value if isinstance(value, list) else [value]
            expect(all(isinstance(each, dict) for each in self.pending), "a message with other values than maps")
        return self.pending.pop(0)

    def expect_silence(self, stream: int) -> None:
        """Nothing of a stream arrives for a moment; the connection itself answers."""
        self.send(t="ping", n=77)
        while (message := self.receive())["t"] != "pong":
            expect(message.get("s") != stream, f"unexpected {message}")
        try:
            data = self.socket.recv(SILENCE_S)
        except TimeoutError:
            return
        raise CheckError(f"unexpected {data!r:.200}")

    def expect_close(self, *codes: int) -> None:
        """The server closes with one of these codes."""
        try:
            while True:
                self.socket.recv(TIMEOUT_S)
        except TimeoutError:
            raise CheckError("the connection is still open") from None
        except ConnectionClosed as error:
            code = None if error.rcvd is None else error.rcvd.code
            expect(code in codes, f"closed with {code}, expected {' or '.join(map(str, codes))}")

    def open(self, stream: int, kind: str, body: Message, **fields: Any) -> Message:
        """Open a stream; its ack."""
        self.send(t="open", s=stream, kind=kind, body=body, **fields)
        ack = self.receive()
        expect(ack["t"] == "ack" and ack["s"] == stream, f"open was answered by {ack}")
        expect(isinstance(ack.get("rid"), str) and isinstance(ack.get("epoch"), str), f"{ack} lacks rid or epoch")
        return ack

    def refusal(self, **message: Any) -> Message:
        """Send a message that must be refused; its error."""
        self.send(**message)
        error = self.receive()
        expect(error["t"] == "error", f"expected an error, not {error}")
        for name, kind in (("code", str), ("message", str), ("status", int), ("facts", dict)):
            expect(isinstance(error.get(name), kind), f"{name} of {error} is no {kind.__name__}")
        return error

    def until(self, stream: int, *kinds: str) -> list[Message]:
        """The messages of a stream up to the first whose kind is one of `kinds`: its `t`, or for events its `e`, where the end of a node is
        "ended". Those of others are dropped."""
        found: list[Message] = []
        while not found or _kind(found[-1]) not in kinds:
            message = self.receive()
            if message.get("s") == stream:
                found.append(message)
        return found

    def run(self, stream: int, kind: str, body: Message, **fields: Any) -> list[Message]:
        """Open a stream and read it to its end."""
        self.open(stream, kind, body, **fields)
        return self.until(stream, "end")


def _kind(message: Message) -> object:
    if message["t"] != "event":
        return message["t"]
    return "ended" if message.get("e") == "end" else message.get("e")


def expect(is_true: object, problem: str) -> None:
    """Fail the check unless the claim holds."""
    if not is_true:
        raise CheckError(problem)


def ids_of(messages: list[Message]) -> list[int]:
    """The token ids of all deltas."""
    return [token_id for message in messages if message["t"] == "delta" for token_id in message.get("ids", ())]


def text_of(messages: list[Message], node: int = 1, choice: int = 0) -> str:
    """The text of the deltas of a choice, whose offsets must follow each other."""
    deltas = [each for each in messages if each["t"] == "delta" and (each["n"], each.get("i", 0)) == (node, choice)]
    return "".join(each["d"] for each in deltas)


def check_offsets(messages: list[Message], first: dict[tuple[int, int], int] | None = None) -> None:
    """Offsets of each node and choice count from 0 without gaps."""
    expected = dict(first or {})
    for message in messages:
        if message["t"] == "delta":
            place = (message["n"], message.get("i", 0))
            expect(message["o"] == expected.get(place, 0), f"offset {message['o']} of {place}")
            expected[place] = message["o"] + 1


Check = Callable[[Server], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A check: the section of the specification, its sentence, and the function."""

    section: str
    claim: str
    run: Check


CHECKS: list[Entry] = []


def check(section: str, claim: str) -> Callable[[Check], Check]:
    """Register a check."""

    def register(function: Check) -> Check:
        CHECKS.append(Entry(section, claim, function))
        return function

    return register
