"""Reads Lark grammars with lark's own loader: imports, templates, priorities, `%declare`, `%extend` and `%override` as lark resolves them.

Imports find lark's own grammars and this package's library, and no file of the machine. A rule whose optional parts multiply to too many
alternatives gets helper rules for them, which lark inlines in parse trees.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lark import Tree
from lark.exceptions import LarkError
from lark.grammar import NonTerminal, Rule
from lark.grammar import Terminal as LarkTerminal
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import IMPORT_PATHS, FromPackageLoader, Grammar, GrammarBuilder

from rtlang_grammars.context_free.lark_errors import errors_of, first_line, lark_errors, location_of
from rtlang_grammars.context_free.lark_library import LIBRARY, library_grammar
from rtlang_grammars.context_free.lark_tokens import TokenSource, check_literal, take_out_tokens
from rtlang_grammars.context_free.notation.built_terminals import build_terminals
from rtlang_grammars.context_free.notation.plain_lark import PlainLark, read_notation
from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.spec.constraint import Indentation
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.places import line_and_column
from rtlang_grammars.spec.tokens import SPELLING_BYTES, AnyTokens, Ranges, SpecialTokens

MAX_SOURCE_CHARS = 1 << 17
"""lark's own parser reads the text, about 1 us a character, and cannot be interrupted."""

MAX_PATTERN_CHARS = 1 << 16
"""Characters of one terminal's pattern after its parts are put in."""

_MAX_ALTERNATIVES = 64
"""A rule is expanded to at most this many alternatives; the optional parts of larger ones become rules."""

_MAX_REPEAT = 10_000
_UNROLLED = 50
"""lark multiplies out repeats below this number."""


@dataclass(frozen=True, slots=True)
class SourceTerminal:
    """A terminal as lark defines it.

    Attributes:
        pattern: for Python's `re`, with the flags inside.
        text: the text of a literal; None for a regular expression.
        flags: letters of `imslux`.
        max_width: of the pattern, by lark's measure.
        written: the pattern, or the names of tokens, as written.
        grammar: the text of the grammar.
        tokens: ids of tokens, any one of which it is; None for text.
        built: its language, where lark cannot define it; `pattern` is empty then.
    """

    name: str
    pattern: str
    text: str | None
    flags: str
    priority: int
    max_width: int
    written: str
    grammar: str
    tokens: Ranges | None = None
    built: BuiltTerminal | None = None

    @property
    def num_chars(self) -> int:
        """Characters of the pattern as written."""
        return len(self.written)

    @property
    def location(self) -> str | None:
        """`line:column` of its definition or first use, found in time linear in the grammar; None for imported ones."""
        is_pattern = self.tokens is None and self.built is None
        return location_of(self.name, self.grammar, self.written if is_pattern else None)


@dataclass(frozen=True, slots=True)
class LarkSource:
    """A grammar in terms of terminals and plain rules.

    Attributes:
        terminals: those that rules use, the grammar ignores or `indentation` names as its newline, and no other.
        ignored: names of terminals that may stand between all others.
        rules: as lark compiled them, for start rule `start`.
        options: of rules, by name.
        skips_at_start: whether ignored terminals may stand before the first other one.
    """

    terminals: tuple[SourceTerminal, ...]
    ignored: frozenset[str]
    rules: tuple[Rule, ...]
    start: str
    indentation: Indentation | None = None
    options: Mapping[str, RuleOptions] = field(default_factory=dict)
    skips_at_start: bool = True


class SchemaReader(Protocol):
    """Makes rules of the JSON schemas inside one grammar."""

    def add(self, name: str, source: str) -> None:
        """Read the JSON text of a schema, whose first rule has this name.

        Raises:
            GrammarError: the schema is malformed, or not supported; with its JSON pointer.
        """

    def written(self) -> tuple[str, dict[str, BuiltTerminal]]:
        """Lark text, and the terminals that it uses but does not define."""


def read_source(
    text: str,
    *,
    start: str = "start",
    budget: Budget | None = None,
    tokens: SpecialTokens | None = None,
    indentation: Indentation | None = None,
    splits: bool = False,
    schemas: SchemaReader | None = None,
) -> LarkSource:
    """Read a Lark grammar, also with the extensions of `notation`.

    Args:
        schemas: makes rules of schemas in rules (`%json`); None: these are refused.
        splits: give optional parts rules of their own. lark refuses a rule like `r: a b* | a`, whose alternatives are equal without the
            optional part; other readers of such grammars do not.
        tokens: of the vocabulary; None: every token is taken for known.
        indentation: what makes the terminals that the grammar declares.
    Raises:
        GrammarError: a syntax error or an undefined name, with lark's reason; an import of anything else than lark's grammars and the
            library; a token that the vocabulary has not, or a string that spells a special token; the grammar is too large.
    """
    known, budget = tokens or AnyTokens(), budget or Budget()
    _check_text(text)
    plain = read_notation(text)
    built = _embedded_schemas(plain, budget, schemas)
    built |= build_terminals(plain, budget, _patterns)
    with plain.errors():
        source = take_out_tokens(plain.text, known)
        with source.errors():
            found = _read(source, start, budget, known, indentation, built, splits=splits)
    skips = plain.skips_at_start is not False
    return replace(found, options=plain.options, skips_at_start=skips)


def _embedded_schemas(plain: PlainLark, budget: Budget, reader: SchemaReader | None) -> dict[str, BuiltTerminal]:
    """Append the rules of schemas to a grammar; returns their terminals."""
    if not plain.schemas:
        return {}
    for name, (schema, at) in plain.schemas.items():
        location = line_and_column(plain.source, at)
        if reader is None:
            raise GrammarError("Lark grammar: %json is not supported by lexer=anywhere; use lexer=longest", location)
        try:
            reader.add(name, schema)
        except GrammarError as error:
            budget.check()
            where = f" (schema {error.location})" if error.location else ""
            raise GrammarError(f"Lark grammar: %json: {error.reason}{where}", location) from None
    assert reader is not None
    try:
        rules, terminals = reader.written()
    except GrammarError as error:
        budget.check()
        raise GrammarError(f"Lark grammar: %json: {error.reason}", location) from None
    plain.append("\n".join([rules, *(f"%declare {each}" for each in terminals)]))
    return terminals


def _patterns(text: str, names: Container[str], budget: Budget) -> dict[str, str]:
    """The patterns of some terminals of a grammar."""
    grammar = _load(TokenSource(text), budget)
    with lark_errors(text):
        terminals, _, _ = grammar.compile(["start"], names)
    return {each.name: each.pattern.to_regexp() for each in terminals if each.name in names}


def _read(
    source: TokenSource,
    start: str,
    budget: Budget,
    known: SpecialTokens,
    indentation: Indentation | None,
    built: Mapping[str, BuiltTerminal],
    *,
    splits: bool,
) -> LarkSource:
    text = source.text
    grammar = _load(source, budget, splits=splits)
    templates = {name for name, parameters, *_ in grammar.rule_defs if parameters}
    if start in templates or start not in {name for name, *_ in grammar.rule_defs}:
        raise GrammarError(f"Lark grammar: start rule {start} is not defined")
    with lark_errors(text):
        terminals, rules, ignored = grammar.compile([start], () if indentation is None else {indentation.newline})
    budget.check()
    used = {symbol.name for rule in rules for symbol in rule.expansion if isinstance(symbol, LarkTerminal)}
    defined = {terminal.name: terminal for terminal in terminals}
    made: set[str] = set()
    if indentation is not None:
        _check_indentation(indentation, defined, ignored)
        made = {indentation.indent, indentation.dedent}
        used = (used - made) | {indentation.newline}
    if undeclared := sorted((used | set(ignored)) - defined.keys() - source.tokens.keys() - built.keys()):
        raise GrammarError(f"Lark grammar: terminal {undeclared[0]} is declared but has no pattern")
    named = {rule.origin.name for rule in rules}
    missing = {symbol.name for rule in rules for symbol in rule.expansion if isinstance(symbol, NonTerminal)} - named
    if missing:
        name = min(missing)
        what = f"template {name} requires arguments" if name in templates else f"rule {name} has no alternatives"
        raise GrammarError(f"Lark grammar: {what}", location_of(name, text))
    budget.spend(states=sum(len(rule.expansion) + 1 for rule in rules))
    return LarkSource(
        tuple(
            _token(name, source, known)
            if name in source.tokens
            else _built(name, built[name], text)
            if name in built
            else _terminal(defined[name], text, known)
            for name in sorted(used | set(ignored))
        ),
        frozenset(ignored),
        tuple(rules),
        start,
        indentation,
    )


def _check_indentation(indentation: Indentation, defined: Container[str], ignored: Container[str]) -> None:
    for option in ("newline", "indent", "dedent", "open", "close"):
        value = getattr(indentation, option)
        for name in (value,) if isinstance(value, str) else value:
            if option in ("indent", "dedent"):
                if name in defined:
                    raise GrammarError(f"{option} = {name!r}: expected a terminal without a pattern", "indentation")
            elif name not in defined:
                raise GrammarError(f"{option} = {name!r}: the grammar has no such terminal", "indentation")
            elif name in ignored or (name == indentation.newline) != (option == "newline"):
                raise GrammarError(f"{option} = {name!r}: the terminal is ignored or has another use", "indentation")


def _check_text(text: str) -> None:
    if len(text) > MAX_SOURCE_CHARS:
        raise GrammarError(
            f"Lark grammar: the source has {len(text)} characters; at most {MAX_SOURCE_CHARS} are allowed"
        )
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise GrammarError("Lark grammar: the source contains a null character or a lone surrogate")


def load_with_names(text: str, budget: Budget) -> tuple[Grammar, dict[str, str]]:
    """The definitions of a grammar with tokens as literals of their names, and those names by terminal.

    Raises:
        GrammarError: see `read_source`; or a token has no name, or the grammar has extensions of `notation`.
    """
    _check_text(text)
    plain = read_notation(text)
    if plain.is_extended:
        raise GrammarError(
            "Lark grammar: a grammar with options of rules, %json, %regex, & or ~ has no parse trees; use captures"
        )
    source = take_out_tokens(plain.text, AnyTokens())
    with source.errors():
        grammar = _load(replace(source, text=source.with_names(), tokens={}), budget)
    return grammar, {name: token.names[0] for name, token in source.tokens.items()}


def _load(source: TokenSource, budget: Budget, *, splits: bool = False) -> Grammar:
    """The definitions of a grammar, with everything imported and rules of bounded size."""
    with lark_errors(source.text):
        builder = _Builder(source, budget)
        builder.load_grammar(source.text, "<grammar>")
        budget.check()
        grammar: Grammar = builder.build()
        _Products(grammar.rule_defs, source.text, budget, splits=splits).extract()
    return grammar


class _Builder(GrammarBuilder):  # type: ignore[misc, unused-ignore]
    """lark's builder without the file system, which bounds the terminals before it puts their parts in."""

    def __init__(self, source: TokenSource, budget: Budget) -> None:
        super().__init__(import_paths=[_from_library])
        self._text = source.text
        self._definitions = _Definitions(source, budget)

    def do_import(self, dotted_path: Any, base_path: Any, aliases: Any, base_mangle: Any = None) -> None:
        super().do_import(dotted_path, None, aliases, base_mangle)
        for name, alias in aliases.items():
            if base_mangle is None and alias not in self._definitions:
                raise GrammarError(
                    f"Lark grammar: the grammar {'.'.join(dotted_path)} does not define {name}",
                    location_of(name, self._text),
                )


class _Definitions(dict[str, Any]):
    """lark's table of definitions; it is first read as a whole when all are there and nothing is resolved yet."""

    def __init__(self, source: TokenSource, budget: Budget) -> None:
        super().__init__()
        self._budget: Budget | None = budget
        self._source = source

    def items(self) -> Any:
        if self._budget is not None:
            budget, self._budget = self._budget, None
            trees = {name: each.tree for name, each in super().items() if each.is_term}
            _bound_terminals(trees, self._source.text, budget)
            _check_no_tokens(trees, self._source)
        return super().items()


_lark_grammars = FromPackageLoader("lark", IMPORT_PATHS)
_LARK_GRAMMARS = ("common", "lark", "python", "unicode")


def _from_library(base_path: str | None, grammar_path: str) -> tuple[Any, str]:
    name = str(grammar_path).removesuffix(".lark")
    if base_path is None and name in LIBRARY:
        return grammar_path, library_grammar(name)
    try:
        found: tuple[Any, str] = _lark_grammars(base_path, grammar_path)
    except OSError:
        reason = f"unknown grammar {name.replace('/', '.')}: expected one of {', '.join([*_LARK_GRAMMARS, *LIBRARY])}"
        raise LarkError(reason) from None
    return found


def _check_no_tokens(definitions: dict[str, Tree[Any] | None], source: TokenSource) -> None:
    """Refuse tokens within terminals."""
    for name, tree in definitions.items():
        if source.tokens and tree is not None:
            used = {str(each.name) for each in tree.scan_values(lambda value: isinstance(value, LarkTerminal))}
            for token in sorted(used & source.tokens.keys()):
                raise GrammarError(
                    f"Lark grammar: terminal {name} contains {token}: tokens are allowed in rules only",
                    location_of(name, source.text),
                )


def _token(name: str, source: TokenSource, known: SpecialTokens) -> SourceTerminal:
    tokens = source.tokens[name]
    try:
        ranges = known.resolve(tokens)
    except GrammarError as error:
        raise GrammarError(f"Lark grammar: {error.reason}", location_of(name, source.text)) from None
    return SourceTerminal(name, "", None, "", 0, SPELLING_BYTES, tokens.source, source.text, ranges)


def _built(name: str, terminal: BuiltTerminal, text: str) -> SourceTerminal:
    return SourceTerminal(name, "", None, "", 0, SPELLING_BYTES, "", text, None, terminal)


def _terminal(found: TerminalDef, text: str, known: SpecialTokens) -> SourceTerminal:
    pattern = found.pattern
    if isinstance(pattern, PatternStr):
        check_literal(pattern.value, known)  # of an imported grammar; others were checked with their places
    try:
        if not isinstance(pattern, PatternStr) or set(pattern.flags) - {"i"}:
            re.compile(pattern.to_regexp())
        width = int(pattern.max_width)
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        location = location_of(found.name, text, pattern.value)
        raise GrammarError(f"Lark grammar: terminal {found.name}: {first_line(error)}", location) from None
    return SourceTerminal(
        found.name,
        pattern.to_regexp(),
        pattern.value if isinstance(pattern, PatternStr) else None,
        "".join(sorted(pattern.flags)),
        found.priority,
        width,
        pattern.value,
        text,
    )


def _bound_terminals(definitions: dict[str, Tree[Any] | None], text: str, budget: Budget) -> None:
    """Refuse terminals whose patterns, with the parts they name put in, would become too long."""
    sizes: dict[str, int | None] = {}  # None: being measured

    def size(name: str, depth: int) -> int:
        budget.check_depth(depth)
        found = sizes.get(name)
        if found is None:
            if name in sizes:
                raise GrammarError(f"Lark grammar: terminal {name} uses itself; only rules may be recursive")
            tree = definitions.get(name)
            sizes[name] = None
            found = sizes[name] = 0 if tree is None else measure(tree, depth + 1)
            if found > MAX_PATTERN_CHARS:
                raise GrammarError(
                    f"Lark grammar: terminal {name}: the pattern has more than {MAX_PATTERN_CHARS} characters"
                )
        return found

    def measure(node: Any, depth: int) -> int:
        budget.spend()
        if isinstance(node, Tree):
            budget.check_depth(depth)
            if node.data == "expr" and str(node.children[1]) == "~":
                counts = [int(child) for child in node.children[2:]]
                if max(counts) > _MAX_REPEAT:
                    raise GrammarError(f"Lark grammar: ~{max(counts)}: at most {_MAX_REPEAT} repeats are allowed")
            return sum(measure(child, depth + 1) for child in node.children)
        return size(node.name, depth) if hasattr(node, "name") and node.name in definitions else len(str(node)) + 2

    for name in definitions:
        with errors_of(name, text):
            size(name, 0)


def _usages(tree: Any) -> Iterator[Any]:
    """The uses of templates within a tree."""
    return (each for each in tree.iter_subtrees() if each.data == "template_usage")


def _has_usage(argument: Any) -> bool:
    return isinstance(argument, Tree) and next(_usages(argument), None) is not None


def _reach(name: str, templates: dict[str, Any]) -> set[str]:
    """The templates that one uses, directly or through others."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for usage in _usages(templates[todo.pop()]):
            used = str(usage.children[0].name)
            if used in templates and used not in found:
                found.add(used)
                todo.append(used)
    return found


class _Products:
    """Bounds the alternatives of rules before lark multiplies them out."""

    def __init__(self, rule_defs: list[Any], text: str, budget: Budget, *, splits: bool = False) -> None:
        self.rule_defs, self.budget, self._text = rule_defs, budget, text
        self._most = 1 if splits else _MAX_ALTERNATIVES
        self.names = {name for name, *_ in rule_defs}
        self._may_move = True

    def extract(self) -> None:
        """Give every part of a product that is too large a rule of its own."""
        templates = {name: tree for name, parameters, tree, _ in self.rule_defs if parameters}
        for name, tree in templates.items():
            if any(
                _has_usage(argument) for usage in _usages(tree) for argument in usage.children[1:]
            ) and name in _reach(name, templates):
                raise GrammarError(f"Lark grammar: template {name} uses itself with arguments that grow")
        for name, parameters, tree, _ in list(self.rule_defs):
            self._may_move = not parameters  # arguments of templates may be anything: they are not moved
            with errors_of(name, self._text):
                count = self._count(tree, name, 0)
            if count > 16 * _MAX_ALTERNATIVES and parameters:
                raise GrammarError(
                    f"Lark grammar: template {name} has too many alternatives; give its parts rules of their own"
                )

    def _count(self, node: Any, name: str, depth: int) -> int:
        """The number of alternatives a tree expands to, after parts were moved out."""
        self.budget.spend()
        self.budget.check_depth(depth)
        if not isinstance(node, Tree):
            return 1
        counts = [self._count(child, name, depth + 1) for child in node.children]
        if node.data == "expansions":
            return sum(counts)
        if node.data == "maybe":
            return counts[0] + 1
        if node.data == "expr":
            operator = str(node.children[1])
            if operator == "~":
                low, high = int(node.children[2]), int(node.children[-1])
                if high > _MAX_REPEAT:
                    raise GrammarError(f"Lark grammar: ~{node.children[-1]}: at most {_MAX_REPEAT} repeats are allowed")
                if counts[0] > 1:  # lark would multiply the alternatives of the repeats
                    if not self._may_move:
                        return 1 << 60
                    node.children[0] = self._moved(node.children[0], name)
                return max(1, high - low + 1) if high < _UNROLLED else 1
            return counts[0] + 1 if operator == "?" else 2 if operator == "*" else 1
        if node.data != "expansion":
            return max(counts, default=1)
        product = 1
        for index, count in enumerate(counts):
            if product * count > self._most and count > 1 and self._may_move:
                node.children[index] = self._moved(node.children[index], name)
                count = 1
            product *= count
        return product

    def _moved(self, part: Any, name: str) -> Any:
        count = len(self.rule_defs)
        while (fresh := f"_{name.lstrip('_')}_part_{count}") in self.names:
            count += 1
        self.names.add(fresh)
        body = Tree("expansions", [Tree("expansion", [part])])
        options = next((options for rule, _, _, options in self.rule_defs if rule == name), None)
        self.rule_defs.append((fresh, (), body, options))
        return NonTerminal(fresh)
