"""Compact JSON text of responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# `json.dumps` would make an encoder for each text.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_GROUP = 64  # items of a long list that are written at once: about 1 ms, each with twenty log-probabilities
_MAX_DEPTH = 3  # maps and lists below are written at once, but for long lists


def json_text(data: Any) -> str:
    """Compact JSON text."""
    return _ENCODER.encode(data)


def json_bytes(data: Any) -> bytes:
    """`json_text`, encoded. Long lists are written in parts: one call would hold all threads of the process."""
    return b"".join(_json_parts(data, 0))


def _json_parts(data: Any, depth: int) -> Iterator[bytes]:
    if isinstance(data, dict) and data and depth < _MAX_DEPTH and all(isinstance(key, str) for key in data):
        for number, (key, value) in enumerate(data.items()):
            yield b"," if number else b"{"
            yield json_text(key).encode(errors="replace") + b":"
            yield from _json_parts(value, depth + 1)
        yield b"}"
    elif isinstance(data, list) and data and depth < _MAX_DEPTH and isinstance(data[0], (dict, list)):
        for number, value in enumerate(data):
            yield b"," if number else b"["
            yield from _json_parts(value, depth + 1)
        yield b"]"
    elif isinstance(data, list) and len(data) > _GROUP:
        for start in range(0, len(data), _GROUP):
            yield b"," if start else b"["
            yield json_text(data[start : start + _GROUP])[1:-1].encode(errors="replace")
        yield b"]"
    else:
        yield json_text(data).encode(errors="replace")
