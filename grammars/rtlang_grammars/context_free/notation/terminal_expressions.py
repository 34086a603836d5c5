"""Terminals that lark cannot define: with `&` and `~`, `%regex {...}`, and the bodies of rules that end where they first can.

An expression is read from the tokens of a grammar and evaluated to a regular language. `&` binds less than a sequence and more than `|`;
`~` binds more than `+` and `*`. The complement has all texts, of valid UTF-8, that do not match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang_grammars.context_free.notation.long_runs import MANY_CHUNKS, LongRuns
from rtlang_grammars.context_free.notation.scanner import NotationToken, TokenKind
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_REPEAT = 10_000
_MAX_CHUNKS = 50_000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")

Resolve = Callable[[str], Language]
"""The language of a leaf: a terminal, a string, an expression or a range, as written."""


@dataclass(frozen=True, slots=True)
class BuiltTerminal:
    """A terminal as a language.

    Attributes:
        language: its texts, the empty one among them if it may be left out.
        body: its texts without the marker that ends it; it may end without one at the end of a budget.
        marker: of the texts that end it; None without.
        is_inner: it is a part of something in which the grammar's ignored terminals may not stand.
        is_lazy: it ends where it first can.
        max_tokens: see `RuleOptions.max_tokens`.
    """

    language: Language
    body: Language
    is_lazy: bool = False
    max_tokens: int | None = None
    marker: Language | None = None
    is_inner: bool = False


def uses_extensions(body: Sequence[NotationToken], special: frozenset[str]) -> bool:
    """Whether the definition of a terminal is beyond lark: it has `&`, `~`, `%regex`, `""`, or one of the `special` terminals."""
    return any(
        token.text in ("&", '""')
        or (token.text == "~" and not _counts_follow(body, index))
        or token.kind is TokenKind.EMBEDDED
        or (token.kind is TokenKind.TERMINAL and token.text in special)
        for index, token in enumerate(body)
    )


def leaves_in(body: Sequence[NotationToken]) -> list[str]:
    """The leaves of an expression, as written."""
    found: list[str] = []

    def add(leaf: str) -> Language:
        found.append(leaf)
        return Language.any_text()

    _Reader(body, add, Budget(), is_dry=True).read()
    return found


def evaluate(body: Sequence[NotationToken], resolve: Resolve, budget: Budget) -> Language:
    """The language of an expression.

    Raises:
        GrammarError: it is malformed or contains something that is not a terminal; without a place.
    """
    return _Reader(body, resolve, budget).read()


def counts_at(tokens: Sequence[NotationToken], at: int) -> tuple[int, int | None, int] | None:
    """The bounds of a repetition `{m}`, `{m,}`, `{,n}`, `{m,n}` at a token, and where it ends; None where there is none.

    Raises:
        GrammarError: the bounds are not in order, or too large.
    """
    closed = next((i for i in range(at, min(at + 5, len(tokens))) if tokens[i].text == "}"), None)
    if tokens[at].text != "{" or closed is None:
        return None
    inner = tokens[at + 1 : closed]
    if not inner or any(each.kind is not TokenKind.NUMBER and each.text != "," for each in inner):
        return None
    written = "".join(each.text for each in inner)
    found = re.fullmatch(r"(-?\d*)(,?)(-?\d*)", written)
    if found is None or written == ",":
        raise GrammarError(f"{{{written}}}: expected {{m}}, {{m,}}, {{,n}} or {{m,n}}")
    low = int(found[1][:9] or 0)
    high = low if not found[2] else int(found[3][:9]) if found[3] else None
    if low < 0 or (high is not None and high < low) or max(low, high or 0) > _MAX_REPEAT:
        raise GrammarError(f"{{{written}}}: expected bounds in ascending order from 0 to {_MAX_REPEAT}")
    return low, high, closed + 1


def _counts_follow(tokens: Sequence[NotationToken], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.NUMBER


class _Reader:
    def __init__(
        self, tokens: Sequence[NotationToken], resolve: Resolve, budget: Budget, *, is_dry: bool = False
    ) -> None:
        self._tokens = [each for each in tokens if each.kind is not TokenKind.NEWLINE]
        self._at, self._resolve, self._budget, self._is_dry, self._depth = 0, resolve, budget, is_dry, 0

    def read(self) -> Language:
        found = self._choice()
        if self._at < len(self._tokens):
            raise GrammarError(f"{self._tokens[self._at].text}: not expected in a terminal")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _choice(self) -> Language:
        self._depth += 1
        self._budget.check_depth(self._depth)
        ways = [self._both()]
        while self._peek() == "|":
            self._at += 1
            ways.append(self._both())
        self._depth -= 1
        return ways[0] if len(ways) == 1 else ways[0].union(*ways[1:])

    def _both(self) -> Language:
        parts = [self._sequence()]
        while self._peek() == "&":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else parts[0].intersect(*parts[1:])

    def _sequence(self) -> Language:
        items = []
        while self._at < len(self._tokens) and self._peek() not in ("|", "&", ")", "]"):
            items.append(self._repeated())
        if not items:
            return Language.literal("")
        return items[0] if len(items) == 1 else items[0].concat(*items[1:])

    def _repeated(self) -> Language:
        num_complements = 0
        while self._peek() == "~":
            self._at += 1
            num_complements += 1
        found = self._atom()
        for _ in range(num_complements % 2 if not self._is_dry else 0):
            found = found.complement()
        while self._at < len(self._tokens):
            sign = self._peek()
            if sign in ("*", "+", "?"):
                self._at += 1
                found = found.repeat(int(sign == "+"), 1 if sign == "?" else None)
            elif sign == "~" and _counts_follow(self._tokens, self._at):
                low = int(self._tokens[self._at + 1].text[:9])
                self._at += 2
                high = low
                if self._peek() == ".." and self._at + 1 < len(self._tokens):
                    high = int(self._tokens[self._at + 1].text[:9])
                    self._at += 2
                if not 0 <= low <= high <= _MAX_REPEAT:
                    raise GrammarError(f"~{low}..{high}: expected bounds in ascending order from 0 to {_MAX_REPEAT}")
                found = found.repeat(low, high)
            elif (counts := counts_at(self._tokens, self._at)) is not None:
                low, most, self._at = counts
                found = found.repeat(low, most)
            else:
                break
        return found

    def _atom(self) -> Language:
        if self._at >= len(self._tokens):
            raise GrammarError("expected a string, an expression or a terminal at the end of the definition")
        token = self._tokens[self._at]
        self._at += 1
        if token.text in ("(", "["):
            found = self._choice()
            close = ")" if token.text == "(" else "]"
            if self._peek() != close:
                raise GrammarError(f"{token.text}: it is not closed; expected {close}")
            self._at += 1
            return found if token.text == "(" else found.repeat(0, 1)
        if token.kind is TokenKind.STRING and self._peek() == ".." and self._at + 1 < len(self._tokens):
            self._at += 2
            return self._resolve(f"{token.text}..{self._tokens[self._at - 1].text}")
        if token.text == '""':
            return Language.literal("")
        if token.kind in (TokenKind.STRING, TokenKind.REGEXP, TokenKind.TERMINAL):
            return self._resolve(token.text)
        if token.kind is TokenKind.EMBEDDED and token.text.startswith("%regex"):
            return substrings_of(token.text.removeprefix("%regex"))
        written = token.text.split()[0] if token.kind is TokenKind.EMBEDDED else token.text
        raise GrammarError(
            f"{written[:80]}: not allowed in a terminal; terminals contain strings, expressions and terminals"
        )


def substrings_of(source: str) -> Language:
    """The language of `%regex {...}`: any run of the chunks of a text, none of them included.

    Raises:
        GrammarError: the JSON text is not one of `substring_chunks`, `substring_words` and `substring_chars`, or has too many chunks.
    """
    plain: Any = json.loads(source)
    known = ("substring_chars", "substring_chunks", "substring_words")
    expected = f"expected one of {', '.join(known)}"
    if not isinstance(plain, dict) or len(plain) != 1:
        raise GrammarError(f"%regex: {expected}")
    ((name, value),) = plain.items()
    if name not in known:
        raise GrammarError(f"%regex: {name!r}: {expected}")
    is_list = name == "substring_chunks"
    if not (
        isinstance(value, list) and all(isinstance(each, str) for each in value) if is_list else isinstance(value, str)
    ):
        raise GrammarError(f"%regex: {name}: expected {'a list of strings' if is_list else 'a string'}")
    chunks = value if is_list else list(value) if name == "substring_chars" else _WORDS.findall(value)
    return runs_of(chunks)


def runs_of(chunks: Sequence[str]) -> Language:
    """The runs of consecutive chunks, the empty one among them.

    Raises:
        GrammarError: there are too many.
    """
    if len(chunks) > _MAX_CHUNKS:
        raise GrammarError(f"runs of {len(chunks)} parts: at most {_MAX_CHUNKS} are allowed")
    chunks = [each for each in chunks if each]
    return LongRuns(chunks) if len(chunks) > MANY_CHUNKS else _runs(chunks)[0]


def _runs(chunks: Sequence[str]) -> tuple[Language, Language, Language]:
    """All runs of consecutive chunks, those that begin with the first and those that end with the last; the empty one is among them.

    Halves keep the tree shallow and its size almost linear.
    """
    nothing = Language.literal("")
    if not chunks:
        return nothing, nothing, nothing
    if len(chunks) == 1:
        one = Language.literal(chunks[0]).repeat(0, 1)
        return one, one, one
    middle = len(chunks) // 2
    left, left_begins, left_ends = _runs(chunks[:middle])
    right, right_begins, right_ends = _runs(chunks[middle:])
    first, last = Language.literal("".join(chunks[:middle])), Language.literal("".join(chunks[middle:]))
    return (
        left.union(right, left_ends.concat(right_begins)),
        left_begins.union(first.concat(right_begins)),
        right_ends.union(left_ends.concat(last)),
    )
