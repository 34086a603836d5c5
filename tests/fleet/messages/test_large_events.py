"""Large events come out as they went in, in parts that let others pass."""

from __future__ import annotations

import msgpack
import pytest

from rtlang.contract.events import Completion, Event, GraphFinished, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.fleet.messages.frames import Message
from rtlang.fleet.messages.large_events import Joiner, LogprobsPart, divide
from rtlang.protocol.event_codec import event_from_wire, event_to_wire


def logprobs(count: int, num_top: int = 20) -> tuple[TokenLogprob, ...]:
    top = tuple((token, -float(token)) for token in range(num_top))
    return tuple(TokenLogprob(token, -0.5, top) for token in range(count))


def large_event() -> NodeFinished:
    texts = [
        Completion("a", (1,), FinishReason.STOP, None, logprobs(500)),
        Completion("", (), FinishReason.CANCELLED),
        Completion("b", (2,), FinishReason.STOP, None, ()),
        Completion("c", (3,), FinishReason.STOP, None, logprobs(301)),
    ]
    return NodeFinished(
        4,
        7,
        "x",
        tuple(texts),
        Usage(1, 2, 3),
        Timing(0.0, 0.5, 1.0),
        prompt_logprobs=logprobs(90),
        choice_logprobs=(logprobs(3), logprobs(2)),
    )


def wire(graph_id: int, item: LogprobsPart | Event) -> Message:
    message = item.to_wire(graph_id) if isinstance(item, LogprobsPart) else event_to_wire(graph_id, item)
    unpacked: Message = msgpack.unpackb(msgpack.packb(message), strict_map_key=False)
    return unpacked


def test_a_large_event_is_joined_again() -> None:
    joiner, joined = Joiner(), []
    for item in divide(large_event()):
        message = wire(4, item)
        assert len(msgpack.packb(message)) < 30_000
        if message["t"] == "part":
            joiner.take(message)
        else:
            joined.append(joiner.join(event_from_wire(message, 4)))
    assert joined == [large_event()]


@pytest.mark.parametrize("event", [TextDelta(4, 1, 0, "x", (1,)), GraphFinished(4, {}, Usage(), ())])
def test_other_events_are_left_alone(event: Event) -> None:
    assert list(divide(event)) == [event]
    assert Joiner().join(event) is event
