"""The two encodings of `rtlang.v1`: MessagePack, and JSON for browsers and terminals. Both carry the same maps.

Input is untrusted: it is decoded strictly, with limits on depth and size, and any violation raises a ProtocolError with close code 1007.
Output is packed map by map, so that several maps can be combined into one message without packing them again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgpack

from rtlang.contract.errors import ProtocolError

INVALID_PAYLOAD = 1007
# `json.dumps` would make an encoder for each message.
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_MIN_INT, _MAX_INT = -(1 << 63), (1 << 64) - 1
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[,\[{]', re.DOTALL)
_COMMA = ord(",")


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits on one message: nesting depth, entries per array, entries per map, and values in total.

    The total bounds decoding time: a megabyte of empty maps would block the event loop for most of a second.
    """

    max_depth: int = 64
    max_array_entries: int = 100_000
    max_map_entries: int = 10_000
    max_values: int = 200_000


class Encoding(Enum):
    """An encoding, named by its WebSocket subprotocol."""

    MSGPACK = "rtlang.v1.msgpack"
    JSON = "rtlang.v1.json"

    @property
    def is_text(self) -> bool:
        """Whether messages use text frames."""
        return self is Encoding.JSON

    def pack(self, message: Any) -> bytes:
        """Encode one map, or a part of one. Lone surrogates, which UTF-8 cannot represent, are replaced by question marks."""
        if self is Encoding.MSGPACK:
            return bytes(msgpack.packb(message, unicode_errors="replace"))
        return _JSON.encode(message).encode(errors="replace")

    def combine(self, packed: Sequence[bytes]) -> bytes:
        """Combine packed maps into one message: a single map as it is, several as an array."""
        if len(packed) == 1:
            return packed[0]
        if self is Encoding.MSGPACK:
            return array_header(len(packed)) + b"".join(packed)
        return b"[" + b",".join(packed) + b"]"

    def unpack(self, data: bytes, limits: DecodeLimits) -> Any:
        """Decode one message within `limits`: maps with text keys, lists, text, finite numbers, booleans and None.

        Raises:
            ProtocolError: anything else; the message names the violation, and close_code is 1007.
        """
        try:
            value = (_unpack_msgpack if self is Encoding.MSGPACK else _unpack_json)(data, limits)
        except RecursionError:
            raise _invalid(f"nested more than {limits.max_depth} levels deep") from None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise _invalid(str(error) or type(error).__name__) from None
        _check(value, limits)
        return value


def _invalid(reason: str) -> ProtocolError:
    return ProtocolError(f"malformed message: {reason[:200]}", close_code=INVALID_PAYLOAD)


def exact_size(part: Any) -> int:
    """The bytes of a part of a message in MessagePack, if it arrives as it is.

    Raises:
        ProtocolError: it has a lone surrogate, or an integer of more than 64 bits.
    """
    try:
        return len(msgpack.packb(part))
    except UnicodeEncodeError as error:
        shown = ascii(error.object[:40])
        raise ProtocolError(f"the text {shown} has a lone surrogate and cannot be sent to a server") from None
    except OverflowError:
        raise ProtocolError(
            "an integer of more than 64 bits in an argument of rt.call() or another constant cannot be sent to a server; pass it as text"
        ) from None


def map_header(length: int) -> bytes:
    """The first bytes of a MessagePack map of `length` entries."""
    if length < 16:
        return bytes([0x80 | length])
    return b"\xde" + length.to_bytes(2, "big") if length < 1 << 16 else b"\xdf" + length.to_bytes(4, "big")


def array_header(length: int) -> bytes:
    """The first bytes of a MessagePack array of `length` items."""
    if length < 16:
        return bytes([0x90 | length])
    if length < 1 << 16:
        return b"\xdc" + length.to_bytes(2, "big")
    return b"\xdd" + length.to_bytes(4, "big")


class _Counter:
    """Counts maps and arrays, and what is in them, during decoding, to stop as soon as there are too many values."""

    def __init__(self, limit: int) -> None:
        self._limit, self._count, self._num_items = limit, 0, 0

    def map(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        self.array(pairs)
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a map contains a duplicate key")
        return found

    def array(self, items: list[Any]) -> list[Any]:
        self._count += 1
        self._num_items += len(items)
        if self._count > self._limit or self._num_items >= self._limit:  # the outermost value is no item
            raise ValueError(f"more than {self._limit} values")
        return items


def _unpack_msgpack(data: bytes, limits: DecodeLimits) -> Any:
    counter = _Counter(limits.max_values)
    return msgpack.unpackb(
        data,
        strict_map_key=True,
        object_pairs_hook=counter.map,
        list_hook=counter.array,
        # Every entry takes at least one byte, so a short message cannot make the decoder reserve a long array.
        max_array_len=min(limits.max_array_entries, len(data)),
        max_map_len=min(limits.max_map_entries, len(data)),
        max_ext_len=0,
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed: numbers must be finite")


def _check_num_values(data: bytes, max_values: int) -> None:
    """Refuse JSON text that certainly has too many values: the parser would hold all threads of the process while it builds them."""
    if data.count(b",") < max_values and data.count(b"[") + data.count(b"{") <= max_values:
        return
    num_commas = num_openings = 0
    for found in _STRUCTURE.finditer(data):
        kind = data[found.start()]
        num_commas += kind == _COMMA
        num_openings += kind in b"[{"
        if num_commas >= max_values or num_openings > max_values:
            raise ValueError(f"more than {max_values} values")


def _unpack_json(data: bytes, limits: DecodeLimits) -> Any:
    _check_num_values(data, limits.max_values)
    return json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_Counter(limits.max_values).map)


def _check(value: Any, limits: DecodeLimits) -> None:
    """Check a decoded value against the limits, level by level, so that depth needs no recursion."""
    level: list[Any] = [value]
    depth = num_values = 0
    while level:
        depth += 1
        num_values += len(level)
        if num_values > limits.max_values:
            raise _invalid(f"more than {limits.max_values} values")
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                if not item.isascii():
                    _check_text(item)
            elif kind is int:
                if not _MIN_INT <= item <= _MAX_INT:
                    raise _invalid("integers must fit in 64 bits")
            elif kind is float:
                if not math.isfinite(item):
                    raise _invalid("numbers must be finite")
            elif (kind is list or kind is dict) and depth > limits.max_depth:
                raise _invalid(f"nested more than {limits.max_depth} levels deep")
            elif kind is list:
                if len(item) > limits.max_array_entries:
                    raise _invalid(f"an array has more than {limits.max_array_entries} entries")
                below.extend(item)
            elif kind is dict:
                if len(item) > limits.max_map_entries:
                    raise _invalid(f"a map has more than {limits.max_map_entries} entries")
                for key in item:
                    if type(key) is not str:
                        raise _invalid("map keys must be strings")
                    _check_text(key)
                below.extend(item.values())
            elif item is not None and kind is not bool:
                raise _invalid(f"{kind.__name__} values are not allowed")
        level = below


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid("text contains a lone surrogate") from None
