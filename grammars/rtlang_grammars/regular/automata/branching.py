r"""Which bytes lead where within the spelling of a character, for the classes of a partition.

This depends on the partition alone and not on what a state does with its classes, so it is worked out once for each place and kept with
the partition; patterns with the same classes of characters share it. A row is then the state of each way, looked up by the byte.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.regular.characters.byte_spellings import (
    UTF8_LEADS,
    Place,
    branches,
    code_point_ranges,
    lead_place,
    shape,
)
from rtlang_grammars.regular.characters.code_points import MAX_CODE_POINT, CodePoints
from rtlang_grammars.regular.characters.partition import Partition

_QUOTE, _BACKSLASH = 0x22, 0x5C
_LIKED = "a0bcdefghijklmnopqrstuvwxyz123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "".join(map(chr, range(0x20, 0x7F)))
_MAX_KEPT = 4096
"""Places kept for one partition; a partition of the whole of Unicode meets some hundred."""


class Branching(NamedTuple):
    """Byte b leads to way by_byte[b] - 1, where it is 0 to a dead end.

    Attributes:
        by_byte: uint8 [256].
        ways: the place below, None where the character is complete, and the classes that are possible there.
    """

    by_byte: NDArray[np.uint8]
    ways: tuple[tuple[Place | None, tuple[int, ...]], ...]


class Between(NamedTuple):
    """Where the bytes between two characters lead.

    Attributes:
        by_byte: uint8 [256], into the classes, then the leads, then the backslash of JSON strings, then a dead end.
        classes: of ASCII characters.
        leads, lead_classes: places behind a lead byte of UTF-8, and the classes that are possible there; of places that are the same
            only one.
        shapes, by_byte_in_shapes: the places that differ where all characters beyond ASCII are judged the same, and `by_byte` with these
            in place of the leads.
        beyond, all_classes: classes beyond ASCII, and of all characters.
    """

    by_byte: NDArray[np.uint8]
    classes: tuple[int, ...]
    leads: tuple[Place, ...]
    lead_classes: tuple[tuple[int, ...], ...]
    shapes: tuple[Place, ...]
    by_byte_in_shapes: NDArray[np.uint8]
    beyond: tuple[int, ...]
    all_classes: tuple[int, ...]


class Branchings:
    """The branchings of one partition, remembered. Safe to share between threads.

    Attributes:
        partition: of all code points.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._kept: dict[Place, Branching] = {}
        self._between: dict[bool, Between] = {}
        self._plain: tuple[int, ...] | None = None
        self._classes: dict[Place, tuple[int, ...]] = {}
        self._spellings: dict[tuple[int, bool], bytes] = {}

    def at(self, place: Place) -> Branching:
        """What follows at a place."""
        found = self._kept.get(place)
        if found is None:
            found = self._make(place)
            if len(self._kept) < _MAX_KEPT:
                self._kept[place] = found
        return found

    def between(self, is_json_string: bool) -> Between:
        """What follows between two characters."""
        found = self._between.get(is_json_string)
        if found is None:
            found = self._between[is_json_string] = self._make_between(is_json_string)
        return found

    def plain(self) -> tuple[int, ...]:
        """The classes with a plain character: no control character, no quote, no backslash, not U+2028 or U+2029."""
        if self._plain is None:
            found: set[int] = set()
            for first, last in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x2027), (0x202A, MAX_CODE_POINT)):
                found |= self.partition.classes_within(first, last)
            self._plain = tuple(sorted(found))
        return self._plain

    def spelling(self, number: int, is_json_string: bool) -> bytes:
        """A character of a class as it is written: a letter or digit where there is one, else what is printable."""
        found = self._spellings.get((number, is_json_string))
        if found is None:
            liked = (ord(char) for char in _LIKED if self.partition.class_of(ord(char)) == number)
            char = chr(next(liked, self.partition.representatives[number]))
            text = json.dumps(char, ensure_ascii=False)[1:-1] if is_json_string else char
            found = self._spellings[number, is_json_string] = text.encode()
        return found

    def classes_of(self, place: Place) -> tuple[int, ...]:
        """The classes that a character may be of at a place."""
        found = self._classes.get(place)
        if found is None:
            found = self._classes_of(place)
            if len(self._classes) < _MAX_KEPT:
                self._classes[place] = found
        return found

    def _classes_of(self, place: Place) -> tuple[int, ...]:
        partition = self.partition
        ranges = code_point_ranges(place)
        if len(ranges) == 1:
            return partition.sorted_classes_within(*ranges[0])
        found: set[int] = set()
        for first, last in ranges:
            found.update(partition.sorted_classes_within(first, last))
        return tuple(sorted(found))

    def _make(self, place: Place) -> Branching:
        index = np.zeros(256, np.uint8)
        numbers: dict[object, int] = {}
        ways: list[tuple[Place | None, tuple[int, ...]]] = []
        for low, high, below, first in branches(place):
            if below is None:
                for start, stop, number in self.partition.ranges_within(first, first + high - low):
                    way = numbers.get(number)
                    if way is None:
                        way = numbers[number] = len(numbers) + 1
                        ways.append((None, (number,)))
                    index[low + start - first : low + stop - first + 1] = way
                continue
            classes = self._classes_of(below)
            key: object = (shape(below), classes) if len(classes) == 1 else below
            way = numbers.get(key)
            if way is None:
                way = numbers[key] = len(numbers) + 1
                ways.append((below, classes))
            index[low : high + 1] = way
        return Branching(index, tuple(ways))

    def _make_between(self, is_json_string: bool) -> Between:
        partition = self.partition
        ways: dict[int, int] = {}
        index = np.empty(256, np.uint8)
        for first, stop, number in partition.ranges_within(0, 0x7F):
            index[first : stop + 1] = ways.setdefault(number, len(ways))
        leads: list[Place] = []
        lead_classes: list[tuple[int, ...]] = []
        known: dict[object, int] = {}  # places with characters of one class are the same where their shape is
        index[0x80:] = 0xFF
        for high, run, places in _lead_runs():
            in_run = self._classes_of(run)
            is_one = len(in_run) == 1
            for byte, place in places[:1] if is_one else places:
                in_place = in_run if is_one else self._classes_of(place)
                key: object = (shape(place), in_place) if len(in_place) == 1 else place
                if key not in known:
                    known[key] = len(leads)
                    leads.append(place)
                    lead_classes.append(in_place)
                index[byte : high + 1 if is_one else byte + 1] = len(ways) + known[key]
        dead = len(ways) + len(leads) + 1
        index[index == 0xFF] = dead
        if is_json_string:
            index[:0x20] = index[_QUOTE] = dead
            index[_BACKSLASH] = dead - 1
        by_shape: dict[tuple[int, ...], Place] = {}
        for place in leads:
            by_shape.setdefault(shape(place), place)
        order = {each: number for number, each in enumerate(by_shape)}
        firsts = [len(ways) + order[shape(place)] for place in leads]
        last = len(ways) + len(order)
        renumbered = np.array([*range(len(ways)), *firsts, last, last + 1], np.uint8)
        return Between(
            by_byte=index,
            classes=tuple(ways),
            leads=tuple(leads),
            lead_classes=tuple(lead_classes),
            shapes=tuple(by_shape.values()),
            by_byte_in_shapes=renumbered[index],
            beyond=partition.sorted_classes_within(0x80, MAX_CODE_POINT),
            all_classes=tuple(range(partition.num_classes)),
        )


@cache
def _lead_runs() -> tuple[tuple[int, Place, tuple[tuple[int, Place], ...]], ...]:
    """For each run of lead bytes of UTF-8 its last byte, the place of the run, and its bytes with their places, all of one shape."""
    found = []
    for low, high, run in UTF8_LEADS:
        places = tuple((byte, lead_place(low, byte, run)) for byte in range(low, high + 1))
        assert len({shape(place) for _, place in places}) == 1
        found.append((high, run, places))
    return tuple(found)


@lru_cache(maxsize=64)
def branchings_of(sets: frozenset[CodePoints]) -> Branchings:
    """Those of the partition that some sets make."""
    return Branchings(Partition(sets))


class Continuations(NamedTuple):
    """The places behind the first bytes of characters in UTF-8 where all characters are of one class, together.

    Attributes:
        places: one of each shape.
        numbers: of the shapes among them.
        by_byte: uint8 [len(places), 256]: 0 a dead end, 1 the character is complete, 2 + i place i.
    """

    places: tuple[Place, ...]
    numbers: dict[tuple[int, ...], int]
    by_byte: NDArray[np.uint8]


@cache
def continuations() -> Continuations:
    """Those of UTF-8."""
    places: dict[tuple[int, ...], Place] = {}
    waiting = [lead_place(low, byte, run) for low, high, run in UTF8_LEADS for byte in range(low, high + 1)]
    for place in waiting:  # grows while it is walked
        if shape(place) not in places:
            places[shape(place)] = place
            waiting += [below for below, _ in uniform_branching(place).ways if below is not None]
    numbers = {each: number for number, each in enumerate(places)}
    by_byte = np.zeros((len(places), 256), np.uint8)
    for number, place in enumerate(places.values()):
        branching = uniform_branching(place)
        ways = [0, *(1 if below is None else 2 + numbers[shape(below)] for below, _ in branching.ways)]
        by_byte[number] = np.array(ways, np.uint8)[branching.by_byte]
    return Continuations(tuple(places.values()), numbers, by_byte)


@lru_cache(maxsize=4096)
def uniform_branching(place: Place) -> Branching:
    """What follows at a place where all characters are of one class."""
    index = np.zeros(256, np.uint8)
    numbers: dict[object, int] = {}
    ways: list[tuple[Place | None, tuple[int, ...]]] = []
    for low, high, below, _ in branches(place):
        key = None if below is None else shape(below)
        way = numbers.get(key)
        if way is None:
            way = numbers[key] = len(numbers) + 1
            ways.append((below, ()))
        index[low : high + 1] = way
    return Branching(index, tuple(ways))
