"""Grammars with a lexer as flat arrays and plain data: `dump`, and `StoredTables`, which are made from that.

Stored tables know the contexts that were compiled or joined. Where parser stacks meet whose contexts were never joined, the grammar is
compiled after all, and the stored joins are made again in the same order, so all numbers are the same. Then it is stored again with the
new join (`GrammarStore.keep_lexed`), so that few processes compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexer_run.lexer_layout import Ints, LexerArrays, ParserArrays
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables, LexerStates, RuleReports, Rules

Arrays: TypeAlias = Sequence[NDArray[Any]]

_AUTOMATON = ("following", "winners", "num_behind")
_RULES = ("gotos", "heads", "sizes", "symbols", "kernels")
_COUNTS = ("num_classes", "end_class", "class_sizes")
_TYPES = ("int32", "int64", "uint8")


def dump(tables: BoundTables) -> tuple[dict[str, Any], list[Ints]]:
    """Tables as JSON data and int32 arrays."""
    automaton, rules = tables.automaton, tables.rules
    arrays: list[NDArray[Any]] = [
        *tables.parser,
        *tables.lexer,
        *(getattr(automaton, name) for name in _AUTOMATON),
        *(getattr(rules, name) for name in _RULES),
        np.array(automaton.is_start, dtype=np.int32),
    ]
    plain = {
        "arrays": [[_TYPES.index(str(each.dtype)), *each.shape] for each in arrays],
        "ignored": sorted(tables.ignored),
        "num_terminals": tables.num_terminals,
        "token_sets": sorted(tables.token_sets),
        "joined": tables.joined,
        "start_head": rules.start_head,
        "pending": [[state, sorted(each)] for state, each in enumerate(automaton.pending) if each],
        "first_bytes": [each.decode("latin-1") for each in automaton.first_bytes],
        **{name: getattr(automaton, name) for name in _COUNTS},
    }
    return plain, [_as_ints(each) for each in arrays]


def _as_ints(array: NDArray[Any]) -> Ints:
    """A copy that later joins of contexts do not change."""
    flat = array.reshape(-1)
    return flat.view(np.int32).copy() if flat.dtype == np.int64 else flat.astype(np.int32)


def _restored(kind: int, shape: list[int], data: Ints) -> NDArray[Any]:
    flat = data.view(np.int64) if _TYPES[kind] == "int64" else data.astype(_TYPES[kind])
    if len(flat) != np.prod(shape, dtype=np.int64):
        raise ValueError("the shape of an array differs from the stored one")
    return flat.reshape(shape).copy()  # compiled code would be compiled again for arrays that cannot be written to


@dataclass(slots=True, eq=False)
class _StoredAutomaton:
    """See `machine.lexer_run.lexer_tables.LexerStates`."""

    num_classes: int
    end_class: int
    class_sizes: list[int]
    first_bytes: list[bytes]
    following: Ints
    winners: Ints
    num_behind: Ints
    is_start: list[bool]
    pending: list[frozenset[tuple[int, int]]]
    expiries: list[tuple[int, int]]


@dataclass(eq=False)
class _StoredRules:
    """See `machine.lexer_run.lexer_tables.Rules`."""

    gotos: Ints
    heads: Ints
    sizes: Ints
    symbols: Ints
    kernels: Ints
    start_head: int

    @cached_property
    def rule_symbols(self) -> list[tuple[int, ...]]:
        """For each rule its symbols."""
        ends = np.cumsum(self.sizes).tolist()
        symbols = self.symbols.tolist()
        return [tuple(symbols[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True)]


class StoredTables:
    """See `machine.lexer_run.lexer_tables.BoundTables`. Used like those, by one thread at a time."""

    def __init__(self, plain: dict[str, Any], arrays: Sequence[Ints], compiled: Callable[[], BoundTables]) -> None:
        """Restore dumped tables.

        Args:
            compiled: compiles the grammar.
        Raises:
            ValueError, KeyError, TypeError, IndexError: the data does not come from `dump`.
        """
        if len(plain["arrays"]) != len(arrays):
            raise ValueError("the number of arrays differs from the stored one")
        found = [_restored(kind, shape, data) for (kind, *shape), data in zip(plain["arrays"], arrays, strict=True)]
        num_parser, num_lexer = len(ParserArrays._fields), len(LexerArrays._fields)
        self.parser, self.lexer = (
            ParserArrays(*found[:num_parser]),
            LexerArrays(*found[num_parser : num_parser + num_lexer]),
        )
        following, winners, num_behind, *of_rules, is_start = found[num_parser + num_lexer :]
        pending: list[frozenset[tuple[int, int]]] = [frozenset()] * len(following)
        for state, pairs in plain["pending"]:
            pending[state] = frozenset((int(terminal), int(num_bytes)) for terminal, num_bytes in pairs)
        self.automaton: LexerStates = _StoredAutomaton(
            **{name: plain[name] for name in _COUNTS},
            first_bytes=[each.encode("latin-1") for each in plain["first_bytes"]],
            following=following,
            winners=winners,
            num_behind=num_behind,
            is_start=[bool(each) for each in is_start.tolist()],
            pending=pending,
            expiries=[(0, -1)] * len(following),
        )
        self.rules: Rules = _StoredRules(**dict(zip(_RULES, of_rules, strict=True)), start_head=plain["start_head"])
        self.ignored = frozenset(plain["ignored"])
        self.token_sets: set[tuple[tuple[int, int], ...]] = {
            tuple((int(first), int(last)) for first, last in each) for each in plain["token_sets"]
        }
        self.num_terminals: int = plain["num_terminals"]
        self.reports = RuleReports()  # grammars with options are not stored
        self.joined: list[tuple[int, int]] = [(int(one), int(other)) for one, other in plain["joined"]]
        self.on_join: Callable[[], None] | None = None
        self._compiled = compiled
        self._tables: BoundTables | None = None

    @property
    def num_states(self) -> int:
        """States of the lexer and of the parser."""
        return len(self.automaton.following) + len(self.parser.actions)

    @property
    def num_rows(self) -> int:
        """States of the lexer."""
        return len(self.automaton.following)

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for group in (self.parser, self.lexer) for array in group)

    def join(self, one: int, other: int) -> None:
        """See `BoundTables.join`; compiles the grammar the first time.

        Raises:
            GrammarError: there are too many contexts, or the grammar takes too long to compile.
        """
        if self._tables is None:
            self._tables = self._compiled()
            for pair in self.joined:
                self._tables.join(*pair)
            self.joined = self._tables.joined
        self._tables.join(one, other)
        self.parser, self.lexer, self.automaton = self._tables.parser, self._tables.lexer, self._tables.automaton
        if self.on_join is not None:
            self.on_join()
