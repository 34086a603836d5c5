"""Values of composed forms: texts of `sequence`, `either`, `repeated` and `tagged` are divided into their parts again.

The text has been generated under the constraint, so that a division exists; where the form is ambiguous, earlier parts are longest.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rtlang.contract.params import Constraint, ConstraintKind

MAX_STEPS = 200_000
"""Maximum number of divisions that are tried."""
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag in a text: its opening and closing, and the value of its content."""

    begin: str
    value: Any
    end: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed text; its value is the text."""

    text: str


@dataclass(frozen=True, slots=True)
class LeafForm:
    """A constrained part, and the parser of its text. Without a constraint: any text."""

    constraint: Constraint | None
    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class SequenceForm:
    """Parts in a row; the value is a tuple."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts, whose value is the value."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part again and again; the value is a list."""

    part: Part
    high: int | None


@dataclass(frozen=True, slots=True)
class Tagged:
    """Free text with tags, each an opening, a content and a closing; the value is a list of strings and of `Tag`."""

    tags: tuple[tuple[Part, Part, Part], ...]


Part = Fixed | LeafForm | SequenceForm | Either | Repeated | Tagged
_Ends = Iterator[tuple[int, Any]]
_END = object()
"""In place of the text that follows a part: the part ends with the whole text."""


@dataclass(frozen=True, slots=True)
class FormReader:
    """The parser of a composed form."""

    part: Part

    def __call__(self, text: str) -> Any:
        """The value of a text.

        Raises:
            ValueError: the text cannot be divided into the parts.
        """
        for reads_patterns in (True, False):  # Python may read a pattern differently; then the text around it has to do
            reading = _Reading(text, reads_patterns)
            for end, value in reading.ends(self.part, 0, _END):
                if end == len(text):
                    return value
        raise ValueError("the text cannot be split into the parts of its form")


class _Reading:
    """The divisions of one text."""

    def __init__(self, text: str, reads_patterns: bool) -> None:
        self._text, self._steps_left, self._reads_patterns = text, MAX_STEPS, reads_patterns

    def ends(self, part: Part, at: int, follow: object) -> _Ends:
        """The ends of a part that begins at `at`, with its values; `follow` is the text after it, if known."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise ValueError(f"the text has more than {MAX_STEPS} divisions into the parts of its form")
        match part:
            case Fixed(text):
                if self._text.startswith(text, at):
                    yield at + len(text), text
            case LeafForm():
                yield from self._leaf(part, at, follow)
            case SequenceForm(parts):
                yield from self._sequence(parts, at, follow)
            case Either(parts):
                for each in parts:
                    yield from self.ends(each, at, follow)
            case Repeated():
                yield from self._repeated(part, at, follow)
            case Tagged():
                yield from self._tagged(part, at, follow)

    def _sequence(self, parts: tuple[Part, ...], at: int, follow: object) -> _Ends:
        if not parts:
            yield at, ()
            return
        first, *others = parts
        rest = tuple(others)
        for end, value in self.ends(first, at, _begin(rest, follow)):
            for last, values in self._sequence(rest, end, follow):
                yield last, (value, *values)

    def _repeated(self, part: Repeated, at: int, follow: object) -> _Ends:
        """As many as there are, and then fewer; each one has the first of its divisions."""
        begin, found = at, list[tuple[int, Any]]()
        while part.high is None or len(found) < part.high:
            inner = None if follow is _END else follow
            step = next((each for each in self.ends(part.part, at, inner) if each[0] > at), None)
            if step is None:
                break
            found.append(step)
            at = step[0]
        while found:
            yield found[-1][0], [value for _, value in found]
            found.pop()
        yield begin, []

    def _tagged(self, part: Tagged, at: int, follow: object) -> _Ends:
        text = self._text
        found: list[Any] = []
        begin = at
        while (tag := self._next_tag(part, at)) is not None:
            start, at, value = tag
            if text[begin:start]:
                found.append(text[begin:start])
            found.append(value)
            begin = at
        for end in self._free_ends(begin, follow):
            yield end, [*found, text[begin:end]] if end > begin else list(found)

    def _next_tag(self, part: Tagged, at: int) -> tuple[int, int, Tag] | None:
        """Begin, end and value of the first tag from `at` on."""
        for start in self._starts(part, at):
            for opening, content, closing in part.tags:
                for inside, begin in self.ends(opening, start, None):
                    for end, value in self.ends(content, inside, _begin((closing,), None)):
                        for closed, last in self.ends(closing, end, None):
                            return start, closed, Tag(begin, value, last)
        return None

    def _starts(self, part: Tagged, at: int) -> Iterator[int]:
        """Places from `at` on where a tag may begin, in order."""
        openings = [opening.text for opening, _, _ in part.tags if isinstance(opening, Fixed)]
        if len(openings) < len(part.tags):
            yield from range(at, len(self._text))
            return
        while found := [start for each in openings if (start := self._text.find(each, at)) >= 0]:
            at = min(found)
            yield at
            at += 1

    def _leaf(self, part: LeafForm, at: int, follow: object) -> _Ends:
        for end in self._leaf_ends(part.constraint, at, follow):
            try:
                value = part.parse(self._text[at:end])
            except Exception:  # validators of users' types may raise any exception
                if follow is _END and end == len(self._text):
                    raise
                continue
            yield end, value

    def _leaf_ends(self, constraint: Constraint | None, at: int, follow: object) -> Iterator[int]:
        text = self._text
        kind = None if constraint is None else constraint.kind
        if constraint is not None and kind is ConstraintKind.CHOICE:
            choices = json.loads(constraint.source)
            yield from sorted((at + len(each) for each in choices if text.startswith(each, at)), reverse=True)
            return
        if kind is ConstraintKind.JSON_SCHEMA:
            blanks = _BLANKS.match(text, at)
            assert blanks is not None
            try:
                yield _DECODER.raw_decode(text, blanks.end())[1]
            except (ValueError, RecursionError):
                return
            return
        is_pattern = self._reads_patterns and kind is ConstraintKind.REGEX
        pattern = _compiled(constraint.source) if constraint is not None and is_pattern else None
        if pattern is None:
            yield from self._free_ends(at, follow)
            return
        first = pattern.match(text, at)
        if first is not None:
            yield first.end()
        for end in range(len(text), at - 1, -1):
            self._steps_left -= 1 + (end - at) // 64
            if self._steps_left < 0:
                return
            if (first is None or end != first.end()) and pattern.fullmatch(text, at, end):
                yield end

    def _free_ends(self, at: int, follow: object) -> Iterator[int]:
        """The ends of a part that may be any text."""
        if follow is _END:
            yield len(self._text)
        elif isinstance(follow, str) and follow:
            while (at := self._text.find(follow, at)) >= 0:
                yield at
                at += 1
        else:
            yield from range(at, len(self._text) + 1)


def _begin(parts: tuple[Part, ...], follow: object) -> object:
    """The text at the beginning of parts, if it is fixed; `follow` if there are no parts."""
    if not parts:
        return follow
    first = parts[0]
    if isinstance(first, SequenceForm):
        return _begin(first.parts, _begin(parts[1:], follow))
    return first.text if isinstance(first, Fixed) and first.text else None


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> re.Pattern[str] | None:
    """A pattern for Python, or None if Python reads its syntax differently or not at all."""
    try:
        return re.compile(source)
    except re.error:
        return None
