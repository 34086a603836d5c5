"""Decoder states, checked against Python's codecs."""

from __future__ import annotations

import json

import pytest

from rtlang_grammars.regular.characters.byte_spellings import (
    ESCAPE,
    UTF8_LEADS,
    DecoderState,
    code_point_ranges,
    edges,
    lead_state,
    shape,
)

CHARACTERS = [
    0x80,
    0x7FF,
    0x800,
    0xFFF,
    0x1000,
    0xCFFF,
    0xD000,
    0xD7FF,
    0xE000,
    0xFFFF,
    0x10000,
    0x3FFFF,
    0x40000,
    0xFFFFF,
    0x100000,
    0x10FFFF,
]


def _follow(state: DecoderState, data: bytes) -> int | None:
    """The code point that bytes complete; None if they complete none."""
    for index, byte in enumerate(data):
        found = [branch for branch in edges(state) if branch.low <= byte <= branch.high]
        if not found:
            return None
        (branch,) = found
        if branch.state is None:
            return branch.first + byte - branch.low if index == len(data) - 1 else None
        state = branch.state
    return None


def _utf8(data: bytes) -> int | None:
    runs = [(low, run) for low, high, run in UTF8_LEADS if low <= data[0] <= high]
    return _follow(lead_state(runs[0][0], data[0], runs[0][1]), data[1:]) if runs else None


@pytest.mark.parametrize("code_point", CHARACTERS, ids=hex)
def test_utf8_decodes_to_its_character(code_point: int) -> None:
    assert _utf8(chr(code_point).encode()) == code_point


def test_byte_pairs_agree_with_the_utf8_codec() -> None:
    for lead in range(0x80, 0x100):
        for second in range(0x100):
            data = bytes([lead, second])
            try:
                expected = ord(data.decode())
            except UnicodeDecodeError:
                expected = None
            assert _utf8(data) == expected


@pytest.mark.parametrize(
    "data", [b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80"]
)
def test_overlong_forms_and_surrogates_are_rejected(data: bytes) -> None:
    assert _utf8(data) is None


@pytest.mark.parametrize("code_point", [*range(0x20), 0x22, 0x2F, 0x5C, 0x7F, *CHARACTERS], ids=hex)
def test_json_escapes_decode_to_their_character(code_point: int) -> None:
    units = chr(code_point).encode("utf-16-be")
    escaped = "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
    for text in (escaped, escaped.upper().replace("U", "u"), json.dumps(chr(code_point))[1:-1]):
        if text.startswith("\\"):
            assert _follow(ESCAPE, text[1:].encode()) == code_point


@pytest.mark.parametrize(
    "text", ["ud800", "udc00", "ud83dx", "ud83d\\n", "ud83d\\u0041", "ud83d\\ud83d", "u12g4", "x41", "'"]
)
def test_lone_surrogates_and_unknown_escapes_are_rejected(text: str) -> None:
    assert _follow(ESCAPE, text.encode()) is None


def test_ranges_shrink_and_contain_the_character() -> None:
    state = ESCAPE
    widths = []
    for byte in b"ud83d\\ude0":
        (branch,) = [branch for branch in edges(state) if branch.low <= byte <= branch.high]
        assert branch.state is not None
        state = branch.state
        ranges = code_point_ranges(state)
        assert any(first <= 0x1F600 <= last for first, last in ranges)
        widths.append(sum(last - first + 1 for first, last in ranges))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 16


def test_states_of_one_shape_have_equal_edges() -> None:
    by_shape: dict[tuple[int, ...], list[tuple[tuple[int, int], ...]]] = {}
    worklist = [ESCAPE, *(lead_state(low, byte, run) for low, high, run in UTF8_LEADS for byte in range(low, high + 1))]
    seen = set(worklist)
    for state in worklist:
        found = edges(state)
        by_shape.setdefault(shape(state), []).append(tuple((branch.low, branch.high) for branch in found))
        for branch in found:
            if branch.state is not None and branch.state not in seen and len(seen) < 6000:
                seen.add(branch.state)
                worklist.append(branch.state)
    for bytes_below in by_shape.values():
        assert len(set(bytes_below)) == 1
    assert len(by_shape) < 40
