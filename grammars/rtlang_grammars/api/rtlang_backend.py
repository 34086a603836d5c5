"""The backend `rtlang`: compiles every kind of constraint to tables of one machine.

`lowering` builds the tables, `machine` walks them, `storage` keeps them on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event

import numpy as np

from rtlang_grammars.completion.completion_path import TokenTable
from rtlang_grammars.completion.forced_text import ForcedText
from rtlang_grammars.lowering.compilation import GRAMMARS, Built, Compilation, build, build_rules
from rtlang_grammars.lowering.languages.usual_formats import explore_usual_formats
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.lexed.anywhere_grammar import AnywhereCompletion, AnywhereGrammar
from rtlang_grammars.machine.lexed.lexed_completion import LexedCompletion
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.machine.matcher import Completion, MachineMatcher
from rtlang_grammars.machine.native import native_code
from rtlang_grammars.machine.table_completion import TableCompletion
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.machine.token_readings import ReadingsCompletion, TokenReadings, names_ordinary_tokens
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import EmptyMaskError, GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.protocols import TextCheck
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.array_file import ArrayFiles
from rtlang_grammars.storage.grammar_store import GrammarStore


class RtlangBackend:
    """Compiles constraints for one vocabulary. Immutable after `create`; safe to use from several threads.

    Attributes:
        store: where compiled grammars are looked up and kept; None: nowhere.
    """

    def __init__(
        self,
        index: VocabularyIndex,
        limits: Limits | None = None,
        *,
        schema_options: SchemaOptions | None = None,
        allow_checked: bool = False,
        store: GrammarStore | None = None,
        table: TokenTable | None = None,
    ) -> None:
        """Bind a vocabulary index.

        Args:
            schema_options: how JSON schemas are read.
            allow_checked: True: schemas with keywords that masks cannot enforce in full are compiled, also those in structures, schemas of
                tools that cannot be compiled are replaced by wider ones, and the caller runs `RtlangGrammar.value_check` on finished texts.
                False: such schemas are refused.
            store: see the class.
            table: the token table of the vocabulary, if it already exists (building it takes 0.1 s).
        """
        self._index, self._limits = index, limits or Limits()
        self._schema_options, self._allow_checked, self.store = schema_options, allow_checked, store
        self._table = table or TokenTable(index.vocabulary)
        self._forcing = ForcedText(index.vocabulary, index.trie.order[: index.trie.num_texts], self._table)
        self._spells_all = _has_all_bytes(index)

    @classmethod
    def create(
        cls,
        vocabulary: Vocabulary,
        cache_dir: Path | None = None,
        limits: Limits | None = None,
        *,
        allow_checked: bool = False,
        store: GrammarStore | None = None,
    ) -> RtlangBackend:
        """Index the vocabulary, or read the index from the cache on disk, and load the native code that JSON schemas need.

        Native code that is not on disk is compiled, which takes some seconds, unless it is interpreted (`machine.native.native_code`). The
        code of lexers is loaded or compiled with the first grammar that has one.
        """
        native_code.prepare(native_code.TABLES)
        explore_usual_formats(Limits(max_seconds=600.0))
        index, table = VocabularyIndex(vocabulary, ArrayFiles(cache_dir)), TokenTable(vocabulary)
        return cls(index, limits, allow_checked=allow_checked, store=store, table=table)

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> RtlangGrammar:
        """Compile a constraint.

        Args:
            is_unwanted: may be set from any thread to stop the compile.
        Raises:
            GrammarError: the constraint is malformed, too large or not supported; or the compile was stopped.
        """
        budget = Budget(self._limits, is_unwanted)
        budget.check()
        budget.check_source(constraint.source)
        store = self.store
        tokens = self._index.vocabulary.tokens
        compilation = Compilation(constraint, self._schema_options, self._limits, self._allow_checked, tokens)
        if constraint.kind is ConstraintKind.LARK and constraint.lexer is not Lexer.ANYWHERE:
            native_code.prepare(native_code.LEXER)  # before its budget of time begins
            return self._compile_lexed(compilation, Budget(self._limits, is_unwanted))
        is_grammar, started = constraint.kind in GRAMMARS, time.thread_time()
        built: Built | BoundTables | None = None
        if store is not None:
            built = (
                store.find_rules(compilation, self._built_again(compilation)) if is_grammar else store.find(compilation)
            )
        is_new = built is None
        if built is None:
            built = build_rules(compilation, budget) if is_grammar else build(compilation, budget)
        if not isinstance(built, Built):
            if store is not None and not built.reports:
                store.keep_lexed(compilation, built, is_new=is_new)
            native_code.prepare(native_code.LEXER)
            rules = AnywhereGrammar(self._index, built, machine=self._as_machine(compilation))
            budget.detach()
            found = RtlangGrammar(rules, AnywhereCompletion(rules), self._forcing, self._table)
            self._check_start(found)
            return found
        built.tables.publish()
        budget.detach()
        if store is not None and is_new and time.thread_time() - started >= store.min_seconds:
            store.put(compilation, built)  # from here on other threads may use the tables
        machine = MachineGrammar(self._index, built.tables, built.start)
        found = RtlangGrammar(machine, TableCompletion(machine), self._forcing, self._table, built.report, built.check)
        self._check_start(found)
        return found

    def _as_machine(self, compilation: Compilation) -> Callable[[], MachineGrammar]:
        def compiled() -> MachineGrammar:
            built = build(compilation, Budget(self._limits))
            built.tables.publish()
            return MachineGrammar(self._index, built.tables, built.start)

        return compiled

    def _built_again(self, compilation: Compilation) -> Callable[[], BoundTables]:
        def compiled() -> BoundTables:
            built = build_rules(compilation, Budget(self._limits))
            if isinstance(built, Built):
                raise GrammarError("too complex: the grammar takes longer to compile than before")
            return built

        return compiled

    def _compile_lexed(self, compilation: Compilation, budget: Budget) -> RtlangGrammar:
        """A Lark grammar with a lexer."""
        from rtlang_grammars.lowering.lexed_tables import LexedTables  # lark is imported where it is needed

        def compiled(budget: Budget | None = None) -> LexedTables:
            constraint = compilation.constraint
            return LexedTables(
                constraint.source,
                budget or Budget(self._limits),
                is_lark=constraint.lexer is Lexer.LARK,
                tokens=compilation.tokens,
                indentation=constraint.indentation,
            )

        tables = None if self.store is None else self.store.find_lexed(compilation, compiled)
        is_new = tables is None
        if tables is None:
            tables = compiled(budget)
        if self.store is not None and not tables.reports:
            self.store.keep_lexed(compilation, tables, is_new=is_new)
        grammar = LexedGrammar(self._index, tables)
        budget.check()
        budget.detach()
        found = RtlangGrammar(grammar, LexedCompletion(grammar), self._forcing, self._table)
        self._check_start(found)
        if is_new:  # the first mask may join contexts, which are stored, too
            with suppress(GrammarError):
                grammar.mask(grammar.start_place.configuration)
        return found

    def _check_start(self, grammar: RtlangGrammar) -> None:
        """Refuse a constraint if no token begins any of its texts."""
        if self._spells_all:
            return
        try:
            grammar.matcher().fill_bitmask(np.empty(self._index.num_words, dtype=np.int32))
        except EmptyMaskError as error:
            raise GrammarError(f"no token of the vocabulary begins a text of the constraint: {error.cause}") from None


def has_lexer(constraint: Constraint) -> bool:
    """Whether a constraint is a grammar, which runs on the code of lexers unless it turns out to be regular."""
    return constraint.kind in GRAMMARS


def _has_all_bytes(index: VocabularyIndex) -> bool:
    """Whether each byte of UTF-8 is a token, so that all texts can be spelled."""
    trie = index.trie
    singles = trie.data[trie.offsets[:-1][np.diff(trie.offsets) == 1]]
    return np.isin(_UTF8_BYTES, singles).all().item()


_UTF8_BYTES = np.array([*range(0xC0), *range(0xC2, 0xF5)], dtype=np.uint8)


class RtlangGrammar:
    """A compiled constraint; see `CompiledGrammar`.

    Attributes:
        report: status of every keyword; None except for JSON Schema.
        value_check: the check that finished texts must pass; None if the masks enforce everything.
    """

    def __init__(
        self,
        machine: MachineGrammar | LexedGrammar | AnywhereGrammar,
        completion: Completion,
        forcing: ForcedText,
        table: TokenTable,
        report: Report | None = None,
        value_check: TextCheck | None = None,
    ) -> None:
        self.report, self.value_check = report, value_check
        self._pair: tuple[MachineGrammar | LexedGrammar | AnywhereGrammar, Completion] = (
            machine,
            completion,
        )  # exchanged together
        self._forcing, self._table = forcing, table
        token_sets = machine.tables.token_sets
        self._has_readings = bool(token_sets) and names_ordinary_tokens(machine.index, token_sets)
        if isinstance(machine, LexedGrammar | AnywhereGrammar):
            self._counts_tokens = machine.has_budgets
        else:
            self._counts_tokens = isinstance(machine, MachineGrammar) and bool(machine.tables.token_bounds)
        has_reports = isinstance(machine, LexedGrammar | AnywhereGrammar) and machine.tables.reports
        if self._has_readings and has_reports:
            raise GrammarError(
                "ordinary tokens by id are not supported together with capture, temperature, max_tokens and stop: name special tokens only"
            )
        self._readings: TokenReadings | None = None

    @property
    def machine(self) -> MachineGrammar | LexedGrammar | AnywhereGrammar:
        """The tables and masks."""
        return self._pair[0]

    @property
    def size_bytes(self) -> int:
        """Memory held by the tables and the cached masks."""
        return self.machine.size_bytes

    def matcher(self) -> MachineMatcher:
        """A new matcher at the start of the text."""
        worn = self.machine  # earlier matchers go on with what they have
        if isinstance(worn, LexedGrammar) and worn.is_worn:
            lexed = worn.renewed()
            self._pair = lexed, LexedCompletion(lexed)
        elif isinstance(worn, AnywhereGrammar) and worn.is_worn:
            rules = worn.renewed()
            self._pair = rules, AnywhereCompletion(rules)
        machine, completion = self._pair
        if not self._has_readings:
            return MachineMatcher(machine, completion, self._forcing, self._table, reads_ids=self._counts_tokens)
        readings = self._readings
        if readings is None or readings.grammar is not machine:
            readings = self._readings = TokenReadings(machine, machine.tables.token_sets)
        return MachineMatcher(readings, ReadingsCompletion(completion), self._forcing, self._table, reads_ids=True)
