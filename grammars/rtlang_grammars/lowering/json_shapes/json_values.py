"""Lowers the values that are allowed in one place: strings, numbers and literals here, containers in modules of their own.

Every alternative of a shape becomes a frame that is called where a value of the shape may begin. The first bytes select it; alternatives
with equal first bytes run in parallel. Places with the same shape share their rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.lowering.json_shapes.closers import CountedCloser
from rtlang_grammars.lowering.json_shapes.joints import Joints
from rtlang_grammars.lowering.json_shapes.json_arrays import add_array
from rtlang_grammars.lowering.json_shapes.json_distinct_arrays import add_distinct_array
from rtlang_grammars.lowering.json_shapes.json_objects import add_object, allows_undeclared_names, has_endless_names
from rtlang_grammars.lowering.json_shapes.json_spellings import spellings
from rtlang_grammars.lowering.json_shapes.literal_trie import (
    LITERALS,
    NO_ROWS,
    NO_STATES,
    NO_WORDS,
    build_trie,
)
from rtlang_grammars.lowering.json_shapes.shape_builder import Calls
from rtlang_grammars.lowering.languages.counted_embedding import MAX_COUNTED, CountedEmbedding, NumberEmbedding
from rtlang_grammars.lowering.languages.embedding import QuotedEmbedding
from rtlang_grammars.machine.automaton.json_base_states import (
    COUNTED_SLICE,
    MAX_BOUNDED_DIGITS,
    MAX_DIGITS,
    MAX_ZEROS,
    QUOTE,
    JsonBaseStates,
    add_body,
    json_base_states,
)
from rtlang_grammars.machine.automaton.layout import (
    ALTERNATIVES,
    AT_LEAST,
    CALL,
    COUNT,
    DEAD_ROW,
    NONE,
    PARAM,
    ROW,
    STATE_WORDS,
    WIDTH,
)
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.numeric.numbers import number_language
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.schema.shape_graph.shapes import (
    Alternative,
    ArrayShape,
    BooleanShape,
    LiteralShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    ShapeGraph,
    StringShape,
)
from rtlang_grammars.spec.constraint import JsonStyle, Numbers
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MANY = 1 << 30
_MAX_LENGTH, _MAX_PLAIN_LENGTH = 512, 300
"""Maximum length of numbers as elements of structures, where nothing counts repetitions. Plain numbers but integers stay finite."""
_MAX_FEWEST = 64
"""Largest minimum length of a counted string with a pattern; completions of longer ones are not searched for."""
_MAX_AT_ONCE = 48
"""Maximum number of containers with patterns of names that are built at once; further ones are built on demand."""
_CROWD = 8
"""With more containers at one place than this, all of them are built at once: on demand, one mask would have to wait for all."""
_MAX_TOGETHER = 1024


class ShapeTables:
    """Builds the tables of a graph of shapes. Owned by one compile. Implements `ShapeBuilder`."""

    def __init__(
        self, graph: ShapeGraph, budget: Budget, style: JsonStyle | None = None, tables: Tables | None = None
    ) -> None:
        """Start empty.

        Args:
            tables: where to build, begun with the base states of this style; by default new ones.
        """
        self.style = style or JsonStyle()
        self.base: JsonBaseStates = json_base_states(self.style)
        self.joints = Joints.of(self.style.layout, 0)
        self._depth, self._inner = 0, self
        self._is_indented = self.style.layout is not None and self.style.layout.indent is not None
        self.budget = budget
        self.tables = Tables(budget, self.base.tables) if tables is None else tables
        self._shapes: list[Shape] = list(graph.shapes)
        self._root = graph.root
        self._strings: dict[StringShape, int] = {}
        self._containers: dict[ArrayShape | ObjectShape, int] = {}
        self._calls: dict[int, Calls] = {}
        self._starts: dict[int, tuple[int, ...]] = {}
        self._rows: dict[int, tuple[int, int]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._num_open, self._is_checked, self._in_crowd = 0, False, False
        self._numbers: dict[NumberShape, tuple[bytes, int]] = {}

    @property
    def inner(self) -> ShapeTables:
        """The builder of the values one level deeper: this one, unless texts depend on the depth."""
        if self._is_indented and self._inner is self:
            self._inner = inner = copy(self)
            inner._inner, inner._depth = inner, self._depth + 1
            inner.joints = Joints.of(self.style.layout, inner._depth)
            inner._containers, inner._calls, inner._starts, inner._rows = {}, {}, {}, {}
            inner._waiting = deque()
        return self._inner

    @classmethod
    def empty(cls, budget: Budget) -> ShapeTables:
        """A builder without shapes."""
        return cls(ShapeGraph(0, (), Report("none", ())), budget)

    def build(self) -> int:
        """Fill the tables; returns the start state."""
        _, row = self.rows_of(self._root)
        start = self.tables.add_state(row, param=-1)
        self.finish()
        open_shapes = [
            each
            for shape in self._shapes
            for each in shape.alternatives
            if isinstance(each, ObjectShape) and allows_undeclared_names(each)
        ]
        self.tables.has_distinct_names = bool(open_shapes) and all(
            has_endless_names(each, self.budget) for each in open_shapes
        )
        return start

    def finish(self) -> None:
        """Run all postponed builds, except for containers that are built on demand."""
        while self._waiting:
            self._waiting.popleft()()
        if (self._num_open or self._is_indented) and not self._is_checked:
            # Refuse now what would be refused later: scalars in the containers that are still to be built.
            self._is_checked = True
            for shape in tuple(self._shapes):
                for alternative in shape.alternatives:
                    if isinstance(alternative, NumberShape | StringShape):
                        self.calls_of_alternative(alternative)

    def rows_of(self, ref: int) -> tuple[int, int]:
        """Two rows of a place where a value of a shape begins: with blanks before it, and without. Their calls return to PARAM."""
        found = self._rows.get(ref)
        if found is None:
            found = self._rows[ref] = self._value_rows(self.calls_of(ref))
        return found

    def calls_of(self, ref: int) -> Calls:
        """First bytes and starts of the frames of a shape."""
        found = self._calls.get(ref)
        if found is None:
            alternatives = self._shapes[ref].alternatives
            self._in_crowd = sum(map(_num_containers, alternatives)) > _CROWD
            found = self._calls[ref] = [
                call for alternative in alternatives for call in self.calls_of_alternative(alternative)
            ]
            self._in_crowd = False
        return found

    def starts_of(self, ref: int) -> tuple[int, ...]:
        """Start states of the frames of a shape."""
        found = self._starts.get(ref)
        if found is None:
            found = self._starts[ref] = tuple(dict.fromkeys([start for _, start in self.calls_of(ref)]))
        return found

    def shape_of(self, alternative: Alternative) -> int:
        """Add a shape with one alternative."""
        self._shapes.append(Shape((alternative,)))
        return len(self._shapes) - 1

    def later(self, action: Callable[[], None]) -> None:
        """Run an action after the call in progress, since shapes may be recursive."""
        self._waiting.append(action)

    def _value_rows(self, calls: Calls) -> tuple[int, int]:
        tables = self.tables
        if len(calls) == 1 or _is_apart(calls):
            rows = tables.add_rows(2)
            found = tables.rows
            found[rows], found[rows + 1] = found[self.base.gap_row], NONE
            for first, start in calls:
                value = tables.action(CALL, start, 0)
                if len(first) == 1:
                    found[rows, first[0]] = found[rows + 1, first[0]] = value
                else:
                    found[rows : rows + 2, list(first)] = value
            return rows, rows + 1
        starts: dict[int, list[int]] = {}
        for first, start in calls:
            for byte in first:
                waiting = starts.setdefault(byte, [])
                if start not in waiting:
                    waiting.append(start)
        if max(map(len, starts.values()), default=0) > _MAX_TOGETHER:
            raise GrammarError(
                f"more than {_MAX_TOGETHER} objects, arrays or numbers at one location begin with the same byte"
            )
        groups: dict[tuple[int, ...], list[int]] = {}
        for byte, each in starts.items():
            groups.setdefault(tuple(each), []).append(byte)
        rows = tables.add_rows(2)
        tables.rows[rows] = tables.rows[self.base.gap_row]
        tables.rows[rows + 1] = NONE
        values: dict[int, int] = {}
        for group, chars in groups.items():
            for start in group:
                if start not in values:
                    values[start] = tables.action(CALL, start, 0)
            value = values[group[0]]
            if len(group) > 1:
                value = tables.action(ALTERNATIVES, len(group), *(values[start] for start in group))
            tables.rows[rows : rows + 2, chars] = value
        return rows, rows + 1

    def calls_of_alternative(self, alternative: Alternative) -> Calls:
        """First bytes and start states of the frames of one alternative."""
        self.budget.spend(states=1)
        words = self.base.words
        match alternative:
            case NullShape():
                return [(b"n", words["null"])]
            case BooleanShape():
                return [(b"t", words["true"]) if value else (b"f", words["false"]) for value in alternative.values]
            case NumberShape():
                return [self._number(alternative)]
            case StringShape():
                return [(b'"', self._string(alternative))]
            case LiteralShape():
                return self._literals(alternative.values)
            case ArrayShape():
                return [(b"[", self._container(alternative))]
            case ObjectShape():
                return [(b"{", self._container(alternative))]

    def _container(self, shape: ArrayShape | ObjectShape) -> int:
        candidate = self.tables.num_states
        start = self._containers.setdefault(shape, candidate)  # looked up once: hashing a large shape takes long
        if start != candidate:
            return start
        if self._depth or (len(self._containers) > _num_at_once(shape) and not self._in_crowd):
            self._num_open += 1
            return self.tables.leave_open(lambda start: self._make_container(shape, start))
        self.tables.add_state()
        self.later(lambda: self._add_container(shape, start))
        return start

    def _add_container(self, shape: ArrayShape | ObjectShape, start: int) -> None:
        if isinstance(shape, ObjectShape):
            add_object(self, shape, start)
        elif shape.distinct:
            texts = [
                sorted(spellings(value, self.style.numbers))
                for value in shape.distinct
                if not isinstance(value, list | dict)
            ]
            add_distinct_array(self, shape, texts, start)
        else:
            add_array(self, shape, start)

    def _make_container(self, shape: ArrayShape | ObjectShape, start: int) -> None:
        """Build a container that was postponed."""
        self.budget = self.tables.budget
        self._add_container(shape, start)
        self.finish()
        self.tables.set_state(start, ROW, DEAD_ROW)

    # Numbers

    def _number(self, shape: NumberShape) -> tuple[bytes, int]:
        if shape == NumberShape():
            return b"-0123456789", self.base.number
        if shape == NumberShape(multiple_of=shape.multiple_of) and shape.multiple_of == 1:
            return b"-0123456789", self.base.integer
        found = self._numbers.get(shape)
        if found is None:
            automaton = number_of(shape, self.style.numbers, self.budget).automaton(self.budget)
            has_cycles = bool(shape.not_multiple_of) or (shape.multiple_of is not None and shape.multiple_of != 1)
            most = MAX_BOUNDED_DIGITS if None not in (shape.minimum, shape.maximum) else MAX_DIGITS
            embedding = NumberEmbedding(self.tables, automaton, most, has_cycles=has_cycles)
            found = self._numbers[shape] = (embedding.first_bytes(), embedding.start())
        return found

    # Strings

    def _string(self, shape: StringShape) -> int:
        tables = self.tables
        if shape == StringShape():
            return self.base.string
        start = self._strings.get(shape)
        if start is None:
            if shape.language is None or shape.language.is_any_text:
                inner = self._counted(shape.min_length, shape.max_length)
            else:
                inner = self._patterned(shape.language, shape.min_length, shape.max_length)
            start = self._strings[shape] = tables.add_state(byte=QUOTE, target=inner)
        return start

    def _patterned(self, language: Language, least: int, most: int | None) -> int:
        """The inside of a string whose text is in a language and has bounds on its length."""
        tables, end = self.tables, self.base.end
        counted = language.as_counted_characters()
        if counted is not None:
            every, low, high = counted
            fewest, longest = max(least, low), min((each for each in (most, high) if each is not None), default=None)
            if longest is not None and fewest <= min(longest, _MAX_FEWEST):
                body = every.json_string_body(self.budget)
                return CountedEmbedding(tables, body, end, fewest, longest, {body.start: 0}).start()
        if most is not None and least <= 1 and language.max_length is None and language.min_length == 0:
            body = language.json_string_body(self.budget)
            missing = body.remaining_lengths(MAX_COUNTED)
            if missing is not None and missing[body.start] <= most:
                return CountedEmbedding(tables, body, end, least, most, missing).start()
        if least or most is not None:
            language = language.bounded(least, most)
        return QuotedEmbedding(tables, [language.json_string_body(self.budget)], [end]).start()

    def _counted(self, least: int, most: int | None) -> int:
        """The inside of a string whose code points are counted in the register."""
        tables, end = self.tables, self.base.end
        least = min(least, _MANY)
        limit, cap = (_MANY, least) if most is None else (min(most, _MANY), min(most, _MANY))

        def edit(rows: NDArray[np.int32], _: int) -> None:
            values = np.unique(rows[0]).tolist()
            for target in values:
                if target >= 0:
                    rows[0, rows[0] == target] = tables.action(COUNT, target, limit, cap)
            rows[0, QUOTE] = tables.action(AT_LEAST, end, least)

        inner, _ = add_body(tables, self.base.body, edit, slice_id=COUNTED_SLICE)
        tables.set_state(inner, PARAM, least)
        tables.set_state(inner, WIDTH, limit)
        tables.counted[inner] = (least, limit)
        if least:
            tables.closers[inner] = CountedCloser(least)
        return inner

    # Literals

    def _literals(self, values: Iterable[Json]) -> Calls:
        """Scalars share one trie; arrays and objects become containers."""
        texts: set[bytes] = set()
        calls: Calls = []
        for value in values:
            if isinstance(value, list):
                calls.append((b"[", self._container(self._array_of(value))))
            elif isinstance(value, dict):
                calls.append((b"{", self._container(self._object_of(value))))
            else:
                texts.update(spellings(value, self.style.numbers))
            self.budget.spend(states=1)
        if texts:
            start = self.add_trie(sorted(texts))
            calls.append((bytes({text[0] for text in texts}), start))
        return calls

    def add_trie(self, texts: list[bytes]) -> int:
        """Add a trie of sorted, distinct texts; returns its start state."""
        return self.add_trie_of(texts, LITERALS, np.zeros(7, dtype=np.int64))

    def add_trie_of(self, texts: list[bytes], mode: int, plan: NDArray[np.int64]) -> int:
        """Add a trie (see `literal_trie.build_trie`) and fill in the rest of `plan`; returns its start state."""
        data = np.frombuffer(b"".join(texts), dtype=np.uint8)
        offsets = np.array([0, *accumulate(map(len, texts))], dtype=np.int64)
        tables = self.tables
        stack = np.empty((len(offsets), 4), dtype=np.int64)
        num_states, num_rows, num_words = build_trie(data, offsets, mode, plan, NO_STATES, NO_ROWS, NO_WORDS, stack)
        self.budget.spend(num_bytes=4 * STATE_WORDS * num_states)  # built in one go, so that only the memory is charged
        plan[0], plan[2] = tables.num_states, len(tables.words)
        plan[1] = tables.add_rows(num_rows)
        states = np.zeros((num_states, STATE_WORDS), dtype=np.int32)
        words = np.zeros(num_words, dtype=np.int32)
        build_trie(data, offsets, mode, plan, states, tables.rows, words, stack)
        tables.words.frombytes(words.tobytes())
        return tables.add_states(states)

    def _array_of(self, value: list[Json]) -> ArrayShape:
        prefix = tuple(self.shape_of(LiteralShape((item,))) for item in value)
        return ArrayShape(prefix, None, len(prefix), len(prefix))

    def _object_of(self, value: dict[str, Json]) -> ObjectShape:
        members = tuple(Property(name, self.shape_of(LiteralShape((item,)))) for name, item in value.items())
        return ObjectShape(members, (), None, frozenset(value))


def _num_at_once(shape: ArrayShape | ObjectShape) -> int:
    """With how many containers a container is still built at once. Plain ones below the first are built on demand (about 0.1 ms each).

    Errors are raised while a schema is compiled: where an automaton may become too large, the container is built at once.
    """
    if isinstance(shape, ObjectShape):
        return _MAX_AT_ONCE if shape.classes else 1
    return _MANY if shape.contains or shape.distinct else 1


def _num_containers(alternative: Alternative) -> int:
    """Number of containers that an alternative adds to its place."""
    if isinstance(alternative, LiteralShape):
        return sum([isinstance(value, list | dict) for value in alternative.values])
    return int(isinstance(alternative, ArrayShape | ObjectShape))


def _is_apart(calls: Calls) -> bool:
    """Whether no two frames share a first byte."""
    num_bytes = sum([len(first) for first, _ in calls])
    return num_bytes == len(set().union(*(first for first, _ in calls))) and len({start for _, start in calls}) == len(
        calls
    )


def bounded_number_of(shape: NumberShape, numbers: Numbers, budget: Budget) -> Language:
    """The texts of the numbers of a shape of bounded length, for places where nothing counts digits."""
    is_short = numbers is Numbers.PLAIN and not shape.is_integer
    return number_of(shape, numbers, budget).bounded(1, _MAX_PLAIN_LENGTH if is_short else _MAX_LENGTH)


def number_of(shape: NumberShape, numbers: Numbers, budget: Budget) -> Language:
    """The texts of the numbers of a shape; integers without bounds are as in `JsonBaseStates.integer`."""
    if shape == NumberShape(multiple_of=shape.multiple_of) and shape.multiple_of == 1:
        exponent = r"[eE](\+?([0-2][0-9]{0,2}|3(0[0-8]?|[1-9])?|[4-9][0-9]?)|-00?)"
        zeros, digits = rf"(\.0{{1,{MAX_ZEROS}}})?", rf"[1-9][0-9]{{0,{MAX_DIGITS}}}"
        is_plain = numbers is Numbers.PLAIN
        pattern = rf"0|-?{digits}" if is_plain else rf"-?(0|{digits}){zeros}({exponent})?"
        return compile_regex(pattern, dialect="ecma", budget=budget)
    return number_language(
        shape.minimum,
        shape.maximum,
        exclusive_minimum=shape.exclusive_minimum,
        exclusive_maximum=shape.exclusive_maximum,
        multiple_of=shape.multiple_of,
        not_multiple_of=shape.not_multiple_of,
        integer_form=shape.integer_form,
        fraction_form=shape.fraction_form,
        is_plain=numbers is Numbers.PLAIN,
        budget=budget,
    )
