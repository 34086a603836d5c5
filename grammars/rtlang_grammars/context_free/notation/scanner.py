"""Tokens of a grammar in the notation of Lark with the extensions of llguidance and xgrammar, and their definitions.

Source: llguidance's docs/syntax.md; xgrammar's docs/defining_structures/lark_grammar.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import line_and_column


class TokenKind(StrEnum):
    """The kinds of tokens."""

    STRING = "string"
    REGEXP = "regexp"
    SPECIAL = "special"
    EMBEDDED = "embedded"  # %json, %regex, %lark, %llguidance, %grammar_options with what follows in brackets
    DIRECTIVE = "directive"
    REFERENCE = "reference"  # @name
    RULE = "rule"
    TERMINAL = "terminal"
    NUMBER = "number"
    NEWLINE = "newline"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class NotationToken:
    """A token; `start` and `end` are its place in the source."""

    kind: TokenKind
    text: str
    start: int
    end: int


_SCANNED = re.compile(
    r"""(?P<blank>[ \t\r\f]+|\\[ ]*\n|//[^\n]*|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>"(?:\\"|\\\\|[^"\n])*?"i?)
      | (?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
      | (?P<special><[^<>\n]*>)
      | (?P<embedded>%(?:json|regex|lark|llguidance|grammar_options)\b\s*(?=[\[{]))
      | (?P<directive>%\w+)
      | (?P<reference>@[A-Za-z0-9_-]+)
      | (?P<terminal>_*[A-Z](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9_]))*)
      | (?P<rule>_*[a-z](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9_]))*|_(?=\W))
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<sign>->|\.\.|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DECODER = json.JSONDecoder()


def scan(source: str) -> list[NotationToken]:
    """The tokens of a source without blanks and comments.

    Raises:
        GrammarError: a schema or grammar inside brackets does not end, with `line:column`.
    """
    return list(_scanned(source, 0, len(source)))


def _scanned(source: str, at: int, end: int) -> Iterator[NotationToken]:
    while at < end:
        found = _SCANNED.match(source, at, end)
        if found is None:  # an unfinished string or expression: lark reports it
            yield NotationToken(TokenKind.SIGN, source[at], at, at + 1)
            at += 1
            continue
        kind, after = found.lastgroup, found.end()
        if kind == "embedded":
            after = _end_of_lark(source, after) if found[0].startswith("%lark") else _end_of_json(source, found)
        if kind != "blank":
            yield NotationToken(TokenKind(str(kind)), source[at:after], at, after)
        at = after


def _end_of_json(source: str, found: re.Match[str]) -> int:
    try:
        return int(_DECODER.raw_decode(source, found.end())[1])
    except json.JSONDecodeError as error:
        reason = f"{found[0].strip()}: not JSON: {error.msg}"
        raise GrammarError(f"Lark grammar: {reason}", line_and_column(source, error.pos)) from None
    except (RecursionError, ValueError):
        reason = f"{found[0].strip()}: nested too deeply, or a number with too many digits"
        raise GrammarError(f"Lark grammar: {reason}", line_and_column(source, found.start())) from None


def _end_of_lark(source: str, at: int) -> int:
    depth = 0
    if source[at] == "{":
        for token in _scanned(source, at + 1, len(source)):
            if token.text in ("{", "}"):
                depth += 1 if token.text == "{" else -1
                if depth < 0:
                    return token.end
    raise GrammarError("Lark grammar: %lark: expected a grammar in curly brackets", line_and_column(source, at))


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a rule or terminal.

    Attributes:
        name: its token.
        first: the first token of the definition: a directive, a prefix or the name.
        parameters: the tokens between the name and the options, of a template or a priority.
        options: the tokens between the square brackets; None without.
        brackets: where the options begin and end in the source, brackets included.
        body: the tokens behind the colon.
        end: where the definition ends in the source.
    """

    name: NotationToken
    first: NotationToken
    parameters: tuple[NotationToken, ...]
    options: tuple[NotationToken, ...] | None
    brackets: tuple[int, int]
    body: tuple[NotationToken, ...]
    end: int

    @property
    def is_terminal(self) -> bool:
        """Whether a terminal is defined."""
        return self.name.kind is TokenKind.TERMINAL


def lines_of(tokens: list[NotationToken]) -> list[list[NotationToken]]:
    """The tokens by item: a line that begins with `|` goes on with the item before it."""
    found: list[list[NotationToken]] = [[]]
    for index, token in enumerate(tokens):
        if token.kind is not TokenKind.NEWLINE:
            found[-1].append(token)
            continue
        after = next((each for each in tokens[index + 1 :] if each.kind is not TokenKind.NEWLINE), None)
        if after is not None and after.text != "|" and found[-1]:
            found.append([])
    return [each for each in found if each]


def definition_in(line: list[NotationToken]) -> Definition | None:
    """The definition that an item is; None for others and for what lark will refuse."""
    at = 0
    if line[0].kind is TokenKind.DIRECTIVE and line[0].text in ("%override", "%extend"):
        at = 1
    while at < len(line) and line[at].text in ("?", "!"):
        at += 1
    if at >= len(line) or line[at].kind not in (TokenKind.RULE, TokenKind.TERMINAL):
        return None
    name, begin = line[at], at + 1
    at = begin
    options, brackets = None, (name.end, name.end)
    while at < len(line) and line[at].text not in (":", "["):
        at += 1
    parameters = tuple(line[begin:at])
    if at < len(line) and line[at].text == "[":
        closed = next((i for i in range(at, len(line)) if line[i].text == "]"), None)
        if closed is None:
            return None
        options, brackets = tuple(line[at + 1 : closed]), (line[at].start, line[closed].end)
        at = closed + 1
    if at >= len(line) or line[at].text != ":":
        return None
    return Definition(name, line[0], parameters, options, brackets, tuple(line[at + 1 :]), line[-1].end)
