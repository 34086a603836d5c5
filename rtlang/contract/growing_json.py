"""Follows a JSON text while it grows, chunk by chunk.

`GrowingJson` reads each character once and keeps a tree of `JsonPath`s, one for each value that has begun. A value is final when no further
text can change it: a number when the character after it is known, a string at its closing quote, an object or array at its bracket. A text
with more than `MAX_CONTAINERS` objects and arrays within each other is read as if it were not JSON: it cannot be a value of a graph.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from enum import Enum, auto
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The way from the whole value to one inside it: names in objects, indices in arrays."""

MAX_CONTAINERS = 64
_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_NUMBER = re.compile(r"[0-9eE+.-]*")
_WORDS = {"t": "true", "f": "false", "n": "null"}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class JsonKind(Enum):
    """The kinds of JSON values."""

    OBJECT = auto()
    ARRAY = auto()
    STRING = auto()
    NUMBER = auto()
    WORD = auto()  # true, false, null


class JsonPath:
    """A value that has begun.

    Attributes:
        path: its place in the whole value.
        start, end: its characters in the text; `end` is None until it is final.
        children: the values inside it, by name or index.
        pieces: the text of a string so far.
    """

    __slots__ = ("children", "end", "kind", "parent", "path", "pieces", "start")

    def __init__(self, kind: JsonKind, parent: JsonPath | None, path: Path, start: int) -> None:
        self.kind, self.parent, self.path, self.start = kind, parent, path, start
        self.end: int | None = None
        self.children: dict[str | int, JsonPath] = {}
        self.pieces: list[str] = []


class _Expects(Enum):
    VALUE = auto()
    VALUE_OR_END = auto()  # after [
    KEY = auto()
    KEY_OR_END = auto()  # after {
    COLON = auto()
    COMMA_OR_END = auto()
    IN_KEY = auto()
    IN_STRING = auto()
    IN_NUMBER = auto()
    IN_WORD = auto()
    NOTHING = auto()  # the value is complete, or the text is no JSON


_SKIPS_BLANKS = frozenset(
    (
        _Expects.VALUE,
        _Expects.VALUE_OR_END,
        _Expects.KEY,
        _Expects.KEY_OR_END,
        _Expects.COLON,
        _Expects.COMMA_OR_END,
    )
)


class GrowingJson:
    """A JSON text so far.

    Attributes:
        root: the whole value, once it has begun.
        is_valid: False once the text turned out to be no JSON; nothing is reported from then on.
        num_steps: steps of the reader so far; at most a few for each character, however the text is cut.
    """

    def __init__(self) -> None:
        self.root: JsonPath | None = None
        self.is_valid = True
        self.num_steps = 0
        self._expects = _Expects.VALUE
        self._open: JsonPath | None = None  # the innermost object or array that has not ended
        self._scalar: JsonPath | None = None  # the string, number or word that has not ended
        self._key: list[str] = []
        self._escape = ""  # an escape that has begun
        self._high = ""  # the first half of a surrogate pair
        self._word = ""
        self._chunks: list[str] = []
        self._starts: list[int] = []
        self._length = 0
        self._final: list[JsonPath] = []
        self._added: list[str] = []

    @property
    def length(self) -> int:
        """Number of characters so far."""
        return self._length

    @property
    def growing(self) -> JsonPath | None:
        """The string that grows, if the text ends inside one that is a value."""
        return self._scalar if self._expects is _Expects.IN_STRING else None

    def push(self, chunk: str) -> tuple[list[JsonPath], str]:
        """Read more text.

        Returns:
            The values that have become final, in the order of their ends, and the text that this chunk added to the string that grows now.
        """
        self._final, self._added = [], []
        if not chunk:
            return [], ""
        base = self._length
        self._starts.append(base)
        self._chunks.append(chunk)
        self._length += len(chunk)
        at = 0
        while at < len(chunk) and self._expects is not _Expects.NOTHING:
            self.num_steps += 1
            if self._expects in _SKIPS_BLANKS:
                found = _BLANKS.match(chunk, at)
                assert found is not None
                at = found.end()
                if at == len(chunk):
                    break
            at = self._read(chunk, at, base)
        return self._final, "".join(self._added) if self.growing is not None else ""

    def finish(self) -> list[JsonPath]:
        """Say that the text has ended; returns the number that this makes final, if the whole text is one."""
        self._final = []
        if self._expects is _Expects.IN_NUMBER and self._open is None:
            self._end_scalar(self._length)
        return self._final

    def text(self, start: int, end: int) -> str:
        """A part of the text so far."""
        index = bisect_right(self._starts, start) - 1
        parts: list[str] = []
        while index < len(self._chunks) and self._starts[index] < end:
            offset = self._starts[index]
            parts.append(self._chunks[index][max(0, start - offset) : end - offset])
            index += 1
        return "".join(parts)

    def _read(self, chunk: str, at: int, base: int) -> int:
        """Read one step from `chunk[at]`; returns the index after it."""
        match self._expects:
            case _Expects.IN_STRING | _Expects.IN_KEY:
                return self._read_string(chunk, at, base)
            case _Expects.IN_NUMBER:
                found = _NUMBER.match(chunk, at)
                assert found is not None
                if found.end() < len(chunk):
                    self._end_scalar(base + found.end())
                return found.end()
            case _Expects.IN_WORD:
                return self._read_word(chunk, at, base)
            case _Expects.VALUE | _Expects.VALUE_OR_END:
                return self._begin(chunk, at, base)
        character = chunk[at]
        if character == '"' and self._expects in (_Expects.KEY, _Expects.KEY_OR_END):
            self._key, self._expects = [], _Expects.IN_KEY
        elif character == ":" and self._expects is _Expects.COLON:
            self._expects = _Expects.VALUE
        elif character == "," and self._expects is _Expects.COMMA_OR_END:
            assert self._open is not None
            self._expects = _Expects.KEY if self._open.kind is JsonKind.OBJECT else _Expects.VALUE
        elif self._ends_with(character) and self._expects in (_Expects.KEY_OR_END, _Expects.COMMA_OR_END):
            self._end_container(base + at + 1)
        else:
            self._refuse()
        return at + 1

    def _ends_with(self, character: str) -> bool:
        return self._open is not None and character == ("}" if self._open.kind is JsonKind.OBJECT else "]")

    def _begin(self, chunk: str, at: int, base: int) -> int:
        character = chunk[at]
        if character == "]" and self._expects is _Expects.VALUE_OR_END:
            self._end_container(base + at + 1)
            return at + 1
        if character in "{[" and (self._open is None or len(self._open.path) < MAX_CONTAINERS - 1):
            self._open = self._add(JsonKind.OBJECT if character == "{" else JsonKind.ARRAY, base + at)
            self._expects = _Expects.KEY_OR_END if character == "{" else _Expects.VALUE_OR_END
            return at + 1
        if character == '"':
            self._scalar, self._expects = self._add(JsonKind.STRING, base + at), _Expects.IN_STRING
            return at + 1
        if character in "-0123456789":
            self._scalar, self._expects = self._add(JsonKind.NUMBER, base + at), _Expects.IN_NUMBER
            return at
        if character in _WORDS:
            self._scalar, self._expects = self._add(JsonKind.WORD, base + at), _Expects.IN_WORD
            self._word = ""
            return at
        self._refuse()
        return at

    def _add(self, kind: JsonKind, start: int) -> JsonPath:
        parent = self._open
        if parent is None:
            self.root = JsonPath(kind, None, (), start)
            return self.root
        step = "".join(self._key) if parent.kind is JsonKind.OBJECT else len(parent.children)
        parent.children[step] = place = JsonPath(kind, parent, (*parent.path, step), start)
        return place

    def _read_word(self, chunk: str, at: int, base: int) -> int:
        word = _WORDS[self._word[0] if self._word else chunk[at]]
        piece = chunk[at : at + len(word) - len(self._word)]
        self._word += piece
        if not word.startswith(self._word):
            self._refuse()
        elif self._word == word:
            self._end_scalar(base + at + len(piece))
        return at + len(piece)

    def _read_string(self, chunk: str, at: int, base: int) -> int:
        if self._escape:
            return self._read_escape(chunk, at)
        found = _PLAIN.match(chunk, at)
        assert found is not None
        end = found.end()
        if end > at:
            self._flush_high()
            self._put(chunk[at:end])
        if end == len(chunk):
            return end
        if chunk[end] == "\\":
            self._escape = "\\"
            return end + 1
        self._flush_high()
        if self._expects is _Expects.IN_KEY:
            self._expects = _Expects.COLON
        else:
            self._end_scalar(base + end + 1)
        return end + 1

    def _read_escape(self, chunk: str, at: int) -> int:
        self._escape += chunk[at]
        if self._escape[1] != "u":
            character = _ESCAPES.get(self._escape[1])
            if character is None:
                self._refuse()
            else:
                self._flush_high()
                self._put(character)
            self._escape = ""
        elif len(self._escape) == 6:
            try:
                code = int(self._escape[2:], 16)
            except ValueError:
                self._refuse()
                return at + 1
            self._escape = ""
            if self._high and 0xDC00 <= code <= 0xDFFF:
                self._put(chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + code - 0xDC00))
                self._high = ""
            else:
                self._flush_high()
                if 0xD800 <= code <= 0xDBFF:
                    self._high = chr(code)
                else:
                    self._put(chr(code))
        return at + 1

    def _flush_high(self) -> None:
        if self._high:
            self._put(self._high)
            self._high = ""

    def _put(self, text: str) -> None:
        if self._expects is _Expects.IN_KEY:
            self._key.append(text)
        else:
            assert self._scalar is not None
            self._scalar.pieces.append(text)
            self._added.append(text)

    def _end_scalar(self, end: int) -> None:
        assert self._scalar is not None
        place, self._scalar = self._scalar, None
        self._added = []
        if place.kind is JsonKind.NUMBER:
            try:
                json.loads(self.text(place.start, end))
            except ValueError:
                self._refuse()
                return
        self._end(place, end)

    def _end_container(self, end: int) -> None:
        assert self._open is not None
        place, self._open = self._open, self._open.parent
        self._end(place, end)

    def _end(self, place: JsonPath, end: int) -> None:
        place.end = end
        self._final.append(place)
        self._expects = _Expects.NOTHING if self._open is None else _Expects.COMMA_OR_END

    def _refuse(self) -> None:
        self.is_valid, self._expects = False, _Expects.NOTHING


def plain_value(growing: GrowingJson, place: JsonPath) -> Any:
    """The value of a final place as plain data.

    Raises:
        ValueError: the place is not final.
    """
    if place.end is None:
        raise ValueError(f"{place.path} is not final")
    return json.loads(growing.text(place.start, place.end))
