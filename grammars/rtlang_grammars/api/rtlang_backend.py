"""The backend `rtlang`: compiles every kind of constraint to tables of one machine.

`lowering` builds the tables, `machine` walks them, `storage` keeps them on disk.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from threading import Event

import numpy as np

from rtlang_grammars.completion.completion_path import TokenTable
from rtlang_grammars.completion.forced_text import ForcedText
from rtlang_grammars.lowering.compilation import Compilation, build
from rtlang_grammars.lowering.languages.usual_formats import explore_usual_formats
from rtlang_grammars.machine.batch import fill_batch
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.lexer_run.lexed_completion import LexedCompletion
from rtlang_grammars.machine.lexer_run.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.matcher import Completion, MachineMatcher
from rtlang_grammars.machine.string_masks import clear
from rtlang_grammars.machine.table_completion import TableCompletion
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.machine.token_readings import ReadingsCompletion, TokenReadings, names_ordinary_tokens
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.protocols import TextCheck
from rtlang_grammars.spec.structures import raw_text, sequence
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.array_file import ArrayFiles
from rtlang_grammars.storage.grammar_store import GrammarStore

_WARM_UP = """{"type": "object", "required": ["a", "b", "c", "d"], "properties": {"a": {"enum": ["x", "y"]},
    "b": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1},
    "c": {"type": "string", "pattern": "^[^0-9](b.*)?$"}, "d": {"type": "string", "pattern": "^(?!lucene[.]).*$"}}}"""

_LEXED_WARM_UP = 'start: A B\nA: /a+/\nB: "b"i\n'


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

        Native code that is not cached is compiled, which takes ten seconds or more, unless it is interpreted
        (`machine.native.native_code`). The code of lexers is loaded or compiled with the first grammar that has one (`load_lexer`).
        """
        index, table = VocabularyIndex(vocabulary, ArrayFiles(cache_dir)), TokenTable(vocabulary)
        # Compiling native code takes longer than any grammar is allowed to take.
        cls(index, Limits(max_seconds=600.0), table=table)._warm_up()
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
        if has_lexer(constraint):
            self.load_lexer()
            return self._compile_lexed(compilation, Budget(self._limits, is_unwanted))
        built = None if store is None else store.find(compilation)
        is_new, started = built is None, time.thread_time()
        if built is None:
            built = build(compilation, budget)
        built.tables.publish()
        budget.detach()
        if store is not None and is_new and time.thread_time() - started >= store.min_seconds:
            store.put(compilation, built)  # from here on other threads may use the tables
        machine = MachineGrammar(self._index, built.tables, built.start)
        return RtlangGrammar(machine, TableCompletion(machine), self._forcing, self._table, built.report, built.check)

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
        if tables is None:
            tables = compiled(budget)
            if self.store is not None and not tables.reports:
                self.store.put_lexed(compilation, tables)
        grammar = LexedGrammar(self._index, tables)
        budget.check()
        budget.detach()
        return RtlangGrammar(grammar, LexedCompletion(grammar), self._forcing, self._table)

    def _warm_up(self) -> None:
        """Run every compiled function once, and explore usual formats: about 100 ms."""
        explore_usual_formats(self._limits)
        coarse_trie, no_ids = self._index.coarse_tries[0], self._index.no_ids
        coarse_trie.tokens(no_ids)
        coarse_trie.mask(no_ids)
        clear(no_ids, self._index.no_tokens.copy())
        row = np.empty(self._index.num_words, dtype=np.int32)
        raw = sequence("<", raw_text({"minLength": 2, "maxLength": 4, "type": "string"}, excludes=[">"]), ">")
        for constraint in (Constraint(ConstraintKind.JSON_SCHEMA, _WARM_UP), raw):
            matcher = self.compile(constraint).matcher()
            for token_id in matcher.shortest_completion(self._index.vocabulary.vocab_size) or ():
                matcher.fill_bitmask(row)
                matcher.forced_bytes()
                matcher.accept_token(token_id)
                matcher.completes(())
        fill_batch([matcher], row.reshape(1, -1))

    def load_lexer(self) -> None:
        """Load or compile the native code of lexers, which takes half a minute if it is not cached; once per process."""
        _load_lexer(self._index)


def has_lexer(constraint: Constraint) -> bool:
    """Whether a constraint is a grammar with a lexer."""
    return constraint.kind is ConstraintKind.LARK and constraint.lexer is not Lexer.ANYWHERE


_loading = threading.Lock()
_has_loaded_lexer = False


def _load_lexer(index: VocabularyIndex) -> None:
    global _has_loaded_lexer
    if _has_loaded_lexer:
        return
    with _loading:
        if not _has_loaded_lexer:
            # Compiling native code takes longer than any grammar is allowed to take.
            backend = RtlangBackend(index, Limits(max_seconds=600.0))
            warm_up = Compilation(Constraint(ConstraintKind.LARK, _LEXED_WARM_UP), None, backend._limits, False)
            grammar = backend._compile_lexed(warm_up, Budget(backend._limits))
            grammar.matcher().fill_bitmask(np.empty(index.num_words, dtype=np.int32))
            _has_loaded_lexer = True


class RtlangGrammar:
    """A compiled constraint; see `CompiledGrammar`.

    Attributes:
        report: status of every keyword; None except for JSON Schema.
        value_check: the check that finished texts must pass; None if the masks enforce everything.
    """

    def __init__(
        self,
        machine: MachineGrammar | LexedGrammar,
        completion: Completion,
        forcing: ForcedText,
        table: TokenTable,
        report: Report | None = None,
        value_check: TextCheck | None = None,
    ) -> None:
        self.report, self.value_check = report, value_check
        self._pair: tuple[MachineGrammar | LexedGrammar, Completion] = (machine, completion)  # exchanged together
        self._forcing, self._table = forcing, table
        token_sets = machine.tables.token_sets
        self._has_readings = bool(token_sets) and names_ordinary_tokens(machine.index, token_sets)
        if isinstance(machine, LexedGrammar):
            self._counts_tokens = machine.has_budgets
        else:
            self._counts_tokens = bool(machine.tables.token_bounds)
        if self._has_readings and isinstance(machine, LexedGrammar) and machine.tables.reports:
            raise GrammarError(
                "ordinary tokens by id are not supported together with capture, temperature, max_tokens and stop: name special tokens only"
            )
        self._readings: TokenReadings | None = None

    @property
    def machine(self) -> MachineGrammar | LexedGrammar:
        """The tables and masks."""
        return self._pair[0]

    @property
    def size_bytes(self) -> int:
        """Memory held by the tables and the cached masks."""
        return self.machine.size_bytes

    def matcher(self) -> MachineMatcher:
        """A new matcher at the start of the text."""
        if (
            isinstance(self.machine, LexedGrammar) and self.machine.is_worn
        ):  # earlier matchers go on with what they have
            renewed = self.machine.renewed()
            self._pair = renewed, LexedCompletion(renewed)
        machine, completion = self._pair
        if not self._has_readings:
            return MachineMatcher(machine, completion, self._forcing, self._table, reads_ids=self._counts_tokens)
        readings = self._readings
        if readings is None or readings.grammar is not machine:
            readings = self._readings = TokenReadings(machine, machine.tables.token_sets)
        return MachineMatcher(readings, ReadingsCompletion(completion), self._forcing, self._table, reads_ids=True)
