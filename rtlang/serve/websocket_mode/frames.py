"""The messages of WebSocket mode: requests of the client, and the frames of errors.

Source: the guide of OpenAI's WebSocket mode, and the types of client and server events in the `openai` package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError, ProtocolError
from rtlang.serve.http.errors import HttpError
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.fields import FieldTable, read_bool

CREATE, STEER, PROCESSED = "response.create", "response.steer", "response.processed"
FIELDS = FieldTable(
    accepted=frozenset(("type", "stream_id", "generate")),
    fixed={"background": (False,)},
    hints=frozenset(("stream",)),
)
"""The fields that `response.create` adds to `POST /v1/responses`; events are always streamed here."""
_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}", re.ASCII)
_NAMES = (*FIELDS.accepted, *FIELDS.fixed, *FIELDS.hints)


@dataclass(frozen=True, slots=True)
class Create:
    """A request for a response.

    Attributes:
        lane: the `stream_id`; None for the default lane.
        body: of `POST /v1/responses`.
        generates: whether to generate output; False computes the prompt only.
        num_bytes: length of the message.
    """

    lane: str | None
    body: dict[str, Any]
    generates: bool
    num_bytes: int


def lane_of(message: Any) -> str | None:
    """The `stream_id` of a message of a client, for the errors about it; None if it has no valid one."""
    found = message.get("stream_id") if isinstance(message, Mapping) else None
    return found if isinstance(found, str) and _STREAM_ID.fullmatch(found) else None


def read_create(message: Mapping[str, Any], num_bytes: int) -> Create:
    """Read a `response.create`; its body is not checked here.

    Raises:
        HttpError: the `stream_id` is invalid.
        ParameterError: another field of this transport is invalid; names it.
    """
    asked = {name: message[name] for name in _NAMES if name in message}
    given = FIELDS.given(asked)
    lane = lane_of(message)
    if "stream_id" in given and lane is None:
        allowed = "a text of 1 to 256 letters, digits, underscores, hyphens and periods"
        raise HttpError(
            400,
            f"stream_id = {str(given['stream_id'])[:80]!r}: expected {allowed}; leave it out for the default lane",
            code="invalid_stream_id",
            param="stream_id",
        )
    body = {name: value for name, value in message.items() if name not in _NAMES}
    generates = read_bool(given, "generate", True)
    options = body.get("prompt_cache_options")
    if isinstance(options, Mapping) and options.get("prewarm") is True:
        generates = False
    return Create(lane, body, generates, num_bytes)


def type_of(message: Any) -> str:
    """The type of a message.

    Raises:
        ProtocolError: the message is not an object.
        ParameterError: the type is unknown.
    """
    if not isinstance(message, dict):
        raise ProtocolError(f"a message must be a JSON object, not {type(message).__name__}")
    kind = message.get("type")
    if kind not in (CREATE, STEER, PROCESSED):
        raise ParameterError("type", kind, f"expected {CREATE!r}")
    return str(kind)


def error_frame(status: int, body: Mapping[str, Any], lane: str | None) -> bytes:
    """The frame of an error. `body`: the body of the error response over HTTP."""
    frame: dict[str, Any] = {"type": "error", "status": status, **body}
    retry_after = body["error"].get("retry_after")
    if retry_after is not None:
        frame["headers"] = {"retry-after": str(retry_after)}
    if lane is not None:
        frame["stream_id"] = lane
    return json_bytes(frame)


def steer_refusal(message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to `response.steer`: the input comes back, for the next `response.create`."""
    error = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "a running response cannot be steered here; send the input with the next response.create",
    }
    steer = {name: message.get(name) for name in ("input", "previous_response_id")}
    return {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}
