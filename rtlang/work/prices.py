"""Estimated seconds of work, from the sizes that are known before it begins.

Prices order the jobs of an owner, bound its queue, and decide what runs on the event loop; what a job has taken is measured. They were
measured on one core of a small machine, and are high rather than low: a wrong one moves a job to a thread, or after others of its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from rtlang.contract.events import CallRequested, Event, GraphFinished, NodeFinished, TextDelta, ValueKnown
from rtlang.contract.request_graph import Node, Text, TokenIds, all_nodes, operands_of

_PARSE_S_PER_BYTE = 2e-9
_CONTAINERS = (list, dict, tuple)
_CHARS_OF_ITEM = 5  # of a text within a list or map
ITEM_S = 5e-7
"""Of a number, text or map in JSON, and of a token id that is checked."""
_UNPACK_S_PER_BYTE = 1e-7  # MessagePack: a byte may be a value
READ_S_PER_BYTE = 1e-7
"""Of a message or body that becomes a graph or a request: fields are checked, and schemas and templates read."""
TOKENIZE_S_PER_CHAR = 1.5e-6
DETOKENIZE_S_PER_TOKEN = 1e-6
NODE_S = 2.5e-6
"""Of a node that is checked and handed to an engine."""
_PART_S = 5e-7
_TOKEN_ID_S = 1.5e-7
_CHAR_S = 1e-9
"""Of an operand or a part of a node, of a token id and of a character in it that are checked."""
OUTCOME_S_PER_BYTE = 1e-7
"""Of the events of a graph that become one map."""
NODE_JSON_S = 5e-5
"""Of a node of the prefix cache that becomes text."""
EVENT_S = 5e-5
"""Of an event that becomes text."""
REPLY_S_PER_CHAR = 1e-7
LOGPROB_S = 1e-5
"""Of the log-probabilities of one token that become text."""
CHECK_S_PER_CHAR = 1e-6
"""Of a finished text that is checked against its schema."""
MANY_ITEMS = 500
"""Items of a list or map, nested ones included, up to which they are counted."""
VALUE_S = 0.002
"""Of a list or map of more items that becomes text: more than the event loop does."""
CALL_S = 0.05
"""Of a question that an engine answers between two steps. Above CHEAP_S, so that questions to an engine that hangs leave threads free."""


def json_price(data: bytes) -> float:
    """The price of parsing JSON text: by its length and, as an upper bound of its values, its commas and opening brackets."""
    num_items = data.count(b",") + data.count(b"[") + data.count(b"{")
    return len(data) * _PARSE_S_PER_BYTE + num_items * ITEM_S


def message_price(data: bytes, *, is_text: bool) -> float:
    """The price of a message of a client: it is decoded, and the graph in it is built."""
    parsing = json_price(data) if is_text else len(data) * _UNPACK_S_PER_BYTE
    return parsing + len(data) * READ_S_PER_BYTE


def nodes_price(nodes: Sequence[Node]) -> float:
    """The price of nodes that are checked and handed to an engine, blocks included."""
    price = 0.0
    for node in all_nodes(nodes):
        price += NODE_S
        if isinstance(node, Text):
            price += _PART_S * len(node.parts)
            price += sum(_TOKEN_ID_S * len(part.ids) for part in node.parts if isinstance(part, TokenIds))
            price += sum(_CHAR_S * len(part) for part in node.parts if isinstance(part, str))
        else:
            price += _PART_S * len(operands_of(node))
    return price


def num_chars_in(value: object) -> int:
    """The characters of all texts in a plain value."""
    num_chars, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                num_chars += len(text)
            case dict() as found:
                waiting.extend(found.values())
            case list() | tuple() as found:
                waiting.extend(found)
    return num_chars


def events_price(events: Iterable[Event]) -> float:
    """The price of turning events into text."""
    return sum(map(_event_price, events))


def _event_price(event: Event) -> float:
    match event:
        case TextDelta():
            return EVENT_S + len(event.logprobs or ()) * LOGPROB_S
        case NodeFinished():
            num_logprobs = len(event.prompt_logprobs or ())
            for found in (event.choice_logprobs, event.unconditional_logprobs):
                num_logprobs += sum(map(len, found or ()))
            price = EVENT_S + num_logprobs * LOGPROB_S + _value_price(event.value)
            for each in event.completions:
                price += len(each.text) * REPLY_S_PER_CHAR + len(each.logprobs or ()) * LOGPROB_S
                price += len(each.token_ids) * ITEM_S
            return price
        case ValueKnown() | CallRequested() | GraphFinished():
            return EVENT_S + sum(map(_value_price, _values_of(event)))
    return EVENT_S


def has_large_value(event: Event) -> bool:
    """Whether an event has a list or map of more than `MANY_ITEMS`."""
    return any(isinstance(value, _CONTAINERS) and _num_items(value) > MANY_ITEMS for value in _values_of(event))


def _values_of(event: Event) -> Iterable[object]:
    match event:
        case NodeFinished() | ValueKnown():
            return (event.value,)
        case CallRequested():
            return event.args
        case GraphFinished():
            return event.values.values()
    return ()


def _value_price(value: object) -> float:
    """The price of a value: a text by its length, a list or map by its items, which are counted as far as `MANY_ITEMS`."""
    if isinstance(value, str):
        return len(value) * REPLY_S_PER_CHAR
    if not isinstance(value, _CONTAINERS):
        return 0.0
    num_items = _num_items(value)
    return VALUE_S if num_items > MANY_ITEMS else num_items * ITEM_S


def _num_items(value: object) -> int:
    """The items of a value, and a part for long texts among them; only as far as `MANY_ITEMS`."""
    num_items, waiting = 0, [value]
    while waiting and num_items <= MANY_ITEMS:
        match waiting.pop():
            case str() as text:
                num_items += 1 + len(text) // _CHARS_OF_ITEM
            case dict() as found:
                num_items += 1 + len(found)
                waiting.extend(islice(found.values(), MANY_ITEMS))
            case list() | tuple() as found:
                num_items += 1
                waiting.extend(islice(found, MANY_ITEMS + 1))
            case _:
                num_items += 1
    return num_items
