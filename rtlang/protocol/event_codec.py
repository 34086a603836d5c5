"""Encodes events and errors as `rtlang.v1` messages, and decodes them.

The events of `rtlang.contract.events` become `delta`, `event` and `end` messages that carry all of their fields, so the receiver rebuilds
equal events under its own graph id. An error is sent as code, message and facts, and rebuilt as the same class. Decoding raises only
ProtocolError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from websockets.exceptions import ConnectionClosed

from rtlang.contract.errors import (
    EngineDeadError,
    GoneError,
    GraphError,
    OverloadError,
    ParameterError,
    ProtocolError,
    RtlangError,
    rebuild,
)
from rtlang.contract.events import (
    CallRequested,
    Completion,
    CreditSpent,
    DraftUse,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    PromptComputed,
    TextDelta,
    Timing,
    TokenLogprob,
    ValueKnown,
)
from rtlang.contract.params import FinishReason, Usage
from rtlang.protocol.field_checks import (
    MAX_ID,
    check_float,
    check_int,
    check_ints,
    check_list,
    check_map,
    check_str,
    error_facts,
    optional,
)
from rtlang.protocol.plain_values import value_from_wire, value_to_wire
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.protocol.sliced_packing import CHARS_A_SLICE, NUMBERS_A_SLICE, LazyList, pack_slices

_STATUS_BY_CODE = {
    "aborted": 499,
    "connection": 502,
    "deadline": 504,
    "engine_dead": 503,
    "fault": 500,
    "gone": 410,
    "internal": 500,
    "model_load": 500,
    "numerics": 500,
    "overload": 429,
    "slow_consumer": 408,
}
_REASON_BY_CODE = {"aborted": "cancelled", "deadline": "deadline"}
# Servers may send larger messages than clients, but not arbitrarily large ones.
_SERVER_LIMITS = DecodeLimits(max_array_entries=1 << 26, max_map_entries=1 << 20, max_values=1 << 28)
_MAX_WHOLE = 2_000  # log-probabilities that are packed in one go, which takes about 2 ms
_SPECIAL_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


Offsets = dict[tuple[int, int], int]
"""Number of text chunks of a stream so far, by (node id, choice). Entries of ended nodes are removed."""


def next_offset(offsets: Offsets, event: Event) -> int:
    """The chunk offset of an event (0 unless it is a TextDelta). Updates `offsets`."""
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


def event_slices(encoding: Encoding, stream: int, event: Event, offset: int = 0) -> Iterator[bytes]:
    """The parts of the packed message of an event: one, or many if it is large. Arguments as of `event_to_wire`."""
    if isinstance(event, NodeFinished):
        lazy = lazy_logprobs if _num_logprobs(event) > _MAX_WHOLE else None
        yield from pack_slices(encoding, event_to_wire(stream, event, offset, lazy))
    elif not isinstance(event, TextDelta) or len(event.text) > CHARS_A_SLICE or len(event.token_ids) > NUMBERS_A_SLICE:
        yield from pack_slices(encoding, event_to_wire(stream, event, offset))
    else:
        yield encoding.pack(event_to_wire(stream, event, offset))


def _num_logprobs(event: NodeFinished) -> int:
    lists = [completion.logprobs or () for completion in event.completions]
    lists += [event.prompt_logprobs or (), *(event.choice_logprobs or ()), *(event.unconditional_logprobs or ())]
    return sum(len(each) * (1 + len(each[-1].top)) for each in lists if each)


def event_to_wire(
    stream: int, event: Event, offset: int = 0, logprobs: Callable[[Sequence[TokenLogprob]], Any] | None = None
) -> dict[str, Any]:
    """Encode an event of `stream`.

    Args:
        offset: the number of earlier chunks of the delta's (node, choice).
        logprobs: encodes lists of log-probabilities.
    """
    logprobs = logprobs or logprobs_to_wire
    match event:
        case TextDelta():
            delta: dict[str, Any] = {"t": "delta", "s": stream, "n": event.node_id, "o": offset, "d": event.text}
            if event.choice:
                delta["i"] = event.choice
            if event.token_ids:
                delta["ids"] = list(event.token_ids)
            if event.logprobs:
                delta["lp"] = logprobs_to_wire(event.logprobs)
            return delta
        case NodeFinished():
            end: dict[str, Any] = {
                "t": "event",
                "s": stream,
                "n": event.node_id,
                "e": "end",
                "name": event.name,
                "completions": [_completion_to_wire(completion, logprobs) for completion in event.completions],
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
                end["prompt_logprobs"] = logprobs(event.prompt_logprobs)
            for name in ("choice_logprobs", "unconditional_logprobs"):
                of_choices = getattr(event, name)
                if of_choices is not None:
                    end[name] = [logprobs(each) for each in of_choices]
            if event.is_replayed:
                end["replayed"] = True
            if event.drafts:
                end["drafts"] = [[each.source, each.num_drafted, each.num_accepted] for each in event.drafts]
            if event.max_tokens is not None:
                end["max_tokens"] = event.max_tokens
            if event.value is not None:
                end["value"] = value_to_wire(event.value)
            return end
        case CallRequested():
            args = [value_to_wire(arg) for arg in event.args]
            return {
                "t": "event",
                "s": stream,
                "n": event.node_id,
                "e": "call",
                "function": event.function,
                "args": args,
            }
        case NodeStarted():
            return {"t": "event", "s": stream, "n": event.node_id, "e": "start", "name": event.name}
        case PromptComputed():
            return {
                "t": "event",
                "s": stream,
                "n": event.node_id,
                "e": "cached",
                "prompt_tokens": event.num_prompt_tokens,
                "cached_tokens": event.num_cached_tokens,
            }
        case ValueKnown():
            value = value_to_wire(event.value)
            return {"t": "event", "s": stream, "n": event.node_id, "e": "value", "value": value}
        case CreditSpent():
            return {"t": "event", "s": stream, "n": event.node_id, "e": "waiting", "for": "credit"}
        case NodeFailed():
            failed = {"t": "event", "s": stream, "n": event.node_id, "e": "error", "name": event.name}
            return failed | error_facts_to_wire(event.error)
        case GraphFinished():
            return {
                "t": "end",
                "s": stream,
                "reason": "stop",
                "usage": _usage_to_wire(event.usage),
                "values": {name: value_to_wire(value) for name, value in event.values.items()},
                "failed": list(event.failed_node_ids),
            }
        case GraphFailed():
            reason = _REASON_BY_CODE.get(event.error.code, "error")
            return {"t": "end", "s": stream, "reason": reason} | error_facts_to_wire(event.error)


def event_from_wire(message: Mapping[str, Any], graph_id: int) -> Event | None:
    """Decode a delta, event or end message into an event of `graph_id`; None for an event of a kind that is not known here.

    Raises:
        ProtocolError: another kind of message, or a field is missing or invalid.
    """
    match message.get("t"), message.get("e"):
        case "delta", _:
            return _common_delta(message, graph_id) or TextDelta(
                graph_id,
                check_int(message, "n", 0, MAX_ID),
                optional(check_int, message, "i", 0, MAX_ID) or 0,
                check_str(message, "d"),
                optional(check_ints, message, "ids") or (),
                optional(logprobs_from_wire, message, "lp"),
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
                optional(logprobs_from_wire, message, "prompt_logprobs"),
                message.get("replayed") is True,
                optional(check_int, message, "max_tokens", 0, MAX_ID),
                value_from_wire(message.get("value"), "value"),
                optional(_choice_logprobs_from_wire, message, "choice_logprobs"),
                optional(_choice_logprobs_from_wire, message, "unconditional_logprobs"),
                optional(_drafts_from_wire, message, "drafts") or (),
            )
        case "event", "call":
            args = tuple(value_from_wire(arg, "args") for arg in check_list(message, "args"))
            return CallRequested(graph_id, check_int(message, "n", 0, MAX_ID), check_str(message, "function"), args)
        case "event", "start":
            return NodeStarted(graph_id, check_int(message, "n", 0, MAX_ID), optional(check_str, message, "name"))
        case "event", "cached":
            counts = [check_int(message, name, 0, MAX_ID) for name in ("n", "prompt_tokens", "cached_tokens")]
            return PromptComputed(graph_id, *counts)
        case "event", "value":
            value = value_from_wire(message.get("value"), "value")
            return ValueKnown(graph_id, check_int(message, "n", 0, MAX_ID), value)
        case "event", "waiting" if message.get("for") == "credit":
            return CreditSpent(graph_id, check_int(message, "n", 0, MAX_ID))
        case "event", "error":
            node_id, name = check_int(message, "n", 0, MAX_ID), optional(check_str, message, "name")
            return NodeFailed(graph_id, node_id, name, error_from_wire(message))
        case "end", _:
            if "code" in message:
                return GraphFailed(graph_id, error_from_wire(message))
            values = {name: value_from_wire(value, "values") for name, value in check_map(message, "values").items()}
            return GraphFinished(graph_id, values, _usage_from_wire(message), check_ints(message, "failed"))
        case "event", _:
            check_str(message, "e")
            return None
    raise ProtocolError(f"t = {message.get('t')!r}: expected delta, event or end", param="t")


def _common_delta(message: Mapping[str, Any], graph_id: int) -> TextDelta | None:
    """The fast path for the most common delta, one token of choice 0 without log-probabilities; None for all others."""
    node_id, text, ids = message.get("n"), message.get("d"), message.get("ids")
    if type(node_id) is not int or not 0 <= node_id <= MAX_ID or type(text) is not str:
        return None
    if type(ids) is not list or len(ids) != 1 or type(ids[0]) is not int or "i" in message or "lp" in message:
        return None
    return TextDelta(graph_id, node_id, 0, text, (ids[0],))


def error_facts_to_wire(error: RtlangError) -> dict[str, Any]:
    """Encode an error: code, message, facts and HTTP status, with the field it names and when to retry."""
    wire: dict[str, Any] = {
        "code": error.code,
        "message": _public_message(error),
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


def _public_message(error: RtlangError) -> str:
    """The message of an error without internal text: the cause of an engine's death is in the log only."""
    if not isinstance(error, EngineDeadError):
        return error.message
    return "the engine has stopped" + ("" if error.fault_id is None else f"; the log has the cause of {error.fault_id}")


def error_to_wire(
    error: RtlangError,
    *,
    stream: int | None = None,
    request: int | None = None,
    status: int | None = None,
    is_fatal: bool = False,
) -> dict[str, Any]:
    """Encode an `error` message for a stream, for one request of it, or for the connection. `status` overrides the default."""
    wire: dict[str, Any] = {"t": "error"} | error_facts_to_wire(error)
    for name, value in (("s", stream), ("q", request), ("status", status)):
        if value is not None:
            wire[name] = value
    if is_fatal:
        wire["fatal"] = True
    return wire


def error_from_wire(message: Mapping[str, Any]) -> RtlangError:
    """Decode an error, as an instance of the class registered for its code.

    Raises:
        ProtocolError: code, message or facts is missing or has the wrong type.
    """
    return rebuild(check_str(message, "code"), check_str(message, "message"), error_facts(message))


def read_messages(data: str | bytes) -> list[dict[str, Any]]:
    """Decode a server frame in MessagePack into its messages: one map, or an array of maps.

    Raises:
        ProtocolError: the frame is not MessagePack, or contains values other than maps.
    """
    if isinstance(data, str):
        raise ProtocolError("received a text frame; MessagePack uses binary frames")
    value = Encoding.MSGPACK.unpack(data, _SERVER_LIMITS)
    messages = value if isinstance(value, list) else [value]
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise ProtocolError("a frame must contain a map or an array of maps")
    return messages


def _plain(value: Any) -> Any:
    """Convert a value to plain data; other objects become their string form."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def _float_to_wire(value: float) -> float | str:
    # -inf is a valid score (an impossible choice), but JSON has no number for it.
    return value if math.isfinite(value) else str(value)


def _float_from_wire(value: object, param: str) -> float:
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise ProtocolError(f"{param} contains {value!r}: expected numbers", param=param)


def _floats_from_wire(message: Mapping[str, Any], name: str) -> tuple[float, ...]:
    return tuple(_float_from_wire(value, name) for value in check_list(message, name))


def _usage_to_wire(usage: Usage) -> dict[str, int]:
    found = {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    if usage.host_tokens or usage.disk_tokens or usage.peer_tokens:
        found |= {"host_tokens": usage.host_tokens, "disk_tokens": usage.disk_tokens}
    if usage.peer_tokens:
        found["peer_tokens"] = usage.peer_tokens
    return found


def _usage_from_wire(message: Mapping[str, Any]) -> Usage:
    usage = check_map(message, "usage")
    return Usage(
        *(check_int(usage, name, 0, MAX_ID) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")),
        *(
            check_int(usage, name, 0, MAX_ID) if name in usage else 0
            for name in ("host_tokens", "disk_tokens", "peer_tokens")
        ),
    )


def logprobs_to_wire(logprobs: Sequence[TokenLogprob]) -> list[list[Any]]:
    """Encode each token as [id, logprob, [[id, logprob], ...]]."""
    return [
        # value - value is 0 for a finite value: `_float_to_wire` without a call, as there may be a million of them.
        [
            item.token_id,
            _float_to_wire(item.logprob),
            [[other, value if value - value == 0.0 else str(value)] for other, value in item.top],
        ]
        for item in logprobs
    ]


def logprobs_from_wire(message: Mapping[str, Any], name: str) -> tuple[TokenLogprob, ...]:
    """Decode the log-probabilities in a field.

    Raises:
        ProtocolError: the field is missing or invalid.
    """
    return tuple(_logprob_from_wire(item, name) for item in check_list(message, name))


def _choice_logprobs_from_wire(message: Mapping[str, Any], name: str) -> tuple[tuple[TokenLogprob, ...], ...]:
    return tuple(logprobs_from_wire({name: item}, name) for item in check_list(message, name))


def _drafts_from_wire(message: Mapping[str, Any], name: str) -> tuple[DraftUse, ...]:
    found: list[DraftUse] = []
    for item in check_list(message, name):
        match item:
            case [str(source), int(num_drafted), int(num_accepted)]:
                found.append(DraftUse(source, num_drafted, num_accepted))
            case _:
                raise ProtocolError(f"{name} = {item!r}: expected [source, computed, accepted]", param=name)
    return tuple(found)


def _logprob_from_wire(item: object, name: str) -> TokenLogprob:
    found = _common_logprob(item)
    if found is not None:
        return found
    match item:
        case [int(token_id), value, [*top]]:
            pairs = []
            for pair in top:
                match pair:
                    case [int(other), other_value]:
                        pairs.append((other, _float_from_wire(other_value, name)))
                    case _:
                        raise ProtocolError(f"{name} contains {pair!r}: expected pairs [id, logprob]", param=name)
            return TokenLogprob(token_id, _float_from_wire(value, name), tuple(pairs))
    raise ProtocolError(f"{name} contains {item!r}: expected [id, logprob, top]", param=name)


def _common_logprob(item: object) -> TokenLogprob | None:
    """A token of integers and floats only, in a twentieth of the time; None for others."""
    if type(item) is not list or len(item) != 3:
        return None
    token_id, value, top = item
    if type(token_id) is not int or type(value) is not float or type(top) is not list:
        return None
    if not all(type(pair) is list and len(pair) == 2 for pair in top):
        return None
    if not all(type(other) is int and type(other_value) is float for other, other_value in top):
        return None
    return TokenLogprob(token_id, value, tuple([(other, other_value) for other, other_value in top]))


def lazy_logprobs(logprobs: Sequence[TokenLogprob]) -> LazyList:
    return LazyList(logprobs, logprobs_to_wire)


def _completion_to_wire(completion: Completion, logprobs: Callable[[Sequence[TokenLogprob]], Any]) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "text": completion.text,
        "ids": list(completion.token_ids),
        "reason": str(completion.finish_reason),
    }
    if completion.stop_match is not None:
        wire["stop"] = completion.stop_match
    if completion.logprobs is not None:
        wire["logprobs"] = logprobs(completion.logprobs)
    if completion.distortion is not None:
        wire["distortion"] = [[_float_to_wire(nats), end] for nats, end in completion.distortion]
    if completion.captures is not None:
        wire["captures"] = {name: list(texts) for name, texts in completion.captures.items()}
    return wire


def _completion_from_wire(item: object) -> Completion:
    if not isinstance(item, dict):
        raise ProtocolError(f"completions contains {item!r}: expected maps", param="completions")
    stop = item.get("stop")
    if stop is not None and (isinstance(stop, bool) or not isinstance(stop, (str, int))):
        raise ProtocolError(f"stop = {stop!r}: expected a string or a token id", param="stop")
    try:
        reason = FinishReason(check_str(item, "reason"))
    except ValueError:
        raise ProtocolError(
            f"reason = {item['reason']!r}: expected one of {', '.join(FinishReason)}", param="reason"
        ) from None
    logprobs = optional(logprobs_from_wire, item, "logprobs")
    distortion = optional(_distortion_from_wire, item, "distortion")
    captures = optional(_captures_from_wire, item, "captures")
    return Completion(check_str(item, "text"), check_ints(item, "ids"), reason, stop, logprobs, distortion, captures)


def _captures_from_wire(message: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    given = message[name]
    if not isinstance(given, dict):
        raise ProtocolError(f"{name} = {given!r}: expected a map of lists of texts", param=name)
    for key, texts in given.items():
        if not isinstance(key, str) or not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise ProtocolError(f"{name} contains {key!r}: {texts!r}: expected lists of texts by name", param=name)
    return {key: tuple(texts) for key, texts in given.items()}


def _distortion_from_wire(message: Mapping[str, Any], name: str) -> tuple[tuple[float, int], ...]:
    found: list[tuple[float, int]] = []
    for pair in check_list(message, name):
        match pair:
            case [value, int(end)] if not isinstance(end, bool) and end >= 0:
                found.append((_float_from_wire(value, name), end))
            case _:
                raise ProtocolError(f"{name} contains {pair!r}: expected pairs [nats, end]", param=name)
    return tuple(found)


def describe_close(error: ConnectionClosed) -> str:
    """Describe why a connection was closed, for an error message."""
    if error.rcvd is None:
        return "the connection broke"
    return f"the server closed the connection: {error.rcvd.reason or 'no reason given'} ({error.rcvd.code})"


def check_offset(offsets: dict[tuple[int, int], int], event: TextDelta, message: Mapping[str, Any]) -> None:
    """Check that a chunk directly follows the previous one of its node and choice. Updates `offsets`.

    Raises:
        ProtocolError: a chunk is missing or repeated.
    """
    key = (event.node_id, event.choice)
    expected = offsets.get(key, 0)
    if message.get("o") != expected:
        raise ProtocolError(f"o = {message.get('o')!r} for node {event.node_id}: expected {expected}", param="o")
    offsets[key] = expected + 1
