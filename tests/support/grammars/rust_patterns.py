"""Random patterns in the dialect of Rust's `regex`, of which pydantic's validator is the oracle."""

from __future__ import annotations

import random

LETTERS = "aAbBkK\u212as\u017f-_1 .\n\r\u00e9\u00c9\u00df\u03b1#&~]"
"""Characters of random texts: case variants, letters beyond ASCII, line ends and signs of the syntax."""

_ESCAPES = [
    r"\x61",
    r"\x{62}",
    r"\u0061",
    r"\u{e9}",
    r"\U{4b}",
    r"\U00000041",
    r"\n",
    r"\t",
    r"\.",
    r"\-",
    r"\_",
    r"\#",
    r"\&",
    r"\~",
]
_CLASSES: tuple[str, ...] = (r".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S")
_CLASSES += (r"\pL", r"\p{Greek}", r"\P{Lu}", r"\p{gc!=Ll}", r"\p{sc=Latin}", r"\p{upper-case}", r"\PN")
_ASSERTIONS = [
    r"^",
    r"$",
    r"\A",
    r"\z",
    r"\b",
    r"\B",
    r"\<",
    r"\>",
    r"\b{start}",
    r"\b{end}",
    r"\b{start-half}",
    r"\b{end-half}",
]
_ITEMS = [r"\d", r"\w", r"\S", r"\pL", r"\p{Lu}", r"\n", r"\x61", r"\]", r"\-", r"\^", r"a-c", r"A-k", r"0-9", r"à-ÿ"]
_POSIX = ["alpha", "digit", "word", "lower", "punct", "space", "xdigit", "print"]
_QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"]
_FLAGS = ["i", "s", "m", "x", "R", "U", "is", "-i", "i-s", "mR", "u"]


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    """A pattern, which may be one that Rust refuses."""
    branches = [
        "".join(_repeated(rng, depth) for _ in range(rng.randint(0, 3))) for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    return "|".join(branches)


def _repeated(rng: random.Random, depth: int) -> str:
    item = _atom(rng, depth)
    while rng.random() < 0.25:
        item += rng.choice(_QUANTIFIERS)
    return item


def _atom(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(12 if depth > 0 else 8)
    if kind == 8:
        return rng.choice(["(", "(?:", f"(?P<n{rng.randrange(10**6)}>"]) + random_pattern(rng, depth - 1) + ")"
    if kind == 9:
        return f"(?{rng.choice(_FLAGS)}:{random_pattern(rng, depth - 1)})"
    if kind == 10:
        return f"(?{rng.choice(_FLAGS)})"
    if kind == 11:
        return f"(?<n{rng.randrange(10**6)}>{random_pattern(rng, depth - 1)})"
    if kind < 2:
        return _class(rng, 2)
    pool = {2: _ESCAPES, 3: _CLASSES, 4: _ASSERTIONS}.get(kind)
    return rng.choice(pool) if pool else rng.choice("abAkK1-\n s\u017f\u00e9")


def _class(rng: random.Random, depth: int) -> str:
    inner = "".join(_item(rng, depth) for _ in range(rng.randint(1, 3)))
    while rng.random() < 0.35:
        inner += rng.choice(["&&", "--", "~~"]) + "".join(_item(rng, depth) for _ in range(rng.randint(1, 2)))
    begin, end = rng.choice(["", "", "^"]) + rng.choice(["", "", "]", "-", "--"]), rng.choice(["", "", "-"])
    return f"[{begin}{inner}{end}]"


def _item(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(6)
    if kind == 0 and depth > 0:
        return _class(rng, depth - 1)
    if kind == 1:
        return f"[:{rng.choice(['', '^'])}{rng.choice(_POSIX)}:]"
    return rng.choice(_ITEMS) if kind < 4 else rng.choice("abABk_1&~^$.| \u00e9#")
