"""Closers: how to complete a JSON value with few bytes from any of its states.

Each closer belongs to the frame of one shape. It reads the register of the frame and asks for the shortest texts of the values that it
still needs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from rtlang_grammars.lowering.json_shapes.joints import Joints
from rtlang_grammars.machine.automaton.object_registers import ObjectRegister
from rtlang_grammars.machine.automaton.tables import Register
from rtlang_grammars.machine.automaton.text_limit import Room
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError

_encode = json.JSONEncoder(ensure_ascii=False).encode
_MAX_NAMED = 256
"""Maximum number of names that are made up from a pattern to complete an object."""
_NAMES_WEIGHT = 1000
Names = Language | tuple[str, ...] | None
"""Names of members: a language, some of its texts, or any name."""


Shortest = Callable[[int], bytes | None]


def shortest_of(starts: tuple[int, ...], shortest: Shortest) -> bytes | None:
    """The shortest text of any of several frames."""
    return min((text for text in map(shortest, starts) if text is not None), key=len, default=None)


@dataclass(frozen=True, slots=True)
class CountedCloser:
    """Completes a string with a minimum number of code points."""

    least: int

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1

    def text(self, register: object, shortest: object, avoid: object) -> bytes | None:
        """Plain letters and the closing quote. May raise LongTextError."""
        assert isinstance(register, int)
        missing = max(0, self.least - register)
        Room().take(missing + 1)
        return b"a" * missing + b'"'


@dataclass(frozen=True, slots=True)
class ArrayCloser:
    """Completes an array.

    Attributes:
        done: number of elements before those that the register counts.
        items: start states of the elements after the prefix.
    """

    done: int
    min_items: int
    prefix: tuple[tuple[int, ...], ...]
    items: tuple[int, ...]
    joints: Joints

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1 + self.min_items // 16

    def text(self, register: Register, shortest: Shortest, avoid: frozenset[str]) -> bytes | None:
        """The missing elements and the closing bracket. May raise LongTextError."""
        assert isinstance(register, int)
        done = self.done + register
        parts, room = [], Room()
        for index in range(done, min(self.min_items, len(self.prefix))):
            text = shortest_of(self.prefix[index], shortest)
            if text is None:
                return None
            room.take(len(text) + len(self.joints.separator))
            parts.append(text)
        rest = self.min_items - max(done, len(self.prefix))
        if rest > 0:
            text = shortest_of(self.items, shortest)
            if text is None:
                return None
            room.take(rest * (len(text) + len(self.joints.separator)))
            parts += [text] * rest
        return self.joints.joined(parts, b"]", is_first=not done)


@dataclass(frozen=True, slots=True)
class DistinctCloser:
    """Completes an array of distinct values: writes as many unused values as are missing."""

    words: object
    description: int
    texts: tuple[bytes, ...]  # by number
    is_first: bool
    joints: Joints

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1 + len(self.texts) // 16

    def text(self, register: Register, shortest: Shortest, avoid: frozenset[str]) -> bytes | None:
        """The missing elements and the closing bracket."""
        have = ObjectRegister(self.words, self.description, register)  # type: ignore[arg-type]
        left = [text for number, text in enumerate(self.texts) if not have.seen >> number & 1][: have.num_lacking]
        if len(left) < have.num_lacking:
            return None
        return self.joints.joined(left, b"]", is_first=self.is_first)


@dataclass(frozen=True, slots=True)
class ObjectCloser:
    """Completes an object: writes the missing members, and more if there are still too few."""

    words: object
    description: int
    members: tuple[
        tuple[bytes, tuple[int, ...]], ...
    ]  # by number: name with quotes and colon, start states of its values
    others: tuple[tuple[Names, tuple[int, ...]], ...]  # names, start states of their values
    is_first: bool
    joints: Joints

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1 + len(self.members) // 8 + sum(_NAMES_WEIGHT for names, _ in self.others if names is not None)

    def text(self, register: Register, shortest: Shortest, avoid: frozenset[str]) -> bytes | None:
        """The missing members and the closing brace. May raise LongTextError."""
        have = ObjectRegister(self.words, self.description, register)  # type: ignore[arg-type]
        parts, room = [], Room()
        is_lost, lacking, missing = False, have.num_lacking, _digits(have.missing)
        seen = _digits(have.seen) if lacking else ""
        for number, (name, starts) in enumerate(self.members):
            if number >= len(missing) and not lacking:
                break
            is_missing = missing[number : number + 1] == "1"
            if is_missing or (lacking and seen[number : number + 1] != "1"):
                text = shortest_of(starts, shortest)
                if text is not None:
                    room.take(len(name) + len(text) + len(self.joints.separator))
                    parts.append(name + text)
                    lacking -= not is_missing
                elif is_missing:
                    is_lost = True  # go on, so that all texts that are needed but not known yet are computed together
        if is_lost:
            return None
        if lacking:
            room.take(lacking * (len(b'"":0,') + len(self.joints.separator)))
            others = list(islice(self._others(lacking, shortest, avoid), lacking))
            if len(others) < lacking:
                return None
            room.take(sum(map(len, others)))
            parts += others
        return self.joints.joined(parts, b"}", is_first=self.is_first)

    def _others(self, count: int, shortest: Shortest, avoid: frozenset[str]) -> Iterator[bytes]:
        """Members with distinct undeclared names; possibly fewer than exist."""
        declared = {name for name, _ in self.members}
        for language, starts in self.others:
            text = shortest_of(starts, shortest)
            if text is None:
                continue
            for name in dict.fromkeys(_some(language, count + len(avoid), len(declared))):
                member = member_prefix(name, self.joints.colon)
                if name not in avoid and member not in declared:
                    yield member + text


def _digits(bits: int) -> str:
    """The binary digits of a number, the lowest first."""
    return f"{bits:b}"[::-1]


def _some(names: Names, count: int, num_declared: int) -> Iterable[str]:
    """At least `count` undeclared names, if that many are found quickly."""
    if names is None:
        return map(str, range(count + num_declared))
    return names if isinstance(names, tuple) else names_of(names, count)


def names_of(language: Language, count: int) -> Iterator[str]:
    """Some names of a language, possibly with duplicates; none if finding them takes too long."""
    if count <= _MAX_NAMED:
        try:
            yield from language.samples(random.Random(0), 4 * count)
            shortest = language.shortest()  # last: it may be the one being completed
            if shortest is not None:
                yield shortest
        except GrammarError:
            return


def member_prefix(name: str, colon: bytes) -> bytes:
    """A name with its quotes and what stands after it."""
    try:
        return _encode(name).encode() + colon
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can spell
        return json.dumps(name).encode() + colon
