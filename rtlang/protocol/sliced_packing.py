"""Packs a large message in slices, between which its sender can do other work.

The slices joined are the message that `Encoding.pack` gives. Long lists are divided, and so are long texts in JSON, where each character is
looked at: no slice holds up other threads for long. The items of a `LazyList` are converted to plain data slice by slice as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.protocol.serialization import Encoding, array_header, map_header

ITEMS_A_SLICE = 64  # of a LazyList
NUMBERS_A_SLICE = 2_048  # items of a list other than lists and maps
_CONTAINER = 32  # numbers for which a list or map counts
CHARS_A_SLICE = 32_768


@dataclass(frozen=True, slots=True)
class LazyList:
    """A list whose items are converted when they are packed.

    Attributes:
        items: the items.
        convert: gives the plain form of a part of them.
    """

    items: Sequence[Any]
    convert: Callable[[Sequence[Any]], list[Any]]


def pack_slices(encoding: Encoding, value: Any) -> Iterator[bytes]:
    """The parts of a packed value, in order."""
    divided: set[int] = set()
    _find_divided(value, divided)
    yield from _slices(encoding, value, divided)


def _find_divided(value: Any, divided: set[int]) -> bool:
    """Whether a value is divided; adds the ids of all maps and lists in it that are. Looks at each value once."""
    if isinstance(value, LazyList):
        return True
    if isinstance(value, str):
        return is_long(value)
    if not isinstance(value, dict | list) or not value:
        return False
    is_divided = len(value) > NUMBERS_A_SLICE
    if isinstance(value, dict) or not isinstance(value[0], int | float):
        for item in value.values() if isinstance(value, dict) else value:
            is_divided |= _find_divided(item, divided)
    if is_divided:
        divided.add(id(value))
    return is_divided


def _slices(encoding: Encoding, value: Any, divided: set[int]) -> Iterator[bytes]:
    if isinstance(value, LazyList):
        yield from _list_slices(encoding, value)
    elif encoding is Encoding.JSON and is_long(value):
        yield b'"'
        for start in range(0, len(value), CHARS_A_SLICE):
            yield encoding.pack(value[start : start + CHARS_A_SLICE])[1:-1]
        yield b'"'
    elif id(value) not in divided:
        yield encoding.pack(value)
    elif isinstance(value, dict):
        yield from _map_slices(encoding, value, divided)
    else:
        yield from _joined(encoding, len(value), _parts(encoding, value, divided))


def _parts(encoding: Encoding, items: list[Any], divided: set[int]) -> Iterator[Iterable[bytes]]:
    """The parts of a list: some of its items at once, or one that is divided."""
    together: list[Any] = []
    num_numbers = 0
    for item in items:
        is_container = isinstance(item, dict | list)
        is_apart = isinstance(item, LazyList) or id(item) in divided or (encoding is Encoding.JSON and is_long(item))
        if together and (is_apart or num_numbers >= NUMBERS_A_SLICE):
            yield [_items(encoding, together)]
            together, num_numbers = [], 0
        if is_apart:
            yield _slices(encoding, item, divided)
        else:
            together.append(item)
            num_numbers += _CONTAINER if is_container else 1
    if together:
        yield [_items(encoding, together)]


def is_long(value: object) -> bool:
    """Whether a value is a text that is divided in JSON."""
    return isinstance(value, str) and len(value) > CHARS_A_SLICE


def _map_slices(encoding: Encoding, value: dict[str, Any], divided: set[int]) -> Iterator[bytes]:
    if encoding is Encoding.MSGPACK:
        yield map_header(len(value))
        for key, item in value.items():
            yield encoding.pack(key)
            yield from _slices(encoding, item, divided)
        return
    for number, (key, item) in enumerate(value.items()):
        yield (b"," if number else b"{") + encoding.pack(key) + b":"
        yield from _slices(encoding, item, divided)
    yield b"}"


def _list_slices(encoding: Encoding, value: LazyList) -> Iterator[bytes]:
    starts = range(0, len(value.items), ITEMS_A_SLICE)
    parts = (_items(encoding, value.convert(value.items[start : start + ITEMS_A_SLICE])) for start in starts)
    yield from _joined(encoding, len(value.items), ([part] for part in parts))


def _items(encoding: Encoding, items: list[Any]) -> bytes:
    """Packed items without the header or brackets of their list."""
    packed = encoding.pack(items)
    return packed[len(array_header(len(items))) :] if encoding is Encoding.MSGPACK else packed[1:-1]


def _joined(encoding: Encoding, num_items: int, parts: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """The parts of a list between its brackets, or behind its header."""
    yield array_header(num_items) if encoding is Encoding.MSGPACK else b"["
    for number, part in enumerate(parts):
        if number and encoding is Encoding.JSON:
            yield b","
        yield from part
    if encoding is Encoding.JSON:
        yield b"]"
