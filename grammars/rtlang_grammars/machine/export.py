"""Exports the tables of a machine to plain arrays for a device, which follows texts and makes masks without the host.

A device follows one head: a state, its register, and the frames below it, each a return state and the register of the caller. States keep
the numbers of the machine, so that a place of a matcher is a place of the device (`Walk.of`), at any point of a text. Registers stay
registers: a count, or the set of names that an object has seen. Actions on them become operations of twelve words (`OP_WORDS`).

Whatever a device cannot do is a HOLE: alternatives, objects with too many names for a register, rows that are not built. A device that
meets a hole says so, and the host decides the next token. So a grammar is exported if its start is no hole.

Invariant: where no token meets a hole, a device allows exactly the tokens that the machine allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton import layout
from rtlang_grammars.machine.automaton.layout import (
    ACC,
    BITS,
    BLOCK,
    BYTE,
    CALL,
    CALL_NEXT,
    CALL_TO,
    EDGE_NEXT,
    EDGE_PARENT,
    EDGE_REGISTER,
    EDGE_RETURN,
    FIRST_ACTION,
    HEADS,
    IN_ANY_ORDER,
    MAX_PACKED_NAMES,
    NEW_OBJECT,
    NODE_EDGE,
    NONE,
    NUM_HEADS,
    OBJ_CAP,
    OBJ_IS_OPEN,
    OBJ_LEAVES,
    OBJ_MAX,
    OBJ_MIN,
    OBJ_NAMES,
    OBJ_NUM_LEAVES,
    OBJ_ORDER,
    OBJ_ORDERED,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
    PARAM,
    ROOT,
    ROW,
    TARGET,
    UNKNOWN,
    UNKNOWN_ROW,
)
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.lexed.anywhere_grammar import AnywhereGrammar
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.native import repeated_names
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarMatcher

DEAD, HOLE, FIRST_OP = -1, -2, -3
"""Values that are not a next state: nowhere, unknown to the device, and ops[FIRST_OP - value]."""

OP_CALL, OP_CALL_NEXT, OP_CALL_TO, OP_SPELL, OP_RANGE, OP_COUNT = range(6)
OP_KEY, OP_KEY_END, OP_OTHER, OP_PHASE, OP_CLOSE, OP_COMMA, OP_NEW = range(6, 13)
"""Operations; the words of each are in `_Ops`."""
OP_WORDS = 12
COUNT_SHIFT = 32
"""Bit of a register at which the number of properties begins, if they are counted; the names seen lie below."""

MAX_STATES = 60_000
MAX_ROWS = 16_384
MAX_BUILT = 4_096
"""Maximum number of open rows that an export builds."""


@dataclass(frozen=True, slots=True, eq=False)
class ExportedAutomaton:
    """The tables of a grammar. Immutable.

    Attributes:
        classes: uint8 [256], the class of each byte.
        rows: int32 [num_rows, num_classes], where a state goes on a byte.
        states: int32 [num_states, 8]: row, single byte (256: none), its value, parameter of calls, whether the frame may end (as
            `layout.ACC`), minimum and maximum on which masks depend if the register counts characters (else -1), and words of the register.
        ops: int64 [num_ops, OP_WORDS].
        start: the state at the start of the text.
        has_names: names in one object must differ (`native.repeated_names`).
        num_holes: places in `rows` and `states` that only the host knows.
    """

    classes: NDArray[np.uint8]
    rows: NDArray[np.int32]
    states: NDArray[np.int32]
    ops: NDArray[np.int64]
    start: int
    has_names: bool
    num_holes: int


@dataclass(frozen=True, slots=True)
class Trail:
    """The names in the open containers of JSON text, for a device that keeps names distinct.

    Attributes:
        mode, escape, unit, high: see `native.repeated_names`.
        digest: `name_digest` of the bytes of the name that is read, if one is read.
        containers: for each open container, outermost first: whether it is an object, and the digests of its names.
    """

    mode: int = repeated_names.IN_VALUE
    escape: int = 0
    unit: int = 0
    high: int = 0
    digest: int = 0
    containers: tuple[tuple[bool, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """A place in a text, as a device follows it.

    Attributes:
        state, register: of the head.
        stack: return state and register of each frame below, the outermost first.
        is_complete: whether the text may end here.
        trail: the names so far.
    """

    automaton: ExportedAutomaton
    state: int
    register: int = 0
    stack: tuple[tuple[int, int], ...] = ()
    is_complete: bool = False
    trail: Trail = field(default_factory=Trail)

    @classmethod
    def of(cls, automaton: ExportedAutomaton, matcher: GrammarMatcher) -> Walk | None:
        """The place of a matcher of the exported grammar; None if only the host can follow it: the text has ended or has several heads."""
        if not isinstance(matcher, MachineMatcher) or matcher._has_ended:
            return None
        place = matcher._place
        found = place.configuration
        if isinstance(found, tuple) or found[NUM_HEADS] != 1:
            return None
        state, register, node = found[HEADS : HEADS + 3].tolist()
        stack = list(_frames(automaton, found, node))
        top = _word(automaton, found, state, register)
        if top is None or None in stack:
            return None
        trail: Trail | None = Trail()
        if automaton.has_names:
            trail = _trail(found[found[layout.LENGTH] :].tolist())
        if trail is None:
            return None
        return cls(automaton, state, top, tuple(each for each in stack[::-1] if each), place.is_complete, trail)


def _frames(automaton: ExportedAutomaton, found: NDArray[np.int64], node: int) -> Iterator[tuple[int, int] | None]:
    """The frames below a head, innermost first; None instead of one that a device does not know."""
    while node != ROOT:
        edge = node + NODE_EDGE
        if found[edge + EDGE_NEXT]:
            yield None
            return
        state = int(found[edge + EDGE_RETURN])
        register = _word(automaton, found, state, int(found[edge + EDGE_REGISTER]))
        yield None if register is None else (state, register)
        node = int(found[edge + EDGE_PARENT])


def _word(automaton: ExportedAutomaton, found: NDArray[np.int64], state: int, register: int) -> int | None:
    """A register as one word; None if it has more, or the state was added after the export."""
    if state >= len(automaton.states):
        return None
    size = int(automaton.states[state, 7])
    if size == 0 or register == 0:
        return register
    return int(found[register + 1]) | int(found[register]) << COUNT_SHIFT if size == 2 else None


_MASK = (1 << 64) - 1
DIGEST_START, DIGEST_FACTOR = 0xCBF29CE484222325, 0x100000001B3


def name_digest(name: Sequence[int]) -> int:
    """64 bits of a name from its bytes, signed: FNV-1a, with the upper half added to the lower after each byte."""
    digest = DIGEST_START
    for byte in name:
        digest = ((digest ^ byte) * DIGEST_FACTOR) & _MASK
        digest ^= digest >> 32
    return digest - (1 << 64) if digest >> 63 else digest


def _trail(words: list[int]) -> Trail | None:
    """The trail after a configuration; None if it is not kept any more."""
    if words[repeated_names.MODE] == repeated_names.LOST:
        return None
    digest, name = 0, words[repeated_names.NAME]
    if words[repeated_names.MODE] == repeated_names.IN_NAME:
        if not name:
            return None
        digest = name_digest(words[name + 1 : words[repeated_names.LENGTH]])
    containers, at = [], words[repeated_names.TOP]
    while at:
        names, begin = [], at + 3
        for _ in range(words[at + 2]):
            end = begin + 1 + words[begin]
            names.append(name_digest(words[begin + 1 : end]))
            begin = end
        containers.append((bool(words[at + 1]), tuple(names)))
        at = words[at]
    return Trail(
        words[repeated_names.MODE],
        words[repeated_names.ESCAPE],
        words[repeated_names.UNIT],
        words[repeated_names.HIGH],
        digest,
        tuple(containers[::-1]),
    )


def export(matcher: GrammarMatcher) -> ExportedAutomaton | None:
    """The tables of a matcher's grammar; None if a device cannot follow it.

    It cannot follow special tokens, texts whose tokens are counted, grammars with a lexer, and more than MAX_STATES states.

    Builds up to MAX_BUILT open rows. May take some hundred milliseconds.
    """
    grammar = owner_of(matcher)
    if grammar is None or grammar.tables.token_sets or grammar.tables.token_bounds:
        return None
    tables = grammar.tables
    _build_rows(tables)
    with tables.lock:
        if tables.num_states > MAX_STATES:
            return None
        return _exported(tables, int(grammar.start_place.configuration[HEADS]))


def owner_of(matcher: GrammarMatcher) -> MachineGrammar | None:
    """The owner of a matcher's automaton, which is the same for all matchers of a compiled grammar; None if there is no automaton."""
    found: object = matcher._grammar if isinstance(matcher, MachineMatcher) else None
    if isinstance(found, AnywhereGrammar):
        try:
            found = found.machine
        except GrammarError:
            return None
    return found if isinstance(found, MachineGrammar) else None


def _build_rows(tables: Tables) -> None:
    """Build open rows, those of the first states first; the rest stays open. Masks may be made meanwhile: the lock is held row by row."""
    num_built = 0
    while tables.makers and num_built < MAX_BUILT:
        with tables.lock:
            open_states = sorted(tables.makers)[: MAX_BUILT - num_built]
        for state in open_states:
            try:
                tables.complete(state)
            except GrammarError:  # it exceeds the grammar's budget
                return
            num_built += 1
            if tables.num_states > MAX_STATES or tables.num_rows > MAX_ROWS:
                return


def _exported(tables: Tables, start: int) -> ExportedAutomaton | None:
    num_states, snapshot = tables.num_states, tables.published
    S = snapshot.S[:num_states]
    used, row_of = np.unique(S[:, ROW], return_inverse=True)
    wide = snapshot.T.reshape(-1, 256)[used]
    values = np.concatenate((wide.reshape(-1), S[:, TARGET]))
    least = int(values.min())
    is_used = np.zeros(int(values.max()) - least + 1, dtype=np.bool_)  # sorting the values took most of the time
    is_used[values - least] = True
    ops = _Ops(snapshot.X, S[:, BLOCK])
    place = np.zeros(len(is_used), dtype=np.int32)
    for value in (np.flatnonzero(is_used) + least).tolist():
        place[value - least] = ops.value(value)
    there = place[values - least]
    wide, targets = there[: wide.size].reshape(wide.shape), there[wide.size :]
    wide[used == UNKNOWN_ROW] = HOLE
    columns: dict[bytes, int] = {}
    turned = np.ascontiguousarray(wide.T)
    classes = np.array([columns.setdefault(column.tobytes(), len(columns)) for column in turned], dtype=np.uint8)
    first = [int(np.argmax(classes == number)) for number in range(len(columns))]
    states = np.full((num_states, 8), -1, dtype=np.int32)
    states[:, 0], states[:, 1], states[:, 2] = row_of.reshape(-1), S[:, BYTE], targets
    states[:, 3], states[:, 4], states[:, 7] = S[:, PARAM], S[:, ACC], S[:, BLOCK]
    for state, bounds in tables.counted.items():
        states[state, 5:7] = bounds
    rows = np.ascontiguousarray(turned[first].T)
    num_holes = int((rows == HOLE).sum()) + int((targets == HOLE).sum())
    listed = np.array(ops.words or [[0] * OP_WORDS], dtype=np.int64)
    is_single = states[start, 1] < 256 and targets[start] != HOLE
    if not is_single and (rows[states[start, 0]] <= HOLE).all() and (rows[states[start, 0]] == HOLE).any():
        return None
    return ExportedAutomaton(classes, rows, states, listed, start, tables.has_distinct_names, num_holes)


class _Ops:
    """Operations of a grammar, from its actions.

    The words after the kind:
        calls: start, its register, return state. OP_SPELL: the byte.
        OP_RANGE: target, minimum, maximum, mask of the register afterwards (0 resets it).
        OP_COUNT: target below the minimum, target from it on, maximum, cap, minimum.
        objects: target, other target (OP_PHASE), names, required names, ordered names, flags (1: in order, 2: others last, 4: open),
            bits set by the name, minimum, maximum (-1: none) and cap of the number of properties, and whether they are counted.
    """

    def __init__(self, X: NDArray[np.int32], block: NDArray[np.int32]) -> None:
        self._X, self._block = X, block
        self.words: list[list[int]] = []
        self._objects: dict[int, list[int] | None] = {}

    def value(self, value: int) -> int:
        """The value on the device."""
        if value >= 0:
            return value if value < len(self._block) else HOLE
        if value == NONE:
            return DEAD
        if value == UNKNOWN:
            return HOLE
        words = self._op(FIRST_ACTION - value)
        if words is None:
            return HOLE
        self.words.append(words + [0] * (OP_WORDS - len(words)))
        return FIRST_OP - (len(self.words) - 1)

    def _op(self, at: int) -> list[int] | None:
        X = self._X
        kind, one, two, three, four, five = [*X[at : at + 6].tolist(), *[0] * 6][:6]
        match kind:
            case layout.CALL | layout.CALL_NEXT | layout.CALL_TO:
                return [{CALL: OP_CALL, CALL_NEXT: OP_CALL_NEXT, CALL_TO: OP_CALL_TO}[kind], one, two, three]
            case layout.SPELL:
                return [OP_SPELL, one]
            case layout.COUNT:
                return [OP_COUNT, one, one, two, three, 0]
            case layout.COUNT_UP:
                return [OP_COUNT, one, two, four, five, three]
            case layout.AT_LEAST:
                return [OP_RANGE, one, two, 1 << 62, 0]
            case layout.AT_MOST:
                return [OP_RANGE, one, -(1 << 62), two, -1]
            case layout.ALTERNATIVES:
                return None
        return self._object_op(kind, one, two, three, four)

    def _object_op(self, kind: int, at: int, two: int, three: int, four: int) -> list[int] | None:
        X = self._X
        described = self._described(at)
        if described is None:
            return None
        leaves, num_leaves = int(X[at + OBJ_LEAVES]), int(X[at + OBJ_NUM_LEAVES])
        target, other, names, passed = two, 0, 0, 0
        match kind:
            case layout.KEY_BRANCH:
                found, names = OP_KEY, _bits(X[leaves + 2 * three : leaves + 2 * four : 2].tolist())
            case layout.KEY_END:
                found, name = OP_KEY_END, int(X[leaves + 2 * two])
                target, names = int(X[leaves + 2 * two + 1]), 1 << name
                passed = names | (1 << self._num_passed(at, name)) - 1
            case layout.KEY_OTHER:
                found, passed = OP_OTHER, (1 << self._num_passed(at, -1)) - 1
            case layout.KEY_PHASE:
                found, other = OP_PHASE, three
            case layout.CLOSE:
                found = OP_CLOSE
            case layout.COMMA:
                found, names = OP_COMMA, _bits(X[leaves : leaves + 2 * num_leaves : 2].tolist())
            case _:
                assert kind == NEW_OBJECT
                found, passed = OP_NEW, int(X[int(X[at + OBJ_REQUIRED]) + int(X[at + OBJ_WORDS])])
        return [found, target, other, names, described[0], described[1], described[2], passed, *described[3:]]

    def _described(self, at: int) -> list[int] | None:
        """Required names, ordered names, flags, and the bounds of an object; None if a register of one word cannot hold its names."""
        if at not in self._objects:
            self._objects[at] = self._description(self._X[at : at + 11].tolist())
        return self._objects[at]

    def _description(self, words: list[int]) -> list[int] | None:
        X, num_words = self._X, words[OBJ_WORDS]
        if words[OBJ_NAMES] > (BITS if num_words else MAX_PACKED_NAMES) or num_words > 1:
            return None
        is_open, order = words[OBJ_IS_OPEN] != 0, words[OBJ_ORDER]
        if num_words and not is_open and order != IN_ANY_ORDER and words[OBJ_MIN] > 0:
            return None  # whether enough names are left depends on each name
        begin = words[OBJ_REQUIRED]
        required = sum(int(X[begin + each]) << (BITS * each) for each in range(num_words or 2))
        required &= (1 << words[OBJ_NAMES]) - 1
        flags = (order != IN_ANY_ORDER) | (order == OTHERS_LAST) << 1 | is_open << 2
        bounds = [words[OBJ_MIN], words[OBJ_MAX], words[OBJ_CAP], 1] if num_words else [0, -1, 0, 0]
        return [required, (1 << words[OBJ_ORDERED]) - 1, flags, *bounds]

    def _num_passed(self, at: int, name: int) -> int:
        """See `native.registers.num_passed`."""
        ordered = int(self._X[at + OBJ_ORDERED])
        if 0 <= name < ordered:
            return name
        return ordered if self._X[at + OBJ_ORDER] == OTHERS_LAST else 0


def _bits(names: list[int]) -> int:
    found = 0
    for name in names:
        found |= 1 << name
    return found
