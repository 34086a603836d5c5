"""Short sample texts for the patterns inside a constraint.

A pattern such as `\\d+\\.\\d+`, searched for anywhere in a string, allows every character at every place, so masks do not show which
characters lead to a match. A sample does. Samples are hints only: callers verify them.
"""

from __future__ import annotations

import json
import re
from re import _parser as parser  # type: ignore[attr-defined]  # the parse tree of patterns has no public API
from typing import Any

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind

MAX_SAMPLES = 24
MAX_SAMPLE_CHARS = 200
_MAX_PATTERN_CHARS = 2000
_LARK_PATTERN = re.compile(r"/((?:\\.|[^/\\\n])+)/")
_CATEGORY_SAMPLES = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_WORD": "-",
}


def samples(constraint: Constraint) -> tuple[bytes, ...]:
    """Sample texts, as they would appear in the output, of the patterns of a constraint. Patterns that cannot be read are skipped."""
    patterns: list[str] = []
    in_json = constraint.kind is ConstraintKind.JSON_SCHEMA
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA:
            _collect(json.loads(constraint.source), patterns)
        case ConstraintKind.LARK:
            patterns = _LARK_PATTERN.findall(constraint.source)
        case ConstraintKind.REGEX:
            patterns = [constraint.source]
        case _:
            return ()
    found: dict[bytes, None] = {}
    for pattern in dict.fromkeys(patterns):
        text = sample(pattern)
        if text and len(found) < MAX_SAMPLES:
            found[(json.dumps(text, ensure_ascii=False)[1:-1] if in_json else text).encode()] = None
    return tuple(found)


def sample(pattern: str) -> str | None:
    """A short text that matches a pattern; None if none was found.

    The text is not verified with `re`: a backtracking match may never end, and it would hold the interpreter lock.
    """
    if len(pattern) > _MAX_PATTERN_CHARS:
        return None
    try:
        return _of_sequence(parser.parse(pattern))
    except (re.error, ValueError, RecursionError, OverflowError, Warning):
        return None


def _collect(schema: Any, patterns: list[str]) -> None:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            patterns.append(schema["pattern"])
        if isinstance(schema.get("patternProperties"), dict):
            patterns.extend(schema["patternProperties"])
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            _collect(item, patterns)


def _of_sequence(items: Any) -> str:
    text = ""
    for op, value in items:
        text += _of_item(str(op), value)
        if len(text) > MAX_SAMPLE_CHARS:
            raise ValueError("too long")
    return text


def _of_item(op: str, value: Any) -> str:
    match op:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "a" if value != ord("a") else "b"
        case "ANY":
            return "a"
        case "IN":
            return _of_set(value)
        case "BRANCH":
            return min((_of_sequence(branch) for branch in value[1]), key=len)
        case "SUBPATTERN":
            return _of_sequence(value[3])
        case "ATOMIC_GROUP":
            return _of_sequence(value)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, body = value
            if least > MAX_SAMPLE_CHARS:
                raise ValueError("too long")
            return _of_sequence(body) * least if least else ""
        case "AT":
            return ""
    raise ValueError(f"no sample can be generated for {op}")


def _of_set(items: Any) -> str:
    members = [(str(op), value) for op, value in items]
    if members[0][0] == "NEGATE":
        for letter in "a0 _-.Ab1é":
            if not any(_is_member(letter, op, value) for op, value in members[1:]):
                return letter
        raise ValueError("no sample exists for this character set")
    choices = []
    for op, value in members:
        choices.append(
            chr(value) if op == "LITERAL" else chr(value[0]) if op == "RANGE" else _CATEGORY_SAMPLES.get(str(value), "")
        )
    plain = [choice for choice in choices if choice.isalnum()]
    return (plain or choices)[0]


def _is_member(letter: str, op: str, value: Any) -> bool:
    match op:
        case "LITERAL":
            return bool(ord(letter) == value)
        case "RANGE":
            return bool(value[0] <= ord(letter) <= value[1])
        case _:
            name = str(value)
            kinds = {"DIGIT": letter.isdigit(), "SPACE": letter.isspace(), "WORD": letter.isalnum() or letter == "_"}
            is_of_kind: bool = kinds.get(name.rsplit("_", 1)[-1], True)
            return is_of_kind is not ("NOT" in name)
