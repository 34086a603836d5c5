"""The punctuation of arrays and objects: what stands between their elements, and how it is written as states."""

from __future__ import annotations

from dataclasses import dataclass

from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.spec.constraint import JsonLayout


@dataclass(frozen=True, slots=True)
class Joints:
    """The punctuation at one depth of nesting; in a free style, blanks may stand around it.

    Attributes:
        opening: before the first element.
        separator, colon: between elements, and after names.
        closing: after the last element, before the bracket.
    """

    opening: bytes = b""
    separator: bytes = b","
    colon: bytes = b":"
    closing: bytes = b""

    @classmethod
    def of(cls, layout: JsonLayout | None, depth: int) -> Joints:
        """The punctuation of a container within `depth` others."""
        if layout is None:
            return cls()
        separator, colon = str(layout.item_separator).encode(), layout.key_separator.encode()
        if layout.indent is None:
            return cls(b"", separator, colon, b"")
        step = str(layout.indent).encode()
        inner, outer = b"\n" + step * (depth + 1), b"\n" + step * depth
        return cls(inner, separator + inner, colon, outer)

    def joined(self, parts: list[bytes], bracket: bytes, *, is_first: bool) -> bytes:
        """The rest of a container with `parts` as its further elements; `is_first`: it has none so far."""
        if not parts:
            return bracket if is_first else self.closing + bracket
        return (self.opening if is_first else self.separator) + self.separator.join(parts) + self.closing + bracket


def chain(tables: Tables, text: bytes, target: int, *, block: int = 0) -> int:
    """Add states that read a text and go to `target`; returns the first, or `target` if the text is empty."""
    for byte in reversed(text):
        target = tables.add_state(byte=byte, target=target, block=block)
    return target
