"""Tokens of the Lark grammar language, and their locations."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\f]|\\[ ]*\r?\n)+)
  | (?P<comment>(?://|\#)[^\n]*)
  | (?P<newline>\r?\n)
  | (?P<string>"(?:[^"\\\n]|\\.)*"i?)
  | (?P<regexp>/(?:[^/\\]|\\[^\n])+/[a-z]*)
  | (?P<rule>_?[a-z][_a-z0-9]*)
  | (?P<terminal>_?[A-Z][_A-Z0-9]*)
  | (?P<number>[+-]?[0-9]+)
  | (?P<directive>%[a-z]+)
  | (?P<mark>->|\.\.|[:|()\[\]{},.~?*+!])
    """,
    re.VERBOSE,
)
_STRING_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_NUM_DIGITS = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True, slots=True)
class LarkToken:
    """A token of the source; `kind` is the name of its group in `_TOKEN`, or "end"."""

    kind: str
    text: str
    position: int


def unescape(literal: str) -> str:
    r"""Decode the escapes in a string literal (without its quotes). Escapes that lark does not know are kept.

    Raises:
        ValueError: an incomplete \x, \u or \U escape, or one beyond U+10FFFF.
    """

    def replaced(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits:
            return chr(int(digits, 16))
        if match[4] in "xuU":
            raise ValueError(f"\\{match[4]} requires {_NUM_DIGITS[match[4]]} hexadecimal digits")
        return _SIMPLE_ESCAPES.get(match[4], match[0])

    return _STRING_ESCAPE.sub(replaced, literal)


class SourceText:
    """A source and the offsets of its lines. Owned by one parser."""

    def __init__(self, source: str, origin: str) -> None:
        self._source, self._origin = source, origin
        self._lines = [0, *(match.end() for match in re.finditer("\n", source))]

    def error(self, reason: str, position: int) -> GrammarError:
        """An error at a position."""
        return GrammarError(f"Lark grammar: {reason}", self.location(position))

    def location(self, position: int) -> str:
        """The `line:column` of a position, prefixed with the origin."""
        line = bisect_right(self._lines, position)
        return f"{self._origin}{line}:{position - self._lines[line - 1] + 1}"

    def tokens(self, budget: Budget) -> list[LarkToken]:
        """The tokens in order, without whitespace and comments, followed by one of kind "end".

        Raises:
            GrammarError: an invalid token, or the budget ran out.
        """
        tokens: list[LarkToken] = []
        position = 0
        while position < len(self._source):
            match = _TOKEN.match(self._source, position)
            if match is None:
                raise self.error(self._reason_for(position), position)
            kind = match.lastgroup
            assert kind is not None
            budget.spend(num_bytes=100)
            if kind not in ("space", "comment"):
                tokens.append(LarkToken(kind, match[0], position))
            position = match.end()
        tokens.append(LarkToken("end", "", len(self._source)))
        return tokens

    def _reason_for(self, position: int) -> str:
        letter = self._source[position]
        if letter == '"':
            return "this string is not terminated on its line"
        if letter == "/":
            return "this regular expression is not terminated"
        if letter == "<":
            return "special tokens and token ids are not allowed in a constraint"
        if letter == "=":
            return "attributes of rules (name=value) are not allowed in a constraint"
        return f"unexpected {letter!r}"
