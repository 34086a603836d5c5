"""Random sizes and values for cases: log-uniform up to a limit and slightly beyond, with the limit itself among them."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

MAX_VALUE = 1_000_000
"""Characters and items of one value of a graph."""

MAX_DIGITS = 4_250
"""Digits of the longest integer that is sent; Python writes no more than 4,300."""

_BEYOND = 1.2
_PATTERNS = (
    "a",
    " ",
    "ab ",
    "9",
    "\n",
    "é",
    "😀",
    "{}",
    "{0}",
    "<|endoftext|>",
    "\\",
    '"',
    "aaaaaaab",
    "word ",
    "\x00",
    "١",
)


class Draws:
    """Draws from one source of random numbers.

    Attributes:
        rng: the source.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def size(self, limit: int, least: int = 1) -> int:
        """A log-uniform number from `least` to a fifth beyond `limit`; one in ten is the limit or next to it."""
        if self.rng.random() < 0.1:
            return max(least, limit + self.rng.choice((-1, 0, 0, 1)))
        return max(least, int(math.exp(self.rng.uniform(math.log(max(1, least)), math.log(limit * _BEYOND)))))

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.rng.random() < probability

    def text(self, length: int) -> str:
        """A text of about so many characters."""
        pattern = self.rng.choice(_PATTERNS)
        whole = (pattern * (length // len(pattern) + 1))[:length]
        return (
            whole
            if self.chance(0.7)
            else whole[: length // 2] + self.rng.choice(("b", " ", "é", "\n")) + whole[length // 2 :]
        )

    def digits(self, length: int) -> str:
        """The text of a number."""
        return self.rng.choice(("", " ", "-", "1e", "0x")) + self.rng.choice("19_") * length

    def json_text(self, length: int) -> str:
        """JSON of about so many characters: deep, wide, or with long parts."""
        match self.rng.randrange(7):
            case 0:
                return "[" * (length // 2) + "]" * (length // 2)
            case 1:
                return "[" + ",".join("1" * max(1, length // 2)) + "]"
            case 2:
                return json.dumps({f"k{number}": number for number in range(max(1, length // 12))})
            case 3:
                return '"' + "\\u0041" * (length // 6) + '"'
            case 4:
                return "9" * length
            case 5:
                return "[" + ",".join(["{}"] * max(1, length // 3)) + "]"
            case _:
                return '{"a":' * (length // 6) + "1" + "}" * (length // 6)

    def tool_text(self, length: int) -> str:
        """Text with tool calls, complete or cut."""
        call = self.rng.choice(
            (
                '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
                '[TOOL_CALLS][{"name": "f", "arguments": {}}]',
                "<tool_call>",
                "[f(a=1)]",
                "<think>",
                '<function=f>{"a": ',
            )
        )
        return (call * (length // len(call) + 1))[: max(length, 1)]

    def plain(self, size: int) -> Any:
        """A plain value of about so many characters and items."""
        match self.rng.randrange(9):
            case 0 | 1:
                return self.text(size)
            case 2:
                return [self.rng.choice((0, 1.5, None, True))] * size
            case 3:
                return ["a" * max(1, size // 100)] * min(size, 100)
            case 4:
                return {f"k{number}": number for number in range(max(1, size // 8))}
            case 5:
                return nested(self.size(64), ["a"] * max(1, size // 64))
            case 6:
                return [[]] * size
            case 7:
                return 10 ** min(size, self.size(4_000), MAX_DIGITS)
            case _:
                return [{"a": [1, "b"]}] * max(1, size // 5)

    def pick(self, *items: Any) -> Any:
        """One of the items."""
        return self.rng.choice(items)


def nested(depth: int, value: Any) -> Any:
    """A value within so many lists."""
    for _ in range(depth):
        value = [value]
    return value


def tools(draws: Draws, count: int, fields: int) -> list[dict[str, Any]]:
    """Tools in the form of the OpenAI API with schemas of so many fields."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f"p{n}": {"type": draws.pick("string", "integer", "boolean")} for n in range(fields)},
        "required": [f"p{n}" for n in range(0, fields, 2)],
    }
    named: list[dict[str, Any]] = [
        {
            "type": "function",
            "function": {"name": f"f{number}", "description": "d" * draws.size(2_000), "parameters": schema},
        }
        for number in range(count)
    ]
    if draws.chance(0.3):
        for each in named:
            each["function"]["strict"] = draws.chance(0.5)
    return named


def hostile_schema(draws: Draws) -> dict[str, Any]:
    """A JSON schema that is much work to compile, or cannot be satisfied."""
    size = draws.size(3_000)
    match draws.rng.randrange(9):
        case 0:
            return {"enum": [f"v{n}" for n in range(size)]}
        case 1:
            return {
                "type": "object",
                "properties": {f"p{n}": {"type": "string", "maxLength": n % 90} for n in range(size)},
            }
        case 2:
            deep: Any = {"type": "integer"}
            for _ in range(draws.size(60)):
                deep = {"type": "array", "items": deep, "minItems": draws.size(4)}
            return {"type": "object", "properties": {"a": deep}}
        case 3:
            return {"type": "string", "pattern": f"^[ab]*a[ab]{{{draws.size(200)}}}$"}
        case 4:
            return {"type": "string", "minLength": size, "maxLength": size * 2, "pattern": "(ab|cd)+"}
        case 5:
            return {"allOf": [{"anyOf": [{"const": f"{i}{j}"} for j in range(8)]} for i in range(draws.size(40))]}
        case 6:
            return {
                "$defs": {"t": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}},
                "$ref": "#/$defs/t",
            }
        case 7:
            return {"type": "integer", "minimum": -(10 ** draws.size(300)), "maximum": 10 ** draws.size(300)}
        case _:
            return {"type": "array", "uniqueItems": True, "minItems": size, "items": {"enum": [*range(size)]}}


def hostile_pattern(draws: Draws) -> str:
    """A regular expression that is much work to compile."""
    size = draws.size(200)
    return str(
        draws.pick(
            f"[ab]*a[ab]{{{size}}}",
            f"((a{{0,{size}}}){{0,{size}}}){{0,{size}}}",
            "(a|a)*" * size + "b",
            f"(?:a?){{{size}}}a{{{size}}}",
            "(" * size + "a" + ")" * size,
            "|".join(f"{n}x" for n in range(size * 20)),
            rf"(\p{{L}}{{1,{size}}}\s){{1,{size}}}",
            f"(.*a){{{size}}}",
        )
    )


def hostile_grammar(draws: Draws) -> str:
    """A Lark grammar that is much work to compile."""
    size = draws.size(400)
    return str(
        draws.pick(
            'start: start start | "a" | ',
            "\n".join(f"r{n}: r{n + 1} r{n + 1}" for n in range(min(size, 60))) + f'\nr{min(size, 60)}: "x"\nstart: r0',
            "start: "
            + " | ".join(f"t{n}" for n in range(size))
            + "\n"
            + "\n".join(f't{n}: "{n}" start | "x"' for n in range(size)),
            "start: " + "(" * size + '"a"' + ")" * size,
            f"start: /[ab]*a[ab]{{{min(size, 200)}}}/+",
        )
    )
