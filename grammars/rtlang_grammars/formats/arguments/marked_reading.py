"""Reads literals whose strings stand between marks and whose keys have no quotes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from rtlang_grammars.formats.arguments.value_reading import DECODER, NAMED, Incomplete, Malformed, skip_blanks
from rtlang_grammars.formats.description import Literals

_WORD = re.compile(r"[^,:{}\[\]<>\s]+")


def read_marked(literals: Literals, text: str, at: int) -> tuple[dict[str, Any], int]:
    """The members of an object whose strings stand between marks, up to the brace that closes it."""
    found: dict[str, Any] = {}
    colon, separator = literals.assign.strip(), literals.separator.strip()
    while True:
        at = skip_blanks(text, at)
        if at == len(text):
            raise Incomplete
        if text[at] == "}":
            return found, at
        if found:
            at = skip_blanks(text, _after(text, at, separator))
        if text.startswith(literals.quote, at):
            name, at = _between_marks(literals, text, at)
        else:
            end = text.find(colon, at)
            if end < 0:
                raise Incomplete
            name, at = text[at:end].strip(), end
        at = skip_blanks(text, _after(text, skip_blanks(text, at), colon))
        found[name], at = _marked_value(literals, text, at)


def _after(text: str, at: int, mark: str) -> int:
    if text.startswith(mark, at):
        return at + len(mark)
    if mark.startswith(text[at:]):
        raise Incomplete
    raise Malformed(f"expected {mark!r}, not {text[at : at + 20]!r}")


def _between_marks(literals: Literals, text: str, at: int) -> tuple[str, int]:
    begin = at + len(literals.quote)
    end = text.find(literals.quote, begin)
    if end < 0:
        raise Incomplete
    return text[begin:end], end + len(literals.quote)


def _marked_value(literals: Literals, text: str, at: int) -> tuple[Any, int]:
    if text.startswith(literals.quote, at):
        return _between_marks(literals, text, at)
    if at == len(text) or literals.quote.startswith(text[at:]):
        raise Incomplete
    if text[at] == "{":
        found, at = read_marked(replace(literals, assign=literals.colon), text, at + 1)
        return found, at + 1
    if text[at] == "[":
        items: list[Any] = []
        at += 1
        while True:
            at = skip_blanks(text, at)
            if at == len(text):
                raise Incomplete
            if text[at] == "]":
                return items, at + 1
            if items:
                at = skip_blanks(text, _after(text, at, literals.separator.strip()))
            value, at = _marked_value(literals, text, at)
            items.append(value)
    word = _WORD.match(text, at)
    if word is None:
        raise Malformed(f"expected a value, not {text[at : at + 20]!r}")
    if word.end() == len(text):
        raise Incomplete
    if word[0] in NAMED:
        return NAMED[word[0]], word.end()
    try:
        return DECODER.decode(word[0]), word.end()
    except ValueError:
        raise Malformed(f"expected a value, not {word[0][:20]!r}") from None
