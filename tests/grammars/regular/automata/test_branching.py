"""Character decoders, checked against Python's codecs: every encoding of a character ends in its class."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.regular.automata.branching import CharacterDecoder, decoder_for, uniform_dispatch
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.byte_spellings import ESCAPE, DecoderState
from rtlang_grammars.regular.language import compile_regex
from tests.support.grammars.texts import spellings

SETS = [
    code_points.ALL,
    code_points.normalize([(0x30, 0x39)]),
    code_points.normalize([(0x61, 0x7A), (0xE0, 0xFF), (0x2028, 0x2029), (0x10400, 0x1044F)]),
    code_points.normalize([(0xFFF0, 0x10010), (0x10FFFF, 0x10FFFF)]),
]


def decoded_class(decoder: CharacterDecoder, data: bytes) -> int | None:
    """Decode one character in a JSON string and return its class."""
    layout = decoder.boundary(True)
    target = int(layout.by_byte[data[0]])
    num_classes, num_leads = len(layout.classes), len(layout.leads)
    if target < num_classes:
        return layout.classes[target] if len(data) == 1 else None
    if target > num_classes + num_leads:
        return None
    state: DecoderState | None = ESCAPE if target == num_classes + num_leads else layout.leads[target - num_classes]
    classes: tuple[int, ...] = ()
    for byte in data[1:]:
        if state is None:
            return None
        dispatch = decoder.dispatch(state)
        uniform = uniform_dispatch(state)
        assert (dispatch.by_byte[byte] == 0) == (uniform.by_byte[byte] == 0)
        if dispatch.by_byte[byte] == 0:
            return None
        state, classes = dispatch.targets[dispatch.by_byte[byte] - 1]
    return classes[0] if state is None else None


@pytest.mark.parametrize("count", range(1, len(SETS) + 1))
def test_every_encoding_ends_in_the_class_of_its_character(count: int) -> None:
    rng = random.Random(count)
    decoder = decoder_for(frozenset(SETS[:count]))
    edges = [bound + by for points in SETS for each in points for bound in each for by in (-1, 0, 1)]
    chars = [*edges, *(rng.randrange(0x110000) for _ in range(200)), *range(0x20, 0x7F)]
    for char in chars:
        if not 0 <= char <= 0x10FFFF or 0xD800 <= char < 0xE000:
            continue
        for phase in spellings(chr(char)):
            assert decoded_class(decoder, phase.encode()) == decoder.partition.class_of(char), phase


@pytest.mark.parametrize(
    "data", [b"\x1f", b'"', b"\x80", b"\xc1\x80", b"\xed\xa0\x80", b"\\ud800", b"\\ud800\\u0041", b"\\x"]
)
def test_invalid_encodings_are_rejected(data: bytes) -> None:
    assert decoded_class(decoder_for(frozenset(SETS)), data) is None


@pytest.mark.parametrize(
    ("pattern", "length"),
    [(".*", None), ("[^x]*", 0), (r"\S+", 0), (r".{0,7}", 7), ("a?.{3}b|.{5}", 5), ("(?:.{4})*", None)],
)
def test_any_plain_string_up_to_the_free_length_may_follow(pattern: str, length: int | None) -> None:
    body = compile_regex(f"(?:{pattern})", dialect="ecma").intersect(compile_regex(r"[\s\S]*")).json_string_body()
    assert body.free_length(body.start, 12) == length
