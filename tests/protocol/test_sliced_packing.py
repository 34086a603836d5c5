"""The slices of a large message are the message that is packed as a whole, and none of them is large."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rtlang.contract.events import Completion, Event, GraphFinished, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.protocol.event_codec import event_slices, event_to_wire
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.protocol.sliced_packing import CHARS_A_SLICE, ITEMS_A_SLICE, NUMBERS_A_SLICE, LazyList, pack_slices

LIMITS = DecodeLimits(max_array_entries=1 << 20, max_map_entries=1 << 20, max_values=1 << 24)


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("count", [0, 1, 15, 16, 64, 65, 1000])
def test_lazy_lists_anywhere_give_the_bytes_of_plain_ones(encoding: Encoding, count: int) -> None:
    items = [[number, "é", -0.5] for number in range(count)]

    def message(wrap: Any) -> dict[str, Any]:
        inner = [{"a": None, "l": wrap(items)}, {"l": wrap([])}]
        return {"t": "event", "items": wrap(items), "deep": inner, "lists": [wrap(items)] * 17, "empty": []}

    slices = list(pack_slices(encoding, message(lambda each: LazyList(each, list))))
    assert b"".join(slices) == encoding.pack(message(list))


def large_event(num_tokens: int) -> NodeFinished:
    top = tuple((token, -float(token)) for token in range(20))
    logprobs = tuple(TokenLogprob(token, -math.inf if token % 7 == 0 else -0.25, top) for token in range(num_tokens))
    done = Completion("a" * num_tokens, tuple(range(num_tokens)), FinishReason.STOP, None, logprobs)
    cancelled = Completion("", (), FinishReason.CANCELLED)
    return NodeFinished(
        1, 2, "x", (cancelled, done, done), Usage(1, 2, 3), Timing(0.0, 0.5, 1.0), prompt_logprobs=logprobs
    )


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_large_result_is_packed_in_small_slices(encoding: Encoding) -> None:
    event = large_event(1000)
    slices = list(event_slices(encoding, 7, event))
    assert b"".join(slices) == encoding.pack(event_to_wire(7, event))
    bound = ITEMS_A_SLICE * 21 * 24
    assert len(slices) > 3 * 1000 // ITEMS_A_SLICE
    assert max(map(len, slices)) < bound


def test_a_small_result_is_packed_at_once() -> None:
    event = large_event(5)
    assert list(event_slices(Encoding.JSON, 7, event)) == [Encoding.JSON.pack(event_to_wire(7, event))]


def test_what_is_packed_can_be_read() -> None:
    packed = b"".join(event_slices(Encoding.MSGPACK, 7, large_event(1000)))
    assert Encoding.MSGPACK.unpack(packed, LIMITS) == event_to_wire(7, large_event(1000))


LONG_TEXT = 'é"\n\\\ud83d' * CHARS_A_SLICE
LONG_IDS = tuple(range(3 * NUMBERS_A_SLICE + 1))
USAGE, TIMING = Usage(1, 2, 3), Timing(0.0, 0.5, 1.0)


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize(
    "event",
    [
        TextDelta(1, 2, 0, LONG_TEXT, LONG_IDS),
        TextDelta(1, 2, 0, "", LONG_IDS),
        NodeFinished(1, 2, "x", (Completion(LONG_TEXT, LONG_IDS, FinishReason.STOP),) * 2, USAGE, TIMING),
        GraphFinished(1, {"x": LONG_TEXT, "y": ["", LONG_TEXT, 1, None]}, USAGE, ()),
    ],
)
def test_long_texts_and_lists_of_numbers_are_packed_in_slices(encoding: Encoding, event: Event) -> None:
    slices = list(event_slices(encoding, 7, event))
    assert b"".join(slices) == encoding.pack(event_to_wire(7, event))
    # In MessagePack a text is copied as it is.
    bound = 4 * CHARS_A_SLICE if encoding is Encoding.JSON else 2 * len(LONG_TEXT)
    assert max(map(len, slices)) <= bound


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("value", [[1.5] * 5000, [True] * 3000, [[]] * 3000, [1] * 2048, ["a"] * 3000, {}, [[1, "é"]]])
def test_slices_of_any_value_are_its_bytes(encoding: Encoding, value: Any) -> None:
    assert b"".join(pack_slices(encoding, value)) == encoding.pack(value)
