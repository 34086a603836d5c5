"""Reads the header of a GGUF file: its metadata, and where its tensors are.

Nothing in the header is trusted: counts and lengths are compared with the size of the file and with limits, far above those of any model,
before anything is allocated for them. The largest header takes about a gigabyte of memory.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.block_types import BlockType, block_type

MetadataValue = str | int | float | bool | list[str] | list[int] | list[float] | list[bool]

_MAGIC = b"GGUF"
_LARGE_FILE_POINTER = b"version https://git-lfs"
_VERSIONS = 2, 3
_MAX_TENSORS = 1 << 17
_MAX_KEYS = 1 << 16
_MAX_ITEMS = 1 << 23  # of all arrays
_MAX_NAME_BYTES = 1024
_MAX_STRING_BYTES = 1 << 26
_MAX_HEADER_BYTES = 1 << 28
_MAX_DIMS = 4
_MAX_ALIGNMENT = 1 << 30
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor of a file.

    Attributes:
        name: of the tensor.
        shape: the outermost dimension first: [out, in] of a matrix, [experts, out, in] of a stack of experts.
        kind: the type of its elements.
        path: the file that has it.
        first_byte: where its elements start in the file.
        num_bytes: of its elements.
    """

    name: str
    shape: tuple[int, ...]
    kind: BlockType
    path: str
    first_byte: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one file."""

    metadata: dict[str, MetadataValue]
    tensors: dict[str, TensorEntry]


def read_header(path: str, data: mmap.mmap) -> Header:
    """Read the header of a file.

    Args:
        path: named by errors and entries.
        data: all bytes of the file.
    Raises:
        ModelLoadError: the header breaks the format, or disagrees with the size of the file.
    """
    try:
        return _HeaderReader(path, data).header()
    except ValueError as error:
        raise ModelLoadError(path, str(error)) from None


class _HeaderReader:
    """Reads from the start to the end of one header. Its methods raise ValueError."""

    def __init__(self, path: str, data: mmap.mmap) -> None:
        self._path, self._data, self._position = path, data, 0
        self._end = min(len(data), _MAX_HEADER_BYTES)
        self._items_left = _MAX_ITEMS

    def header(self) -> Header:
        """The whole header."""
        if self._bytes(4, "magic") != _MAGIC:
            if self._data[: len(_LARGE_FILE_POINTER)] == _LARGE_FILE_POINTER:
                raise ValueError(
                    "the file is a pointer of git-lfs and holds no weights; run git lfs pull in its folder"
                )
            raise ValueError(f"magic = {self._data[:4]!r}: expected {_MAGIC!r}, a GGUF file")
        self._check_version(self._number("I", "version"))
        num_tensors = self._count("number of tensors", _MAX_TENSORS, 24)
        num_keys = self._count("number of metadata keys", _MAX_KEYS, 13)
        metadata = dict(self._metadata(num_keys))
        alignment = metadata.get(_ALIGNMENT, _DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 0 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
            raise ValueError(f"{_ALIGNMENT} = {alignment!r:.40}: expected a power of two up to {_MAX_ALIGNMENT}")
        tensors = list(self._tensors(num_tensors, alignment))
        start = -(-self._position // alignment) * alignment
        found = [self._placed(each, start) for each in tensors]
        _check_overlaps(found)
        return Header(metadata, {each.name: each for each in found})

    def _check_version(self, version: int) -> None:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        if swapped in (1, *_VERSIONS):
            raise ValueError(f"version = {swapped} in big endian: expected a little-endian file")
        if version not in _VERSIONS:
            hint = "; convert the model again with a current llama.cpp" if version == 1 else ""
            raise ValueError(f"version = {version}: expected 2 or 3{hint}")

    def _metadata(self, count: int) -> Iterator[tuple[str, MetadataValue]]:
        seen = set()
        for index in range(count):
            key = self._name(f"metadata key {index}")
            if key in seen:
                raise ValueError(f"metadata key {shown(key)} is there twice: expected once")
            seen.add(key)
            yield key, self._value(f"metadata {shown(key)}")

    def _value(self, field: str) -> MetadataValue:
        kind = self._number("I", f"{field}, type")
        if kind == _ARRAY:
            return self._array(field)
        if kind == _STRING:
            return self._strings(1, field)[0]
        if kind == _BOOL:
            return bool(self._number("B", field))
        if kind in _NUMBERS:
            value: int | float = struct.unpack("<" + _NUMBERS[kind], self._bytes(_size(kind), field))[0]
            return value
        raise ValueError(f"{field}, type = {kind}: expected 0 to 12")

    def _array(self, field: str) -> MetadataValue:
        kind = self._number("I", f"{field}, type of items")
        if kind not in _NUMBERS and kind not in (_BOOL, _STRING):
            what = "array" if kind == _ARRAY else kind
            raise ValueError(f"{field}, type of items = {what}: expected strings or numbers (0 to 8, 10 to 12)")
        count = self._count(f"{field}, number of items", self._items_left, 8 if kind == _STRING else _size(kind))
        self._items_left -= count
        if kind == _STRING:
            return self._strings(count, field)
        code = "?" if kind == _BOOL else _NUMBERS[kind]
        values: list[int] | list[float] | list[bool]
        values = np.frombuffer(self._bytes(count * _size(kind), field), "<" + code if code != "?" else "u1").tolist()
        return [value != 0 for value in values] if kind == _BOOL else values

    def _strings(self, count: int, field: str) -> list[str]:
        """Strings in UTF-8; other bytes are kept as lone surrogates, by `surrogateescape`."""
        data, end, position, found = self._data, self._end, self._position, []
        length_at = struct.Struct("<Q").unpack_from
        for index in range(count):
            start = position + 8
            if start > end:
                raise ValueError(self._cut_off(f"{field}, length of string {index}"))
            (length,) = length_at(data, position)
            position = start + length
            if position > end or length > _MAX_STRING_BYTES:
                most = min(end - start, _MAX_STRING_BYTES)
                raise ValueError(f"{field}, length of string {index} = {length}: expected at most {most} here")
            found.append(str(data[start:position], "utf-8", "surrogateescape"))
        self._position = position
        return found

    def _tensors(self, count: int, alignment: int) -> Iterator[TensorEntry]:
        """Tensors, with places that are relative to the start of the data."""
        seen = set()
        for index in range(count):
            name = self._name(f"name of tensor {index}")
            field = f"tensor {shown(name)}"
            if name in seen:
                raise ValueError(f"{field} is there twice: expected once")
            seen.add(name)
            num_dims = self._number("I", f"{field}, number of dimensions")
            if num_dims > _MAX_DIMS:
                raise ValueError(f"{field}, number of dimensions = {num_dims}: expected at most {_MAX_DIMS}")
            dims = [self._number("Q", f"{field}, dimension {each}") for each in range(num_dims)]
            number, offset = self._number("I", f"{field}, type"), self._number("Q", f"{field}, offset")
            try:
                kind = block_type(number)
            except ValueError as error:
                raise ValueError(f"{field}, {error}") from None
            if 0 in dims:
                raise ValueError(f"{field}, dimensions = {dims}: expected at least 1")
            if (dims[0] if dims else 1) % kind.block:
                raise ValueError(
                    f"{field}, inputs = {dims[0] if dims else 1}: expected a multiple of {kind.block}, "
                    f"the block of {kind.name}"
                )
            if offset % alignment:
                raise ValueError(f"{field}, offset = {offset}: expected a multiple of the alignment, {alignment}")
            num_bytes = kind.num_bytes(math.prod(dims))
            if num_bytes > len(self._data):
                raise ValueError(
                    f"{field}, dimensions = {dims} of {kind.name}: {num_bytes} bytes, expected at most "
                    f"{len(self._data)}, the size of the file"
                )
            yield TensorEntry(name, tuple(reversed(dims)), kind, self._path, offset, num_bytes)

    def _placed(self, entry: TensorEntry, start: int) -> TensorEntry:
        """A tensor with its place in the file, where the data starts at `start`."""
        first_byte, size = start + entry.first_byte, len(self._data)
        if first_byte + entry.num_bytes > size:
            raise ValueError(
                f"tensor {shown(entry.name)}, offset = {entry.first_byte}: ends at byte "
                f"{first_byte + entry.num_bytes} of the file, which has {size}; it is cut off or damaged"
            )
        return TensorEntry(entry.name, entry.shape, entry.kind, entry.path, first_byte, entry.num_bytes)

    def _name(self, field: str) -> str:
        length = self._number("Q", f"{field}, length")
        if length > _MAX_NAME_BYTES:
            raise ValueError(f"{field}, length = {length}: expected at most {_MAX_NAME_BYTES}")
        found = self._bytes(length, field)
        try:
            return str(found, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{field} = {found[:40]!r}: expected UTF-8") from None

    def _count(self, field: str, most: int, item_bytes: int) -> int:
        """A number of items, each of at least `item_bytes` bytes."""
        found = self._number("Q", field)
        most = min(most, (self._end - self._position) // item_bytes)
        if found > most:
            raise ValueError(f"{field} = {found}: expected at most {most} here")
        return found

    def _number(self, code: str, field: str) -> int:
        found: int = struct.unpack("<" + code, self._bytes(struct.calcsize("<" + code), field))[0]
        return found

    def _bytes(self, count: int, field: str) -> bytes:
        start = self._position
        if start + count > self._end:
            raise ValueError(self._cut_off(field))
        self._position = start + count
        return self._data[start : start + count]

    def _cut_off(self, field: str) -> str:
        if self._end == _MAX_HEADER_BYTES:
            return f"{field}: expected a header of at most {_MAX_HEADER_BYTES} bytes"
        return f"{field}: the file ends at byte {self._end}, within the header; it is cut off or damaged"


def shown(name: str) -> str:
    """A name as messages show it: quoted, and not longer than a line."""
    return repr(name if len(name) <= 100 else name[:100] + "...")


def _size(kind: int) -> int:
    return 1 if kind == _BOOL else struct.calcsize("<" + _NUMBERS[kind])


def _check_overlaps(tensors: list[TensorEntry]) -> None:
    last = None
    for entry in sorted(tensors, key=lambda each: each.first_byte):
        if last is not None and entry.first_byte < last.first_byte + last.num_bytes:
            raise ValueError(
                f"tensor {shown(entry.name)} starts at byte {entry.first_byte}, within tensor "
                f"{shown(last.name)}: expected tensors that do not overlap"
            )
        last = entry
