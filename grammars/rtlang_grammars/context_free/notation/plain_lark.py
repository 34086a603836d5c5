"""Rewrites the extended notation to plain Lark and what lark does not know: options of rules, languages of terminals, schemas.

Lines of the result are those of the source. What is embedded in rules (`%json`, `%lark`, `%regex`) becomes a name, defined after the end of
the source; a rule whose options decide its texts becomes a terminal.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rtlang_grammars.context_free.notation.foreign_patterns import with_python_patterns
from rtlang_grammars.context_free.notation.parameters import with_parameters_written_out
from rtlang_grammars.context_free.notation.rule_options import RuleOptions, read_options
from rtlang_grammars.context_free.notation.scanner import (
    Definition,
    NotationToken,
    TokenKind,
    definition_in,
    lines_of,
    scan,
)
from rtlang_grammars.context_free.notation.terminal_expressions import counts_at, leaves_in, uses_extensions
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import line_and_column

_IS_EXTENDED = re.compile(
    r"%(?:json|regex|lark|llguidance|grammar_options)\b|[@&]|~(?![ \t]*\d)|\{[ \t]*[-\d,]|[A-Za-z0-9_]-[A-Za-z0-9_]|\w[ \t]*\[|\"\"|::"
)
_MAX_NESTING = 16
_GLOBAL_OPTIONS = ("allow_initial_skip", "no_forcing", "allow_invalid_utf8", "ignore_once")
_REFUSED_OPTIONS = {
    "allow_invalid_utf8": "texts are UTF-8",
    "ignore_once": "an ignored terminal may follow another; bound it in a rule",
}


@dataclass(frozen=True, slots=True)
class TerminalSource:
    """A terminal that lark cannot define.

    Attributes:
        body: the tokens of its expression.
        scope: of the names in it, see `PlainLark.scopes`.
        options: of the rule that it was; None of a terminal.
        at: its place in the source.
    """

    body: tuple[NotationToken, ...]
    scope: int
    options: RuleOptions | None
    at: int


@dataclass
class PlainLark:
    """A grammar without extensions, and these.

    Attributes:
        text: plain Lark, in which `terminals` are declared and rules of `schemas` are used but not defined.
        terminals: terminals that lark cannot define, by their names in `text`.
        scopes: for each grammar, the given one and nested ones, the names of the special terminals and the text of the others.
        options: of rules, by their names in `text`.
        schemas: JSON texts by the names of the rules that stand for them, with their places in the source.
        skips_at_start: whether ignored terminals may stand before the first other one; None: as lark.
    """

    source: str
    text: str
    terminals: dict[str, TerminalSource] = field(default_factory=dict)
    scopes: list[TerminalScope] = field(default_factory=list)
    options: dict[str, RuleOptions] = field(default_factory=dict)
    schemas: dict[str, tuple[str, int]] = field(default_factory=dict)
    skips_at_start: bool | None = None
    places: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_extended(self) -> bool:
        """Whether the source has extensions of which lark knows nothing."""
        return bool(self.terminals or self.options or self.schemas or self.skips_at_start is not None)

    def append(self, text: str) -> None:
        """Add definitions after the end of the source."""
        if not self.places:
            self.places.append((0, 0))
        self.places.append((len(self.text), -1))
        self.text = f"{self.text}\n{text}\n"

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Show places of `text` in errors as places of the source."""
        try:
            yield
        except GrammarError as error:
            found = re.fullmatch(r"(\d+):(\d+)", error.location or "")
            if found is None or not self.places:
                raise
            lines = self.text.split("\n")
            line = min(int(found[1]), len(lines))
            at = sum(len(each) + 1 for each in lines[: line - 1]) + int(found[2]) - 1
            written, original = self.places[max(0, bisect_right(self.places, (at, 1 << 60)) - 1)]
            place = min(original + at - written, len(self.source)) if original >= 0 else len(self.source)
            raise GrammarError(error.reason, line_and_column(self.source, place)) from None


@dataclass
class TerminalScope:
    """The terminals of one grammar: definitions that lark reads, and the names of those that it cannot."""

    plain: list[str] = field(default_factory=list)
    special: dict[str, str] = field(default_factory=dict)


def read_notation(source: str) -> PlainLark:
    """Take the extensions out of a grammar.

    Raises:
        GrammarError: an extension is malformed or used where it is not allowed, with `line:column`.
    """
    source = with_python_patterns(source)
    if _IS_EXTENDED.search(source) is None:
        return PlainLark(source, source)
    source = with_parameters_written_out(source)
    found = PlainLark(source, source)
    names = _Names(source)
    written = _Rewriter(found, names, source, 0, "", 0).rewritten()
    text = "".join(piece for piece, _ in written)
    appended = "\n".join(names.appended)
    if text == source and not appended:
        return PlainLark(source, source)
    at = 0
    for piece, original in written:
        found.places.append((at, original))
        at += len(piece)
    found.text = text
    if appended:
        found.append(appended)
    return found


class _Names:
    """Names that the source does not have, and definitions behind its end."""

    def __init__(self, source: str) -> None:
        self.used = {each.lower() for each in re.findall(r"\w+", source)}
        self.appended: list[str] = []
        self.shared: dict[tuple[object, ...], str] = {}

    def fresh(self, name: str) -> str:
        """A name that is not used: the given one, or with a number."""
        base, count = name, 0
        while name.lower() in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name.lower())
        return name


class _Rewriter:
    """Rewrites one grammar, the given one or a nested one."""

    def __init__(self, found: PlainLark, names: _Names, source: str, offset: int, prefix: str, depth: int) -> None:
        if depth > _MAX_NESTING:
            raise GrammarError(f"Lark grammar: %lark: nested more than {_MAX_NESTING} times")
        self._found, self._names, self._source = found, names, source
        self._offset, self._prefix, self._depth = offset, prefix, depth
        self._renamed: dict[str, str] = {}
        self._pieces: list[tuple[str, int]] = []
        self._at = 0
        self._scope = len(found.scopes)
        found.scopes.append(TerminalScope())
        self._skip = ""
        self._rules: dict[str, Definition] = {}
        self._skips = False

    def rewritten(self) -> list[tuple[str, int]]:
        """The pieces of the text with their places in the source."""
        lines = lines_of(scan(self._source))
        definitions = [definition_in(line) for line in lines]
        self._name_special([each for each in definitions if each is not None and each.is_terminal])
        self._rules = {each.name.text: each for each in definitions if each is not None and not each.is_terminal}
        self._skips = any(line[0].text == "%ignore" for line in lines)
        if self._prefix:
            self._name_skipped(lines)
        for line, definition in zip(lines, definitions, strict=True):
            with self._placed(line[0]):
                if definition is not None:
                    self._definition(definition)
                else:
                    self._statement(line)
        self._copy(len(self._source))
        return self._pieces

    def _name_special(self, terminals: Sequence[Definition]) -> None:
        scope = self._found.scopes[self._scope]
        has_changed = True
        while has_changed:
            has_changed = False
            for each in terminals:
                name = each.name.text
                if name not in scope.special and uses_extensions(each.body, frozenset(scope.special)):
                    scope.special[name] = self._name(each.name)
                    has_changed = True
        for each in terminals:
            if each.name.text not in scope.special:
                scope.plain.append(self._source[each.first.start : each.end])

    def _name_skipped(self, lines: Sequence[Sequence[NotationToken]]) -> None:
        """A nested grammar ignores terminals of its own: they stand after its terminals, in its rules."""
        bodies = [line[1:] for line in lines if line[0].text == "%ignore"]
        if bodies:
            self._skip = self._names.fresh(f"{self._prefix}skip")
            texts = [self._source[body[0].start : body[-1].end] for body in bodies if body]
            self._names.appended.append(
                f"{self._skip}: (" + " | ".join(self._renamed_in(text) for text in texts) + ")*"
            )

    def _renamed_in(self, text: str) -> str:
        pieces, at = [], 0
        for token in scan(text):
            pieces += [text[at : token.start], self._written(token)]
            at = token.end
        return "".join(pieces) + text[at:]

    @contextmanager
    def _placed(self, token: NotationToken) -> Iterator[None]:
        """Give errors without a place the place of an item."""
        try:
            yield
        except GrammarError as error:
            if error.location is not None:
                raise
            reason = error.reason if error.reason.startswith("Lark grammar") else f"Lark grammar: {error.reason}"
            raise GrammarError(reason, line_and_column(self._found.source, self._offset + token.start)) from None

    def _copy(self, to: int) -> None:
        """Copy the source up to a place."""
        if to > self._at:
            self._pieces.append((self._source[self._at : to], self._offset + self._at))
            self._at = to

    def _put(self, text: str, end: int) -> None:
        """Write a text in place of the source up to a place, with as many lines."""
        lost = self._source.count("\n", self._at, end) - text.count("\n")
        self._pieces.append((text + "\\\n" * lost, self._offset + self._at))
        self._at = end

    def _blank(self, end: int) -> None:
        """Leave the source out up to a place, but for its line breaks."""
        self._pieces.append(("\n" * self._source.count("\n", self._at, end), self._offset + self._at))
        self._at = end

    def _name(self, token: NotationToken) -> str:
        """The name in plain Lark."""
        name = token.text
        if name not in self._renamed:
            is_terminal = token.kind is TokenKind.TERMINAL
            plain = re.sub(r"\W", "_", name.upper() if is_terminal else name.lower())
            if self._prefix:
                plain = (self._prefix.upper() if is_terminal else self._prefix) + plain.lstrip("_")
            self._renamed[name] = name if plain == name else self._names.fresh(plain)
        return self._renamed[name]

    def _written(self, token: NotationToken) -> str:
        return self._name(token) if token.kind in (TokenKind.RULE, TokenKind.TERMINAL) else token.text

    def _statement(self, line: Sequence[NotationToken]) -> None:
        first = line[0]
        if first.kind is TokenKind.EMBEDDED and first.text.startswith(("%llguidance", "%grammar_options")):
            self._global_options(first.text)
            self._copy(first.start)
            self._blank(first.end)
            return
        if first.text == "%import":
            self._import(line)
            return
        if self._prefix and first.text == "%ignore":
            self._copy(first.start)
            self._blank(line[-1].end)
            return
        if first.text == "%ignore":
            self._copy(first.end)
            self._body(line[1:], is_terminal=True)
            return
        if first.text == "%declare":
            for token in line[1:]:
                self._copy(token.start)
                self._put(self._written(token), token.end)
            return
        self._copy(line[-1].end)

    def _import(self, line: Sequence[NotationToken]) -> None:
        scope = self._found.scopes[self._scope]
        written = self._source[line[0].start : line[-1].end]
        scope.plain.append(written)
        if not self._prefix:
            self._copy(line[-1].end)
            return
        opened = next((i for i, each in enumerate(line) if each.text == "("), len(line))
        path = "".join(each.text for each in line[1:opened])
        listed = [each for each in line[opened + 1 :] if each.kind in (TokenKind.RULE, TokenKind.TERMINAL)]
        made = []
        if listed:
            made = [f"%import {path}.{each.text} -> {self._name(each)}" for each in listed]
        else:
            path, _, _ = path.partition("->")
            made = [f"%import {path} -> {self._name(line[-1])}"]
        self._names.appended += made
        self._copy(line[0].start)
        self._blank(line[-1].end)

    def _global_options(self, text: str) -> None:
        name, _, value = text.partition("{")
        plain = json.loads("{" + value) if value else None
        if not isinstance(plain, dict):
            raise GrammarError(f"{name.strip()}: expected a JSON object")
        for option, given in plain.items():
            if option not in _GLOBAL_OPTIONS:
                raise GrammarError(f"{name.strip()}: {option!r}: expected one of {', '.join(_GLOBAL_OPTIONS)}")
            if not isinstance(given, bool):
                raise GrammarError(f"{name.strip()}: {option} = {given!r}: expected true or false")
            if given and option in _REFUSED_OPTIONS:
                raise GrammarError(f"{name.strip()}: {option} = true is not supported: {_REFUSED_OPTIONS[option]}")
        if not self._prefix:
            self._found.skips_at_start = bool(plain.get("allow_initial_skip", self._found.skips_at_start))

    def _definition(self, definition: Definition) -> None:
        if definition.is_terminal:
            self._terminal(definition)
            return
        self._copy(definition.name.start)
        name = self._name(definition.name)
        self._put(name, definition.name.end)
        body: Sequence[NotationToken] = definition.body
        if definition.options is not None:
            options = read_options(definition.options, definition.name.text)
            self._copy(definition.brackets[0])
            self._blank(definition.brackets[1])
            self._found.options[name] = options
            if options.shapes_text:
                body = self._shaped(definition, options)
        if body:
            self._body(body, is_terminal=False)

    def _terminal(self, definition: Definition) -> None:
        if definition.options is not None:
            raise GrammarError(
                f"terminal {definition.name.text}: options are allowed on rules only; write a rule that consists of the terminal"
            )
        scope = self._found.scopes[self._scope]
        name = definition.name.text
        if name in scope.special:
            with self._placed(definition.first):
                leaves_in(definition.body)
            self._declare(
                scope.special[name],
                TerminalSource(definition.body, self._scope, None, self._offset + definition.first.start),
            )
            self._copy(definition.first.start)
            self._blank(definition.end)
            return
        self._copy(definition.name.start)
        self._put(self._name(definition.name), definition.name.end)
        self._body(definition.body, is_terminal=True)

    def _declare(self, name: str, terminal: TerminalSource) -> None:
        self._found.terminals[name] = terminal
        self._names.appended.append(f"%declare {name}")

    def _shaped(self, definition: Definition, options: RuleOptions) -> Sequence[NotationToken]:
        """Make the body of a rule a terminal; returns what is left of it."""
        body = [each for each in definition.body if each.kind is not TokenKind.NEWLINE]
        behind = len(body)
        while behind and body[behind - 1].kind is TokenKind.SPECIAL:
            behind -= 1
        tokens, body = body[behind:], body[:behind]
        own = options
        if tokens:
            if options.marker or any(each.text == "|" for each in body):
                raise GrammarError("a rule that ends with a token: suffix, stop and | are not supported")
            own = replace(options, is_lazy=False)  # text contains no special tokens, so it ends where the token is
        body = self._inlined(definition, body, (definition.name.text,))
        leaves_in(body)
        leaves_in(options.marker)
        key = (
            "".join(each.text + " " for each in body), self._scope, own.is_lazy, own.max_tokens, own.max_chars,
            "".join(each.text + " " for each in own.marker),
        )  # fmt: skip
        name = self._names.shared.get(key)
        if name is None:
            name = self._names.shared[key] = self._names.fresh(
                f"{self._prefix.upper()}RULE_{definition.name.text.upper()}".replace("-", "_")
            )
            self._declare(name, TerminalSource(tuple(body), self._scope, own, self._offset + definition.first.start))
        end = tokens[0].start if tokens else definition.end
        colon = self._source.index(":", max(definition.brackets[1], definition.name.end))
        self._copy(colon + 1)
        self._put(f" {name} {self._skip} ", end)
        return tokens

    def _inlined(
        self, definition: Definition, body: Sequence[NotationToken], outer: tuple[str, ...]
    ) -> list[NotationToken]:
        """The body of a rule with options as that of a terminal: rules in it are written out."""
        found: list[NotationToken] = []
        for index, each in enumerate(body):
            if each.text == "->" or (index > 0 and body[index - 1].text == "->"):
                continue
            called = self._rules.get(each.text) if each.kind is TokenKind.RULE else None
            is_plain = called is not None and called.options is None and not called.parameters
            if called is not None and is_plain and each.text not in outer and not self._skips:
                inner = self._inlined(definition, called.body, (*outer, each.text))
                found.append(replace(each, kind=TokenKind.SIGN, text="("))
                found += [one for one in inner if one.kind is not TokenKind.NEWLINE]
                found.append(replace(each, kind=TokenKind.SIGN, text=")"))
                continue
            if each.kind in (TokenKind.RULE, TokenKind.REFERENCE, TokenKind.SPECIAL) or (
                each.kind is TokenKind.EMBEDDED and not each.text.startswith("%regex")
            ):
                raise GrammarError(
                    f"rule {definition.name.text}: lazy, suffix, stop, max_tokens and max_chars are allowed where a rule consists of "
                    "strings, expressions, terminals, and, where nothing is ignored, rules without options that do not contain "
                    f"themselves; not of {each.text.split()[0][:40]}"
                )
            found.append(each)
        return found

    def _body(self, tokens: Sequence[NotationToken], *, is_terminal: bool) -> None:
        """Rewrite the alternatives of a rule or of a plain terminal."""
        opened: list[int] = []
        atom = len(self._pieces)
        index = 0
        while index < len(tokens):
            token = tokens[index]
            self._copy(token.start)
            counts = counts_at(tokens, index) if token.text == "{" else None
            if counts is not None:
                low, high, index = counts
                self._repeat(low, high, atom, tokens[index - 1].end)
                continue
            if token.text in ("(", "["):
                opened.append(len(self._pieces))
                self._copy(token.end)
            elif token.text in (")", "]"):
                self._copy(token.end)
                atom = opened.pop() if opened else len(self._pieces) - 1
            elif token.text == "{":  # arguments of a template
                closed = next((i for i in range(index, len(tokens)) if tokens[i].text == "}"), len(tokens) - 1)
                for each in tokens[index : closed + 1]:
                    self._copy(each.start)
                    self._put(self._written(each), each.end)
                index = closed
            elif token.text in ("&", "~") and not (
                token.text == "~" and index + 1 < len(tokens) and tokens[index + 1].kind is TokenKind.NUMBER
            ):
                raise GrammarError(
                    f"{token.text} is allowed in terminals only: give the part a name in capital letters"
                )
            else:
                is_range = token.text == ".." or (index + 1 < len(tokens) and tokens[index + 1].text == "..")
                follows_arrow = index > 0 and tokens[index - 1].text == "->"
                if index == 0 or tokens[index - 1].text != "..":
                    atom = (
                        len(self._pieces)
                        if token.kind is not TokenKind.SIGN and token.kind is not TokenKind.NUMBER
                        else atom
                    )
                self._atom(token, is_terminal=is_terminal, is_whole=not is_range and not follows_arrow)
            index += 1

    def _atom(self, token: NotationToken, *, is_terminal: bool, is_whole: bool) -> None:
        written = self._written(token)
        if token.kind is TokenKind.EMBEDDED:
            if is_terminal:
                raise GrammarError(f"{token.text.split()[0]}: not allowed in a terminal")
            written = self._embedded(token)
        elif token.kind is TokenKind.REFERENCE:
            raise GrammarError(f"{token.text}: no grammar of this name was given (with_grammars puts them in)")
        elif token.kind is TokenKind.DIRECTIVE:
            raise GrammarError(f"{token.text}: not supported")
        elif token.text == '""' and not is_terminal:
            written = "()"
        is_lexeme = token.kind not in (TokenKind.RULE, TokenKind.NUMBER, TokenKind.SIGN, TokenKind.NEWLINE)
        if self._skip and is_whole and is_lexeme and token.text != '""':
            written = f"({written} {self._skip})"
        self._put(written, token.end)

    def _embedded(self, token: NotationToken) -> str:
        """The name of a rule or terminal for a schema, a grammar or the runs of a text."""
        kind = token.text.split("{", 1)[0].split("[", 1)[0].strip()
        at = self._offset + token.start
        if kind == "%json":
            name = self._names.fresh("json_value")
            self._found.schemas[name] = (token.text.removeprefix("%json").strip(), at)
            return name
        if kind == "%regex":
            name = self._names.fresh("REGEX")
            self._declare(name, TerminalSource((token,), self._scope, None, at))
            return name
        if kind != "%lark":
            raise GrammarError(f"{kind}: not allowed in a rule")
        opened = token.text.index("{")
        prefix = self._names.fresh("nested") + "__"
        inner = _Rewriter(
            self._found, self._names, token.text[opened + 1 : -1], at + opened + 1, prefix, self._depth + 1
        )
        written = "".join(piece for piece, _ in inner.rewritten())
        if "start" not in inner._renamed:
            raise GrammarError("%lark: start rule start is not defined")
        self._names.appended.append(re.sub(r"\n[ \t]+(?!\|)(?=\S)", "\n", "\n" + written.strip()).strip())
        return inner._renamed["start"]

    def _repeat(self, low: int, high: int | None, atom: int, end: int) -> None:
        """Write `{low,high}` after an atom as lark does."""
        if high is not None:
            self._put(f"~{low}..{high}" if high != low else f"~{low}", end)
        elif low <= 1:
            self._put("+" if low else "*", end)
        else:
            body = "".join(piece for piece, _ in self._pieces[atom:])
            original = self._pieces[atom][1]
            del self._pieces[atom:]
            self._pieces.append((f"({body}~{low} {body}*)", original))
            self._at = end


def with_grammars(source: str, grammars: Mapping[str, str | Mapping[str, object] | bool]) -> str:
    """A Lark grammar with named grammars put in where it has `@name`.

    Args:
        grammars: for each name a Lark grammar (a string), or a JSON schema.
    Raises:
        GrammarError: a name is not given, or grammars contain each other in a circle.
    """
    return _with_grammars(source, grammars, ())


def _with_grammars(
    source: str, grammars: Mapping[str, str | Mapping[str, object] | bool], outer: tuple[str, ...]
) -> str:
    pieces, at = [], 0
    for token in scan(source):
        inner = source[token.start : token.end]
        if token.kind is TokenKind.EMBEDDED and token.text.startswith("%lark"):
            opened = inner.index("{") + 1
            written = inner[:opened] + _with_grammars(inner[opened:-1], grammars, outer) + "}"
        elif token.kind is TokenKind.REFERENCE:
            name = token.text[1:]
            if name in outer:
                circle = " -> ".join(f"@{each}" for each in (*outer, name))
                raise GrammarError(
                    f"Lark grammar: named grammars contain each other: {circle}", line_and_column(source, token.start)
                )
            if name not in grammars:
                known = ", ".join(sorted(grammars)) or "none"
                raise GrammarError(
                    f"Lark grammar: @{name}: expected the name of a given grammar: {known}",
                    line_and_column(source, token.start),
                )
            given = grammars[name]
            if isinstance(given, str):
                written = "%lark {\n" + _with_grammars(given, grammars, (*outer, name)) + "\n}"
            else:
                written = "%json " + (
                    json.dumps(given) if isinstance(given, Mapping) else json.dumps({} if given else {"not": {}})
                )
        else:
            continue
        pieces += [source[at : token.start], written]
        at = token.end
    return "".join(pieces) + source[at:]
