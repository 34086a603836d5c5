"""The identity of a request on its way through the processes: its id, the door it came in by, and the trace that it belongs to.

A door makes the context, from the headers or the fields of its client, and it goes with the run to the engine as plain data. Logs, errors,
spans and snapshots of all processes name the same id. Trace context: https://www.w3.org/TR/trace-context/.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

MAX_ID_LENGTH = 128
MAX_TRACESTATE_LENGTH = 512
PROGRAM = "program"
"""The door of runs of programs in the process of their runtime."""

_ID = re.compile(rf"[!-~]{{1,{MAX_ID_LENGTH}}}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_TRACESTATE = re.compile(rf"[ -~]{{1,{MAX_TRACESTATE_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The identity of one request.

    Attributes:
        request_id: printable ASCII without spaces; given by the client, or made. Not unique: clients may repeat theirs.
        door: how it came in: a method and the template of a path, `open`, or PROGRAM.
        traceparent, tracestate: its place in a trace, in the form of the headers; None for no trace.
    """

    request_id: str
    door: str = PROGRAM
    traceparent: str | None = None
    tracestate: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The id of the trace: 32 hexadecimal digits."""
        return None if self.traceparent is None else self.traceparent[3:35]

    def to_plain(self) -> dict[str, str]:
        """The context as a map of texts, without what is not given."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}

    @classmethod
    def of(
        cls,
        request_id: str | None = None,
        door: str = PROGRAM,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Self:
        """The context of what a client gives. An id that is missing or invalid is made, and an invalid trace left out, as W3C asks."""
        if traceparent is None or _TRACEPARENT.fullmatch(traceparent) is None:
            traceparent = tracestate = None
        if tracestate is not None and _TRACESTATE.fullmatch(tracestate) is None:
            tracestate = None
        return cls(request_id_of(request_id), door, traceparent, tracestate)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The context of a map made by `to_plain`, or given by a client: see `of`. Unknown fields and other types are ignored."""
        given = {name: value for name, value in plain.items() if isinstance(value, str)}
        door = given.get("door", PROGRAM)[:MAX_ID_LENGTH]
        return cls.of(given.get("request_id"), door, given.get("traceparent"), given.get("tracestate"))


def request_id_of(given: str | None) -> str:
    """A request id that a client gives, or a new one if it is missing or invalid."""
    return secrets.token_hex(16) if given is None or _ID.fullmatch(given) is None else given


def trace_ids(traceparent: str) -> tuple[int, int, int]:
    """The trace id, the id of the parent and the flags of a valid `traceparent`."""
    found = _TRACEPARENT.fullmatch(traceparent)
    assert found is not None, traceparent
    return int(found[1], 16), int(found[2], 16), int(found[3], 16)
