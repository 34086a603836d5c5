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


_IMPORTED = ("common.INT", "common.CNAME", "common.ESCAPED_STRING", "common.SIGNED_NUMBER", "common.WS_INLINE")
_COMPOSED = (
    '"a" ~ 2..3',
    '("a" | "b" "1"?) ~ 2',
    '"if"i ["1"]',
    '"(" /[^)]/* ")"',
    '"a".."c"',
    "/[a-z]/ /[0-9]/+",
    "/./s",
    "/a b c/x | /b/",
)
_REPEATS = ("", "", "", "", "", "?", "+", " ~ 2", " ~ 1..2")


def rich_grammar(rng: random.Random, *, tokens: tuple[str, ...] = ()) -> str:
    """A grammar with templates, counted repeats, groups, aliases, inlined rules, imports, and terminals made of others.

    tokens: names of special tokens that rules may ask for.
    """
    lines = [each for each in random_grammar(rng).splitlines() if not each.startswith(("start:", "r0:", "r1:", "r2:"))]
    symbols = [each.split(":")[0].split(".")[0] for each in lines if each[0] == "T"]
    for number in range(rng.randint(0, 2)):
        lines.append(f"U{number}{rng.choice(['', '', '.1'])}: {rng.choice(_COMPOSED)}")
        symbols.append(f"U{number}")
    if len(symbols) > 1 and rng.random() < 0.3:
        lines.append(f"V: {symbols[0]} {symbols[1]}")
        symbols.append("V")
    for name in rng.sample(_IMPORTED, rng.choice([0, 0, 1, 2])):
        lines.append(f"%import {name}")
        symbols.append(name.split(".")[1])
    symbols += [f'"{each}"' for each in rng.sample(_PLAIN, 2)]
    symbols += tokens
    rules = [rng.choice(["r", "_r", "?r", "!r"]) + str(number) for number in range(rng.randint(1, 3))]
    names = [each.lstrip("?!") for each in rules]
    for place, head in enumerate(["start", *rules]):
        later = names[place:] or symbols  # few rules call themselves, which most often is a conflict
        lines.append(f"{head}: {_alternatives(rng, symbols + symbols + later, head, 1)}")
    if rng.random() < 0.1:
        lines = [
            each + f" {rng.choice(symbols)} ~ 49..53" if each.startswith(f"{rules[-1]}:") else each for each in lines
        ]
    if rng.random() < 0.4:
        lines.append(f"pair{{x, y}}: x {rng.choice(symbols)} y | y")
        lines.append(f"_many{{x}}: x ({rng.choice(symbols)} x)*")
        lines = [each.replace(f"{names[-1]} ", f"pair{{{rng.choice(symbols)}, {names[-1]}}} ", 1) for each in lines]
        lines.append(f"s: _many{{{rng.choice(symbols)}}}")
        lines = [each + " | s" if each.startswith("start:") else each for each in lines]
    return "\n".join(lines) + "\n"


_PLAIN = ("if", ";", "..", "é", "=", "ab")


def _alternatives(rng: random.Random, symbols: list[str], head: str, depth: int) -> str:
    found: list[str] = []
    for _ in range(rng.randint(1, 2)):
        parts = []
        for _ in range(rng.randint(1, 3)):
            part = rng.choice(symbols)
            if depth and rng.random() < 0.25:
                part = f"({_alternatives(rng, symbols, '_', depth - 1)})"
            elif depth and rng.random() < 0.1:
                parts.append(f"[{_alternatives(rng, symbols, '_', depth - 1)}]")
                continue
            parts.append(part + rng.choice(_REPEATS))
        alias = f" -> n{len(found)}" if head[0] not in "_" and depth == 1 and rng.random() < 0.15 else ""
        found.append(" ".join(parts) + alias)
    return " | ".join(found)


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
