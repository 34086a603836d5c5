r"""Spellings of patterns that llguidance and xgrammar take and Python's `re` does not: `(?<name>...)`, `\p{Lu}`, `\u{1F600}`, `\cA`.

They are written as Python writes them. Each is an error in Python, so that no grammar changes its meaning.
"""

from __future__ import annotations

import re

from rtlang_grammars.context_free.notation.scanner import TokenKind, scan
from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import line_and_column

_FOREIGN = re.compile(r"\\(?:[ux]\{|[pPc])|\(\?<[A-Za-z_]")
_PART = re.compile(
    r"""\\[ux]\{(?P<code>[0-9A-Fa-f]{1,8})\} | \\c(?P<control>[A-Za-z])
      | \\(?P<sign>[pP])(?:\{(?P<name>[^{}]*)\}|(?P<letter>[A-Za-z]))
      | \\. | (?P<group>\(\?<(?=[A-Za-z_])) | (?P<begin>\[\^?\]?) | .""",
    re.VERBOSE | re.DOTALL,
)


def with_python_patterns(source: str) -> str:
    """A Lark grammar with patterns as Python writes them.

    Raises:
        GrammarError: a property or a character is not known, with `line:column`.
    """
    if _FOREIGN.search(source) is None:
        return source
    pieces, at = [], 0
    for token in scan(source):
        if token.kind is TokenKind.REGEXP and _FOREIGN.search(token.text):
            try:
                written = _python_pattern(token.text)
            except GrammarError as error:
                raise GrammarError(f"Lark grammar: {error.reason}", line_and_column(source, token.start)) from None
            pieces += [source[at : token.start], written]
            at = token.end
    return "".join([*pieces, source[at:]])


def _python_pattern(text: str) -> str:
    pieces: list[str] = []
    at, is_class = 0, False
    while at < len(text):
        found = _PART.match(text, at)
        assert found is not None
        part, at = found[0], found.end()
        if found["code"] or found["control"]:
            pieces.append(_character(int(found["code"], 16) if found["code"] else ord(found["control"].upper()) ^ 64))
        elif found["sign"]:
            points = _property(found["name"] or found["letter"], is_negated=found["sign"] == "P")
            ranges = "".join(f"{_character(first)}-{_character(last)}" for first, last in points)
            pieces.append(ranges if is_class else f"[{ranges}]")
        elif found["group"] and not is_class:
            pieces.append("(?P<")
        elif is_class and len(part) > 1 and part[0] in "[(":  # one character, what follows stands for itself
            pieces.append(part[0])
            at = found.start() + 1
        else:
            is_class = part != "]" if is_class else found["begin"] is not None
            pieces.append(part)
    return "".join(pieces)


def _property(written: str, *, is_negated: bool) -> CodePoints:
    name = written.removeprefix("^")
    found = unicode_sets.unicode_property(name)
    if found is None:
        raise GrammarError(
            rf"unknown Unicode property {name!r}: expected a general category or a script, as in \p{{Lu}}"
        )
    if is_negated != (name != written):
        found = code_points.complement(found)
    found = code_points.intersection(found, code_points.ALL)
    if not found:
        raise GrammarError(rf"\p{{{written}}}: no character has this property")
    return found


def _character(code: int) -> str:
    """A character as lark reads it in a pattern."""
    if code > code_points.MAX_CODE_POINT or not code_points.contains(code_points.ALL, code):
        raise GrammarError(rf"\u{{{code:x}}}: expected a Unicode character up to 10FFFF, not a surrogate")
    character = chr(code)
    if character.isascii():
        return (
            character if character.isalnum() else rf"\x{code:02x}" if not character.isprintable() else f"\\{character}"
        )
    return rf"\U{code:08x}"
