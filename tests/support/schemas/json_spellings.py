"""JSON texts of a value, spelled at random: blanks, property order, escapes, forms of numbers."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def spelled(value: Any, rng: random.Random, *, escapes: float = 0.1, numbers: bool = True) -> str:
    """A text of a value.

    Args:
        escapes: how likely a character is escaped that need not be.
        numbers: numbers may have other forms than their shortest.
    """
    blanks = rng.choice(["none", "spaces", "lines"])

    def blank(depth: int, *, after: bool = False) -> str:
        if blanks == "none":
            return ""
        if blanks == "lines":
            return " " if after else "\n" + "  " * depth
        return rng.choice(["", " "])

    def write(item: Any, depth: int) -> str:
        if isinstance(item, str):
            return string(item, rng, escapes)
        if isinstance(item, dict):
            pairs = list(item.items())
            rng.shuffle(pairs)
            parts = [
                string(name, rng, escapes)
                + blank(0, after=True)[: rng.random() < 0.2]
                + ":"
                + blank(0, after=True)
                + write(each, depth + 1)
                for name, each in pairs
            ]
        elif isinstance(item, list):
            parts = [write(each, depth + 1) for each in item]
        elif isinstance(item, bool) or item is None:
            return json.dumps(item)
        else:
            return number(item, rng) if numbers else json.dumps(item)
        ends = "{}" if isinstance(item, dict) else "[]"
        if not parts:
            return ends
        inner = blank(depth + 1)
        return ends[0] + inner + ("," + inner).join(parts) + blank(depth) + ends[1]

    return write(value, 0)


def string(text: str, rng: random.Random, escapes: float) -> str:
    """A string with its quotes; what must be escaped is, and other characters now and then."""
    made = []
    for char in text:
        must = char in '"\\' or char < " "
        if not must and rng.random() >= escapes:
            made.append(char)
        elif char in _SHORT and rng.random() < 0.7:
            made.append(_SHORT[char])
        else:
            units = char.encode("utf-16-be")
            codes = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
            made += ["\\u" + (code.upper() if rng.random() < 0.5 else code) for code in codes]
    return '"' + "".join(made) + '"'


def number(value: float | Decimal, rng: random.Random) -> str:
    """A number in some form: with zeros behind the point, or with an exponent."""
    text = format(Decimal(repr(value) if isinstance(value, float) else value), "f")
    form = rng.randrange(4)
    if form == 0 and "." not in text:
        return text + rng.choice([".0", ".00"])
    if form == 1:
        return text + rng.choice(["e0", "E+0", "e-0", "e00"])
    if form == 2 and "." in text:
        return text + "0"
    return text
