"""Prices grow with what work costs, and cost next to nothing themselves."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest

from rtlang.contract.events import (
    CallRequested,
    Completion,
    Event,
    GraphFinished,
    NodeFinished,
    TextDelta,
    Timing,
    TokenLogprob,
    ValueKnown,
)
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Apply, Block, Const, Generate, Node, Switch, Text, TokenIds
from rtlang.work.loop_work import INLINE_S
from rtlang.work.prices import events_price, json_price, message_price, nodes_price, num_chars_in

USAGE, TIMING = Usage(1, 0, 1), Timing(0.0, 0.0, 0.0)


def finished(text: str = "", num_logprobs: int = 0, value: Any = None) -> NodeFinished:
    logprobs = tuple(TokenLogprob(7, -1.0, ()) for _ in range(num_logprobs))
    completion = Completion(text, (7,) * num_logprobs, FinishReason.STOP, None, logprobs)
    return NodeFinished(1, 1, "x", (completion,), USAGE, TIMING, value=value)


def test_values_are_dearer_than_text() -> None:
    text, values = json.dumps(["a" * 100_000]).encode(), json.dumps([[0] * 50] * 1000).encode()
    assert json_price(text) < INLINE_S < json_price(values)
    assert json_price(b"{}") < json_price(text)


@pytest.mark.parametrize("is_text", [True, False])
def test_a_message_is_read_on_the_loop_only_if_it_is_small(is_text: bool) -> None:
    for size, is_small in ((500, True), (50_000, False)):
        message = {"t": "open", "body": {"prompt": "x" * size}}
        data = json.dumps(message).encode() if is_text else msgpack.packb(message)
        assert (message_price(data, is_text=is_text) <= INLINE_S) is is_small


@pytest.mark.parametrize(
    "event",
    [
        finished("x" * 1_000_000),
        finished(num_logprobs=2000),
        finished(value=[1] * 1_000),
        ValueKnown(1, 1, {"a": [[{"b": "x" * 9_000}]]}),
        ValueKnown(1, 1, {"a": [["b"] * 30] * 30}),
        CallRequested(1, 1, "f", ("x" * 100_000,)),
        GraphFinished(1, {"x": "y" * 100_000}, USAGE),
        GraphFinished(1, {"x": [1], "y": {str(number): 1 for number in range(1_000)}}, USAGE),
        TextDelta(1, 1, 0, "x", (1,) * 200, tuple(TokenLogprob(7, -1.0, ()) for _ in range(200))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_large_events_are_no_work_for_the_loop(event: Event) -> None:
    assert events_price([event]) > INLINE_S
    small: list[Event] = [
        finished("Hi"),
        TextDelta(1, 1, 0, "x", (1,)),
        GraphFinished(1, {"x": {"a": [1, "b"]}}, USAGE),
    ]
    assert events_price(small) < INLINE_S


def test_the_characters_of_a_value_are_those_of_its_texts() -> None:
    assert num_chars_in([{"role": "user", "content": ["ab", {"text": "cd"}]}, None, 3, ("e",)]) == 9


@pytest.mark.parametrize(
    "nodes",
    [
        [Text(0, None, (TokenIds((1,) * 100_000),))],
        [Text(0, None, ("a",) * 10_000)],
        [Text(0, None, ("x" * 4_000_000,))],
        [Apply(number, "list", (Const(1),) * 4_000) for number in range(2)],
        [Switch(0, None, Const(1), ((1, Block(tuple(Apply(each, "list", ()) for each in range(1, 1_000)))),))],
    ],
)
def test_graphs_that_are_long_to_check_are_no_work_for_the_loop(nodes: list[Node]) -> None:
    assert nodes_price(nodes) > INLINE_S
    assert nodes_price([Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams())]) < INLINE_S / 50
