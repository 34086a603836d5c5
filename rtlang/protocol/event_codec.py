"""Events and errors on the wire of `rtlang.v1`: as maps, and read back.

The events of `rtlang.contract.events` become `delta`, `event` and `end` messages with all they hold, so that the far end builds
equal events under its own graph id. An error crosses as code, message and facts and is rebuilt as the same class. Reading raises
ProtocolError and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from websockets.exceptions import ConnectionClosed

from rtlang.contract.errors import (
    GoneError,
    GraphError,
    OverloadError,
    ParameterError,
    ProtocolError,
    RtlangError,
    rebuild,
)
from rtlang.contract.events import (
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    Timing,
    TokenLogprob,
)
from rtlang.contract.params import FinishReason, Usage
from rtlang.protocol.field_checks import check_float, check_int, check_ints, check_list, check_map, check_str, optional
from rtlang.protocol.messages import MAX_ID
from rtlang.protocol.serialization import DecodeLimits, Encoding

_STATUS_BY_CODE = {
    "aborted": 499,
    "connection": 502,
    "deadline": 504,
    "engine_dead": 503,
    "gone": 410,
    "internal": 500,
    "model_load": 500,
    "numerics": 500,
    "overload": 429,
    "slow_consumer": 408,
}
_REASON_BY_CODE = {"aborted": "cancelled", "deadline": "deadline"}
# A server is trusted with more than a client is, but not with everything.
_SERVER_LIMITS = DecodeLimits(max_array_entries=1 << 26, max_map_entries=1 << 20, max_values=1 << 28)
_SPECIAL_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


Offsets = dict[tuple[int, int], int]
"""Pieces of text of a stream so far, by node and choice; nodes that have ended are gone from it."""


def next_offset(offsets: Offsets, event: Event) -> int:
    """The offset of an event's message, 0 for others than pieces of text; `offsets` is moved on."""
    match event:
        case TextDelta():
            key = (event.node_id, event.choice)
            offset = offsets.get(key, 0)
            offsets[key] = offset + 1
            return offset
        case NodeFinished():
            for choice in range(len(event.completions)):
                offsets.pop((event.node_id, choice), None)
        case NodeFailed():
            for key in [key for key in offsets if key[0] == event.node_id]:
                del offsets[key]
    return 0


def event_to_wire(stream: int, event: Event, offset: int = 0) -> dict[str, Any]:
    """The message of an event on `stream`. `offset` counts the pieces of the delta's (node, choice) before it."""
    match event:
        case TextDelta():
            delta: dict[str, Any] = {"t": "delta", "s": stream, "n": event.node_id, "o": offset, "d": event.text}
            if event.choice:
                delta["i"] = event.choice
            if event.token_ids:
                delta["ids"] = list(event.token_ids)
            return delta
        case NodeFinished():
            end: dict[str, Any] = {
                "t": "event",
                "s": stream,
                "n": event.node_id,
                "e": "end",
                "name": event.name,
                "completions": [_completion_to_wire(completion) for completion in event.completions],
                "usage": _usage_to_wire(event.usage),
                "timing": {
                    "queued_s": event.timing.queued_s,
                    "first_token_s": event.timing.first_token_s,
                    "total_s": event.timing.total_s,
                },
            }
            if event.scores is not None:
                end["scores"] = [_float_to_wire(score) for score in event.scores]
            if event.probabilities is not None:
                end["probabilities"] = [_float_to_wire(value) for value in event.probabilities]
            if event.prompt_logprobs is not None:
                end["prompt_logprobs"] = _logprobs_to_wire(event.prompt_logprobs)
            return end
        case NodeFailed():
            failed = {"t": "event", "s": stream, "n": event.node_id, "e": "error", "name": event.name}
            return failed | error_facts_to_wire(event.error)
        case GraphFinished():
            return {
                "t": "end",
                "s": stream,
                "reason": "stop",
                "usage": _usage_to_wire(event.usage),
                "values": event.values,
                "failed": list(event.failed_node_ids),
            }
        case GraphFailed():
            reason = _REASON_BY_CODE.get(event.error.code, "error")
            return {"t": "end", "s": stream, "reason": reason} | error_facts_to_wire(event.error)


def event_from_wire(message: Mapping[str, Any], graph_id: int) -> Event:
    """The event of a delta, event or end message, under `graph_id`.

    Raises:
        ProtocolError: not such a message, or a field is missing or wrong.
    """
    match message.get("t"), message.get("e"):
        case "delta", _:
            return TextDelta(
                graph_id,
                check_int(message, "n", 0, MAX_ID),
                optional(check_int, message, "i", 0, MAX_ID) or 0,
                check_str(message, "d"),
                optional(check_ints, message, "ids") or (),
            )
        case "event", "end":
            timing = check_map(message, "timing")
            return NodeFinished(
                graph_id,
                check_int(message, "n", 0, MAX_ID),
                optional(check_str, message, "name"),
                tuple(_completion_from_wire(item) for item in check_list(message, "completions")),
                _usage_from_wire(message),
                Timing(*(check_float(timing, name) for name in ("queued_s", "first_token_s", "total_s"))),
                optional(_floats_from_wire, message, "scores"),
                optional(_floats_from_wire, message, "probabilities"),
                optional(_logprobs_from_wire, message, "prompt_logprobs"),
            )
        case "event", "error":
            node_id, name = check_int(message, "n", 0, MAX_ID), optional(check_str, message, "name")
            return NodeFailed(graph_id, node_id, name, error_from_wire(message))
        case "end", _:
            if "code" in message:
                return GraphFailed(graph_id, error_from_wire(message))
            values = check_map(message, "values")
            for name, value in values.items():
                if not isinstance(value, str) and not (
                    isinstance(value, list) and all(isinstance(text, str) for text in value)
                ):
                    raise ProtocolError(f"values[{name!r}] is neither text nor a list of texts", param="values")
            return GraphFinished(graph_id, dict(values), _usage_from_wire(message), check_ints(message, "failed"))
    raise ProtocolError("not a message that carries an event", param="t")


def error_facts_to_wire(error: RtlangError) -> dict[str, Any]:
    """Code, message, facts and HTTP status of an error, with the field it names and when to come back."""
    wire: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "status": _STATUS_BY_CODE.get(error.code, 400),
        "facts": {name: _plain(value) for name, value in error.facts.items()},
    }
    if isinstance(error, OverloadError):
        wire["retry_after"] = error.retry_after_s
    if isinstance(error, (GraphError, ParameterError)):
        wire["param"] = error.field
    elif isinstance(error, (GoneError, ProtocolError)) and error.param is not None:
        wire["param"] = error.param
    return wire


def error_to_wire(
    error: RtlangError,
    *,
    stream: int | None = None,
    request: int | None = None,
    status: int | None = None,
    is_fatal: bool = False,
) -> dict[str, Any]:
    """An `error` message: of one stream, of one request on it, or fatal to the connection. `status` overrides the usual one."""
    wire: dict[str, Any] = {"t": "error"} | error_facts_to_wire(error)
    for name, value in (("s", stream), ("q", request), ("status", status)):
        if value is not None:
            wire[name] = value
    if is_fatal:
        wire["fatal"] = True
    return wire


def error_from_wire(message: Mapping[str, Any]) -> RtlangError:
    """The error that a message describes, of the class that its code names.

    Raises:
        ProtocolError: code, message or facts is missing or of the wrong type.
    """
    facts = optional(check_map, message, "facts") or {}
    safe = {
        name: value
        for name, value in facts.items()
        if name.isidentifier() and not name.startswith("_") and name != "message" and not hasattr(RtlangError, name)
    }
    return rebuild(check_str(message, "code"), check_str(message, "message"), safe)


def read_messages(data: str | bytes) -> list[dict[str, Any]]:
    """The maps of one message of a server, in MessagePack.

    Raises:
        ProtocolError: it is not MessagePack, or holds something else than maps.
    """
    if isinstance(data, str):
        raise ProtocolError("a text frame where MessagePack was agreed on")
    value = Encoding.MSGPACK.unpack(data, _SERVER_LIMITS)
    messages = value if isinstance(value, list) else [value]
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise ProtocolError("a message is a map or an array of maps")
    return messages


def _plain(value: Any) -> Any:
    """Facts are plain data; what is not becomes its text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _float_to_wire(value: float) -> float | str:
    # -inf is an honest score (a choice that cannot be), and JSON has no number for it.
    return value if math.isfinite(value) else str(value)


def _float_from_wire(value: object, param: str) -> float:
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise ProtocolError(f"{param} holds {value!r}, not a number", param=param)


def _floats_from_wire(message: Mapping[str, Any], name: str) -> tuple[float, ...]:
    return tuple(_float_from_wire(value, name) for value in check_list(message, name))


def _usage_to_wire(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def _usage_from_wire(message: Mapping[str, Any]) -> Usage:
    usage = check_map(message, "usage")
    return Usage(
        *(check_int(usage, name, 0, MAX_ID) for name in ("prompt_tokens", "cached_tokens", "completion_tokens"))
    )


def _logprobs_to_wire(logprobs: Sequence[TokenLogprob]) -> list[list[Any]]:
    """Each token as [id, logprob, [[id, logprob], ...]]."""
    return [
        [item.token_id, _float_to_wire(item.logprob), [[other, _float_to_wire(value)] for other, value in item.top]]
        for item in logprobs
    ]


def _logprobs_from_wire(message: Mapping[str, Any], name: str) -> tuple[TokenLogprob, ...]:
    return tuple(_logprob_from_wire(item, name) for item in check_list(message, name))


def _logprob_from_wire(item: object, name: str) -> TokenLogprob:
    match item:
        case [int(token_id), value, [*top]]:
            pairs = []
            for pair in top:
                match pair:
                    case [int(other), other_value]:
                        pairs.append((other, _float_from_wire(other_value, name)))
                    case _:
                        raise ProtocolError(f"{name} holds {pair!r}, not a pair", param=name)
            return TokenLogprob(token_id, _float_from_wire(value, name), tuple(pairs))
    raise ProtocolError(f"{name} holds {item!r}, not [id, logprob, top]", param=name)


def _completion_to_wire(completion: Completion) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "text": completion.text,
        "ids": list(completion.token_ids),
        "reason": str(completion.finish_reason),
    }
    if completion.stop_match is not None:
        wire["stop"] = completion.stop_match
    if completion.logprobs is not None:
        wire["logprobs"] = _logprobs_to_wire(completion.logprobs)
    return wire


def _completion_from_wire(item: object) -> Completion:
    if not isinstance(item, dict):
        raise ProtocolError(f"completions holds {item!r}, not a map", param="completions")
    stop = item.get("stop")
    if stop is not None and (isinstance(stop, bool) or not isinstance(stop, (str, int))):
        raise ProtocolError(f"stop = {stop!r}: text or a token id is allowed", param="stop")
    try:
        reason = FinishReason(check_str(item, "reason"))
    except ValueError:
        raise ProtocolError(
            f"reason = {item['reason']!r}: allowed are {', '.join(FinishReason)}", param="reason"
        ) from None
    logprobs = optional(_logprobs_from_wire, item, "logprobs")
    return Completion(check_str(item, "text"), check_ints(item, "ids"), reason, stop, logprobs)


def closed_because(error: ConnectionClosed) -> str:
    """What a close frame said, for a person."""
    if error.rcvd is None:
        return "the connection broke"
    return f"the server closed the connection: {error.rcvd.reason or 'no reason given'} ({error.rcvd.code})"


def check_offset(offsets: dict[tuple[int, int], int], event: TextDelta, message: Mapping[str, Any]) -> None:
    """See that a piece of text follows the one before it, by node and choice; `offsets` is moved on.

    Raises:
        ProtocolError: it does not.
    """
    key = (event.node_id, event.choice)
    expected = offsets.get(key, 0)
    if message.get("o") != expected:
        raise ProtocolError(f"piece {message.get('o')!r} of node {event.node_id} where {expected} was due", param="o")
    offsets[key] = expected + 1
