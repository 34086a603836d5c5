"""A grammar with a lexer, bound to a vocabulary: places in a text, steps and masks.

A place is a set of parser stacks, the state of the lexer inside a lexeme, and the last match with the bytes after it, to which the lexer
goes back where a longer lexeme fails. Masks are cached by place; a miss visits the tree of terminal sequences with the stacks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.lexed.rule_reports import Lexeme, contained_in, find_captures
from rtlang_grammars.machine.lexed.ways_on import Kind, Lead, TooLargeError, Watch, Watches, WaysOn
from rtlang_grammars.machine.lexer_run import lexeme_rules, tree_visit, viability
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    END_WIN,
    IS_SURE,
    KEEP,
    NEED_JOIN,
    NEED_STACKS,
    NEED_TREE,
    NUM_RANGES,
    OK,
    RANGE_AT,
    ROW,
    TAIL_BYTE_AT,
    TAIL_LAST,
    TAIL_NUM_BYTES,
    TAIL_STATE,
    TAIL_TOKEN,
    TOO_MANY,
    WIN,
    WIN_STATE,
    Begin,
    TokenArrays,
    WalkScratch,
)
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.machine.lexer_run.stack_sets import StackSets
from rtlang_grammars.machine.lexer_run.workspace import (
    larger_tree,
    larger_visit,
    larger_walk,
    new_tree,
    new_visit,
    new_walk,
    size_of,
)
from rtlang_grammars.machine.locks import is_held
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.tokens import segments_of

_MAX_FORCED_BYTES = 256
_MAX_STACKS = 1 << 17
_MAX_LIVING = 1 << 16
_MAX_FOLLOWED = 2000
_MAX_QUESTION_STEPS = 200_000
"""Steps of all questions of a grammar, after which they get the short answer."""
_END = 256
_MAX_TREE_BYTES = 96 << 20
_MAX_MASK_BYTES = 32 << 20


_TAIL_COLUMNS = [TAIL_LAST, TAIL_BYTE_AT, TAIL_NUM_BYTES, TAIL_TOKEN, TAIL_STATE]

_read_symbol = lexeme_rules.read_symbol


class Configuration(NamedTuple):
    """A place in a text, without facts that follow from it.

    Attributes:
        stacks: number of a set of parser stacks, after all lexemes that have surely ended.
        state: state of the lexer.
        last: the last match inside the present lexeme, -1.
        last_at: where it ended in `tail`.
        tail: the last bytes, as many as may have to be read again.
        num_tokens: tokens with bytes of the present lexeme, as long as a budget of tokens counts them.
    """

    stacks: int
    state: int
    last: int
    last_at: int
    tail: bytes
    num_tokens: int = 0


class LexedState(NamedTuple):
    """A place in a text.

    Attributes:
        configuration: where the parser and the lexer are.
        is_complete: whether the text may end there.
    """

    configuration: Configuration
    is_complete: bool


class LexedGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads, one at a time inside.

    Attributes:
        index, tables: as given.
        start_place: the place at the start of the text.
        stack_sets: the sets of parser stacks that texts have reached.
        lock: held by callers of the methods that do not take it.
        has_budgets: whether rules have budgets of tokens, so that tokens must be followed one by one.
    """

    def __init__(self, index: VocabularyIndex, tables: BoundTables, lock: threading.RLock | None = None) -> None:
        """Bind tables.

        Args:
            lock: of another grammar with the same tables.
        Raises:
            GrammarError: no text begins what the grammar asks for.
        """
        self.index, self.tables = index, tables
        self.lock = lock or threading.RLock()
        self.stack_sets = StackSets(int(tables.parser.final[0]))
        self._contexts: dict[int, int] = {}
        self._viable: dict[tuple[int, int], int] = {}
        self._living: dict[tuple[Configuration, Watches], bool] = {}
        self._num_steps = 0
        self._reaching: dict[tuple[WaysOn, int, int, Watches], bool] = {}
        self._ways_on = WaysOn(tables, Kind.FEW), WaysOn(tables, Kind.EXACT), WaysOn(tables, Kind.MANY)
        self._places: dict[Configuration, bool] = {}
        self._masks: dict[Configuration, Mask] = {}
        num_terminals = tables.num_terminals
        self._tokens = TokenArrays(index.byte_kinds, index.trie.order)
        self._visit = new_visit(len(tables.lexer.pairs), num_terminals)
        self._scratch: WalkScratch  # while a mask is made
        self._new_tree()
        start = Configuration(0, self._lexer_state(0), -1, 0, b"")
        self._no_begin = self._begin(start)
        self.has_budgets = tables.reports.has_budgets
        if not self.is_alive(start) and not self.is_complete(start):
            raise GrammarError(
                "the grammar matches no string: no terminal that can start it can be followed by another"
            )
        self.start_place = LexedState(start, self.is_complete(start))

    @property
    def size_bytes(self) -> int:
        """Memory of tables, tree and masks."""
        return self.tables.num_bytes + size_of(self._tree) + len(self._masks) * 4 * self.index.num_words + (1 << 18)

    @property
    def is_worn(self) -> bool:
        """Whether so many stacks were seen that new texts should begin with a fresh copy."""
        return self.stack_sets.num_kept > _MAX_STACKS

    def renewed(self) -> LexedGrammar:
        """A copy that has seen no text."""
        with self.lock:
            return LexedGrammar(self.index, self.tables, self.lock)

    @property
    def is_busy(self) -> bool:
        """See `Grammar.is_busy`."""
        return is_held(self.lock)

    def advance(self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int) -> LexedState | None:
        """The place after data[start:end]; None where these bytes cannot follow."""
        with self.lock:
            reached, ends = self._followed(configuration, data[start:end].tobytes())
            if reached is not None and self.has_budgets and not ends:  # bytes are not counted
                reached = reached._replace(num_tokens=configuration.num_tokens)
            return None if reached is None else LexedState(reached, self.is_complete(reached))

    def after(self, configuration: Configuration, token_id: int) -> LexedState | None:
        """The place after a token; None where it cannot follow."""
        trie = self.index.trie
        if not 0 <= token_id < len(trie.offsets) - 1:
            return None
        start, end = trie.offsets[token_id], trie.offsets[token_id + 1]
        if start == end or not self.has_budgets:
            return None if start == end else self.advance(configuration, trie.data, start, end)
        with self.lock:
            reached, ends = self._followed(configuration, trie.data[start:end].tobytes())
            if reached is None:
                return None
            reached = self._counted(reached, 1 if ends else configuration.num_tokens + 1)
            return LexedState(reached, self.is_complete(reached))

    def temperature(self, configuration: Configuration) -> float | None:
        """The temperature of the rules of the next byte; see `GrammarMatcher.temperature`."""
        if not self.tables.reports.temperatures:
            return None
        with self.lock:
            return max(self._temperatures(configuration), default=None)

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """The texts of rules in a text that was accepted, see `GrammarMatcher.captures`."""
        if not self.tables.reports.captures:
            return {}
        trie, text = self.index.trie, b""
        lexemes: list[Lexeme] = []
        configuration = self.start_place.configuration
        with self.lock:
            for token_id in token_ids:
                data = trie.data[trie.offsets[token_id] : trie.offsets[token_id + 1]].tobytes()
                reached, ends = self._followed(configuration, data)
                assert reached is not None, "these tokens were accepted"
                if self.has_budgets:
                    reached = self._counted(reached, 1 if ends else configuration.num_tokens + 1)
                for terminal, end in ends:
                    lexemes.append(Lexeme(terminal, lexemes[-1].end if lexemes else 0, len(text) + end))
                configuration, text = reached, text + data
            is_complete = self.is_complete(configuration)
            if is_complete:
                ends = []
                self._run(configuration, b"", is_final=True, ends=ends)
                for terminal, end in ends:
                    lexemes.append(Lexeme(terminal, lexemes[-1].end if lexemes else 0, len(text) + end))
            found = find_captures(self.tables, self.tables.reports, text, lexemes, is_complete=is_complete)
        return {name: [self._shown(each) for each in texts] for name, texts in found.items()}

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them."""
        if configuration.num_tokens:  # what a budget forbids is a matter of the state
            configuration = configuration._replace(num_tokens=0)
        found = self._masks.get(configuration)
        if found is None:
            with self.lock:
                found = self._made_mask(configuration)
        return found

    def only_ends(self, configuration: Configuration) -> bool:
        """Whether nothing but an end token may follow."""
        return self.index.only_ends(self.mask(configuration).base)

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next, at most _MAX_FORCED_BYTES."""
        text = bytearray()
        with self.lock:
            while len(text) < _MAX_FORCED_BYTES and not self.is_complete(configuration):
                step = self._only_step(configuration)
                if step is None:
                    break
                text += step[0]
                configuration = step[1]
        return bytes(text)

    def shift(self, stacks: int, terminal: int) -> int:
        """The set of stacks after a terminal, -1 where the parser does not take it."""
        if terminal in self.tables.ignored:
            return stacks
        if terminal > self.tables.num_terminals:
            found = {self.shift(stacks, each) for each in self.endings(terminal)} - {-1}
            return self.stack_sets.union(found) if found else -1
        return self.stack_sets.shift(self.tables.parser, stacks, terminal)

    def endings(self, winner: int) -> list[int]:
        """The terminals that end at a place, as the lexer's automaton numbers them; none for -1."""
        at = winner - self.tables.num_terminals - 1
        if at < 0:
            return [winner] if winner >= 0 else []
        lists = self.tables.lexer.lists
        found: list[int] = lists[at + 1 : at + 1 + int(lists[at])].tolist()
        return found

    def can_end(self, stacks: int) -> bool:
        """Whether the text may end after the lexemes so far."""
        return self.shift(stacks, self.tables.num_terminals) >= 0

    def fresh(self, stacks: int) -> Configuration:
        """The place before the lexeme that follows a set of stacks."""
        return Configuration(stacks, self._lexer_state(stacks), -1, 0, b"")

    def run(self, configuration: Configuration, data: bytes) -> Configuration | None:
        """The place after bytes as the lexer sees them, alive or not."""
        return self._run(configuration, data, is_final=False)

    def is_complete(self, configuration: Configuration) -> bool:
        """Whether the text may end there."""
        if configuration.num_tokens:
            configuration = configuration._replace(num_tokens=0)
        found = self._places.get(configuration)
        if found is None:
            reached = self._run(configuration, b"", is_final=True)
            found = reached is not None and self.can_end(reached.stacks)
            if len(self._places) > 1 << 16:
                self._places.clear()
            self._places[configuration] = found
        return found

    def is_alive(self, configuration: Configuration) -> bool:
        """Whether the text so far can be completed."""
        return self.can_win(configuration.stacks, configuration.state) == 1 or (
            self._may_live(configuration) and self._is_living(configuration)
        )

    def _may_live(self, configuration: Configuration) -> bool:
        """Whether the lexeme in progress can still become a terminal that the parser takes."""
        if self.can_win(configuration.stacks, configuration.state):
            return True
        return any(True for _ in self._ways_back(configuration))

    def _ways_back(self, configuration: Configuration) -> Iterator[tuple[Configuration, Watch]]:
        """The places after the last bytes if a lexeme ended before them, and what the lexer must then not find."""
        state, last, tail = configuration.state, configuration.last, configuration.tail
        ended = [(terminal, num_bytes, False) for terminal, num_bytes in self.tables.automaton.pending[state]]
        if last >= 0:
            ended.append((last, len(tail) - configuration.last_at, True))
        for terminal, num_bytes, is_found in ended:
            stacks = self.shift(configuration.stacks, terminal) if num_bytes <= len(tail) else -1
            if stacks < 0:
                continue
            reached = self._run(self.fresh(stacks), tail[len(tail) - num_bytes :], is_final=False)
            if reached is not None and self._may_live(reached):
                yield reached, Watch(state, terminal, is_found, num_bytes)

    def _is_living(self, configuration: Configuration, watches: Watches = frozenset()) -> bool:
        """Whether the text can be completed while all of some watches hold."""
        key = configuration, watches
        found = self._living.get(key)
        if found is None:
            found = self._has_way_on(configuration, watches) or any(
                self._is_living(reached, watches | {watch}) for reached, watch in self._ways_back(configuration)
            )
            if len(self._living) + len(self._reaching) > _MAX_LIVING:
                self._living.clear()
                self._reaching.clear()
            self._living[key] = found
        return found

    def _has_way_on(self, configuration: Configuration, watches: Watches) -> bool:
        """`_is_living` if the lexeme in progress goes on."""
        few, exact, many = self._ways_on
        can_win = bool(self.can_win(configuration.stacks, configuration.state))
        if not exact.is_exact:
            return can_win
        everything = (1 << self.tables.automaton.num_classes) - 1
        stacks, state = configuration.stacks, configuration.state
        lead = state, self._lexer_state(stacks), everything, watches
        if self._reaches_end(few, stacks, lead):
            return True
        if self._reaches_end(many, stacks, (*lead[:3], frozenset())) is False:
            return False
        found = self._reaches_end(exact, stacks, lead)
        if found is None or (not found and exact.has_conflicts):
            found = self._follows_to_end(exact, stacks, lead)
        return can_win if found is None else found

    def _follows_to_end(self, ways_on: WaysOn, stacks: int, lead: Lead) -> bool | None:
        """`_reaches_end` by following sets of stacks; None where that takes too long."""
        if self._num_steps > _MAX_QUESTION_STEPS:
            return None
        ways_on.restart()
        seen, todo = {(stacks, lead)}, deque([(stacks, lead)])
        try:
            while todo:
                stacks, lead = todo.popleft()
                terminals, may_end = ways_on.lexed(lead)
                if may_end and self.can_end(stacks):
                    return True
                for terminal, leads in terminals.items():
                    after = self.shift(stacks, terminal)
                    if after < 0:
                        continue
                    start = self._lexer_state(after)
                    for _, _, classes, watches in leads:
                        reached = after, (start, start, classes, watches)
                        if reached not in seen:
                            seen.add(reached)
                            todo.append(reached)
                if len(seen) > _MAX_FOLLOWED:
                    return None
        except TooLargeError:
            return None
        finally:
            self._num_steps += ways_on.num_steps + len(seen)
        return False

    def _reaches_end(self, ways_on: WaysOn, stacks: int, lead: Lead) -> bool | None:
        """Whether the text can be completed from a set of stacks; None where the answer takes too long."""
        if self._num_steps > _MAX_QUESTION_STEPS:
            return None
        ways_on.restart()
        try:
            terminals, may_end = ways_on.lexed(lead)
            if may_end and self.can_end(stacks):
                return True
            for terminal, leads in terminals.items():
                after = self.shift(stacks, terminal)
                if after < 0:
                    continue
                start = self._lexer_state(after)
                for _, _, classes, watches in leads:
                    key = ways_on, after, classes, watches
                    if key not in self._reaching:
                        begun = start, start, classes, watches
                        self._reaching[key] = any(
                            ways_on.can_end(*self.stack_sets.node(node), begun, self.stack_sets.node)
                            for node in self.stack_sets.tops(after)
                        )
                    if self._reaching[key]:
                        return True
        except TooLargeError:
            return None
        finally:
            self._num_steps += ways_on.num_steps
        return False

    def _lexer_state(self, stacks: int) -> int:
        """The lexer's state before the lexeme that follows a set of stacks."""
        context = self._contexts.get(stacks)
        if context is None:
            contexts = sorted(
                {
                    int(self.tables.parser.contexts[self.stack_sets.node(node)[0]])
                    for node in self.stack_sets.tops(stacks)
                }
            )
            context = contexts[0]
            for other in contexts[1:]:
                if context != other:
                    if self.tables.parser.joins[context, other] < 0:
                        self._join(context, other)
                    context = int(self.tables.parser.joins[context, other])
            self._contexts[stacks] = context
        return int(self.tables.parser.starts[context])

    def _join(self, one: int, other: int) -> None:
        self.tables.join(one, other)

    def _fit_verdicts(self) -> None:
        """Room for all pairs and sets of terminals: copies of this grammar add to the same tables."""
        if len(self.tables.lexer.pairs) > len(self._visit.verdicts):
            self._visit = new_visit(2 * len(self.tables.lexer.pairs), self.tables.num_terminals)

    def _followed(
        self, configuration: Configuration, data: bytes
    ) -> tuple[Configuration | None, list[tuple[int, int]]]:
        """The place after bytes, and the terminals that ended in them, each with where it ended from the first byte on."""
        ends: list[tuple[int, int]] = []
        return self._advanced(configuration, data, ends), ends

    def _counted(self, configuration: Configuration, num_tokens: int) -> Configuration:
        """A place with the number of tokens of its lexeme, after the budgets that are used up."""
        automaton, state = self.tables.automaton, configuration.state
        budget, expired = automaton.expiries[state]
        while budget and num_tokens >= budget:
            state = expired
            budget, expired = automaton.expiries[state]
        return configuration._replace(state=state, num_tokens=num_tokens if budget else 0)

    def _temperatures(self, configuration: Configuration) -> Iterator[float]:
        """The temperatures of the rules whose terminals may read the next byte."""
        automaton, reports = self.tables.automaton, self.tables.reports
        state, stacks = configuration.state, configuration.stacks
        goes_on = {int(each) for each in np.unique(automaton.following[state]) if each >= 0}
        reading: set[tuple[int, int]] = set()
        for following in goes_on:
            reading |= {(stacks, terminal) for terminal, _ in self._winning(following)}
        for ended in {int(each) for each in np.unique(automaton.winners[state]) if each >= 0}:
            after = self.shift(stacks, ended)
            if after >= 0:
                begin = self._lexer_state(after)
                reading |= {(after, terminal) for terminal, _ in self._winning(begin)}
        for before, terminal in reading:
            after = -1 if terminal in self.tables.ignored else self.shift(before, terminal)
            for node in self.stack_sets.tops(after) if after >= 0 else ():
                for head in contained_in(self.tables, self.stack_sets.node(node)[0]):
                    if head in reports.temperatures:
                        yield reports.temperatures[head]

    def _winning(self, state: int) -> Iterator[tuple[int, int]]:
        """The terminals that can still win from a state, with the symbols before which they end."""
        lexer = self.tables.lexer
        at, count, _ = lexer.wins[int(lexer.states[state, WIN])].tolist()
        for pair in lexer.win_pairs[at : at + count].tolist():
            terminal, enders, _ = lexer.pairs[pair].tolist()
            if terminal < self.tables.num_terminals:
                yield terminal, enders

    def _shown(self, text: bytes) -> bytes:
        """A text with special tokens by their names."""
        shown = self.index.vocabulary.shown
        return b"".join(shown([each]) if isinstance(each, int) else each for each in segments_of(text))

    def _advanced(
        self, configuration: Configuration, data: bytes, ends: list[tuple[int, int]] | None = None
    ) -> Configuration | None:
        reached = self._run(configuration, data, is_final=False, ends=ends)
        if reached is None:
            return None
        if reached.last >= 0 and not self._lives_back(reached.stacks, reached.last, reached.tail[reached.last_at :]):
            # A way back that leads nowhere is forgotten, so that equal places are equal.
            keep = int(self.tables.lexer.states[reached.state, KEEP])
            reached = reached._replace(
                last=-1, last_at=0, tail=reached.tail[len(reached.tail) - keep :] if keep else b""
            )
        return reached if self.is_alive(reached) else None

    def _run(
        self,
        configuration: Configuration,
        data: bytes,
        *,
        is_final: bool,
        ends: list[tuple[int, int]] | None = None,
    ) -> Configuration | None:
        """Lex bytes; None where no lexeme goes on.

        Args:
            is_final: the text ends after them.
            ends: gets the terminals that end, each with where it ends from the first of the bytes on.
        """
        lexer = self.tables.lexer
        stacks, state, last, last_at, tail, _ = configuration
        text = tail + data
        at = len(tail)
        begin = 0  # bytes before are never read again
        is_fresh = self.tables.automaton.is_start[state]
        while True:
            if at >= len(text):
                if not is_final:
                    break
                if is_fresh:
                    return Configuration(stacks, state, -1, 0, b"")
            symbol = text[at] if at < len(text) else _END
            reached, last, last_at = map(int, _read_symbol(lexer, state, symbol, at, last, last_at))
            if reached >= 0:
                state, is_fresh = reached, False
                at += 1
                continue
            if last < 0:
                return None
            stacks = self.shift(stacks, last)
            if stacks < 0:
                return None
            if ends is not None:
                ends.append((last, last_at - len(tail)))
            state, last, at = self._lexer_state(stacks), -1, last_at
            begin, is_fresh = at, True
            lexer = self.tables.lexer
        keep = int(lexer.states[state, KEEP])
        if last >= 0 and lexer.states[state, IS_SURE]:
            last = -1
        cut = max(begin, min(len(text) - keep, last_at if last >= 0 else len(text)))
        return Configuration(stacks, state, last, last_at - cut if last >= 0 else 0, text[cut:])

    def _lives_back(self, stacks: int, last: int, tail: bytes) -> bool:
        """Whether the text may go on if the lexeme ended at its last match, `tail` bytes ago."""
        stacks = self.shift(stacks, last)
        if stacks < 0:
            return False
        reached = self._run(self.fresh(stacks), tail, is_final=False)
        return reached is not None and self._may_live(reached)

    def can_win(self, stacks: int, state: int) -> int:
        """See `viability.can_win`."""
        self._fit_verdicts()
        win = int(self.tables.lexer.states[state, WIN])
        found = self._viable.get((stacks, win))
        if found is None:
            first, size = self.stack_sets.span(stacks)
            tables = self.tables
            while (
                viability.is_viable(tables.parser, tables.lexer, self.stack_sets.stack, first, size, win, self._visit)
                != OK
            ):
                self.stack_sets.make_room()
            found = self._viable[stacks, win] = int(self._visit.out[0])
        return found

    def _only_step(self, configuration: Configuration) -> tuple[bytes, Configuration] | None:
        """The only byte that may follow, and the place after it; None where there are several."""
        automaton = self.tables.automaton
        found: tuple[bytes, Configuration] | None = None
        for symbol_class, count in enumerate(automaton.class_sizes):
            if symbol_class == automaton.end_class:
                continue
            if automaton.following[configuration.state, symbol_class] < 0 and (
                automaton.winners[configuration.state, symbol_class] < 0 and configuration.last < 0
            ):
                continue
            byte = automaton.first_bytes[symbol_class]
            reached = self._advanced(configuration, byte)
            if reached is None:
                continue
            if found is not None or count > 1:
                return None
            found = byte, reached
        return found

    def _new_tree(self) -> None:
        self._tree = new_tree(self.index.num_words)
        self._roots: dict[tuple[int, int, int, bytes], int] = {}

    def _begin(self, configuration: Configuration) -> Begin:
        """What all tokens are read after."""
        tail = configuration.tail
        items = np.array([[0, len(self._tokens.records), 0, len(tail), -1]], dtype=np.int32)
        data = np.frombuffer(tail or b"\0", dtype=np.uint8).copy()
        place = np.array([configuration.state, configuration.last, configuration.last_at], dtype=np.int64)
        return Begin(items, data, place)

    def _make_room(self, code: int) -> None:
        """More room for what compiled code wants more of."""
        if code == TOO_MANY or size_of(self._tree) > 4 * _MAX_TREE_BYTES:
            raise GrammarError(
                f"too ambiguous: tokens can be divided into terminals in more than {tree_visit.MAX_FRAMES} ways; use a lexer (longest), or "
                "let something stand between terminals that consist of the same characters"
            )
        if code == NEED_TREE:
            self._tree = larger_tree(self._tree)
        elif code == NEED_STACKS:
            self.stack_sets.make_room()
        else:
            self._visit = larger_visit(self._visit)
            self._scratch = larger_walk(self._scratch)

    def _made_mask(self, configuration: Configuration) -> Mask:
        """Visit the tree from a place."""
        found = self._masks.get(configuration)
        if found is not None:
            return found
        if size_of(self._tree) > _MAX_TREE_BYTES:
            self._new_tree()
        tables = self.tables
        first, size = self.stack_sets.span(configuration.stacks)
        key = (configuration.state, configuration.last, configuration.last_at, configuration.tail)
        begin = self._no_begin if key in self._roots else self._begin(configuration)
        spare = self.index.spare_scratch
        self._scratch = spare.pop() if spare else new_walk(len(self.index.trie.order), self.index.max_depth)
        while True:
            self._fit_verdicts()
            mask = np.zeros(self.index.num_words, dtype=np.uint32)
            code = tree_visit.visit_tree(
                self._tree, self._roots.get(key, -1), begin, tables.parser, tables.lexer, self.stack_sets.stack,
                first, size, self._tokens, self._scratch, self._visit, mask,
            )  # fmt: skip
            if self._visit.out[2] >= 0:
                self._roots[key] = int(self._visit.out[2])
            if code == OK:
                break
            if code == NEED_JOIN:
                self._join(int(self._visit.out[0]), int(self._visit.out[1]))
            else:
                self._make_room(code)
        spare.append(self._scratch)
        num_asks = int(self._visit.out[0])
        if num_asks:
            self._ask(configuration, mask, num_asks)
        if self.is_complete(configuration):
            for token in self.index.end_ids.tolist():
                mask[token >> 5] |= np.uint32(1 << (token & 31))
        while self._masks and (len(self._masks) + 1) * mask.nbytes > _MAX_MASK_BYTES:
            self._masks.pop(next(iter(self._masks)), None)
        made = self._masks[configuration] = Mask(mask, self.index.no_ids, owns_base=True)
        return made

    def _ask(self, configuration: Configuration, mask: NDArray[np.uint32], num_asks: int) -> None:
        """Allow the tokens that only the way back can save, those that end inside look-ahead, and those whose way on is not proven."""
        tree, wins = self._tree, self.tables.lexer.wins
        asks = self._visit.asks[:num_asks].tolist()
        graphs = {(first, size): self.stack_sets.read(first, size) for _, first, size in asks}
        numbers = {place: self.stack_sets.intern(graph) for place, graph in graphs.items()}
        for tail, first, size in asks:
            stacks = numbers[first, size]
            if tail < 0:
                end = -1 - tail
                if self.is_alive(Configuration(stacks, int(wins[tree.ends[end, END_WIN], WIN_STATE]), -1, 0, b"")):
                    self._allow(mask, end)
                continue
            last, at, count, token, state = tree.tails[tail, _TAIL_COLUMNS].tolist()
            if last < 0:
                is_allowed = self._advanced(configuration, self.index.vocabulary.spelled(token)) is not None
            else:
                is_allowed = self.is_alive(Configuration(stacks, state, last, 0, tree.data[at : at + count].tobytes()))
            if is_allowed:
                mask[token >> 5] |= np.uint32(1 << (token & 31))

    def _allow(self, mask: NDArray[np.uint32], end: int) -> None:
        """Allow all tokens of an end."""
        tree, (row, at, count) = self._tree, self._tree.ends[end, [ROW, RANGE_AT, NUM_RANGES]].tolist()
        if row >= 0:
            mask |= tree.rows[row]
            return
        for begin, stop in tree.ranges[at : at + count].tolist():
            for token in self._tokens.order[begin:stop].tolist():
                mask[token >> 5] |= np.uint32(1 << (token & 31))
