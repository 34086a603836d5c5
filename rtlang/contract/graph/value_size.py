"""The sizes of plain values: their characters and items, their bytes in memory, and their depth.

A value is measured once, where it is made, and its measure is kept with it. The walk is by level and by type, so that a list of a million
texts takes about 60 ms. Memory is an upper estimate: every object counts with its real size, also one that occurs twice in the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from sys import getsizeof
from typing import Any, NamedTuple

MAX_SIZE = 1_000_000
"""Characters and items of one value, nested ones included."""

MAX_DIGITS = 4_000
MAX_DEPTH = 64
_MAX_BITS = MAX_DIGITS * 10 // 3
_CHUNK = 50_000  # items that are measured in one step, in about 5 ms
_ROUNDING = 15  # bytes that an allocation may be larger than its object
_CACHED_TEXT_BYTES = frozenset((getsizeof(""), getsizeof("a")))  # CPython has one object of each of these texts
TOO_LARGE = f"a value has more than {MAX_SIZE} characters and items"


class Measure(NamedTuple):
    """The size of a value.

    Attributes:
        size: characters and items, nested ones included; at least 1.
        num_bytes: bytes in memory, as if it shared nothing with other values.
        depth: 1 for a scalar, 1 more for each list or dict around it.
    """

    size: int
    num_bytes: int
    depth: int = 1


class Measured(NamedTuple):
    """A value with its size."""

    value: Any
    measure: Measure

    @property
    def size(self) -> int:
        """Characters and items."""
        return self.measure.size


def measured(value: Any) -> Measured:
    """A value with its size.

    Raises:
        ValueError, TypeError: as `measure`.
    """
    return Measured(value, measure(value))


def check_plain(value: object) -> str | None:
    """None if `value` is plain data of allowed size, else the reason why not."""
    try:
        measure(value)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def measure(value: object) -> Measure:
    """Measure a value.

    Raises:
        ValueError: it is too large, too deep, or has a number that is not allowed. TypeError: it is not plain data.
    """
    if type(value) is str:  # most values
        if len(value) >= MAX_SIZE:
            raise ValueError(TOO_LARGE)
        return text_measure(value)
    size, num_bytes, depth = 0, 0, 0
    level: list[Any] = [value]
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"a value is nested more than {MAX_DEPTH} levels deep")
        size += len(level)
        if size > MAX_SIZE:
            raise ValueError(TOO_LARGE)
        kinds = set(map(type, level))
        below: list[Any] = []
        for kind in kinds:
            items = level if len(kinds) == 1 else [item for item in level if type(item) is kind]
            for start in range(0, len(items), _CHUNK):
                chunk = items[start : start + _CHUNK]
                more_size, more_bytes = _measure_kind(kind, chunk, below, MAX_SIZE - size)
                size, num_bytes = size + more_size, num_bytes + more_bytes
            if size > MAX_SIZE:
                raise ValueError(TOO_LARGE)
        level = below
    return Measure(size, num_bytes, depth)


def text_measure(text: str) -> Measure:
    """Measure a text of any length."""
    return Measure(1 + len(text), getsizeof(text) + _ROUNDING)


def list_measure(items: list[Measured], num_bytes: int) -> Measure:
    """The measure of a list of measured values, itself of `num_bytes` bytes.

    Raises:
        ValueError: it is too large or too deep.
    """
    size, depth = 1, 0
    for item in items:
        own_size, own_bytes, own_depth = item.measure
        size, num_bytes, depth = size + own_size, num_bytes + own_bytes, max(depth, own_depth)
    if size > MAX_SIZE:
        raise ValueError(TOO_LARGE)
    if depth >= MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} levels deep")
    return Measure(size, num_bytes, depth + 1)


def list_bytes(num_items: int) -> int:
    """Bytes of a list without its items; of one that grew item by item as well."""
    return 160 + _ROUNDING + 9 * num_items


def text_bytes(num_chars: int, *, is_ascii: bool) -> int:
    """Most bytes of a text."""
    return 76 + _ROUNDING + (1 if is_ascii else 4) * num_chars


def _measure_kind(kind: type, items: list[Any], below: list[Any], room: int) -> tuple[int, int]:
    """The characters of items of one type on a level, and their bytes; adds what they hold to `below`.

    Args:
        room: characters and items that are left.
    """
    if kind is bool or kind is type(None):
        return 0, 0
    sizes = list(map(getsizeof, items))
    num_bytes = sum(sizes) + _ROUNDING * len(items)
    if issubclass(kind, str):
        cached = sum(sizes.count(each) * (each + _ROUNDING) for each in _CACHED_TEXT_BYTES)
        return sum(map(len, items)), num_bytes - cached
    if issubclass(kind, int):
        if max(max(items).bit_length(), min(items).bit_length()) > _MAX_BITS:
            raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
        return 0, num_bytes
    if issubclass(kind, float):
        if not all(map(math.isfinite, items)):
            raise ValueError(f"{next(item for item in items if not math.isfinite(item))} is not a finite number")
        return 0, num_bytes
    if issubclass(kind, (list, tuple)):
        _extend(below, items, kind.__iter__, room)
        return 0, num_bytes
    if issubclass(kind, dict):
        keys: list[Any] = []
        _extend(keys, items, kind.__iter__, room)
        if not all(issubclass(each, str) for each in set(map(type, keys))):
            raise TypeError("expected only text as keys")
        _extend(below, items, lambda item: iter(item.values()), room)
        return sum(map(len, keys)), num_bytes + sum(map(getsizeof, keys)) + _ROUNDING * len(keys)
    raise TypeError(f"a {kind.__name__} is not plain data: None, bool, int, float, str, list or dict")


def _extend(below: list[Any], items: list[Any], read: Callable[[Any], Any], room: int) -> None:
    if sum(map(len, items)) + len(below) > room:
        raise ValueError(TOO_LARGE)
    below.extend(chain.from_iterable(map(read, items)))
