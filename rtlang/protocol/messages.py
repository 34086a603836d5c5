"""Client messages of `rtlang.v1`, parsed from maps into typed values.

A message has a string `t`; unknown fields are ignored, an unknown `t` is an error. Parsing raises only ProtocolError, with the field in
`param`. Server messages are in event_codec.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rtlang.contract.errors import ProtocolError, RtlangError
from rtlang.contract.graph.value_size import check_plain
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.request_graph import Node
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.protocol.field_checks import MAX_ID, check_int, check_list, check_map, check_str, error_facts, optional
from rtlang.protocol.plain_values import value_from_wire
from rtlang.protocol.run_options import options_beside

VERSION = 1
MAX_DETACH_MS = 600_000
MIN_KEY_CHARS, MAX_KEY_CHARS = 16, 128
DEFAULT_CREDIT = 256


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
    """A client's idempotency key (`idem`), with the digest of `kind` and `body` it was used for."""

    name: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """Open a stream: `kind` determines the form of `body` (serve/connection.py). With `resume_timeout_s`, the stream survives its
    connection for that long.

    A repeated open with the same `key` (`idem`) does not run again while the stream is known: the existing stream is replayed from its
    start. The same key with another `kind` or `body` is refused. `options` are the options of the run beside the body, and `continuation`
    holds the fields `known` and `continue_from` (continuation.py).
    """

    stream: int
    kind: str
    body: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    resume_timeout_s: float | None = None
    key: OpenKey | None = None
    continuation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttachStream:
    """Continue the stream `rid`, opened on an earlier connection to the server process `epoch`, as `stream`.

    The client has received the first `position` messages of the stream and the answers to its extends up to `request`.
    """

    stream: int
    rid: str
    epoch: str
    position: int
    request: int = 0


@dataclass(frozen=True, slots=True)
class ExtendNodes:
    """More nodes, in plain form, for an open graph. `request` is echoed in the answer; `closes` marks the last nodes.

    On a resumable stream requests increase, and a repeated one is not applied again (serve/idempotent_extends.py).
    """

    stream: int
    nodes: list[Any]
    request: int | None = None
    closes: bool = False
    continuation: Mapping[str, Any] = field(default_factory=dict)
    digest: bytes = field(default=b"", compare=False, repr=False)
    """Tells whether a repeated message is the same; empty if `content` is None."""
    content: ExtendContent | RtlangError | None = field(default=None, compare=False, repr=False)
    """The nodes if they have been read already, or the error in them."""


@dataclass(frozen=True, slots=True)
class ExtendContent:
    """What an `extend` adds to a graph."""

    nodes: tuple[Node, ...]
    known: Known
    continue_from: ContinueFrom


@dataclass(frozen=True, slots=True)
class CloseStream:
    """Close the graph of a stream: no more nodes will follow."""

    stream: int


@dataclass(frozen=True, slots=True)
class CancelStream:
    """Cancel a stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class GrantCredit:
    """More tokens of a stream may be delivered."""

    stream: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class ResolveCall:
    """The value of a host call that the stream's graph asked for. Only the first answer counts, so it may be sent again."""

    stream: int
    node_id: int
    value: Any


@dataclass(frozen=True, slots=True)
class RejectCall:
    """The error of a host call, as `ResolveCall`."""

    stream: int
    node_id: int
    code: str
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ping:
    """An application-level ping, answered by a pong with the same number."""

    number: int


@dataclass(frozen=True, slots=True)
class Bye:
    """An orderly end of the connection."""


ClientMessage = (
    Hello
    | Open
    | AttachStream
    | ExtendNodes
    | CloseStream
    | CancelStream
    | GrantCredit
    | ResolveCall
    | RejectCall
    | Ping
    | Bye
)


def stream_of(message: Mapping[str, Any]) -> int | None:
    """The stream id in a message, or None if it has no valid one; used to address errors."""
    stream = message.get("s")
    return stream if type(stream) is int and 0 < stream <= MAX_ID else None


def parse_client_message(message: Mapping[str, Any]) -> ClientMessage:
    """Parse a client message.

    Raises:
        ProtocolError: `t` is unknown, or a field is missing or invalid; `param` names the field.
    """
    kind = check_str(message, "t")
    match kind:
        case "open":
            detach_ms = optional(check_int, message, "detach_ms", 1, MAX_DETACH_MS)
            return Open(
                check_int(message, "s", 1, MAX_ID),
                check_str(message, "kind"),
                check_map(message, "body"),
                options_beside(message),
                None if detach_ms is None else detach_ms / 1000,
                _key(message, detach_ms),
                _continuation(message),
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
                _continuation(message),
            )
        case "close":
            return CloseStream(check_int(message, "s", 1, MAX_ID))
        case "cancel":
            return CancelStream(check_int(message, "s", 1, MAX_ID))
        case "credit":
            return GrantCredit(check_int(message, "s", 1, MAX_ID), check_int(message, "n", 1, MAX_CREDIT))
        case "resolve" | "input":
            if "value" not in message:
                raise ProtocolError("value is missing", param="value")
            value = value_from_wire(message["value"], "value")
            problem = check_plain(value)
            if problem is not None:
                raise ProtocolError(f"value: {problem}", param="value")
            return ResolveCall(check_int(message, "s", 1, MAX_ID), check_int(message, "n", 0, MAX_ID), value)
        case "reject":
            return RejectCall(
                check_int(message, "s", 1, MAX_ID),
                check_int(message, "n", 0, MAX_ID),
                check_str(message, "code"),
                check_str(message, "message"),
                error_facts(message),
            )
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
    raise ProtocolError(f"t = {kind[:40]!r}: unknown message type", param="t")


def _key(message: Mapping[str, Any], detach_ms: int | None) -> OpenKey | None:
    name = optional(check_str, message, "idem")
    if name is None:
        return None
    if detach_ms is None:
        raise ProtocolError("idem requires detach_ms, the time for which the stream is kept", param="idem")
    if not MIN_KEY_CHARS <= len(name) <= MAX_KEY_CHARS:  # keys must be hard to guess
        raise ProtocolError(
            f"idem has {len(name)} characters: expected {MIN_KEY_CHARS} to {MAX_KEY_CHARS}", param="idem"
        )
    return OpenKey(name, digest_of([message["kind"], message["body"]]))


def _continuation(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("known", "continue_from") if name in message}


def digest_of(value: Any) -> bytes:
    """SHA-256 digest of a value's JSON form, independent of the order of map keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
