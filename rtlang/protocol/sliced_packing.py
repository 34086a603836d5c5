"""Packs a large message in slices, between which its sender can do other work.

The slices joined are the message that `Encoding.pack` gives. Only lists that are given as `LazyList` are divided: they are converted to
plain data slice by slice as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.protocol.serialization import Encoding, array_header, map_header

ITEMS_A_SLICE = 64


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
    if isinstance(value, LazyList):
        yield from _list_slices(encoding, value)
    elif isinstance(value, dict) and _is_divided(value):
        yield from _map_slices(encoding, value)
    elif isinstance(value, list) and _is_divided(value):
        yield from _joined(encoding, len(value), (pack_slices(encoding, each) for each in value))
    else:
        yield encoding.pack(value)


def _is_divided(value: Any) -> bool:
    if isinstance(value, LazyList):
        return True
    if isinstance(value, dict):
        return any(map(_is_divided, value.values()))
    # A list holds items of one kind, and most lists are of numbers.
    return isinstance(value, list) and isinstance((value or [0])[0], dict | LazyList) and any(map(_is_divided, value))


def _map_slices(encoding: Encoding, value: dict[str, Any]) -> Iterator[bytes]:
    if encoding is Encoding.MSGPACK:
        yield map_header(len(value))
        for key, item in value.items():
            yield encoding.pack(key)
            yield from pack_slices(encoding, item)
        return
    for number, (key, item) in enumerate(value.items()):
        yield (b"," if number else b"{") + encoding.pack(key) + b":"
        yield from pack_slices(encoding, item)
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
