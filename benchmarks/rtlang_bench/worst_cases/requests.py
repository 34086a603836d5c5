"""What a case sends: HTTP requests at once, or messages on one WebSocket, as plain data that any client could send."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DEADLINE_MS = 8_000
"""Deadline of every graph of a case: it ends with its values or an error by then."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request over HTTP.

    Attributes:
        body: sent as it is; None for no body.
        declared: the length in the header, where it is not that of the body.
        leaves_after: the client closes the connection after so many bytes of the answer; None for none.
        actions: bodies posted to `/v1/programs/RID/ACTION` once the stream is open, by action.
    """

    method: str
    path: str
    body: bytes | None = None
    declared: int | None = None
    leaves_after: int | None = None
    actions: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Frames:
    """Messages on one WebSocket.

    Attributes:
        subprotocol: `rtlang.v1.json` or `rtlang.v1.msgpack`.
        messages: after `hello`, in order; bytes are sent as they are.
        reply: the value with which calls are answered; calls are rejected if `rejects`.
        leaves: whether the connection is closed at once, with all streams open.
    """

    subprotocol: str
    messages: tuple[Any, ...]
    reply: Any = None
    rejects: bool = False
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        number: with the seed, it determines the case.
        kind: one of `cases.KINDS`.
        name: function, node kind, route or type of frame.
        requests: sent at the same time, each on a connection of its own.
    """

    number: int
    kind: str
    name: str
    requests: tuple[HttpRequest | Frames, ...] = field(repr=False)

    @property
    def num_bytes(self) -> int:
        """About the bytes that its HTTP requests send."""
        return sum(len(each.body or b"") for each in self.requests if isinstance(each, HttpRequest))
