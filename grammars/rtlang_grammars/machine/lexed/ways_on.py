"""Whether a text can be completed at all: reachability in the pushdown system of lexer and parser.

`viability` asks whether the parser takes a terminal that the lexer can still find. Here the terminals after it count, too, up to the end of
the text. The rules of the grammar are followed from a parser state, one symbol after another, with a *lead*: the lexer's state, the classes
that the next byte may have, and watches. Summaries say for a state, a nonterminal and a lead which leads there are after it (as in the
reachability of recursive state machines: Alur et al. 2005, *Analysis of Recursive State Machines*), so recursion costs nothing. From the
rules in progress on a stack the search goes on below them.

A lexeme that ends where a longer one could go on, is guessed to end: a *watch* runs the lexer on over the bytes that follow, and gives up
the guess if it finds another match. So the way back to an earlier match and look-ahead of several bytes are exact.

Stacks are examined one by one. Where several may be alive (conflicts), the lexer looks for the terminals of all of them. A terminal's text
that is found while all terminals of the grammar compete is found in any case, and one that is not found while those of one stack compete
is never found: so there are two answers (`Kind`), and where they differ `LivingPlaces` follows the sets of stacks themselves.
Indents and dedents depend on the columns of enclosing lines, and are not followed: a text of an indented grammar is taken to have a way on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from operator import le
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexer_run.lexer_layout import IS_SURE, MANY, MAX_BACK, NEWLINE
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables

_MAX_STEPS = 20_000
"""Steps of one answer. A question that needs more gets the answer of `viability`."""
_MAX_BLOCKED = 256
_MAX_SUMMARIES = 1 << 16


class Watch(NamedTuple):
    """A lexeme that was taken to end while the lexer could go on.

    Attributes:
        state: the lexer's state.
        terminal: the one that was taken to end; -1 where each other match must fail, as none of those to come ends as early.
        is_found: whether the lexer has found that match.
        age: bytes since its end.
    """

    state: int
    terminal: int
    is_found: bool
    age: int


Watches: TypeAlias = frozenset[Watch]
Lead: TypeAlias = tuple[int, int, int, Watches]
"""The lexer's state, its state before this lexeme, the classes of the next byte as bits, and watches."""
_Sequence: TypeAlias = tuple[int, ...]
_Part: TypeAlias = tuple[int, _Sequence, Lead]

NO_WATCHES: Watches = frozenset()


class Kind(Enum):
    """How far an answer can be trusted.

    Attributes:
        FEW: lexemes end only where the lexer cannot go on: each way on that is found is one.
        EXACT: guesses are watched: where there is a way on it is found, except perhaps where several stacks are alive.
        MANY: all guesses are taken to be right, and stacks to be alone: where no way on is found there is none.
    """

    FEW = 0
    EXACT = 1
    MANY = 2


class _Facts(NamedTuple):
    """Facts about the lexer's automaton.

    Attributes:
        has_ends: for each state, whether a lexeme may end after it at an end that was not passed before; states of look-ahead have none.
        num_back: for each state, how many bytes before it a match may have ended that is found later; -1: none is.
    """

    has_ends: NDArray[np.bool_]
    num_back: list[int]


class TooLargeError(Exception):
    """The answer needs more than _MAX_STEPS."""


class WaysOn:
    """Answers for one grammar. The owner must serialize access.

    Attributes:
        num_steps: of the present question.
        blocked: why searches stopped: a parser state, a terminal that was not found there, and the classes with which it had to begin.
    """

    def __init__(self, tables: BoundTables, kind: Kind) -> None:
        self._tables, self._kind = tables, kind
        self._rules_of: dict[int, list[_Sequence]] = {}
        heads = tables.rules.heads.tolist()
        for head, symbols in zip(heads, tables.rules.rule_symbols, strict=True):
            self._rules_of.setdefault(-1 - head, []).append(symbols)
        start = -1 - int(tables.rules.start_head)
        self._kernels: dict[int, list[tuple[_Sequence, int, int]]] = {}
        for state, rule, num_read in tables.rules.kernels.tolist():
            symbols = (start,) if rule < 0 else tables.rules.rule_symbols[rule]
            self._kernels.setdefault(state, []).append((symbols[num_read:], num_read, -1 if rule < 0 else heads[rule]))
        self._facts = _Facts(np.zeros(0, dtype=np.bool_), [])
        self._begins = 1 << tables.automaton.end_class
        for symbol_class in np.flatnonzero(tables.lexer.firsts.any(axis=0)).tolist():
            self._begins |= 1 << symbol_class
        self.num_steps = 0
        self.blocked: dict[tuple[int, int, int], None] = {}
        self._forget()

    @property
    def is_exact(self) -> bool:
        """Whether indentation has no meaning, so that answers are more than a guess."""
        return int(self._tables.parser.columns[NEWLINE]) < 0

    @property
    def has_conflicts(self) -> bool:
        """Whether several stacks may be alive, so that answers are more than a guess."""
        return len(self._tables.parser.lists) > 1

    def _forget(self) -> None:
        self._groups: dict[int, list[tuple[int, int, int, int]]] = {}
        self._ends: dict[tuple[int, int, Watches], dict[tuple[int, Watches], int]] = {}
        self._lexed: dict[Lead, tuple[dict[int, list[Lead]], bool]] = {}
        self._after: dict[_Part, list[Lead]] = {}

    def restart(self) -> None:
        """Begin to count the steps of another question."""
        self.num_steps = 0
        if len(self._after) > _MAX_SUMMARIES:
            self._forget()

    def can_end(
        self, state: int, nodes: list[int], lead: Lead, below_of: Callable[[int], tuple[int, list[int]]]
    ) -> bool:
        """Whether the text can be completed from a parser state.

        Args:
            state: the state on top.
            nodes: the nodes below it.
            lead: where the lexer is.
            below_of: the state and the nodes below of a node.
        Raises:
            TooLargeError: the answer needs more steps than are allowed.
        """
        seen, todo = _Seen(), deque((state, below, lead) for below in nodes or [-1])
        while todo:
            state, below, lead = todo.popleft()
            for symbols, num_read, head in self._kernels[state]:
                for after in self._leads_after(state, symbols, lead):
                    if head < 0:
                        if self.lexed(after)[1]:
                            return True
                        continue
                    for node in self._under(below, num_read - 1, below_of):
                        goto = int(self._tables.parser.gotos[below_of(node)[0], head])
                        if goto >= 0 and seen.adds((goto, node, *after[:3]), after[3]):
                            self._count()
                            todo.append((goto, node, after))
        return False

    def _under(self, below: int, num_passed: int, below_of: Callable[[int], tuple[int, list[int]]]) -> set[int]:
        nodes = {below}
        for _ in range(num_passed):
            nodes = {each for node in nodes for each in below_of(node)[1]}
        return nodes

    def _count(self) -> None:
        self.num_steps += 1
        if self.num_steps > _MAX_STEPS:
            raise TooLargeError

    def _leads_after(self, state: int, symbols: _Sequence, lead: Lead) -> list[Lead]:
        """The leads after symbols that are read from a parser state."""
        asked = state, symbols, lead
        known = self._after
        if asked in known:
            return known[asked]
        new: dict[_Part, dict[tuple[int, int, Watches], int]] = {asked: {}}  # not known before this call is done
        waiting: dict[_Part, list[tuple[_Part, int, int]]] = {asked: []}
        todo = deque([(asked, 0, state, lead)])
        seen = _Seen()

        def push(owner: _Part, position: int, at: int, reached: Lead) -> None:
            if seen.adds((owner, position, at, *reached[:3]), reached[3]):
                self._count()
                todo.append((owner, position, at, reached))

        while todo:
            owner, position, at, reached = todo.popleft()
            sequence = owner[1]
            if position == len(sequence):
                lexer_state, start, classes, watches = reached
                before = new[owner].get((lexer_state, start, watches), 0)
                if classes & ~before:
                    new[owner][lexer_state, start, watches] = before | classes
                    for later, next_position, goto in waiting[owner]:
                        push(later, next_position, goto, (lexer_state, start, classes & ~before, watches))
                continue
            symbol = sequence[position]
            if symbol >= 0:
                to = self._shifted(at, symbol)
                start = self.start_after(to)
                found = self.lexed(reached)[0].get(symbol, ())
                if not found and len(self.blocked) < _MAX_BLOCKED:
                    self.blocked[at, symbol, reached[2]] = None
                for _, _, classes, watches in found:
                    push(owner, position + 1, to, (start, start, classes, watches))
                continue
            goto = int(self._tables.parser.gotos[at, -1 - symbol])
            for rule in self._rules_of.get(symbol, ()):
                part = at, rule, reached
                if part in known:
                    for after in known[part]:
                        push(owner, position + 1, goto, after)
                    continue
                if part not in new:
                    new[part], waiting[part] = {}, []
                    push(part, 0, at, reached)
                waiting[part].append((owner, position + 1, goto))
                for (lexer_state, start, watches), classes in list(new[part].items()):
                    push(owner, position + 1, goto, (lexer_state, start, classes, watches))
        for part, leads in new.items():
            known[part] = [(*lead[:2], classes, lead[2]) for lead, classes in leads.items()]
        return known[asked]

    def _shifted(self, state: int, terminal: int) -> int:
        action = int(self._tables.parser.actions[state, terminal])
        if action >= MANY:
            action = int(self._tables.parser.lists[action - MANY + 1])
        return action - 1

    def start_after(self, state: int) -> int:
        """The lexer's state before the lexeme after a parser state."""
        parser = self._tables.parser
        if self._kind is not Kind.MANY and parser.final[2] >= 0:
            return int(parser.final[2])
        return int(parser.starts[parser.contexts[state]])

    def lexed(self, lead: Lead) -> tuple[dict[int, list[Lead]], bool]:
        """The terminals that may be found next, ignored ones passed over, with the leads after them; and whether the text may end."""
        found = self._lexed.get(lead)
        if found is None:
            terminals: dict[int, dict[Watches, int]] = {}
            ends, automaton = False, self._tables.automaton
            end = 1 << automaton.end_class
            _, start, _, _ = lead
            seen: dict[tuple[int, Watches], int] = {}
            todo = [lead]
            while todo:
                state, _, classes, watches = todo.pop()
                if automaton.is_start[state] and classes & end:
                    ends |= any(not left for _, left in self._watched(watches, end))
                for (terminal, after), next_classes in self._ends_from(state, classes, watches).items():
                    if terminal not in self._tables.ignored:
                        of_terminal = terminals.setdefault(terminal, {})
                        of_terminal[after] = of_terminal.get(after, 0) | next_classes
                    elif next_classes & ~seen.get((start, after), 0):
                        todo.append((start, start, next_classes & ~seen.get((start, after), 0), after))
                        seen[start, after] = seen.get((start, after), 0) | next_classes
            found = self._lexed[lead] = (
                {
                    terminal: [(start, start, classes, watches) for watches, classes in each.items()]
                    for terminal, each in terminals.items()
                },
                ends,
            )
        return found

    def _ends_from(self, state: int, classes: int, watches: Watches) -> dict[tuple[int, Watches], int]:
        """The terminals that may end after a lexer state, with watches, and the classes of the byte after each.

        classes: of the next byte.
        """
        asked = state, classes, watches
        if asked in self._ends:
            return self._ends[asked]
        automaton = self._tables.automaton
        found: dict[tuple[int, Watches], int] = {}
        everything, end = (1 << automaton.num_classes) - 1, 1 << automaton.end_class
        facts = self._facts_now()
        seen, todo = _Seen(), deque([asked])
        while todo:
            state, classes, watches = todo.popleft()
            guesses: dict[int, int] = {}
            for group, target, winner, num_behind in self._steps(state):
                group &= classes
                if not group:
                    continue
                if winner >= 0 and not num_behind:
                    if target < 0:
                        found[winner, watches] = found.get((winner, watches), 0) | group
                    else:
                        guesses[winner] = guesses.get(winner, 0) | group
                if target < 0:
                    continue
                for terminal, num_bytes in automaton.pending[target]:
                    if num_bytes == 1:
                        guesses[terminal] = guesses.get(terminal, 0) | group
                if not facts.has_ends[target]:
                    continue
                for _, after in self._watched(watches, group & ~end):
                    if seen.adds(target, after):
                        self._count()
                        todo.append((target, everything, after))
            for terminal, group in guesses.items() if self._kind is not Kind.FEW else ():
                group &= self._begins
                if not group:
                    continue
                watched = {Watch(state, terminal, False, 0)} if self._kind is Kind.EXACT else NO_WATCHES
                key = terminal, watches | watched
                found[key] = found.get(key, 0) | group
        self._ends[asked] = found
        return found

    def _steps(self, state: int) -> list[tuple[int, int, int, int]]:
        """The steps of a lexer state: classes as bits, the next state, the terminal that ends, and how many bytes ago."""
        found = self._groups.get(state)
        if found is None:
            automaton = self._tables.automaton
            groups: dict[tuple[int, int, int], int] = {}
            rows = automaton.following[state], automaton.winners[state], automaton.num_behind[state]
            for symbol_class, step in enumerate(zip(*(row.tolist() for row in rows), strict=True)):
                groups[step] = groups.get(step, 0) | 1 << symbol_class
            found = self._groups[state] = [(classes, *step) for step, classes in groups.items()]
        return found

    def _watched(self, watches: Watches, classes: int) -> list[tuple[int, Watches]]:
        """Classes in parts with watches after each; without those after which a guess was wrong."""
        parts = {NO_WATCHES: classes} if classes else {}
        num_back = self._facts_now().num_back if watches else []
        for watch in watches:
            after: dict[Watches, int] = {}
            for left, part in parts.items():
                for group, target, winner, num_behind in self._steps(watch.state):
                    if not group & part:
                        continue
                    kept = self._watched_on(watch, target, winner, num_behind, num_back)
                    if kept is not None:
                        both = _both(left, kept)
                        after[both] = after.get(both, 0) | group & part
            parts = after
        return [(part, left) for left, part in parts.items()]

    def _watched_on(
        self, watch: Watch, target: int, winner: int, num_behind: int, num_back: list[int]
    ) -> Watches | None:
        """A watch after a step, none if the guess was right; None if it was wrong. See `lexeme_rules.read_symbol`."""
        lexer = self._tables.lexer
        _, terminal, is_found, age = watch
        if winner >= 0:
            ended = age - num_behind  # bytes after the guessed end
            if lexer.order[0]:
                is_found = ended == 0 and winner == terminal
            elif ended > 0 or (ended == 0 and winner < terminal):
                return None
            else:
                is_found |= ended == 0 and winner == terminal
        if target < 0:
            return NO_WATCHES if is_found else None
        if age + 1 > MAX_BACK or (is_found and lexer.states[target, IS_SURE]):
            return None
        if age + 1 > num_back[target]:  # no match that ends where the guess does is found any more
            return frozenset({Watch(target, -1, True, age + 1)}) if is_found else None
        return frozenset({Watch(target, terminal, is_found, age + 1)})

    def _facts_now(self) -> _Facts:
        """Facts about the states that the automaton has now."""
        automaton = self._tables.automaton
        if len(self._facts.has_ends) != len(automaton.pending):
            following, winners, num_behind = automaton.following, automaton.winners, automaton.num_behind
            has_ends = np.array([any(size == 1 for _, size in each) for each in automaton.pending])
            has_ends |= ((winners >= 0) & (num_behind == 0)).any(axis=1)
            num_back = np.where(winners >= 0, num_behind, -1).max(axis=1).astype(np.int64)
            has_changed = True
            while has_changed:
                ends = has_ends | ((following >= 0) & has_ends[following]).any(axis=1)
                back = np.maximum(num_back, np.where(following >= 0, num_back[following] - 1, -1).max(axis=1))
                has_changed = bool((ends != has_ends).any() or (back != num_back).any())
                has_ends, num_back = ends, back
            self._facts = _Facts(has_ends, num_back.tolist())
        return self._facts


class _Seen:
    """Places of a search with watches, without those at which an equal watch is younger."""

    def __init__(self) -> None:
        self._ages: dict[tuple[object, Watches], list[list[int]]] = {}

    def adds(self, place: object, watches: Watches) -> bool:
        """Note a place; False if nothing follows that does not follow one that was seen."""
        key = place, _without_ages(watches)
        ages = [each.age for each in sorted(watches) if each.terminal < 0]
        seen = self._ages.setdefault(key, [])
        if any(all(map(le, younger, ages)) for younger in seen):
            return False
        seen.append(ages)
        return True


def _without_ages(watches: Watches) -> Watches:
    """Watches with one age where an older one allows less."""
    if all(each.terminal >= 0 for each in watches):
        return watches
    return frozenset(each if each.terminal >= 0 else each._replace(age=MAX_BACK) for each in watches)


def _both(watches: Watches, more: Watches) -> Watches:
    """Watches that must all hold, without those that hold because an older one does."""
    for watch in more:
        for other in watches:
            if watch.terminal < 0 and other.terminal < 0 and watch.state == other.state:
                return watches if other.age >= watch.age else watches - {other} | more
    return watches | more
