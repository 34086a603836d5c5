"""Random Lark grammars whose terminals overlap, and texts for them, to compare with `lark`."""

from __future__ import annotations

import random

_LITERALS = ("a", "ab", "if", "i", "1", ".", "..", "=", "==", "(", ")", "-", "1e", "é", "''", "b a")
_PATTERNS = (
    "/[a-z]+/",
    "/[ab]+/",
    "/a|ab/",
    "/a+?/",
    "/a*?b/",
    "/[0-9]+/",
    r"/[0-9]+(\.[0-9]+)?/",
    r"/1(e1)?/",
    "/if(?![a-z])/",
    "/[a-z]+(?=[0-9 ])/",
    r"/[a-z]+\b/",
    r"/a(?=\.\.)/",
    "/(a|é)+/",
    "/[^a-z ]/",
    "/(?i:IF)/",
    r"/'([^']|'')*'/",
    r'/"(\\.|[^"\\])*"/',
    "/x(ab|a)(b|c)?/",
    r"/\w+/",
    r"/[.]+(?!=)/",
    r"/-(?!-)/",
    r"/=(?=a|é)/",
    r"/b.*?a/",
    r"/(?<!a)b|a.?(?<!b)/",
)
_IGNORED = ('" "', r"/ +/", r"/#[^\n]*/", "/[ \\n]+/")
LETTERS = "aabbif1.=()-#e'\" xé\n"


def random_grammar(rng: random.Random, *, with_flags: bool = True) -> str:
    """A grammar with two to five terminals, one to four rules, and perhaps something to ignore."""
    lines, symbols = [], []
    for number in range(rng.randint(2, 5)):
        priority = f".{rng.randint(-1, 2)}" if rng.random() < 0.25 else ""
        if rng.random() < 0.45:
            literal = rng.choice(_LITERALS).replace('"', '\\"')
            flag = "i" if with_flags and rng.random() < 0.15 else ""
            body = f'"{literal}"{flag}'
        else:
            body = rng.choice(_PATTERNS)
            if body.endswith("b|a.?(?<!b)/"):  # a look-behind at the start is refused
                body = r"/a.?(?<!b)/"
        if rng.random() < 0.5 and body.startswith('"') and not priority:
            symbols.append(body)
        else:
            lines.append(f"T{number}{priority}: {body}")
            symbols.append(f"T{number}")
    names = [f"r{number}" for number in range(rng.randint(0, 3))]
    for name in ["start", *names]:
        alternatives = []
        for _ in range(rng.randint(1, 3)):
            parts = []
            for _ in range(rng.randint(1, 3)):
                part = rng.choice(symbols + symbols + names)
                parts.append(part + rng.choice(["", "", "", "?", "*", "+"]))
            alternatives.append(" ".join(parts))
        lines.append(f"{name}: {' | '.join(alternatives)}")
    lines += [f"%ignore {each}" for each in rng.sample(_IGNORED, rng.choice([0, 1, 1, 2]))]
    return "\n".join(lines) + "\n"


def random_texts(rng: random.Random, grammar: str, count: int) -> list[str]:
    """Texts made of pieces that the grammar mentions and of single letters."""
    pieces = [each for each in _LITERALS if each in grammar] + ["a", "b", "ab", "1", " ", "if", "1.1", "aa"]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 5)):
            text += rng.choice(pieces) if rng.random() < 0.75 else rng.choice(LETTERS)
            text += rng.choice(["", "", " "])
        texts.append(text[:10])
    return texts
