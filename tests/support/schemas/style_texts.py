"""Texts of a value that masks accept, found by trying every order of properties: which orders a style allows, and whether it allows any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rtlang_grammars.api.rtlang_backend import RtlangGrammar
from rtlang_grammars.spec.protocols import GrammarMatcher

_END = 256
"""The end token of the byte vocabulary of `rtlang_grammars_bench.conformance.Judge`."""


def style_texts(grammar: RtlangGrammar, value: Any) -> Iterator[str]:
    """Yield the accepted texts of a value: every order of properties, and a few spellings of each number."""
    matcher = grammar.matcher()
    for text in _texts(matcher, value):
        if matcher.accept_token(_END):
            matcher.rollback(1)
            yield text


def _texts(matcher: GrammarMatcher, value: Any) -> Iterator[str]:
    """Yield the texts of a value that the matcher can read next, each while it has read it."""
    if isinstance(value, list):
        yield from _read(matcher, "[", _items(matcher, value, 0))
    elif isinstance(value, dict):
        yield from _read(matcher, "{", _members(matcher, dict(value), is_first=True))
    else:
        for text in _spellings(value):
            yield from _read(matcher, text, iter([""]))


def _spellings(value: Any) -> list[str]:
    """A scalar as `json.dumps` writes it; a whole number also without and with a fraction."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool | str) or value is None or value != int(value):
        return [text]
    return list(dict.fromkeys([text, str(int(value)), f"{int(value)}.0"]))


def _items(matcher: GrammarMatcher, items: list[Any], at: int) -> Iterator[str]:
    if at == len(items):
        yield from _read(matcher, "]", iter([""]))
        return
    before = ", " if at else ""
    for text in _then(matcher, before, items[at]):
        for rest in _items(matcher, items, at + 1):
            yield text + rest


def _members(matcher: GrammarMatcher, left: dict[str, Any], *, is_first: bool) -> Iterator[str]:
    if not left:
        yield from _read(matcher, "}", iter([""]))
    for name in left:
        before = "" if is_first else ", "
        rest_of = {other: each for other, each in left.items() if other != name}
        for text in _then(matcher, f"{before}{json.dumps(name, ensure_ascii=False)}: ", left[name]):
            for rest in _members(matcher, rest_of, is_first=False):
                yield text + rest


def _then(matcher: GrammarMatcher, before: str, value: Any) -> Iterator[str]:
    return _read(matcher, before, _texts(matcher, value))


def _read(matcher: GrammarMatcher, text: str, rest: Iterator[str]) -> Iterator[str]:
    """Yield a text with each of its continuations, which are only asked for where the matcher can read the text."""
    data = text.encode("utf-8", "surrogatepass")
    num = 0
    for byte in data:
        if not matcher.accept_token(byte):
            break
        num += 1
    if num == len(data):
        for each in rest:
            yield text + each
    matcher.rollback(num)
