"""Short completions of a text: Dijkstra over states, registers and frames, with cached completions of whole frames.

From the heads of a configuration the search follows bytes and ends of frames. A call costs a short text of the called frame, which is
computed once for each start. Objects and arrays are not searched: their states carry closers that write the missing members directly.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Iterable

import numpy as np

from rtlang_grammars.machine.automaton.json_base_states import QUOTE
from rtlang_grammars.machine.automaton.layout import (
    ACC,
    ALTERNATIVES,
    AT_LEAST,
    AT_MOST,
    BLOCK,
    BYTE,
    CALL,
    CALL_TO,
    CLOSE,
    COMMA,
    COUNT,
    COUNT_UP,
    DEAD_ROW,
    EDGE_NEXT,
    EDGE_PARENT,
    EDGE_REGISTER,
    EDGE_RETURN,
    FIRST_ACTION,
    HEADS,
    KEY_BRANCH,
    KEY_END,
    KEY_OTHER,
    KEY_PHASE,
    LENGTH,
    NEW_OBJECT,
    NODE_EDGE,
    NONE,
    NUM_HEADS,
    OBJ_LEAVES,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OPEN,
    PARAM,
    ROOT,
    ROW,
    SPELL,
    TARGET,
    UNKNOWN,
)
from rtlang_grammars.machine.automaton.object_registers import ObjectRegister
from rtlang_grammars.machine.automaton.tables import Register
from rtlang_grammars.machine.automaton.text_limit import MAX_BYTES, MAX_CACHED_BYTES, LongTextError
from rtlang_grammars.machine.grammar import Configuration, MachineGrammar
from rtlang_grammars.machine.native.repeated_names import kept_names
from rtlang_grammars.spec.work_limit import WorkLimit, WorkLimitError

_MAX_PLACES = 6_000
_MAX_BREADTH = 256
_MAX_KNOWN, _MAX_KNOWN_BYTES = 1024, 1024
"""Texts that are remembered, and the bytes of one."""
_MAX_LOST = 64
"""Number of strings whose end may turn out too far for a direct search, which takes milliseconds; after that, none is tried."""
_MAX_ATTEMPTS = 64
"""Number of beginnings that are tried for a name that its object does not have."""
_NAME_CHARS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
_MANY = 1 << 60
_LIKED = bytes(
    dict.fromkeys(
        [*b'"}]0a', *range(0x30, 0x3A), *range(0x61, 0x7B), *range(0x41, 0x5B), *range(0x20, 0x7F), *range(256)]
    )
)
"""Among bytes that lead to the same state, the first in this order is taken."""

PathPosition = tuple[int, Register, int]
"""State, register, node."""


class TableCompletion:
    """Finds short completions in one grammar. Safe to use from several threads."""

    def __init__(self, grammar: MachineGrammar) -> None:
        self._grammar, self._tables = grammar, grammar.tables
        self._lock = threading.Lock()
        self._found: dict[bytes, bytes] = {}  # texts of earlier searches, by configuration
        self._shortest: dict[int, bytes | None] = {}
        self._edges: dict[int, tuple[tuple[int, int], ...]] = {}
        self._string_ends: dict[int, list[tuple[bytes, int]]] = {}
        self._work: WorkLimit | None = None  # of the running search
        self._wanted: set[int] = set()
        self._lacks = False  # a text that was needed has not been computed
        self._members: ObjectRegister | None = None  # the last ones visited
        self._long: set[int] = set()  # starts whose texts are too long to be cached
        self._num_cached_bytes = 0  # bytes of the cached texts
        self._avoid: frozenset[str] = frozenset()  # names that made up members must not have
        self._was_long = False  # the last search skipped a completion because it is too long
        self._order = np.frombuffer(_LIKED, dtype=np.uint8)

    def find(self, configuration: Configuration, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """A short text that completes the text after `configuration`; None if none was found within the bound of the search.

        Args:
            work: the work that the search may do; None for no limit. A limited search computes no texts of frames, since those that are
                kept would depend on where it stops.
        Returns:
            The text, and if there is none, whether a completion was skipped because it is too long (`text_limit`).
        Raises:
            WorkLimitError: the search was stopped, or another thread is searching.
        """
        key = configuration.tobytes()
        known = self._found.get(key)
        if known is not None:
            return known, False
        heads = self._heads(configuration)
        if not self._lock.acquire(blocking=work is None or work.waits):
            raise WorkLimitError
        try:
            self._work = work
            found = self._settled(heads, configuration)
            if found is None:
                return None, self._was_long
            if self._grammar.repeats_name(configuration, found):
                self._needs_unlimited()
                found = self._with_other_names(configuration, found)
            if found is not None and len(found) <= _MAX_KNOWN_BYTES:
                if len(self._found) >= _MAX_KNOWN:
                    self._found = {}
                self._found[key] = found
            return found, False
        finally:
            self._work = None
            self._lock.release()

    def _needs_unlimited(self) -> None:
        """Stop a limited search before work of an unknown amount."""
        if self._work is not None:
            self._work.stop()

    def _reached(self, configuration: Configuration, text: bytes) -> Configuration | None:
        data = np.frombuffer(text, dtype=np.uint8)
        place = self._grammar.advance(configuration, data, 0, len(data))
        return None if place is None else place.configuration

    def _with_other_names(self, configuration: Configuration, repeating: bytes) -> bytes | None:
        """Another completion than `repeating`, which has a name twice: the name goes on where it would end."""
        self._avoid = kept_names(configuration[configuration[LENGTH] :])
        begin, before = self._until_repeated(b"", configuration, repeating)
        rng = random.Random(0)
        try:
            for attempt in range(_MAX_ATTEMPTS):
                text, at = (begin, before) if attempt else (b"", configuration)
                for byte in rng.choices(_NAME_CHARS, k=(attempt + 1) // 2):
                    reached = self._reached(at, bytes((byte,)))
                    if reached is not None:
                        text, at = text + bytes((byte,)), reached
                found = self._settled(self._heads(at), at)
                if found is None:
                    continue
                if not self._grammar.repeats_name(configuration, text + found):
                    return text + found
                further = self._until_repeated(text, at, found)
                if len(further[0]) > len(begin):  # the next name repeats one: change that one too
                    begin, before = further
        finally:
            self._avoid = frozenset()
        return None

    def _until_repeated(self, text: bytes, at: Configuration, repeating: bytes) -> tuple[bytes, Configuration]:
        """`text` and what follows of `repeating` up to the end of the first name that repeats another, with the place reached there."""
        for byte in repeating:
            reached = self._reached(at, bytes((byte,)))
            if reached is None:
                break
            text, at = text + bytes((byte,)), reached
        return text, at

    def _heads(self, configuration: Configuration) -> list[PathPosition]:
        heads = []
        for i in range(int(configuration[NUM_HEADS])):
            state, register, node = (int(x) for x in configuration[HEADS + 3 * i : HEADS + 3 * i + 3])
            heads.append((state, self._register(configuration, state, register), node))
        return heads

    def _settled(self, heads: list[PathPosition], configuration: Configuration | None) -> bytes | None:
        """Search, compute the texts of frames called on the way, and search again until nothing changes."""
        while True:
            self._wanted = set()
            found = self._search(heads, configuration)
            missing = [start for start in self._wanted if start not in self._shortest]
            if not missing:
                return found
            self._needs_unlimited()
            self._work_out(missing)

    def _work_out(self, starts: Iterable[int]) -> None:
        """Compute short texts of some starts and of all frames they call: callees first, mutually recursive ones until all have one."""
        unknown: dict[int, set[int]] = {}
        self._call(starts, unknown)
        is_changed = True
        while is_changed and unknown:
            is_changed = False
            for start, lacked in () if self._is_full else tuple(unknown.items()):
                if all(self._shortest.get(called) is None for called in lacked):
                    continue  # the search would find the same
                self._wanted = set()
                text = self._search([(start, 0, ROOT)], None)
                unknown[start] = self._lacked()
                self._call([called for called in self._wanted if called not in self._shortest], unknown)
                if text is not None:
                    self._keep(start, text)
                    del unknown[start]
                    is_changed = True

    def _lacked(self) -> set[int]:
        """The frames without a text that the last search called."""
        return {called for called in self._wanted if self._shortest.get(called) is None}

    def _call(self, starts: Iterable[int], unknown: dict[int, set[int]]) -> None:
        """Compute `starts` depth first; those without a text so far are added to `unknown`, with the frames that they lack."""
        waiting, active = list(starts), set[int]()
        while waiting and not self._is_full:
            start = waiting[-1]
            if start in self._shortest:
                waiting.pop()
                continue
            active.add(start)
            self._wanted = set()
            text = self._search([(start, 0, ROOT)], None)
            called = [each for each in self._wanted if each not in self._shortest and each not in active]
            if called:
                waiting += called
                continue
            self._keep(start, text)
            if text is None:
                unknown[start] = self._lacked()

    def _keep(self, start: int, text: bytes | None) -> None:
        """Store the text that the last search found."""
        if text is not None:
            self._num_cached_bytes += len(text)
            self._long.discard(start)
        elif self._was_long:
            self._long.add(start)
        self._shortest[start] = text

    @property
    def _is_full(self) -> bool:
        """Whether the cache is full."""
        return self._num_cached_bytes > MAX_CACHED_BYTES

    def _text_of(self, start: int) -> bytes | None:
        """The shortest known text of a called frame."""
        if self._is_full and start not in self._shortest:
            self._was_long = True
            return None
        self._wanted.add(start)
        self._lacks = self._lacks or start not in self._shortest
        self._was_long = self._was_long or start in self._long
        return self._shortest.get(start)

    def _search(self, heads: list[PathPosition], configuration: Configuration | None) -> bytes | None:
        """Dijkstra's search from some places to the end of the text; depth first if that takes too long."""
        best: dict[PathPosition, int] = {}
        back: dict[PathPosition, tuple[PathPosition | None, bytes]] = {}
        queue: list[tuple[int, int, PathPosition]] = []
        tie, sign, num_lost = 0, 1, 0
        self._was_long = False

        def reach(place: PathPosition, cost: int, origin: PathPosition | None, text: bytes) -> None:
            nonlocal tie
            if cost > MAX_BYTES:
                self._was_long = True
                return
            known = best.get(place)
            if known is None or (cost < known and sign > 0):
                best[place] = cost
                back[place] = (origin, text)
                tie += 1
                heapq.heappush(queue, (sign * cost if sign > 0 or place != end else -_MANY, tie, place))

        end: PathPosition = (-1, 0, ROOT)
        for head in heads:
            reach(head, 0, None, b"")
        done: set[PathPosition] = set()
        work = self._work
        while queue:
            if work is not None:
                work.spend()
            _, _, place = heapq.heappop(queue)
            if place == end:
                return _spell(back, place)
            if place in done:
                continue
            done.add(place)
            cost = best[place]
            if len(done) > _MAX_PLACES:
                return None
            if len(done) > _MAX_BREADTH and sign > 0:  # an automaton of many states: any path will do
                sign = -1
                queue = [(-best[each], at, each) for _, at, each in queue]
                heapq.heapify(queue)
            state, register, node = place
            if state < 0 or self._tables.state(state, ACC) != OPEN:
                if node == ROOT:
                    reach(end, cost, place, b"")
                else:
                    for following in self._returns(configuration, node):
                        reach(following, cost, place, b"")
            if state < 0:
                continue
            closer = self._tables.closers.get(state)
            if closer is not None:
                self._lacks = False
                if work is not None:
                    work.spend(closer.weight)
                try:
                    text = closer.text(register, self._text_of, self._avoid)
                except LongTextError:  # every other completion from here is too long as well
                    self._was_long = True
                    continue
                if text is None and self._lacks:  # once that is computed, the search is repeated
                    continue
                if text is not None:
                    reach((-1, 0, node), cost + len(text), place, text)
                    continue
            ends = self._ends_of_string(state) if num_lost < _MAX_LOST and state in self._tables.embedded else None
            num_lost += ends == []
            if ends:
                for begin, at in ends:
                    for target, new_register, text in self._follow(at, register, QUOTE, self._value(at, QUOTE)):
                        reach((target, new_register, node), cost + len(begin) + len(text), place, begin + text)
                continue
            for byte, value in self._row(state):
                if value <= FIRST_ACTION and self._tables.words[FIRST_ACTION - value] == SPELL:
                    if node != ROOT:
                        char = self._tables.words[FIRST_ACTION - value + 1]
                        for at, outer, above in self._returns(configuration, node):
                            for target, new_register, _ in self._follow(at, outer, char, self._value(at, char)):
                                reach((target, new_register, above), cost + 1, place, bytes((byte,)))
                    continue
                for target, new_register, text in self._follow(state, register, byte, value):
                    reach((target, new_register, node), cost + len(text), place, text)
        return None

    def _ends_of_string(self, state: int) -> list[tuple[bytes, int]]:
        """Short texts from inside a string with a pattern to its ends, with the states there, which allow the closing quote.

        There is one text for each place that the quote leads to; none if the search has to find them.
        """
        found = self._string_ends.get(state)
        if found is None:
            self._needs_unlimited()
            with self._tables.lock:
                texts = self._tables.embedded[state].nearest_ends(state)
            found = []
            for text in texts:
                at = state
                for byte in text:
                    at = self._value(at, byte)
                    assert at >= 0, "a text of the string"
                found.append((text, at))
            self._string_ends[state] = found
        return found

    def _value(self, state: int, byte: int) -> int:
        """The value of a state for a byte."""
        tables = self._tables
        if state in tables.makers:
            self._grammar.complete_row(state)
        if tables.state(state, BYTE) == byte:
            return tables.state(state, TARGET)
        return int(tables.rows[tables.state(state, ROW), byte])

    def _returns(self, configuration: Configuration | None, node: int) -> Iterable[PathPosition]:
        """The places that a frame returns to."""
        assert configuration is not None
        edge = node + NODE_EDGE
        while edge:
            state = int(configuration[edge + EDGE_RETURN])
            register = self._register(configuration, state, int(configuration[edge + EDGE_REGISTER]))
            yield state, register, int(configuration[edge + EDGE_PARENT])
            edge = int(configuration[edge + EDGE_NEXT])

    def _register(self, configuration: Configuration, state: int, register: int) -> Register:
        size = self._tables.state(state, BLOCK)
        if size == 0 or register == 0:
            return register
        return tuple(int(word) for word in configuration[register : register + size])

    def _row(self, state: int) -> tuple[tuple[int, int], ...]:
        """The values of a state, each with one byte that leads to it."""
        found = self._edges.get(state)
        if found is not None:
            return found
        tables = self._tables
        if state in tables.makers:
            self._grammar.complete_row(state)
        if tables.state(state, ROW) == DEAD_ROW:
            byte, target = tables.state(state, BYTE), tables.state(state, TARGET)
            return ((byte, target),) if byte < 256 and target != NONE else ()
        row, byte = tables.rows[tables.state(state, ROW)], tables.state(state, BYTE)
        if byte < 256:  # it takes precedence over the row's entry for this byte
            row = row.copy()
            row[byte] = tables.state(state, TARGET)
        values, first = np.unique(row[self._order], return_index=True)
        pairs = {int(values[i]): int(self._order[first[i]]) for i in np.argsort(first)}
        pairs.pop(NONE, None)
        edges = tuple((byte, value) for value, byte in pairs.items())
        self._edges[state] = edges
        return edges

    def _follow(self, state: int, register: Register, byte: int, value: int) -> list[tuple[int, Register, bytes]]:
        """The places that a value leads to: states, registers and texts within the frame."""
        if value >= 0:
            return [(value, register, bytes((byte,)))]
        if value == UNKNOWN:
            return []
        X, a = self._tables.words, FIRST_ACTION - value
        kind = X[a]
        if kind == ALTERNATIVES:
            return [
                reached
                for i in range(X[a + 1])
                if X[a + 2 + i] != NONE
                for reached in self._follow(state, register, byte, X[a + 2 + i])
            ]
        if kind <= CALL_TO:
            if kind == CALL and self._tables.state(state, PARAM) == state:
                return []  # an escape in a name, whose characters are also spelled without one
            text = self._text_of(X[a + 1])
            if text is None:
                return []
            ret = self._tables.state(state, PARAM) if kind == CALL else X[a + 3] if kind == CALL_TO else state + 1
            return [(ret, register, text)]
        reached = self._act(a, register)
        return [] if reached is None else [(*reached, bytes((byte,)))]

    def _act(self, a: int, register: Register) -> tuple[int, Register] | None:
        """`registers.act` on Python registers."""
        X = self._tables.words
        kind = X[a]
        if kind in (COUNT, COUNT_UP, AT_LEAST, AT_MOST):
            assert isinstance(register, int)
            if kind == COUNT_UP:
                if register >= X[a + 4]:
                    return None
                return X[a + 2 if register + 1 >= X[a + 3] else a + 1], min(register + 1, X[a + 5])
            if kind == AT_MOST:
                return (X[a + 1], register) if register <= X[a + 2] else None
            if kind == COUNT:
                return (X[a + 1], min(register + 1, X[a + 3])) if register < X[a + 2] else None
            return (X[a + 1], 0) if register >= X[a + 2] else None
        members = self._members
        if members is None or not members.says(X[a + 1], register):  # consecutive places mostly lie within one name
            members = self._members = ObjectRegister(X, X[a + 1], register)
        if kind == NEW_OBJECT:
            size = X[X[a + 1] + OBJ_WORDS]
            begin = X[X[a + 1] + OBJ_REQUIRED] + size
            return X[a + 2], (0, *X[begin : begin + size])
        if kind == KEY_BRANCH:
            return (X[a + 2], register) if members.may_come(X[a + 3], X[a + 4]) else None
        if kind == KEY_END:
            leaves, leaf = X[X[a + 1] + OBJ_LEAVES], X[a + 2]
            if not members.may_come(leaf, leaf + 1):
                return None
            return X[leaves + 2 * leaf + 1], members.with_property(X[leaves + 2 * leaf])
        if kind == KEY_OTHER:
            return (X[a + 2], members.with_property(None)) if members.may_have_other else None
        if kind == KEY_PHASE:
            return (X[a + 2 if members.missing else a + 3], register)
        if kind == CLOSE:
            return (X[a + 2], 0) if members.may_close else None
        assert kind == COMMA
        return (X[a + 2], register) if members.may_go_on else None


def _spell(back: dict[PathPosition, tuple[PathPosition | None, bytes]], place: PathPosition) -> bytes:
    parts = []
    at: PathPosition | None = place
    while at is not None:
        at, text = back[at]
        parts.append(text)
    return b"".join(reversed(parts))
