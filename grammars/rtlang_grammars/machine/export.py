"""Exports the tables of a machine to plain arrays for a device, which follows texts and makes masks without the host.

A device follows one head: a state, its register, and the frames below it, each a return state and the register of the caller. States keep
the numbers of the machine, so that a place of a matcher is a place of the device (`Walk.of`), at any point of a text. Registers stay
registers: a count, or the set of names that an object has seen. Actions on them become operations of twelve words (`OP_WORDS`).

A register is one word, or a *block* of words if an object has more names than a word holds.

Whatever a device cannot do is a HOLE: alternatives, objects with too many names for a block, rows that are not built. A device that
meets a hole says so, and the host decides the next token. So a grammar is exported if its start is no hole.

Invariant: where no token meets a hole, a device allows exactly the tokens that the machine allows.
"""

from __future__ import annotations

from collections.abc import Sequence
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
OP_LARGE = 16
"""Added to the kinds of operations on objects whose register is a block."""
NAME_BITS, MAX_NAME_WORDS = 60, 9
"""Names in a word of a block, and its words of names."""
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
        blocks: of frames with one, whose register is 0: the number of frames below, and the words: the count, then the names seen.
    """

    automaton: ExportedAutomaton
    state: int
    register: int = 0
    stack: tuple[tuple[int, int], ...] = ()
    is_complete: bool = False
    trail: Trail = field(default_factory=Trail)
    blocks: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, automaton: ExportedAutomaton, matcher: GrammarMatcher) -> Walk | None:
        """The place of a matcher of the exported grammar; None if only the host can follow it: the text has ended or has several heads."""
        if not isinstance(matcher, MachineMatcher) or matcher._has_ended:
            return None
        place = matcher._place
        found = place.configuration
        if isinstance(found, tuple) or found[NUM_HEADS] != 1:
            return None
        frames = _frames(automaton, found)
        trail: Trail | None = Trail()
        if automaton.has_names:
            trail = _trail(found[found[layout.LENGTH] :].tolist())
        if frames is None or trail is None:
            return None
        words = [(state, 0 if isinstance(register, tuple) else register) for state, register in frames]
        blocks = tuple((depth, each) for depth, (_, each) in enumerate(frames) if isinstance(each, tuple))
        return cls(automaton, *words[-1], tuple(words[:-1]), place.is_complete, trail, blocks)


_Register = int | tuple[int, ...]
"""A word, or the words of a block."""


def _frames(automaton: ExportedAutomaton, found: NDArray[np.int64]) -> list[tuple[int, _Register]] | None:
    """State and register of each frame, outermost first; the last is the head. None if a device does not know one."""
    state, register, node = found[HEADS : HEADS + 3].tolist()
    frames: list[tuple[int, _Register]] = []
    while True:
        known = _register(automaton, found, state, register)
        if known is None:
            return None
        frames.append((state, known))
        if node == ROOT:
            return frames[::-1]
        edge = node + NODE_EDGE
        if found[edge + EDGE_NEXT]:
            return None
        state, register, node = found[[edge + EDGE_RETURN, edge + EDGE_REGISTER, edge + EDGE_PARENT]].tolist()


def _register(automaton: ExportedAutomaton, found: NDArray[np.int64], state: int, register: int) -> _Register | None:
    """A register for a device; None if it is too large, or the state was added after the export."""
    if state >= len(automaton.states):
        return None
    size = int(automaton.states[state, 7])
    if size == 0 or register == 0:
        return register
    if size == 2:
        return int(found[register + 1]) | int(found[register]) << COUNT_SHIFT
    count, *words = found[register : register + size].tolist()
    seen = _as_number(words)
    return (count, *_words(seen)) if seen < 1 << (NAME_BITS * MAX_NAME_WORDS) else None


def _as_number(words: Sequence[int]) -> int:
    """Words of BITS bits as one number, the first word lowest."""
    return sum(word << (BITS * index) for index, word in enumerate(words))


def _words(names: int) -> list[int]:
    """A set of names as MAX_NAME_WORDS words."""
    return [names >> (NAME_BITS * index) & ((1 << NAME_BITS) - 1) for index in range(MAX_NAME_WORDS)]


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


@dataclass(frozen=True, slots=True)
class _Object:
    """What operations on an object need.

    Attributes:
        required, ordered: names, as bits.
        flags, bounds: see `_Ops`.
        at: line of the description of an object whose register is a block, else -1.
        num_words: of its names.
    """

    required: int
    ordered: int
    flags: int
    bounds: tuple[int, int, int, int]
    at: int = -1
    num_words: int = 0


class _Ops:
    """Operations of a grammar, from its actions.

    The words after the kind:
        calls: start, its register, return state. OP_SPELL: the byte.
        OP_RANGE: target, minimum, maximum, mask of the register afterwards (0 resets it).
        OP_COUNT: target below the minimum, target from it on, maximum, cap, minimum.
        objects: target, other target (OP_PHASE), names, required names, ordered names, flags (1: in order, 2: others last, 4: open),
            bits set by the name, minimum, maximum (-1: none) and cap of the number of properties, and whether they are counted.
        OP_LARGE + objects: target, other target, number of words of names, line of the description, line of the names (-1: none), the
            name (-1: none), flags, minimum, maximum, cap, 1. `block_kernel` says what the lines hold.
    """

    def __init__(self, X: NDArray[np.int32], block: NDArray[np.int32]) -> None:
        self._X, self._block = X, block
        self.words: list[list[int]] = []
        self._objects: dict[int, _Object | None] = {}

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
        self._add(words)
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
        target, other, names, name, passed = two, 0, 0, -1, 0
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
        if described.at < 0:
            limits = [described.required, described.ordered, described.flags, passed, *described.bounds]
            return [found, target, other, names, *limits]
        names_at = -1
        if found in (OP_KEY, OP_COMMA):
            names_at = len(self.words)
            self._add(_words(names))
        place = [described.num_words, described.at, names_at, name, described.flags]
        return [OP_LARGE + found, target, other, *place, *described.bounds]

    def _add(self, words: list[int]) -> None:
        self.words.append(words + [0] * (OP_WORDS - len(words)))

    def _described(self, at: int) -> _Object | None:
        if at not in self._objects:
            self._objects[at] = self._description(at)
        return self._objects[at]

    def _description(self, at: int) -> _Object | None:
        """An object; None if no register on a device holds its names."""
        X, words = self._X, self._X[at : at + 11].tolist()
        size, is_open, order = words[OBJ_WORDS], words[OBJ_IS_OPEN] != 0, words[OBJ_ORDER]
        if words[OBJ_NAMES] > NAME_BITS * MAX_NAME_WORDS:
            return None
        if size and not is_open and order != IN_ANY_ORDER and words[OBJ_MIN] > 0:
            return None  # whether enough names are left depends on each name
        begin = words[OBJ_REQUIRED]
        required = _as_number(X[begin : begin + (size or 2)].tolist()) & ((1 << words[OBJ_NAMES]) - 1)
        flags = (order != IN_ANY_ORDER) | (order == OTHERS_LAST) << 1 | is_open << 2
        bounds = (words[OBJ_MIN], words[OBJ_MAX], words[OBJ_CAP], 1) if size else (0, -1, 0, 0)
        if size <= 1:
            return _Object(required, (1 << words[OBJ_ORDERED]) - 1, flags, bounds)
        excluded = words[OBJ_ORDERED] if order == OTHERS_LAST else 0
        num_words = -(-words[OBJ_NAMES] // NAME_BITS)
        self._add([*_words(required), words[OBJ_ORDERED], excluded, num_words])
        self._add([*_words(_as_number(X[begin + size : begin + 2 * size].tolist())), words[OBJ_CAP]])
        return _Object(required, 0, flags, bounds, len(self.words) - 2, num_words)

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
