"""Compiles a constraint to tables, without a vocabulary.

`build` dispatches on the kind of the constraint: JSON Schema through shapes, patterns through automata, grammars through rules.
`Compilation` holds everything that the tables depend on and is the key of the store on disk; `Built` is the result and its value.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from rtlang_grammars.context_free.cfg import Cfg, Terminal, with_ignored
from rtlang_grammars.context_free.folding import regular_languages
from rtlang_grammars.context_free.gbnf_reader import GrammarNotation, read_gbnf
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.lowering.grammars.grammar_tables import GrammarTables
from rtlang_grammars.lowering.grammars.rules import NumberedRules
from rtlang_grammars.lowering.json_shapes.json_values import ShapeTables
from rtlang_grammars.lowering.languages.embedding import Embedding
from rtlang_grammars.lowering.structure_check import StructureCheck, structure_check
from rtlang_grammars.lowering.structure_tables import StructureTables
from rtlang_grammars.lowering.tool_schemas import NewlyWidenedError, Widened, tools_in
from rtlang_grammars.machine.automaton.json_base_states import json_base_states
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus, Report, ReportBuilder, ReportEntry
from rtlang_grammars.schema.value_checks import ValueCheck, value_check
from rtlang_grammars.spec.canonical_json import canonical
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.structure_parts import AnyOf, Literal, Part
from rtlang_grammars.spec.structures import read_structure
from rtlang_grammars.spec.tokens import SpecialTokens

if TYPE_CHECKING:
    from rtlang_grammars.lowering.anywhere_tables import AnywhereTables

GRAMMARS = frozenset({ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF})
_FEW_STATES = 64
"""Regular grammars whose lexers have more states are not made one automaton: sets of tokens share masks there, states do not."""

_STATUS = {str(status): status for status in KeywordStatus}


@dataclass(frozen=True, slots=True)
class Built:
    """The result of one compile. Independent of any vocabulary.

    Attributes:
        tables: states, rows and actions of the grammar.
        start: the state at the start of the text.
        report: status of every keyword; None except for JSON Schema.
        check: the check that a finished text must still pass; None if the masks enforce everything.
    """

    tables: Tables
    start: int
    report: Report | None
    check: ValueCheck | StructureCheck | None

    def to_plain(self) -> dict[str, Any]:
        """All but the tables, as JSON data."""
        names = self.tables.has_distinct_names
        plain: dict[str, Any] = {"start": self.start, "is_checked": self.check is not None, "distinct_names": names}
        if isinstance(self.check, StructureCheck):
            plain["checked"] = sorted(self.check.checked)
        plain["token_sets"] = sorted(self.tables.token_sets)
        if self.report is not None:
            entries = [[each.pointer, each.keyword, str(each.status), each.reason] for each in self.report.entries]
            plain["report"] = [self.report.dialect, entries]
        return plain


@dataclass(frozen=True)
class Compilation:
    """The inputs of one compile.

    Attributes:
        options: how JSON schemas are read; None: the defaults.
        allow_checked: compile schemas with keywords that masks cannot enforce in full; `Built.check` must then pass as well.
        tokens: of the vocabulary; None: every token is taken for known.
    """

    constraint: Constraint
    options: SchemaOptions | None
    limits: Limits
    allow_checked: bool
    tokens: SpecialTokens | None = None

    @functools.cached_property
    def identity(self) -> str:
        """A text that differs between any two compiles whose tables may differ.

        It holds the canonical constraint, style, options and limits, and the tokens of the vocabulary if the constraint may name one.
        """
        constraint = canonical(self.constraint)
        options = self.options or SchemaOptions()
        parts = (
            replace(constraint, source="").to_plain(),
            [sorted(each) if isinstance(each, frozenset) else each for each in astuple(options)],
            astuple(replace(self.limits, max_seconds=0.0)),
            self.allow_checked,
            self.tokens.digest if self.tokens is not None and _may_name_tokens(constraint, self.tokens) else "",
        )
        return f"{json.dumps(parts)}\n{constraint.source}"

    @property
    def base_tables(self) -> Tables:
        """The base with which the tables of the constraint begin; shared, so do not modify it."""
        has_style = self.constraint.kind in (ConstraintKind.JSON_SCHEMA, ConstraintKind.STRUCTURE)
        return json_base_states(self.constraint.style if has_style else None).tables

    def new_tables(self) -> Tables:
        """Fresh tables that begin with the base and have a budget of their own."""
        return Tables(Budget(self.limits), self.base_tables)

    def from_plain(self, plain: dict[str, Any], tables: Tables) -> Built:
        """The inverse of `Built.to_plain`.

        Raises:
            KeyError, TypeError, ValueError: `plain` does not come from `to_plain`.
        """
        start, report = int(plain["start"]), plain.get("report")
        tables.token_sets = {tuple((int(low), int(high)) for low, high in each) for each in plain["token_sets"]}
        tables.has_distinct_names = bool(plain["distinct_names"])
        if report is not None:
            dialect, entries = report
            report = Report(dialect, _StoredReport(entries, plain["is_checked"]))
        check: ValueCheck | StructureCheck | None = None
        if plain["is_checked"]:
            if self.constraint.kind is ConstraintKind.STRUCTURE:
                part = read_structure(self.constraint.source)
                check = structure_check(part, map(str, plain["checked"]), self.options, self.tokens)
            else:
                check = value_check(json.loads(self.constraint.source), self.options)
        return Built(tables, start, report, check)


class _StoredReport(ReportBuilder):
    """The entries of a report as they were stored."""

    __slots__ = ("_stored",)

    def __init__(self, stored: list[list[str]], has_checked: bool) -> None:
        super().__init__()
        self._stored, self.has_checked = stored, has_checked

    def build(self) -> tuple[ReportEntry, ...]:
        """The entries of the report."""
        return tuple(
            ReportEntry(pointer, keyword, _STATUS[status], reason) for pointer, keyword, status, reason in self._stored
        )


def check_constraint(
    constraint: Constraint, limits: Limits | None = None, *, allow_checked: bool = True
) -> Report | None:
    """Check that a constraint can be compiled, which needs no vocabulary.

    Args:
        allow_checked: see `Compilation`.
    Returns:
        For a JSON Schema, the status of every keyword, those that must be checked after generation included; else None.
    Raises:
        GrammarError: it cannot be compiled for any vocabulary.
    """
    budget = Budget(limits)
    budget.check_source(constraint.source)
    if constraint.kind is ConstraintKind.LARK and constraint.lexer is not Lexer.ANYWHERE:
        is_lark = constraint.lexer is Lexer.LARK
        from rtlang_grammars.lowering.lexed_tables import LexedTables  # lark is imported where it is needed

        LexedTables(constraint.source, budget, is_lark=is_lark, indentation=constraint.indentation)
        return None
    compilation = Compilation(constraint, None, limits or Limits(), allow_checked)
    if constraint.kind in GRAMMARS:
        build_rules(compilation, budget)
        return None
    return build(compilation, budget).report


def build_rules(compilation: Compilation, budget: Budget) -> Built | AnywhereTables:
    """Lower a grammar without a lexer: to one automaton where it is regular and small, else to the tables of `machine.lexer_run`.

    Two other kinds of grammars get the tables of `build`, which make states on demand and join readings byte by byte: those whose
    terminals are too large, and those that ignore comments. Without a lexer a comment may end before any of its words. (C with comments:
    6 ms a mask there, minutes with a tree of terminals.)

    Raises:
        GrammarError: as `build`.
    """
    from rtlang_grammars.lowering.anywhere_tables import AnywhereTables  # it imports lark

    cfg, ignored = _read_rules(compilation.constraint, budget, compilation.tokens, may_have_options=True)
    if cfg.has_options:
        return AnywhereTables(cfg, budget)
    whole = with_ignored(cfg, ignored)
    language = regular_languages(whole, budget).get(whole.start)
    try:
        tables = AnywhereTables(cfg, budget.renewed(), ignored)
        if not tables.may_ignore_anything and (language is None or tables.num_rows > _FEW_STATES):
            return tables
    except GrammarError:
        budget.check()
    return Built(*_grammar_tables(whole, language, budget), None, None)


def build(compilation: Compilation, budget: Budget) -> Built:
    """Lower a constraint to tables.

    Raises:
        GrammarError: the constraint is malformed, not supported or exceeds the budget.
    """
    constraint, options, allow_checked = compilation.constraint, compilation.options, compilation.allow_checked
    tokens = compilation.tokens
    report: Report | None = None
    check: ValueCheck | StructureCheck | None = None
    reading = replace(options or SchemaOptions(), loose_formats=True) if allow_checked else options
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA:
            schema = _schema(constraint.source)
            graph = compile_shapes(schema, options=reading, budget=budget)
            report = graph.report
            if not report.is_exact:
                if not allow_checked:
                    report.refuse_checked()
                check = value_check(schema, options)
            build = ShapeTables(graph, budget, constraint.style)
            start = build.build()
            tables = build.tables
        case ConstraintKind.REGEX:
            language = compile_regex(constraint.source, dialect="python", budget=budget)
            tables, start = _language_tables(language, budget)
        case ConstraintKind.CHOICE:
            tables, start = _choice_tables(constraint.source, budget, tokens)
        case ConstraintKind.LARK | ConstraintKind.GBNF | ConstraintKind.EBNF:
            cfg = with_ignored(*_read_rules(constraint, budget, tokens))
            tables, start = _grammar_tables(cfg, regular_languages(cfg, budget).get(cfg.start), budget)
        case ConstraintKind.STRUCTURE:
            part = read_structure(constraint.source)
            start, built = _structure_tables(
                part, budget, constraint.style, reading, tokens, allow_checked=allow_checked
            )
            tables, report = built.tables, built.report
            if built.checked:
                check = structure_check(part, built.checked, options, tokens)
    return Built(tables, start, report, check)


def _structure_tables(
    part: Part,
    budget: Budget,
    style: JsonStyle,
    options: SchemaOptions | None = None,
    tokens: SpecialTokens | None = None,
    *,
    allow_checked: bool = False,
) -> tuple[int, StructureTables]:
    """Build the tables of a structure; returns the start state, too.

    Args:
        allow_checked: keywords that masks cannot enforce are allowed, and schemas of tools that cannot be compiled are widened.
    Raises:
        GrammarError: a part cannot be compiled; the location begins with its JSON pointer, or names the tool.
    """
    widened: Widened = {}
    num_over = 0
    while True:
        built = StructureTables(budget, style, options, tokens, allow_checked=allow_checked, widened=widened)
        try:
            return built.build(part), built
        except NewlyWidenedError as error:
            num_over += error.is_over
            widens_all = num_over > 1
        except GrammarError:
            budget.raise_if_cancelled()
            widens_all = (
                allow_checked
                and budget.is_over
                and any(widened.get(each, frozenset()) is not None for each in tools_in(part))
            )
            if not widens_all:
                raise
        if widens_all:  # no tool alone is too large, but all of them together
            widened |= dict.fromkeys(tools_in(part))
        budget.restart()


def _language_tables(language: Language, budget: Budget) -> tuple[Tables, int]:
    if language.is_empty(budget):
        raise GrammarError("the pattern matches no string")
    tables = Tables(budget, json_base_states().tables)
    return tables, Embedding(tables, language.automaton(budget), is_everything=True).start(is_called=False)


def _grammar_tables(cfg: Cfg, language: Language | None, budget: Budget) -> tuple[Tables, int]:
    """The tables of a grammar. language: that of its start rule, if it is regular."""
    if language is not None:  # one automaton, however ambiguous the rules are
        return _language_tables(language, budget)
    grammar, tables = NumberedRules(), Tables(budget, json_base_states().tables)
    grammar.start = grammar.add(without_left_recursion(cfg, budget), tables, budget)
    return tables, GrammarTables(grammar, tables, budget).build()


def _read_rules(
    constraint: Constraint, budget: Budget, tokens: SpecialTokens | None, *, may_have_options: bool = False
) -> tuple[Cfg, Sequence[Terminal]]:
    """A grammar without a lexer (GBNF, EBNF, or Lark with `Lexer.ANYWHERE`) and the terminals that it ignores.

    Raises:
        GrammarError: as `read_lark` and `read_gbnf`.
    """
    if constraint.kind is ConstraintKind.LARK:
        from rtlang_grammars.context_free.lark_reader import read_lark_apart  # lark is imported where it is needed

        return read_lark_apart(constraint.source, budget=budget, tokens=tokens)
    notation = GrammarNotation.GBNF if constraint.kind is ConstraintKind.GBNF else GrammarNotation.W3C
    cfg = read_gbnf(
        constraint.source, notation=notation, budget=budget, tokens=tokens, may_have_options=may_have_options
    )
    return cfg, ()


def _choice_tables(source: str, budget: Budget, tokens: SpecialTokens | None) -> tuple[Tables, int]:
    choices = parsed(source)
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise GrammarError("choices: expected a JSON array of at least one string", "#")
    try:
        texts = sorted({choice.encode() for choice in choices})
    except UnicodeEncodeError as error:
        raise GrammarError("a choice contains a lone surrogate, which cannot be encoded") from error
    if tokens is not None and any(tokens.name_in(choice) for choice in choices):
        structure = StructureTables(budget, JsonStyle(), tokens=tokens)
        start = structure.build(AnyOf(tuple(Literal(choice) for choice in choices)))
        return structure.tables, start
    build = ShapeTables.empty(budget)
    return build.tables, build.add_trie(texts)


def _may_name_tokens(constraint: Constraint, tokens: SpecialTokens) -> bool:
    """Whether the tables of a constraint depend on the tokens of a vocabulary; True may mean unknown."""
    source = constraint.source
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA | ConstraintKind.REGEX:
            return False
        case kind if kind in GRAMMARS:
            return "<" in source or "\\" in source or tokens.name_in(source) is not None
    waiting = [parsed(source)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and tokens.name_in(part) is not None:
            return True
        if isinstance(part, dict):
            inner = str(part.get("source")) if part.get("kind") in (*GRAMMARS, ConstraintKind.CHOICE) else ""
            if "token" in part or "<" in inner or "\\" in inner:
                return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False


def _schema(source: str) -> Any:
    schema = parsed(source)
    if not isinstance(schema, dict | bool):
        raise GrammarError("schema: expected a JSON object or a boolean", "#")
    return schema
