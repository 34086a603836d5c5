"""What a client of `rtlang.v1` may say: every message, read from its map into a typed value.

A message has a string `t`; fields that are not known are ignored, an unknown `t` is an error. Reading raises ProtocolError with the
field in `param` and nothing else. What a server says is in wire.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.field_checks import check_int, check_list, check_map, check_str, optional

VERSION = 1
MAX_ID = (1 << 53) - 1
MAX_DETACH_MS = 600_000
MIN_KEY_CHARS, MAX_KEY_CHARS = 16, 128


class CloseCode(int, Enum):
    """The WebSocket close codes of `rtlang.v1`."""

    NORMAL = 1000
    DRAINED = 1001
    PROTOCOL = 1002
    BAD_FIRST_FRAME = 4400
    KEY = 4401
    ORIGIN = 4403
    SUBPROTOCOL = 4406
    HELLO_LATE = 4408
    STREAM_REUSED = 4409
    TOO_MANY = 4429
    SLOW = 4503


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a client."""

    version: int
    auth: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class OpenKey:
    """A client's name for what it opens (`idem`), and `digest_of` the `kind` and `body` of that."""

    name: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """Start a stream: `kind` says how `body` reads (see connection.py). It outlives its connection by `resume_timeout_s`, if that is given.

    Opened again under the same `key` (`idem`), for as long as the stream is known, it is not run a second time: the stream is read from its
    start. Another `kind` or `body` under the same key is refused.
    """

    stream: int
    kind: str
    body: Mapping[str, Any]
    deadline_s: float | None = None
    resume_timeout_s: float | None = None
    key: OpenKey | None = None


@dataclass(frozen=True, slots=True)
class AttachStream:
    """Read on, as `stream`, what was opened as `rid` on another connection to the server that said `epoch`.

    `position` messages of the stream and the answers to its extensions up to `request` have arrived.
    """

    stream: int
    rid: str
    epoch: str
    position: int
    request: int = 0


@dataclass(frozen=True, slots=True)
class ExtendNodes:
    """More nodes, in plain form, for an open graph. `request` is echoed in the answer; `closes` says they are the last.

    Of one stream that outlives its connection, requests rise, and one that is said again is not done again (extensions.py).
    """

    stream: int
    nodes: list[Any]
    request: int | None = None
    closes: bool = False


@dataclass(frozen=True, slots=True)
class CloseStream:
    """No more nodes will come."""

    stream: int


@dataclass(frozen=True, slots=True)
class CancelStream:
    """End the stream now."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Answered by a pong with the same number."""

    number: int


@dataclass(frozen=True, slots=True)
class Bye:
    """The client is done."""


ClientMessage = Hello | Open | AttachStream | ExtendNodes | CloseStream | CancelStream | Ping | Bye


def stream_of(message: Mapping[str, Any]) -> int | None:
    """The stream a message names, where it names a valid one; for the address of an error."""
    stream = message.get("s")
    return stream if type(stream) is int and 0 < stream <= MAX_ID else None


def parse_client_message(message: Mapping[str, Any]) -> ClientMessage:
    """A message from a client.

    Raises:
        ProtocolError: an unknown `t`, or a field that is missing or wrong; `param` names it.
    """
    kind = check_str(message, "t")
    match kind:
        case "open":
            deadline_ms = optional(check_int, message, "deadline_ms", 1, MAX_ID)
            detach_ms = optional(check_int, message, "detach_ms", 1, MAX_DETACH_MS)
            return Open(
                check_int(message, "s", 1, MAX_ID),
                check_str(message, "kind"),
                check_map(message, "body"),
                None if deadline_ms is None else deadline_ms / 1000,
                None if detach_ms is None else detach_ms / 1000,
                _key(message, detach_ms),
            )
        case "attach":
            return AttachStream(
                check_int(message, "s", 1, MAX_ID),
                check_str(message, "rid"),
                check_str(message, "epoch"),
                check_int(message, "from", 0, MAX_ID),
                optional(check_int, message, "q", 0, MAX_ID) or 0,
            )
        case "extend":
            return ExtendNodes(
                check_int(message, "s", 1, MAX_ID),
                check_list(message, "nodes"),
                optional(check_int, message, "q", 1, MAX_ID),
                message.get("close") is True,
            )
        case "close":
            return CloseStream(check_int(message, "s", 1, MAX_ID))
        case "cancel":
            return CancelStream(check_int(message, "s", 1, MAX_ID))
        case "ping":
            return Ping(optional(check_int, message, "n", 0, MAX_ID) or 0)
        case "hello":
            return Hello(
                check_int(message, "v", 0, MAX_ID),
                optional(check_str, message, "auth"),
                optional(check_str, message, "client"),
            )
        case "bye":
            return Bye()
    raise ProtocolError(f"unknown message t = {kind[:40]!r}", param="t")


def _key(message: Mapping[str, Any], detach_ms: int | None) -> OpenKey | None:
    name = optional(check_str, message, "idem")
    if name is None:
        return None
    if detach_ms is None:
        raise ProtocolError("idem needs detach_ms: how long the stream is known", param="idem")
    if not MIN_KEY_CHARS <= len(name) <= MAX_KEY_CHARS:  # nobody is to guess it
        raise ProtocolError(
            f"idem has {len(name)} characters; {MIN_KEY_CHARS} to {MAX_KEY_CHARS} are allowed", param="idem"
        )
    return OpenKey(name, digest_of([message["kind"], message["body"]]))


def digest_of(value: Any) -> bytes:
    """32 bytes that tell a value of a message from others: the SHA-256 of its JSON, whatever the order of the keys of maps."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
