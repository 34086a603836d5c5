"""Short texts that complete one under a grammar with a lexer: A* over lexemes, guided by the parser's cheapest completion.

The guide is exact for the parser: from a stack, the cheapest way to finish is to finish one of the rules in progress in its top state and
go on below it. The search adds what the lexer asks for: which text of a terminal ends before the next, and what may be ignored between.
"""

from __future__ import annotations

import heapq
import time
from itertools import count
from typing import NamedTuple

import numpy as np

from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.lexed.lexed_places import Configuration
from rtlang_grammars.machine.lexer_run.lexer_tables import LexerStates
from rtlang_grammars.spec.work_limit import WorkLimit, WorkLimitError

_SEARCHES = ((400, 1, False), (3000, 4, False), (1000, 4, True))
"""The searches, in order: how many texts are tried; the weight of the estimated rest, which finds longer texts sooner; whether terminals
may end where they could go on, which is needed if the next text does not fit."""
_UNITS_A_TRY, UNITS_A_STATE = 4, 2  # see WorkLimit
MAX_CACHED = 1 << 14
_MAX_ENDINGS = 3
_MAX_BEGUN = 256
FAR = 1 << 40


class Ending(NamedTuple):
    """A way to end a terminal.

    Attributes:
        text: the bytes to its end.
        enders: the classes before which it surely ends there, as bits.
        ahead: bytes after the end that its look-ahead asks for; with them, `enders` says nothing.
        is_unsure: the terminal may go on there.
    """

    text: bytes
    enders: int
    ahead: bytes
    is_unsure: bool = False


class LexedCompletion:
    """Finds completions for one grammar. Safe to use from several threads: they may find the same thing twice."""

    def __init__(self, grammar: LexedGrammar) -> None:
        self._grammar = grammar
        self._stack_costs: dict[int, int] = {}
        self._node_costs: dict[int, int] = {}
        self._costs: dict[tuple[int, int], int] = {}
        self._endings: dict[tuple[int, int, bool], dict[int, list[Ending]]] = {}
        self._found: dict[Configuration, bytes | None] = {}
        columns = grammar.tables.parser.columns.tolist()
        self._newlines = range(columns[0], columns[0] + columns[1] + 1) if columns[0] >= 0 else range(0)
        self._declared = columns[2:4]
        self._kernels: list[list[tuple[int, int, int]]] = []  # see `_set_costs`

    @property
    def _automaton(self) -> LexerStates:
        return self._grammar.tables.automaton  # another one once stored tables are compiled after all

    def find(self, configuration: Configuration, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """A short text that completes the text so far, None where none was found; False, since none is ever too long.

        Args:
            work: the work that the search may do; None for no limit.
        Raises:
            WorkLimitError: the search was stopped, or another thread uses the grammar.
        """
        if configuration in self._found:
            return self._found[configuration], False
        lock = self._grammar.lock
        if not lock.acquire(blocking=work is None or work.waits):
            raise WorkLimitError
        try:
            found = b"" if self._grammar.is_complete(configuration) else None
            for search in _SEARCHES:
                found = self._search(configuration, *search, work) if found is None else found
        finally:
            lock.release()
        if len(self._found) > MAX_CACHED:
            self._found.clear()
        self._found[configuration] = found
        return found, False

    def _search(
        self, start: Configuration, num_tries: int, greed: int, may_go_on: bool, work: WorkLimit | None
    ) -> bytes | None:
        if not self._kernels:
            if work is not None:
                work.stop()
            self._set_costs()
        places, automaton = self._grammar.places, self._automaton
        everything = (1 << automaton.num_classes) - 1
        end = 1 << automaton.end_class
        order = count()
        queue: list[tuple[int, int, bytes, int, int, int, int]] = []
        best: dict[tuple[int, int, int, int], int] = {}

        def push(text: bytes, stacks: int, state: int, first: int, num_looked: int = 0) -> None:
            key = (stacks, state, first, num_looked)  # a text may be as short and break its look-ahead
            if best.get(key, FAR) > len(text):
                best[key] = len(text)
                estimate = len(text) + greed * self._rest(stacks)
                heapq.heappush(queue, (estimate, next(order), text, *key))

        begun = [start]
        while begun:  # the lexeme may end before the last bytes, and they begin others
            at = begun.pop()
            push(b"", at.stacks, at.state, everything)
            ends = list(automaton.pending[at.state])
            if at.last >= 0:
                ends.append((at.last, len(at.tail) - at.last_at))
            for terminal, num_bytes in ends:
                stacks = places.shift(at.stacks, terminal) if num_bytes <= len(at.tail) else -1
                if stacks >= 0:
                    reached = places.run(places.fresh(stacks), at.tail[len(at.tail) - num_bytes :])
                    if reached is not None and len(begun) < _MAX_BEGUN:
                        begun.append(reached)
        for _ in range(num_tries):
            if not queue:
                return None
            if work is not None:
                work.spend(_UNITS_A_TRY)
            if work is None or work.waits:  # the search may take long: let others use the grammar
                self._grammar.lock.release()
                time.sleep(0)
                self._grammar.lock.acquire()
            _, _, text, stacks, state, first, num_looked = heapq.heappop(queue)
            if best[stacks, state, first, num_looked] < len(text):
                continue
            if automaton.is_start[state] and first & end and places.can_end(stacks) and self._completes(start, text):
                return text
            deeper, is_deeper = (
                range(self._newlines.start + places.stack_sets.column(stacks) + 1, self._newlines.stop),
                False,
            )
            for terminal, endings in self._ends(state, first, may_go_on, work).items():
                if is_deeper and terminal in deeper:
                    continue  # one indent is as good as another
                after = places.shift(stacks, terminal)
                if after < 0:
                    continue
                is_deeper |= terminal in deeper
                for ending in endings:
                    if not ending.ahead:
                        state_after = places.fresh(after).state
                        push(text + ending.text, after, state_after, ending.enders, num_looked + ending.is_unsure)
                    elif (reached := places.run(places.fresh(after), ending.ahead)) is not None:
                        push(
                            text + ending.text + ending.ahead, reached.stacks, reached.state, everything, num_looked + 1
                        )
        return None

    def _completes(self, start: Configuration, text: bytes) -> bool:
        reached = self._grammar.places.run(start, text)
        return reached is not None and self._grammar.is_complete(reached)

    def _ends(
        self, state: int, first: int, may_go_on: bool = False, work: WorkLimit | None = None
    ) -> dict[int, list[Ending]]:
        """For each terminal, the shortest texts from a state to its end, one for each set of classes it ends before.

        first: the classes that the next byte may have, as bits.
        """
        found = self._endings.get((state, first, may_go_on))
        if found is not None:
            return found
        automaton = self._automaton
        found = {}
        seen = {(state, first == (1 << automaton.num_classes) - 1)}
        layer = [(state, b"", first)]
        while layer:
            following: list[tuple[int, bytes, int]] = []
            for at, text, allowed in layer:
                if work is not None:
                    work.spend(UNITS_A_STATE)
                ends: dict[int, int] = {}
                unsure: dict[int, int] = {}
                winners = automaton.winners[at].tolist()
                self._add_looked_ahead(found, at, text, allowed)
                for symbol_class, target in enumerate(automaton.following[at].tolist()):
                    winner = winners[symbol_class]
                    if not allowed >> symbol_class & 1:
                        continue
                    if target < 0:
                        if winner >= 0 and not automaton.num_behind[at, symbol_class]:
                            ends[winner] = ends.get(winner, 0) | 1 << symbol_class
                        continue
                    if may_go_on and winner >= 0 and not automaton.num_behind[at, symbol_class]:
                        unsure[winner] = unsure.get(winner, 0) | 1 << symbol_class
                    for terminal, num_bytes in automaton.pending[target]:
                        if num_bytes == 1:  # a look-ahead begins; whether it holds is checked at the end
                            ends[terminal] = ends.get(terminal, 0) | 1 << symbol_class
                    if symbol_class != automaton.end_class and (target, True) not in seen:
                        seen.add((target, True))
                        following.append(
                            (target, text + automaton.first_bytes[symbol_class], (1 << automaton.num_classes) - 1)
                        )
                for terminal, enders in unsure.items():
                    known = found.setdefault(terminal, [])
                    if not any(each.is_unsure for each in known):
                        known.append(Ending(text, enders, b"", True))
                for terminal, enders in ends.items():
                    known = found.setdefault(terminal, [])
                    if len(known) < _MAX_ENDINGS and all(enders & ~each.enders for each in known):
                        known.append(Ending(text, enders, b""))
            layer = following
        if len(self._endings) > MAX_CACHED:
            self._endings.clear()
        self._endings[state, first, may_go_on] = found
        return found

    def _add_looked_ahead(self, found: dict[int, list[Ending]], at: int, text: bytes, allowed: int) -> None:
        """Add the terminals that a look-ahead of several bytes confirms at a state, with a text that does."""
        automaton = self._automaton
        behind = automaton.num_behind[at].tolist()
        if not any(behind):
            return
        winners = automaton.winners[at].tolist()
        for symbol_class, num_bytes in enumerate(behind):
            terminal = winners[symbol_class]
            if not 0 < num_bytes <= len(text) or not allowed >> symbol_class & 1:
                continue
            known = found.setdefault(terminal, [])
            if sum(1 for each in known if each.ahead) < _MAX_ENDINGS:
                last = b"" if min(winners) == max(winners) else automaton.first_bytes[symbol_class]
                cut = len(text) - num_bytes
                known.append(Ending(text[:cut], 0, text[cut:] + last))

    def _rest(self, stacks: int) -> int:
        """Bytes that the parser still needs at least."""
        found = self._stack_costs.get(stacks)
        if found is None:
            tops = self._grammar.places.stack_sets.tops(stacks)
            for node in self._below(tops):  # from the bottom up, so that no recursion is deep
                self._node_cost(node)
            found = self._stack_costs[stacks] = min(self._node_cost(node) for node in tops)
        return found

    def _below(self, tops: list[int]) -> list[int]:
        """All nodes below some that have no cost yet, deeper ones first."""
        found: set[int] = set()
        todo = list(tops)
        while todo:
            node = todo.pop()
            if node not in found and node not in self._node_costs:
                found.add(node)
                todo += self._grammar.places.stack_sets.node(node)[1]
        return sorted(found)

    def _node_cost(self, node: int) -> int:
        """The cheapest way to finish from a node."""
        found = self._node_costs.get(node)
        if found is None:
            state, below = self._grammar.places.stack_sets.node(node)
            found = min((self._cost(state, each) for each in below), default=self._cost(state, -1))
            self._node_costs[node] = found
        return found

    def _cost(self, state: int, below: int) -> int:
        """The cheapest way to finish from a state on a node."""
        if (state, below) in self._costs:
            return self._costs[state, below]
        gotos = self._grammar.tables.rules.gotos
        on_node = -1 if below < 0 else self._grammar.places.stack_sets.node(below)[0]
        costs: dict[int, int] = {}  # of the states that follow one another on this node
        steps: list[tuple[int, int, int]] = []
        todo = [state]
        while todo:
            at = todo.pop()
            if at in costs:
                continue
            costs[at] = self._costs.get((at, below), FAR)
            for rest, length, head in self._kernels[at] if costs[at] == FAR else ():
                if head < 0:
                    costs[at] = min(costs[at], rest)
                elif length == 1 and below >= 0:
                    if (goto := int(gotos[on_node, head])) >= 0:
                        steps.append((at, goto, rest))
                        todo.append(goto)
                else:
                    under = {below} if below >= 0 else set()
                    for _ in range(length - 1):
                        under = {each for node in under for each in self._grammar.places.stack_sets.node(node)[1]}
                    for node in under:
                        if (goto := int(gotos[self._grammar.places.stack_sets.node(node)[0], head])) >= 0:
                            costs[at] = min(costs[at], rest + self._cost(goto, node))
        has_changed = True
        while has_changed:
            has_changed = False
            for at, goto, rest in reversed(steps):
                if rest + costs[goto] < costs[at]:
                    costs[at], has_changed = rest + costs[goto], True
        for at, cost in costs.items():
            self._costs[at, below] = cost
        return costs[state]

    def _set_costs(self) -> None:
        """The fewest bytes of each symbol, and for each state what its rules in progress still need."""
        rules = self._grammar.tables.rules
        lengths, heads = self._terminal_lengths(), rules.heads.tolist()
        costs: dict[int, int] = {}

        def cost_of(symbols: tuple[int, ...]) -> int:
            return min(FAR, sum(lengths[each] if each >= 0 else costs.get(-1 - each, FAR) for each in symbols))

        has_changed = True
        while has_changed:
            has_changed = False
            for head, symbols in zip(heads, rules.rule_symbols, strict=True):
                cost = cost_of(symbols)
                if cost < costs.get(head, FAR):
                    costs[head], has_changed = cost, True
        start = -1 - int(rules.start_head)
        self._kernels = [[] for _ in rules.gotos]
        for state, rule, num_read in rules.kernels.tolist():
            symbols = (start,) if rule < 0 else rules.rule_symbols[rule]
            self._kernels[state].append((cost_of(symbols[num_read:]), num_read, -1 if rule < 0 else heads[rule]))

    def _terminal_lengths(self) -> list[int]:
        """The fewest bytes of each terminal, from any state before a lexeme."""
        automaton = self._automaton
        shortest = [FAR] * self._grammar.tables.num_terminals + [0]
        layer = np.flatnonzero(automaton.is_start)
        is_seen = np.array(automaton.is_start)
        num_bytes = 0
        while len(layer):
            winners, behind = automaton.winners[layer], automaton.num_behind[layer]
            for winner, ago in np.unique(np.stack([winners.ravel(), behind.ravel()], axis=1), axis=0).tolist():
                if winner >= 0:
                    shortest[winner] = min(shortest[winner], max(num_bytes - ago, 0))
            for state in layer.tolist():
                for terminal, ago in automaton.pending[state]:
                    shortest[terminal] = min(shortest[terminal], max(num_bytes - ago, 0))
            following = np.unique(automaton.following[layer])
            layer = following[(following >= 0) & ~is_seen[following]]
            is_seen[layer] = True
            num_bytes += 1
        if self._newlines:
            shortest[self._newlines.start] = min(shortest[terminal] for terminal in self._newlines)
            for terminal in self._declared:
                shortest[terminal] = 0
        return shortest
