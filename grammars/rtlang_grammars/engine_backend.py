"""Our own engine behind the protocols of `spec.py`: every kind of constraint becomes tables of one machine.

See `machine/` for the tables, the masks and the matcher, `schema/` for what a JSON Schema means, and `regular/` for patterns.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from rtlang_grammars.context_free.cfg import Cfg
from rtlang_grammars.context_free.folding import regular_languages
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.grammar_store import Built, Compilation, GrammarStore
from rtlang_grammars.json_source import parsed
from rtlang_grammars.limits import Budget, Limits
from rtlang_grammars.machine.cfg import GrammarTables
from rtlang_grammars.machine.completion import Completion
from rtlang_grammars.machine.denied import clear
from rtlang_grammars.machine.embedding import Embedding
from rtlang_grammars.machine.engine import Engine
from rtlang_grammars.machine.forcing import ForcedText
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.json_values import ShapeTables
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.prelude import prelude
from rtlang_grammars.machine.rules import Grammar
from rtlang_grammars.machine.structure_tables import StructureTables
from rtlang_grammars.machine.tables import Tables
from rtlang_grammars.regular.formats import format_language
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.options import SchemaOptions
from rtlang_grammars.schema.report import Report
from rtlang_grammars.spec import Constraint, ConstraintKind, GrammarError
from rtlang_grammars.spelling import TokenTable
from rtlang_grammars.structures import read_structure
from rtlang_grammars.value_checks import ValueCheck, value_check
from rtlang_grammars.vocabulary import Vocabulary

_WARM_UP = """{"type": "object", "required": ["a", "b", "c", "d"], "properties": {"a": {"enum": ["x", "y"]},
    "b": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1},
    "c": {"type": "string", "pattern": "^[^0-9](b.*)?$"}, "d": {"type": "string", "pattern": "^(?!lucene[.]).*$"}}}"""


_USUAL_FORMATS = (
    "uri",
    "uri-reference",
    "uri-template",
    "date-time",
    "date",
    "time",
    "email",
    "uuid",
    "hostname",
    "ipv4",
)
_EXPLORED_STATES = 400


class EngineBackend:
    """Compiles constraints with our own engine. Immutable after `create`; safe to use from several threads.

    Attributes:
        store: where grammars are looked for before they are compiled, and kept; None: nowhere.
    """

    def __init__(
        self,
        engine: Engine,
        limits: Limits | None = None,
        *,
        schema_options: SchemaOptions | None = None,
        allow_checked: bool = False,
        store: GrammarStore | None = None,
        table: TokenTable | None = None,
    ) -> None:
        """Put a vocabulary to use.

        Args:
            schema_options: how JSON schemas are read.
            allow_checked: compile schemas with keywords that masks cannot hold in full: whoever follows the matchers then has to put
                finished values to `EngineGrammar.value_check`. False: such schemas are refused.
            store: see the class.
            table: of the vocabulary, where it has been made (which takes 0.1 s).
        """
        self._engine, self._limits = engine, limits or Limits()
        self._schema_options, self._allow_checked, self.store = schema_options, allow_checked, store
        self._table = table or TokenTable(engine.vocabulary)
        self._forcing = ForcedText(engine.vocabulary, engine.trie, self._table)

    @classmethod
    def create(
        cls,
        vocabulary: Vocabulary,
        cache_dir: Path | None = None,
        limits: Limits | None = None,
        *,
        allow_checked: bool = False,
        store: GrammarStore | None = None,
    ) -> EngineBackend:
        """Index the vocabulary, or read the index from the cache on disk, and have all code ready.

        Code that is not in the cache on disk is compiled, which takes up to a minute, unless it is interpreted (`machine.compiled`).
        """
        engine, table = Engine(vocabulary, cache_dir), TokenTable(vocabulary)
        # Code that is compiled meanwhile takes longer than any grammar may.
        cls(engine, Limits(max_seconds=600.0), table=table)._warm_up()
        return cls(engine, limits, allow_checked=allow_checked, store=store, table=table)

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> EngineGrammar:
        """See `GrammarBackend.compile`."""
        budget = Budget(self._limits, is_unwanted)
        budget.check()
        budget.check_source(constraint.source)
        store = self.store
        compilation = Compilation(constraint, self._schema_options, self._limits, self._allow_checked)
        built = None if store is None else store.find(compilation, budget)
        is_new, started = built is None, time.thread_time()
        if built is None:
            built = _built(constraint, budget, self._schema_options, allow_checked=self._allow_checked)
        built.tables.publish()
        budget.detach()
        if store is not None and is_new and time.thread_time() - started >= store.min_seconds:
            store.keep(compilation, built)  # other threads may use the tables from now on
        machine = MachineGrammar(self._engine, built.tables, built.start)
        return EngineGrammar(machine, self._forcing, self._table, built.report, built.check)

    def _warm_up(self) -> None:
        """Pass once through everything that numba compiles, and work out what is kept of formats: some 100 ms."""
        for name in _USUAL_FORMATS:
            language = format_language(name)
            assert language is not None
            with contextlib.suppress(GrammarError):  # no time left: then the texts that need it work it out
                language.explore(_EXPLORED_STATES, Budget(self._limits))
        grained, no_ids = self._engine.grained[0], self._engine.no_ids
        grained.tokens(no_ids)
        grained.mask(no_ids)
        clear(no_ids, self._engine.no_tokens.copy())
        matcher = self.compile(Constraint(ConstraintKind.JSON_SCHEMA, _WARM_UP)).matcher()
        row = np.empty(self._engine.num_words, dtype=np.int32)
        for token_id in matcher.shortest_completion(self._engine.vocabulary.vocab_size) or ():
            matcher.fill_bitmask(row)
            matcher.forced_bytes()
            matcher.accept_token(token_id)
            matcher.completes(())


class EngineGrammar:
    """A compiled constraint; see `CompiledGrammar`.

    Attributes:
        report: what became of every keyword; None but for JSON Schema.
        value_check: what a finished text must still pass; None where the masks hold everything.
        machine: the tables and masks.
    """

    def __init__(
        self,
        machine: MachineGrammar,
        forcing: ForcedText,
        table: TokenTable,
        report: Report | None = None,
        value_check: ValueCheck | None = None,
    ) -> None:
        self.machine, self.report, self.value_check = machine, report, value_check
        self._completion = Completion(machine)
        self._forcing, self._table = forcing, table

    @property
    def size_bytes(self) -> int:
        """Memory held by tables, and what the masks may come to hold."""
        return self.machine.size_bytes

    def matcher(self) -> MachineMatcher:
        """A fresh matcher at the start of the text."""
        return MachineMatcher(self.machine, self._completion, self._forcing, self._table)


def check_constraint(constraint: Constraint, limits: Limits | None = None) -> None:
    """See whether a constraint can be compiled, for which no vocabulary is needed.

    Raises:
        GrammarError: it cannot, whatever the vocabulary.
    """
    budget = Budget(limits)
    budget.check_source(constraint.source)
    _built(constraint, budget, None, allow_checked=True)


def _built(constraint: Constraint, budget: Budget, options: SchemaOptions | None, *, allow_checked: bool) -> Built:
    """The tables of a constraint. `allow_checked` as in `EngineBackend`."""
    report: Report | None = None
    check: ValueCheck | None = None
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA:
            schema = _schema(constraint.source)
            reading = replace(options or SchemaOptions(), loose_formats=True) if allow_checked else options
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
            tables, start = _choice_tables(constraint.source, budget)
        case ConstraintKind.LARK:
            tables, start = _grammar_tables(read_lark(constraint.source, budget=budget), budget)
        case ConstraintKind.GBNF:
            tables, start = _grammar_tables(read_gbnf(constraint.source, budget=budget), budget)
        case ConstraintKind.EBNF:
            tables, start = _grammar_tables(read_gbnf(constraint.source, notation="w3c", budget=budget), budget)
        case ConstraintKind.STRUCTURE:
            structure = StructureTables(budget, constraint.style, options)
            start, tables, report = (
                structure.build(read_structure(constraint.source)),
                structure.tables,
                structure.report,
            )
    return Built(tables, start, report, check)


def _language_tables(language: Language, budget: Budget) -> tuple[Tables, int]:
    if language.is_empty(budget):
        raise GrammarError("no text matches the pattern")
    tables = Tables(budget, prelude().tables)
    return tables, Embedding(tables, language.automaton(budget), is_everything=True).start(is_called=False)


def _grammar_tables(cfg: Cfg, budget: Budget) -> tuple[Tables, int]:
    language = regular_languages(cfg, budget).get(cfg.start)
    if language is not None:  # one automaton, however ambiguous the rules are
        return _language_tables(language, budget)
    grammar, tables = Grammar(), Tables(budget, prelude().tables)
    grammar.start = grammar.add(without_left_recursion(cfg, budget), budget)
    return tables, GrammarTables(grammar, tables, budget).build()


def _choice_tables(source: str, budget: Budget) -> tuple[Tables, int]:
    choices = parsed(source)
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise GrammarError("the choices must be a JSON array of at least one string", "#")
    try:
        texts = sorted({choice.encode() for choice in choices})
    except UnicodeEncodeError as error:
        raise GrammarError("a choice holds a lone surrogate, which no text can") from error
    build = ShapeTables.empty(budget)
    return build.tables, build.add_trie(texts)


def _schema(source: str) -> Any:
    schema = parsed(source)
    if not isinstance(schema, dict | bool):
        raise GrammarError("a schema must be a JSON object or a boolean", "#")
    return schema
