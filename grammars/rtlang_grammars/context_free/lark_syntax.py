"""Parser of the Lark grammar language.

It takes time linear in the source and reports the location of every error. lark's own loader cannot be used on untrusted grammars: it
backtracks without bound on some sources and is quadratic in the number of definitions. Patterns become regular expressions of the python
dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from rtlang_grammars.context_free.ebnf import (
    MAX_COUNT,
    MAX_NESTING,
    Expression,
    Name,
    Pattern,
    Repeat,
    Sequence,
    choice,
    sequence,
)
from rtlang_grammars.context_free.lark_tokens import LarkToken, SourceText, unescape
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_CLOSING = {"(": ")", "[": "]"}


class Mode(Enum):
    """How a definition combines with earlier definitions of its name."""

    DEFINE = auto()
    OVERRIDE = auto()
    EXTEND = auto()


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or a terminal as written."""

    name: str
    is_terminal: bool
    parameters: tuple[str, ...]
    priority: int
    expression: Expression
    mode: Mode
    location: str


@dataclass(frozen=True, slots=True)
class Import:
    """Names imported from another grammar, as (name, alias) pairs."""

    path: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    location: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """A terminal that may occur between all others."""

    expression: Expression
    location: str


Statement = Definition | Import | Ignore


@dataclass(slots=True)
class _Frame:
    """An open bracket, or the whole expression."""

    bracket: str
    position: int
    alternatives: list[Expression] = field(default_factory=list)
    items: list[Expression] = field(default_factory=list)


def parse_lark(source: str, budget: Budget, *, origin: str = "", rename: Callable[[str], str] = str) -> list[Statement]:
    """Parse a grammar to statements.

    Args:
        source: the text of the grammar.
        budget: the limits of the parser.
        origin: a prefix of all locations, for imported grammars.
        rename: applied to every name that is defined or used, except in imports.
    Raises:
        GrammarError: a syntax error, with `line:column`; or the source is too large.
    """
    budget.check_source(source)
    return _Parser(source, budget, origin, rename).parse()


class _Parser:
    """The state of one call of `parse_lark`."""

    def __init__(self, source: str, budget: Budget, origin: str, rename: Callable[[str], str]) -> None:
        self.text, self.budget, self.rename = SourceText(source, origin), budget, rename
        self.tokens: list[LarkToken] = []
        self.at = 0

    def parse(self) -> list[Statement]:
        self.tokens = self.text.tokens(self.budget)
        statements: list[Statement] = []
        while self.peek().kind != "end":
            if self.peek().kind == "newline":
                self.at += 1
            else:
                statements.append(self._statement())
                if self.peek().kind not in ("newline", "end"):
                    raise self.error("expected the end of the line or |")
        return statements

    def error(self, reason: str, position: int | None = None) -> GrammarError:
        return self.text.error(reason, self.peek().position if position is None else position)

    def location(self, position: int) -> str:
        return self.text.location(position)

    def peek(self, ahead: int = 0) -> LarkToken:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self, text: str) -> bool:
        if self.peek().text == text and self.peek().kind in ("mark", "directive"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(f"expected {text}")

    def name(self, *kinds: str) -> str:
        token = self.peek()
        if token.kind not in kinds:
            raise self.error(f"expected the name of a {' or '.join(kinds)}")
        self.at += 1
        return token.text

    def number(self) -> int:
        token = self.peek()
        if token.kind != "number":
            raise self.error("expected a number")
        if len(token.text) > 12:
            raise self.error("number too large: at most 12 digits are allowed")
        self.at += 1
        return int(token.text)

    def _statement(self) -> Statement:
        token = self.peek()
        if token.kind != "directive":
            return self._definition(Mode.DEFINE)
        self.at += 1
        match token.text:
            case "%override":
                return self._definition(Mode.OVERRIDE)
            case "%extend":
                return self._definition(Mode.EXTEND)
            case "%ignore":
                return Ignore(self._expression(is_terminal=True), self.location(token.position))
            case "%import":
                return self._import(token.position)
            case "%declare":
                raise self.error("%declare is not supported: every terminal must be defined", token.position)
        raise self.error(f"{token.text} is not supported", token.position)

    def _import(self, position: int) -> Import:
        if self.take("."):
            raise self.error(
                "relative imports are not supported: only common and the library grammars can be imported", position
            )
        path = [self.name("rule", "terminal")]
        while self.take("."):
            path.append(self.name("rule", "terminal"))
        location = self.location(position)
        if self.take("("):
            names = [self.name("rule", "terminal")]
            while self.take(","):
                names.append(self.name("rule", "terminal"))
            self.expect(")")
            return Import(tuple(path), tuple((name, name) for name in names), location)
        if len(path) < 2:
            raise self.error("%import requires a grammar and a name, as in %import common.WS", position)
        alias = self.name("rule", "terminal") if self.take("->") else path[-1]
        if alias.isupper() != path[-1].isupper():
            raise self.error(
                "the alias of a rule must be in lower case, the alias of a terminal in upper case", position
            )
        return Import(tuple(path[:-1]), ((path[-1], alias),), location)

    def _definition(self, mode: Mode) -> Definition:
        start = self.peek().position
        while self.peek().text in ("?", "!"):
            self.at += 1
        token = self.peek()
        name = self.name("rule", "terminal")
        is_terminal = token.kind == "terminal"
        parameters: list[str] = []
        if not is_terminal and self.take("{"):
            parameters.append(self.rename(self.name("rule")))
            while self.take(","):
                parameters.append(self.rename(self.name("rule")))
            self.expect("}")
            if len(set(parameters)) < len(parameters):
                raise self.error("the parameters of a template must have different names", token.position)
        priority = self.number() if self.take(".") else 0
        self.expect(":")
        expression = self._expression(is_terminal=is_terminal)
        return Definition(
            self.rename(name), is_terminal, tuple(parameters), priority, expression, mode, self.location(start)
        )

    def _expression(self, *, is_terminal: bool) -> Expression:
        frames = [_Frame("", self.peek().position)]
        while True:
            frame, token = frames[-1], self.peek()
            self.budget.spend(states=1)
            if token.kind == "newline":
                if not frame.bracket and not self._continues():
                    break
                self.at += 1
            elif token.kind == "end":
                break
            elif token.kind != "mark":
                frame.items.append(self._apply_quantifier(self._value()))
            elif token.text in _CLOSING:
                if len(frames) > MAX_NESTING:
                    raise self.error(f"nested too deeply: more than {MAX_NESTING} brackets")
                self.at += 1
                frames.append(_Frame(token.text, token.position))
            elif token.text == "|":
                self.at += 1
                frame.alternatives.append(sequence(frame.items))
                frame.items = []
            elif token.text == "->":
                if is_terminal:
                    raise self.error("aliases are not allowed in terminals")
                self.at += 1
                self.name("rule")
                if self.peek().text not in ("|", ")", "]") and self.peek().kind not in ("newline", "end"):
                    raise self.error("an alias must be at the end of its alternative")
            elif frame.bracket and token.text == _CLOSING[frame.bracket]:
                self.at += 1
                frames.pop()
                whole = choice([*frame.alternatives, sequence(frame.items)])
                if frame.bracket == "[":
                    frames[-1].items.append(Repeat(whole, 0, 1))
                else:
                    frames[-1].items.append(self._apply_quantifier(whole))
            else:
                raise self.error(f"unexpected {token.text}")
        if len(frames) > 1:
            raise self.error("this bracket is not closed", frames[-1].position)
        return choice([*frames[0].alternatives, sequence(frames[0].items)])

    def _continues(self) -> bool:
        """Whether the next nonblank line continues the expression."""
        ahead = 0
        while self.peek(ahead).kind == "newline":
            ahead += 1
        if self.peek(ahead).text != "|":
            return False
        self.at += ahead - 1
        return True

    def _value(self) -> Expression:
        token = self.peek()
        location = self.location(token.position)
        if token.kind in ("rule", "terminal"):
            self.at += 1
            arguments: list[Expression] = []
            if token.kind == "rule" and self.take("{"):
                arguments = self._arguments(1)
            return Name(self.rename(token.text), tuple(arguments), location)
        if token.kind == "string":
            return self._string(location)
        if token.kind == "regexp":
            self.at += 1
            return self._regexp(token, location)
        raise self.error(f"unexpected {token.text or 'end of the grammar'}")

    def _arguments(self, depth: int) -> list[Expression]:
        if depth > MAX_NESTING:
            raise self.error(f"nested too deeply: more than {MAX_NESTING} brackets")
        arguments: list[Expression] = []
        while True:
            token = self.peek()
            if token.kind == "rule" and self.peek(1).text == "{":
                self.at += 2
                inner = tuple(self._arguments(depth + 1))
                arguments.append(Name(self.rename(token.text), inner, self.location(token.position)))
            else:
                arguments.append(self._value())
            if not self.take(","):
                self.expect("}")
                return arguments

    def _string(self, location: str) -> Expression:
        text, ignores_case = self._literal()
        if self.take(".."):
            if self.peek().kind != "string":
                raise self.error("expected a string")
            last, last_ignores_case = self._literal()
            if len(text) != 1 or len(last) != 1 or ignores_case or last_ignores_case or text > last:
                raise GrammarError("Lark grammar: a range requires two single characters in ascending order", location)
            return Pattern(f"[\\U{ord(text):08x}-\\U{ord(last):08x}]", location)
        if not text:
            return Sequence(())
        pattern = re.escape(text)
        return Pattern(f"(?i:{pattern})" if ignores_case else pattern, location)

    def _literal(self) -> tuple[str, bool]:
        token = self.peek()
        ignores_case = token.text.endswith("i")
        try:
            text = unescape(token.text[1 : -2 if ignores_case else -1])
            text.encode()
        except (ValueError, OverflowError) as error:
            reason = "surrogates are not allowed in strings" if isinstance(error, UnicodeError) else str(error)
            raise self.error(reason) from None
        self.at += 1
        return text, ignores_case

    def _regexp(self, token: LarkToken, location: str) -> Expression:
        end = token.text.rfind("/")
        pattern, flags = token.text[1:end], token.text[end + 1 :]
        if set(flags) - set("imsxu"):
            raise GrammarError(
                f"Lark grammar: unsupported flags {flags}: only i, m, s, u and x are supported", location
            )
        if "\n" in pattern and "x" not in flags:
            raise GrammarError("Lark grammar: a regular expression with line breaks requires the flag x", location)
        pattern = re.sub(r"\\(.)", lambda match: match[1] if match[1] in '"/' else match[0], pattern, flags=re.DOTALL)
        retained = "".join(sorted(set(flags) - {"u"}))
        return Pattern(f"(?{retained}:{pattern}\n)" if "x" in retained else f"(?{retained}:{pattern})", location)

    def _apply_quantifier(self, item: Expression) -> Expression:
        token = self.peek()
        if token.kind != "mark" or token.text not in "?*+~":
            return item
        self.at += 1
        if token.text == "~":
            low = self.number()
            high = self.number() if self.take("..") else low
            if not 0 <= low <= high <= MAX_COUNT:
                raise self.error(
                    f"the bounds of a repetition must be in ascending order, from 0 to at most {MAX_COUNT}",
                    token.position,
                )
            return Repeat(item, low, high)
        return Repeat(item, int(token.text == "+"), 1 if token.text == "?" else None)
