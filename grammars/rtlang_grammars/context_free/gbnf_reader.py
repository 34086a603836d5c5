r"""Readers of GBNF, as in llama.cpp, and of the EBNF of the W3C XML recommendation.

GBNF: `name ::= alternatives`; the start rule is `root`; "literals" and [classes] with the escapes \n \r \t \\ \" \[ \] \- \^ \xHH
\uHHHH \UHHHHHHHH; `.` for any character; groups; `* + ? {m} {m,} {m,n} {,n}`; comments from # to the end of the line. A rule ends where
the next one begins, so line breaks are not significant. W3C EBNF: also 'literals' without escapes, `#xH` characters, /* comments */,
and any name for the start rule. A character is a Unicode code point.

Options of rules: `name[capture, max_tokens=10] ::= alternatives`, as xgrammar writes them; see `regular_terminals`.

Tokens in GBNF: `<[1000]>` by id, `<think>` by name, and `!<think>` for any other token. Also the macros of xgrammar (`gbnf_macros`), and
its lookahead assertions `(= ...)`, which state what follows anyway and are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Literal

from rtlang_grammars.context_free.cfg import Cfg, RuleCall, Symbol, Terminal
from rtlang_grammars.context_free.ebnf import (
    MAX_COUNT,
    MAX_NESTING,
    CfgBuilder,
    EbnfRepeat,
    Expression,
    Name,
    Pattern,
    choice,
    names_in,
    sequence,
)
from rtlang_grammars.context_free.gbnf_macros import MACROS, MacroBuilder, MacroName, expand, read_macro
from rtlang_grammars.context_free.notation.rule_options import RuleOptions, read_options
from rtlang_grammars.context_free.notation.scanner import scan
from rtlang_grammars.context_free.regular_terminals import with_shaped_rules
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.places import line_and_column
from rtlang_grammars.spec.tokens import AnyTokens, SpecialTokens, read_token


class GrammarNotation(StrEnum):
    """A grammar notation."""

    GBNF = "gbnf"
    W3C = "w3c"


_SPACE = {
    GrammarNotation.GBNF: re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*"),
    GrammarNotation.W3C: re.compile(r"(?:[ \t\r\n]+|/\*(?:[^*]|\*(?!/))*\*/)*"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|[0-9][A-Za-z0-9_-]*")
_DEFINED = re.compile(r"::=")
_OPTIONS = re.compile(r"""\[((?:"(?:\\.|[^"\\\n])*"|[^\[\]"])*)\]\s*::=""")
_ASSERTION = re.compile(r"\(\s*=")
_COUNTS = re.compile(r"\{[ \t]*([0-9]{0,12})[ \t]*(?:(,)[ \t]*([0-9]{0,12})[ \t]*)?\}")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_W3C_CHARACTER = re.compile(r"#x([0-9a-fA-F]{1,6})")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t"} | {letter: letter for letter in "\\\"'[]-^/.$(){}*+?|"}


def read_gbnf(
    source: str,
    *,
    notation: GrammarNotation | Literal["gbnf", "w3c"] = GrammarNotation.GBNF,
    start: str = "root",
    budget: Budget | None = None,
    tokens: SpecialTokens | None = None,
    may_have_options: bool = True,
) -> Cfg:
    """Read a GBNF or W3C EBNF grammar.

    Args:
        source: the text of the grammar.
        notation: its notation.
        start: the start rule; in W3C notation the first rule if there is none of this name.
        budget: the limits of the reader.
        tokens: of the vocabulary; None: every token is taken for known.
        may_have_options: False: options of rules are refused.
    Returns:
        A pruned grammar. Left recursion is kept: see `left_recursion`.
    Raises:
        GrammarError: a syntax error, with `line:column`; the language is empty; or the grammar is too large.
    """
    budget = budget or Budget()
    budget.check_source(source)
    reader = _Reader(source, GrammarNotation(notation), budget, tokens or AnyTokens())
    reader.may_have_options = may_have_options
    return reader.read(start)


class _Reader(MacroBuilder):
    """The state of one call of `read_gbnf`."""

    def __init__(self, source: str, notation: GrammarNotation, budget: Budget, tokens: SpecialTokens) -> None:
        self.source, self.budget, self.known = source, budget, tokens
        self.notation, self.is_w3c = notation, notation is GrammarNotation.W3C
        self.title = "EBNF grammar" if self.is_w3c else "GBNF grammar"
        self.space = _SPACE[notation]
        self.at = 0
        self.terminals: dict[str, Terminal] = {}
        self.may_have_options = True
        self.options: dict[str, tuple[RuleOptions, int]] = {}

    def read(self, start: str) -> Cfg:
        definitions: dict[str, Expression] = {}
        self.skip()
        while self.at < len(self.source):
            begin = self.at
            name = self.defined_name()
            if name is None:
                raise self.error("expected a rule name and ::=")
            if name in definitions:
                raise self.error(f"rule {name} is defined twice", begin)
            definitions[name] = self.expression()
        if start not in definitions:
            if not definitions or not self.is_w3c:
                raise GrammarError(
                    f"{self.title}: "
                    + ("no rules are defined" if self.is_w3c else f"start rule {start} is not defined")
                )
            start = next(iter(definitions))
        return self.lower(definitions, start)

    def lower(self, definitions: dict[str, Expression], start: str) -> Cfg:
        builder = CfgBuilder(self.budget)
        rules: dict[str, RuleCall] = {}
        for name, expression in definitions.items():
            for used in names_in(expression):
                if used.name not in definitions:
                    raise GrammarError(f"{self.title}: rule {used.name} is not defined", used.location)
            rules[name] = builder.new_rule(name)

        def resolve(part: Name | Pattern) -> Symbol:
            if isinstance(part, Name):
                return rules[part.name]
            return builder.terminal(part.source, lambda: self.terminals[part.source])

        for name, expression in definitions.items():
            options = self.options[name][0] if name in self.options else None
            builder.define(rules[name], expression, resolve, options)
        cfg = builder.build(rules[start])
        return self.with_shapes(cfg) if self.options else cfg

    def with_shapes(self, cfg: Cfg) -> Cfg:
        markers = {}
        for name, (options, at) in self.options.items():
            if options.marker:
                marker = options.marker[0].text
                if len(options.marker) > 1 or marker[0] != '"' or marker[-1] != '"':
                    raise self.error(f"rule {name}: options suffix and stop: expected a string", at)
                markers[name] = _Reader(marker, self.notation, self.budget, self.known).literal('"')
        try:
            return with_shaped_rules(cfg, markers, self.budget)
        except GrammarError as error:
            self.budget.check()
            name = error.reason.removeprefix("rule ").split(":")[0]
            raise self.error(error.reason, self.options[name][1] if name in self.options else 0) from None

    def error(self, reason: str, position: int | None = None) -> GrammarError:
        return GrammarError(f"{self.title}: {reason}", self.location(self.at if position is None else position))

    def location(self, position: int) -> str:
        return line_and_column(self.source, position)

    def skip(self) -> None:
        match = self.space.match(self.source, self.at)
        assert match is not None
        self.at = match.end()

    def defined_name(self) -> str | None:
        """Read `name ::=`; if something else comes next, return None and read nothing."""
        begin = self.at
        name = _NAME.match(self.source, begin)
        if name is not None:
            self.at = name.end()
            self.skip()
            if _DEFINED.match(self.source, self.at):
                self.at += 3
                return name[0]
            found = _OPTIONS.match(self.source, name.end())
            if found is not None:
                self.read_options(name[0], found)
                self.at = found.end()
                return name[0]
        self.at = begin
        return None

    def read_options(self, name: str, found: re.Match[str]) -> None:
        if not self.may_have_options:
            raise self.error(
                f"rule {name}: options of rules are supported where the grammar is the whole constraint, not inside composed forms",
                found.start(),
            )
        try:
            self.options[name] = read_options(scan(found[1]), name), found.start()
        except GrammarError as error:
            raise self.error(f"rule {name}: {error.reason}", found.start()) from None

    def expression(self) -> Expression:
        """Read up to the next rule. Brackets are kept on a stack, so nesting costs no recursion."""
        alternatives: list[list[list[Expression]]] = [[[]]]
        opened: list[int] = []
        assertions: set[int] = set()
        while True:
            self.skip()
            self.budget.spend(states=1)
            letter = self.source[self.at : self.at + 1]
            items = alternatives[-1][-1]
            if letter == "(":
                if len(opened) >= MAX_NESTING:
                    raise self.error(f"nested too deeply: more than {MAX_NESTING} brackets")
                assertion = None if self.is_w3c else _ASSERTION.match(self.source, self.at)
                opened.append(self.at)
                if assertion is not None:
                    assertions.add(self.at)
                self.at = self.at + 1 if assertion is None else assertion.end()
                alternatives.append([[]])
            elif letter == ")" and opened:
                self.at += 1
                if opened.pop() in assertions:
                    alternatives.pop()
                    continue
                whole = choice([sequence(way) for way in alternatives.pop()])
                alternatives[-1][-1].append(self.apply_quantifiers(whole))
            elif letter == "|":
                self.at += 1
                alternatives[-1].append([])
            elif not letter:
                break
            elif letter.isascii() and (letter.isalnum() or letter == "_"):
                begin = self.at
                if self.defined_name() is not None:
                    self.at = begin
                    break
                name = _NAME.match(self.source, begin)
                assert name is not None
                self.at = name.end()
                is_macro = not self.is_w3c and name[0] in MACROS and self.source.startswith("(", self.at)
                part = self.macro(name[0]) if is_macro else Name(name[0], (), self.location(begin))
                items.append(self.apply_quantifiers(part))
            else:
                items.append(self.apply_quantifiers(self.terminal(letter)))
        if opened:
            raise self.error("this bracket is not closed", opened[-1])
        return choice([sequence(way) for way in alternatives[0]])

    def terminal(self, letter: str) -> Expression:
        begin = self.at
        if not self.is_w3c and (letter == "<" or self.source.startswith("!<", begin)):
            return self.token()
        if letter == '"' or (letter == "'" and self.is_w3c):
            language = self.literal(letter)
        elif letter == "[":
            language = self.character_class()
        elif letter == "." and not self.is_w3c:
            self.at += 1
            language = Language.code_points(code_points.ALL)
        elif letter == "#" and self.is_w3c:
            character = self.character("")
            language = Language.code_points([(character, character)])
        else:
            raise self.error(f"unexpected {letter!r}")
        text = self.source[begin : self.at]
        self.terminals.setdefault(text, Terminal(text, language))
        return Pattern(text, self.location(begin))

    def macro(self, name: str) -> Expression:
        """Read a macro."""
        begin = self.at
        try:
            found = read_macro(self.source, name, begin)
            self.at = found.end
            return expand(found, self)
        except GrammarError as error:
            if error.location is not None:
                raise
            self.budget.check()
            raise self.error(error.reason, begin) from None

    def text(self, key: str, language: Language) -> Expression:
        """See `MacroBuilder`."""
        name = f"{key} {len(self.terminals)}"
        self.terminals[name] = Terminal(name, language)
        return Pattern(name, self.location(self.at))

    def tokens_of(self, written: str, *, is_excluded: bool) -> Expression:
        name = f"{'!' if is_excluded else ''}{written}"
        tokens = read_token(written)
        if is_excluded:
            tokens = replace(tokens, is_negated=True, source=name)
        self.terminals.setdefault(name, Terminal.of_tokens(name, self.known.resolve(tokens)))
        return Pattern(name, self.location(self.at))

    def tokens(self, ids: Sequence[int], *, is_excluded: bool) -> Expression:
        """See `MacroBuilder`."""
        return self.tokens_of(f"<[{','.join(map(str, dict.fromkeys(ids)))}]>", is_excluded=is_excluded)

    def rule(self, name: MacroName) -> Name:
        """See `MacroBuilder`."""
        return Name(name.name, (), self.location(name.at))

    def token(self) -> Expression:
        begin = self.at
        is_negated = self.source.startswith("!", begin)
        end = self.source.find(">", begin)
        written = self.source[begin + is_negated : end + 1]
        if end < 0 or len(written) < 3 or "\n" in written:
            raise self.error("expected a token: <name>, <[id]>, !<name> or !<[id]>")
        self.at = end + 1
        try:
            tokens = read_token(written)
            if is_negated:
                tokens = replace(tokens, is_negated=not tokens.is_negated, source=f"!{written}")
            ranges = self.known.resolve(tokens)
        except GrammarError as error:
            raise self.error(error.reason, begin) from None
        text = self.source[begin : self.at]
        self.terminals.setdefault(text, Terminal.of_tokens(text, ranges))
        return Pattern(text, self.location(begin))

    def literal(self, quote: str) -> Language:
        begin = self.at
        self.at += 1
        letters: list[str] = []
        while True:
            letter = self.source[self.at : self.at + 1]
            if not letter or (letter == "\n" and not self.is_w3c):
                raise self.error("this literal is not terminated", begin)
            if letter == quote:
                self.at += 1
                text = "".join(letters)
                if name := self.known.name_in(text):
                    token = "" if self.is_w3c else f"<[{self.known.names[name]}]> for the token, or "
                    raise self.error(
                        f"the literal {text!r} spells the special token {name} of this vocabulary: write {token}two literals "
                        "for its characters",
                        begin,
                    )
                return Language.literal(text)
            self.budget.spend()
            if self.is_w3c:
                self.at += 1
                letters.append(letter)
            else:
                letters.append(chr(self.character("in a literal")))

    def character_class(self) -> Language:
        begin = self.at
        self.at += 1
        is_negated = self.source.startswith("^", self.at)
        self.at += is_negated
        ranges: list[tuple[int, int]] = []
        while not self.source.startswith("]", self.at):
            self.budget.spend()
            if self.at >= len(self.source):
                raise self.error("this character class is not terminated", begin)
            first = last = self.character("in a class")
            if self.source.startswith("-", self.at) and not self.source.startswith("]", self.at + 1):
                self.at += 1
                if self.at >= len(self.source):
                    raise self.error("this character class is not terminated", begin)
                last = self.character("in a class")
                if first > last:
                    raise self.error(
                        "character range out of order: the first character must not be greater than the last"
                    )
            ranges.append((first, last))
        self.at += 1
        points = code_points.normalize(ranges)
        return Language.code_points(code_points.complement(points) if is_negated else points)

    def character(self, where: str) -> int:
        """Read one literal or escaped character."""
        begin = self.at
        if self.is_w3c:
            match = _W3C_CHARACTER.match(self.source, begin)
            if match is None and where == "":
                raise self.error("expected #x and hexadecimal digits")
            self.at = match.end() if match else begin + 1
            return self.check_code_point(int(match[1], 16) if match else ord(self.source[begin]), begin)
        escape = _ESCAPE.match(self.source, begin)
        if escape is None:
            if self.source[begin] == "\\":
                raise self.error("incomplete escape: a character must follow the backslash")
            self.at = begin + 1
            return self.check_code_point(ord(self.source[begin]), begin)
        self.at = escape.end()
        digits = escape[1] or escape[2] or escape[3]
        if digits:
            return self.check_code_point(int(digits, 16), begin)
        if escape[4] not in _SIMPLE:
            raise self.error(f"unknown escape \\{escape[4]} {where}", begin)
        return ord(_SIMPLE[escape[4]])

    def check_code_point(self, character: int, begin: int) -> int:
        if character > code_points.MAX_CODE_POINT or not code_points.contains(code_points.ALL, character):
            raise self.error("not a Unicode character: surrogates and code points above 10FFFF are not allowed", begin)
        return character

    def apply_quantifiers(self, item: Expression) -> Expression:
        for _ in range(MAX_NESTING):  # llama.cpp accepts consecutive quantifiers
            self.skip()
            letter = self.source[self.at : self.at + 1]
            if letter and letter in "*+?":
                self.at += 1
                item = EbnfRepeat(item, int(letter == "+"), 1 if letter == "?" else None)
            elif letter == "{":
                counts = _COUNTS.match(self.source, self.at)
                if counts is None or not (counts[1] or counts[3]):
                    raise self.error("expected bounds of the form {m}, {m,}, {m,n} or {,n}")
                low = int(counts[1] or "0")
                high = low if not counts[2] else int(counts[3]) if counts[3] else None
                if max(low, high or 0) > MAX_COUNT or (high is not None and low > high):
                    raise self.error(f"the bounds of a repetition must be in ascending order and at most {MAX_COUNT}")
                self.at = counts.end()
                item = EbnfRepeat(item, low, high)
            else:
                return item
        raise self.error(f"too many quantifiers: at most {MAX_NESTING} may follow one another")
