"""Sealed texts open for their owner and purpose only, and not at all when they were changed."""

from __future__ import annotations

from random import Random

from rtlang.serve.responses.sealing import Sealer


def test_a_sealed_value_opens_for_its_owner_and_purpose() -> None:
    sealer = Sealer()
    for value in ("", "thought é \ud83d", ["a", {"b": None}], "x" * 100_000):
        text = sealer.seal("ann", "reasoning", value)
        assert sealer.open("ann", "reasoning", text) == value
        assert text != sealer.seal("ann", "reasoning", value)
        for owner, purpose in (("bob", "reasoning"), ("ann", "compaction")):
            assert sealer.open(owner, purpose, text) is None
        assert Sealer().open("ann", "reasoning", text) is None
    assert Sealer(b"k" * 32).open("a", "b", Sealer(b"k" * 32).seal("a", "b", 1)) == 1


def test_a_changed_text_does_not_open() -> None:
    sealer, random = Sealer(), Random(0)
    text = sealer.seal("ann", "reasoning", "a secret thought")
    assert "secret" not in text
    opened = sealer.open("ann", "reasoning", text)
    for _ in range(300):
        at = random.randrange(len(text))
        changed = text[:at] + random.choice("abcXYZ019-_=é ") + text[at + random.randrange(2) :]
        assert sealer.open("ann", "reasoning", changed) in (None, opened)  # other spellings of the same bytes may open
        assert sealer.open("ann", "reasoning", text[:at]) is None
    for other in ("", "rts1_", "rts1_AAAA", "rts1_é", "gAAAAAB"):
        assert sealer.open("ann", "reasoning", other) is None
