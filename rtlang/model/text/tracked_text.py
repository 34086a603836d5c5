"""Text that knows which of its characters come from a message, through everything that a chat template does with them.

A template mixes its own text, in which names of special tokens are these tokens, with contents, in which they are plain text. Searching the
output for the contents cannot tell them apart once a template trims, splits or escapes them. So contents go into the template as
`TrackedText`, a string that keeps the source of each run of characters when it is cut or joined. An operation that is not followed
character by character gives text that comes from a message as a whole; text of a message is never taken for text of the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, SupportsIndex, TypeAlias


class TextSource(NamedTuple):
    """The origin of text.

    Attributes:
        message: the index of a message; -1 for tools and options, which belong to the whole conversation.
        field: the field of the message, such as "content".
    """

    message: int
    field: str


Runs: TypeAlias = tuple[tuple[int, TextSource | None], ...]
"""Consecutive runs of characters: their number, and their source; None for text of the template."""

_MAX_DEPTH = 50
_SENTINEL = "\ue000{}\ue001"
_SENTINELS = re.compile("\ue000([0-9]+)\ue001")


class TrackedText(str):
    """A string with the sources of its characters.

    Attributes:
        runs: the sources; their numbers of characters add up to the length.
    """

    __slots__ = ("runs",)
    runs: Runs

    @classmethod
    def made(cls, text: str, runs: Runs) -> TrackedText:
        """Text with the sources of its characters."""
        made = cls(text)
        made.runs = runs
        return made

    @classmethod
    def whole(cls, text: str, source: TextSource | None) -> TrackedText:
        """Text of one source."""
        return cls.made(text, ((len(text), source),) if text else ())

    def __str__(self) -> str:
        return self

    def __getitem__(self, key: SupportsIndex | slice) -> TrackedText:
        found = str.__getitem__(self, key)
        start, stop, step = (key if isinstance(key, slice) else _single(key)).indices(len(self))
        if step == 1:
            return TrackedText.made(found, _cut(self.runs, start, max(start, stop)))
        return TrackedText.whole(found, first_source(self))

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __add__(self, other: str) -> TrackedText:
        return joined((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> TrackedText:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> TrackedText:
        return TrackedText.made(str.__mul__(self, count), self.runs * max(0, count.__index__()))

    __rmul__ = __mul__

    def strip(self, chars: str | None = None, /) -> TrackedText:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None, /) -> TrackedText:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None, /) -> TrackedText:
        return self[: len(str.rstrip(self, chars))]

    def removeprefix(self, prefix: str, /) -> TrackedText:
        return self[len(self) - len(str.removeprefix(self, prefix)) :]

    def removesuffix(self, suffix: str, /) -> TrackedText:
        return self[: len(str.removesuffix(self, suffix))]

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._pieces(str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        lines = self._pieces(str.splitlines(self, True), "")
        return lines if keepends else [line[: sum(map(len, str.splitlines(line)))] for line in lines]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        before, found, _ = str.partition(self, sep)
        end = len(before) + len(found)
        return self[: len(before)], self[len(before) : end], self[end:]

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        before, found, _ = str.rpartition(self, sep)
        end = len(before) + len(found)
        return self[: len(before)], self[len(before) : end], self[end:]

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> TrackedText:
        if not old:
            return TrackedText.whole(str.replace(self, old, new, count), first_source((self, new)))
        return joined(self.split(old, count), new)

    def join(self, pieces: Iterable[str], /) -> TrackedText:
        return joined(pieces, self)

    def lower(self) -> TrackedText:
        return self._recased(str.lower(self))

    def upper(self) -> TrackedText:
        return self._recased(str.upper(self))

    def title(self) -> TrackedText:
        return self._recased(str.title(self))

    def capitalize(self) -> TrackedText:
        return self._recased(str.capitalize(self))

    def _recased(self, text: str) -> TrackedText:
        if len(text) == len(self):
            return TrackedText.made(text, self.runs)
        return TrackedText.whole(text, first_source(self))

    def _pieces(self, pieces: list[str], separator: str | None) -> list[str]:
        """The pieces of this text with their sources; the separator is between them, or blanks if it is None."""
        found: list[str] = []
        at = 0
        for piece in pieces:
            at = str.index(self, piece, at) if separator is None else at
            found.append(self[at : at + len(piece)])
            at += len(piece) + len(separator or "")
        return found


def joined(pieces: Iterable[str], separator: str = "") -> TrackedText:
    """The pieces one after another, with the separator between them."""
    listed = list(pieces)
    runs: list[tuple[int, TextSource | None]] = []
    for index, piece in enumerate(listed):
        if index:
            runs += runs_of(separator)
        runs += runs_of(piece)
    return TrackedText.made(str.join(plain(separator), listed), _merged(runs))


def runs_of(text: str) -> Runs:
    """The sources of the characters of any string; plain ones are text of the template."""
    if isinstance(text, TrackedText):
        return text.runs
    return ((len(text), None),) if text else ()


def plain(text: str) -> str:
    """The same text as an ordinary string."""
    return str.__str__(text) if type(text) is str else "".join((text,))


def tracked(value: Any, source: TextSource, depth: int = 0) -> Any:
    """A copy of plain data in which all texts, names of fields included, come from this source."""
    if isinstance(value, str):
        return TrackedText.whole(value, source)
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            return {tracked(key, source, depth + 1): tracked(each, source, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [tracked(each, source, depth + 1) for each in value]
    return value


def first_source(value: Any, depth: int = 0) -> TextSource | None:
    """The source of the first text of a message in a value, which may be nested; None if there is none."""
    if isinstance(value, TrackedText):
        return next((source for _, source in value.runs if source is not None), None)
    if depth < _MAX_DEPTH:
        inner: Iterable[Any] = ()
        if isinstance(value, Mapping):
            inner = (part for item in value.items() for part in item)
        elif isinstance(value, list | tuple | set | frozenset):
            inner = value
        for each in inner:
            source = first_source(each, depth + 1)
            if source is not None:
                return source
    return None


def text_of(value: Any) -> str:
    """`str(value)`, tracked if texts of messages are in it."""
    return value if isinstance(value, str) else covered(str(value), value)


def covered(result: Any, *used: Any) -> Any:
    """The result of an operation on values that is not followed: text comes from a message if any text that was used does."""
    if isinstance(result, str):
        source = first_source(used)
        if source is not None:
            return TrackedText.whole(plain(result), source)
    return result


def formatted(format_text: Callable[[tuple[Any, ...], dict[str, Any]], str], args: Any, named: Any) -> str:
    """The result of formatting, in which texts of messages keep their sources where they are written as they are."""
    result = format_text(args, named)
    if first_source((args, named)) is None:
        return result
    texts: list[TrackedText] = []

    def marked(value: Any) -> Any:
        if not isinstance(value, TrackedText):
            return value
        texts.append(value)
        return _SENTINEL.format(len(texts) - 1)

    try:
        marks = format_text(tuple(map(marked, args)), {key: marked(value) for key, value in named.items()})
    except (ValueError, TypeError, KeyError, IndexError):
        return str(covered(result, args, named))
    pieces = _SENTINELS.split(marks)
    whole = joined(texts[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces))
    return whole if whole == result else str(covered(result, args, named))


def _single(index: SupportsIndex) -> slice:
    at = index.__index__()
    return slice(at, at + 1 or None)


def _cut(runs: Runs, start: int, stop: int) -> Runs:
    found, at = [], 0
    for num_chars, source in runs:
        kept = min(stop, at + num_chars) - max(start, at)
        if kept > 0:
            found.append((kept, source))
        at += num_chars
        if at >= stop:
            break
    return tuple(found)


def _merged(runs: list[tuple[int, TextSource | None]]) -> Runs:
    found: list[tuple[int, TextSource | None]] = []
    for num_chars, source in runs:
        if found and found[-1][1] == source:
            found[-1] = (found[-1][0] + num_chars, source)
        else:
            found.append((num_chars, source))
    return tuple(found)
