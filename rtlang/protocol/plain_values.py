"""Plain values in messages. Encodings hold integers of 64 bits; larger ones are sent as `{"$int": digits}`, and a key that begins with
`$` gets another one in front."""

from __future__ import annotations

from typing import Any

from rtlang.contract.errors import ProtocolError
from rtlang.contract.graph.value_size import MAX_DIGITS

_INT = "$int"


def value_to_wire(value: Any) -> Any:
    """Encode a plain value."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        return {_INT: str(value)}
    if isinstance(value, (list, tuple)):
        return [value_to_wire(item) for item in value]
    if isinstance(value, dict):
        return {f"${key}" if key.startswith("$") else key: value_to_wire(item) for key, item in value.items()}
    return value


def value_from_wire(value: Any, param: str) -> Any:
    """Decode a plain value.

    Raises:
        ProtocolError: a map begins with `$` in another way; names the field `param`.
    """
    if isinstance(value, list):
        return [value_from_wire(item, param) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        if key == _INT and len(value) == 1:
            try:
                return int(item if isinstance(item, str) and len(item) <= MAX_DIGITS + 1 else "")
            except ValueError:
                raise ProtocolError(
                    f"{param} contains {_INT}: expected at most {MAX_DIGITS} digits", param=param
                ) from None
        if key.startswith("$") and not key.startswith("$$"):
            raise ProtocolError(f"{param} has the key {key[:40]!r}: {_INT} or $$ expected", param=param)
        found[key[1:] if key.startswith("$") else key] = value_from_wire(item, param)
    return found
