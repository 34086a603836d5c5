"""Triggers against Python's own search in the text."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.lowering.languages.free_text import TEXT_FIRST, Triggers


@pytest.mark.parametrize("texts", [["ab"], ["aab", "ba"], ["abab", "bb", "c"], ["日本", "é"], ["<tool>", "<fn", "</"]])
def test_the_first_text_that_is_complete_is_found(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    triggers = Triggers(encoded)
    rng = random.Random(0)
    pieces = [*texts, *"ab", *(letter for text in texts for letter in text)]
    for _ in range(300):
        data = "".join(rng.choice(pieces) for _ in range(rng.randrange(9))).encode()
        ends = {data.find(text) + len(text): i for i, text in enumerate(encoded) if text in data}
        node, found = 0, None
        for at, byte in enumerate(data):
            node = int(triggers.rows[node, byte])
            if triggers.found[node] >= 0:
                found = (at + 1, triggers.found[node])
                break
        assert found == (min(ends.items()) if ends else None)


def test_a_text_begins_with_the_bytes_of_utf8() -> None:
    assert set(TEXT_FIRST) == {chr(point).encode()[0] for point in (*range(0xD800), *range(0xE000, 0x110000, 97))}
