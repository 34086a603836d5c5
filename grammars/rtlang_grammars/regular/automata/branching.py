"""Byte transitions of a character decoder, per partition of the code points.

They depend on the partition alone, not on the transitions of any automaton, so they are computed once per decoder state and cached with
the partition; all patterns with the same character classes share them. A row of a byte automaton is then one table lookup by byte.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.regular.characters.byte_spellings import (
    UTF8_LEADS,
    DecoderPhase,
    DecoderState,
    code_point_ranges,
    edges,
    lead_state,
    shape,
)
from rtlang_grammars.regular.characters.code_points import FIRST_SURROGATE, LAST_SURROGATE, MAX_CODE_POINT, CodePoints
from rtlang_grammars.regular.characters.partition import Partition

_QUOTE, _BACKSLASH = 0x22, 0x5C
_PREFERRED = "a0bcdefghijklmnopqrstuvwxyz123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "".join(map(chr, range(0x20, 0x7F)))
_NO_LEAD = 0xFF
_MAX_CACHED = 4096
"""Cached dispatches per partition; a partition of all of Unicode needs a few hundred."""


class ByteDispatch(NamedTuple):
    """The transitions of one decoder state: byte b leads to targets[by_byte[b] - 1], or to the dead state where by_byte[b] is 0.

    Attributes:
        by_byte: uint8 [256].
        targets: the next decoder state (None: the character is complete) and the classes that are still possible there.
    """

    by_byte: NDArray[np.uint8]
    targets: tuple[tuple[DecoderState | None, tuple[int, ...]], ...]


class BoundaryDispatch(NamedTuple):
    """The transitions at a character boundary.

    Attributes:
        by_byte: uint8 [256], an index into the concatenation of `classes`, `leads`, the backslash of JSON strings and the dead state.
        classes: classes of ASCII characters.
        leads, lead_classes: decoder states after a UTF-8 lead byte, without duplicates, and the classes that are possible in each.
        shapes, by_byte_in_shapes: replacements of `leads` and `by_byte` for when all characters beyond ASCII lead to one state.
        beyond, all_classes: classes of characters beyond ASCII, and of all characters.
    """

    by_byte: NDArray[np.uint8]
    classes: tuple[int, ...]
    leads: tuple[DecoderState, ...]
    lead_classes: tuple[tuple[int, ...], ...]
    shapes: tuple[DecoderState, ...]
    by_byte_in_shapes: NDArray[np.uint8]
    beyond: tuple[int, ...]
    all_classes: tuple[int, ...]


class CharacterDecoder:
    """Decodes bytes to the character classes of one partition. Caches its dispatches; safe to share between threads.

    Attributes:
        partition: the partition of all code points.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._dispatches: dict[DecoderState, ByteDispatch] = {}
        self._boundaries: dict[bool, BoundaryDispatch] = {}
        self._plain: tuple[int, ...] | None = None
        self._classes: dict[DecoderState, tuple[int, ...]] = {}
        self._examples: dict[tuple[int, bool], bytes] = {}

    def dispatch(self, state: DecoderState) -> ByteDispatch:
        """The transitions within a character."""
        found = self._dispatches.get(state)
        if found is None:
            found = self._make(state)
            if len(self._dispatches) < _MAX_CACHED:
                self._dispatches[state] = found
        return found

    def boundary(self, is_json_string: bool) -> BoundaryDispatch:
        """The transitions at a character boundary."""
        found = self._boundaries.get(is_json_string)
        if found is None:
            found = self._boundaries[is_json_string] = self._make_boundary(is_json_string)
        return found

    def plain_classes(self) -> tuple[int, ...]:
        """The classes with a plain character: no control character, quote, backslash, U+2028 or U+2029."""
        if self._plain is None:
            found: set[int] = set()
            for first, last in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x2027), (0x202A, MAX_CODE_POINT)):
                found |= self.partition.classes_within(first, last)
            self._plain = tuple(sorted(found))
        return self._plain

    def encoded_example(self, number: int, is_json_string: bool) -> bytes:
        """The bytes of one character of a class: a letter or digit if the class has one, else a printable character if it has one."""
        found = self._examples.get((number, is_json_string))
        if found is None:
            preferred = (
                ord(character) for character in _PREFERRED if self.partition.class_of(ord(character)) == number
            )
            character = chr(next(preferred, self.partition.representatives[number]))
            text = json.dumps(character, ensure_ascii=False)[1:-1] if is_json_string else character
            found = self._examples[number, is_json_string] = text.encode()
        return found

    def classes_of(self, state: DecoderState) -> tuple[int, ...]:
        """The classes of the characters that a decoder state can still complete."""
        found = self._classes.get(state)
        if found is None:
            found = self._classes_of(state)
            if len(self._classes) < _MAX_CACHED:
                self._classes[state] = found
        return found

    def _classes_of(self, state: DecoderState) -> tuple[int, ...]:
        partition = self.partition
        if state.phase is DecoderPhase.CONTINUATION:
            return partition.sorted_classes_within(state.first, state.last)
        ranges = code_point_ranges(state)
        if len(ranges) == 1:
            return partition.sorted_classes_within(*ranges[0])
        found: set[int] = set()
        for first, last in ranges:
            found.update(partition.sorted_classes_within(first, last))
        return tuple(sorted(found))

    def _make(self, state: DecoderState) -> ByteDispatch:
        index = np.zeros(256, np.uint8)
        numbers: dict[object, int] = {}
        targets: list[tuple[DecoderState | None, tuple[int, ...]]] = []
        partition, known = self.partition, edges(state)
        at = 0
        while at < len(known):
            low, high, following, first = known[at]
            at += 1
            if following is None:
                for start, stop, number in partition.ranges_within(first, first + high - low):
                    target = numbers.get(number)
                    if target is None:
                        target = numbers[number] = len(numbers) + 1
                        targets.append((None, (number,)))
                    index[low + start - first : low + stop - first + 1] = target
                continue
            classes = self._classes_of(following)
            key: object = (shape(following), classes) if len(classes) == 1 else following
            target = numbers.get(key)
            if target is None:
                target = numbers[key] = len(numbers) + 1
                targets.append((following, classes))
            index[low : high + 1] = target
            if len(classes) == 1:  # most neighbours are blocks of the same class and size
                last, size = partition.last_alike(following.first), following.last - following.first + 1
                if following.phase is DecoderPhase.CONTINUATION and size == 64**following.level:
                    num_blocks = min(
                        (last + 1 - following.first) // size - 1, len(known) - at - 1
                    )  # the last may be smaller
                    if num_blocks > 0:
                        index[high + 1 : high + 1 + num_blocks] = target
                        at += num_blocks
                while at < len(known) and _is_alike(known[at].state, following, size, last):
                    index[known[at].low : known[at].high + 1] = target
                    at += 1
        return ByteDispatch(index, tuple(targets))

    def _make_boundary(self, is_json_string: bool) -> BoundaryDispatch:
        partition = self.partition
        targets: dict[int, int] = {}
        index = np.empty(256, np.uint8)
        for first, stop, number in partition.ranges_within(0, 0x7F):
            index[first : stop + 1] = targets.setdefault(number, len(targets))
        beyond = partition.sorted_classes_within(0x80, MAX_CODE_POINT)
        lead_classes: tuple[tuple[int, ...], ...]
        if len(beyond) == 1:
            leads, by_lead = _leads_alike()
            lead_classes = (beyond,) * len(leads)
        else:
            leads, lead_classes, by_lead = self._leads()
        index[0x80:] = by_lead + len(targets)
        dead = len(targets) + len(leads) + 1
        index[0x80:][by_lead == _NO_LEAD] = dead
        if is_json_string:
            index[:0x20] = index[_QUOTE] = dead
            index[_BACKSLASH] = dead - 1
        by_shape: dict[tuple[int, ...], DecoderState] = {}
        for state in leads:
            by_shape.setdefault(shape(state), state)
        order = {each: number for number, each in enumerate(by_shape)}
        firsts = [len(targets) + order[shape(state)] for state in leads]
        last = len(targets) + len(order)
        renumbered = np.array([*range(len(targets)), *firsts, last, last + 1], np.uint8)
        return BoundaryDispatch(
            by_byte=index,
            classes=tuple(targets),
            leads=leads,
            lead_classes=lead_classes,
            shapes=tuple(by_shape.values()),
            by_byte_in_shapes=renumbered[index],
            beyond=beyond,
            all_classes=tuple(range(partition.num_classes)),
        )

    def _leads(self) -> tuple[tuple[DecoderState, ...], tuple[tuple[int, ...], ...], NDArray[np.uint8]]:
        """The states after UTF-8 lead bytes, their classes, and for each byte from 0x80 on the index of its state."""
        leads: list[DecoderState] = []
        lead_classes: list[tuple[int, ...]] = []
        known: dict[object, int] = {}  # states of one class are merged by shape
        by_lead = np.full(0x80, _NO_LEAD, np.uint8)
        for high, run, states in _lead_runs():
            in_run = self._classes_of(run)
            is_one = len(in_run) == 1
            for byte, state in states[:1] if is_one else states:
                in_place = in_run if is_one else self._classes_of(state)
                key: object = (shape(state), in_place) if len(in_place) == 1 else state
                if key not in known:
                    known[key] = len(leads)
                    leads.append(state)
                    lead_classes.append(in_place)
                by_lead[byte - 0x80 : (high if is_one else byte) - 0x7F] = known[key]
        return tuple(leads), tuple(lead_classes), by_lead


def _is_alike(state: DecoderState | None, other: DecoderState, size: int, last: int) -> bool:
    """Whether all characters of `state` are of the class of `other`, up to `last`, and the two have one shape.

    size: number of code points of `other`. Both states follow the same state.
    """
    if state is None or state.last > last or state.last - state.first + 1 != size:
        return False
    is_plain = state.phase is DecoderPhase.HEX and (state.last < FIRST_SURROGATE or other.first > LAST_SURROGATE)
    is_block = state.phase is DecoderPhase.CONTINUATION and size == 64**state.level
    return is_plain or is_block or state == other


@cache
def _lead_runs() -> tuple[tuple[int, DecoderState, tuple[tuple[int, DecoderState], ...]], ...]:
    """For each run of UTF-8 lead bytes: the last byte, the decoder state of the run, and each byte with its state, all of one shape."""
    found = []
    for low, high, run in UTF8_LEADS:
        states = tuple((byte, lead_state(low, byte, run)) for byte in range(low, high + 1))
        assert len({shape(state) for _, state in states}) == 1
        found.append((high, run, states))
    return tuple(found)


@cache
def _leads_alike() -> tuple[tuple[DecoderState, ...], NDArray[np.uint8]]:
    """As `CharacterDecoder._leads`, where all characters beyond ASCII are of one class."""
    numbers: dict[tuple[int, ...], int] = {}
    leads: list[DecoderState] = []
    by_lead = np.full(0x80, _NO_LEAD, np.uint8)
    for high, _, states in _lead_runs():
        byte, state = states[0]
        if shape(state) not in numbers:
            numbers[shape(state)] = len(leads)
            leads.append(state)
        by_lead[byte - 0x80 : high - 0x7F] = numbers[shape(state)]
    return tuple(leads), by_lead


@lru_cache(maxsize=64)
def decoder_for(sets: frozenset[CodePoints]) -> CharacterDecoder:
    """The decoder of the coarsest partition that separates the given sets. Cached."""
    return CharacterDecoder(Partition(sets))


class Continuations(NamedTuple):
    """The UTF-8 decoder states within a character for the case that all characters lead to one state.

    Attributes:
        states: one decoder state of each shape.
        numbers: the index of each shape in `states`.
        by_byte: uint8 [len(states), 256]: 0 is the dead state, 1 completes the character, 2 + i is states[i].
    """

    states: tuple[DecoderState, ...]
    numbers: dict[tuple[int, ...], int]
    by_byte: NDArray[np.uint8]


@cache
def continuations() -> Continuations:
    """The continuation states of UTF-8. Cached."""
    states: dict[tuple[int, ...], DecoderState] = {}
    worklist = [lead_state(low, byte, run) for low, high, run in UTF8_LEADS for byte in range(low, high + 1)]
    for state in worklist:  # grows during iteration
        if shape(state) not in states:
            states[shape(state)] = state
            worklist += [following for following, _ in uniform_dispatch(state).targets if following is not None]
    numbers = {each: number for number, each in enumerate(states)}
    by_byte = np.zeros((len(states), 256), np.uint8)
    for number, state in enumerate(states.values()):
        dispatch = uniform_dispatch(state)
        targets = [0, *(1 if following is None else 2 + numbers[shape(following)] for following, _ in dispatch.targets)]
        by_byte[number] = np.array(targets, np.uint8)[dispatch.by_byte]
    return Continuations(tuple(states.values()), numbers, by_byte)


@lru_cache(maxsize=4096)
def uniform_dispatch(state: DecoderState) -> ByteDispatch:
    """The transitions of a decoder state where all characters belong to one class."""
    index = np.zeros(256, np.uint8)
    numbers: dict[object, int] = {}
    targets: list[tuple[DecoderState | None, tuple[int, ...]]] = []
    for low, high, following, _ in edges(state):
        key = None if following is None else shape(following)
        target = numbers.get(key)
        if target is None:
            target = numbers[key] = len(numbers) + 1
            targets.append((following, ()))
        index[low : high + 1] = target
    return ByteDispatch(index, tuple(targets))
