"""The texts of plain values: as `str` and `json.dumps` write them, in pieces, so that a large one can be refused before it is built and
other threads run meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rtlang.contract.graph.value_size import MAX_SIZE, Measured

_SMALL_SIZE = 2_000
"""Characters and items of a value that is written at once."""
_CHUNK = 500  # items that are written at once
_NESTED = (list, tuple, dict)
_SHOWN_CHARS = 60
_TOO_LONG = f"the result has more than {MAX_SIZE} characters"


def text_of_plain(value: Any) -> str:
    """The text of a value within text: a string as it is, other values as `str` formats them."""
    if isinstance(value, str):
        return value
    return "".join(_pieces(value)) if isinstance(value, _NESTED) else str(value)


def bounded_text(given: Measured) -> str:
    """`text_of_plain` of a measured value.

    Raises:
        ValueError: the text has more than MAX_SIZE characters.
    """
    if isinstance(given.value, str) or given.size <= _SMALL_SIZE:
        return given.value if isinstance(given.value, str) else str(given.value)
    return _joined(_pieces(given.value))


def bounded_json(given: Measured) -> str:
    """A measured value as JSON text.

    Raises:
        ValueError: the text has more than MAX_SIZE characters.
    """
    if given.size <= _SMALL_SIZE:
        return json.dumps(given.value, ensure_ascii=False)
    return _joined(json.JSONEncoder(ensure_ascii=False).iterencode(given.value))


def shown(value: object) -> str:
    """The beginning of a value's repr for a message, made without the rest of it."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of many digits"
    text = ""
    for piece in _pieces(value, chunk=1, most_chars=_SHOWN_CHARS + 1):
        text += piece
        if len(text) > _SHOWN_CHARS:
            return f"{text[: _SHOWN_CHARS - 3]}..."
    return text


def _joined(pieces: Iterator[str]) -> str:
    found, num_chars = [], 0
    for piece in pieces:
        num_chars += len(piece)
        if num_chars > MAX_SIZE:
            raise ValueError(_TOO_LONG)
        found.append(piece)
    return "".join(found)


def _pieces(value: Any, chunk: int = _CHUNK, most_chars: int | None = None) -> Iterator[str]:
    """The repr of a value in pieces. `most_chars`: of each text within it."""
    if isinstance(value, dict):
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield f"{', ' if index else ''}{_scalar(key, most_chars)}: "
            yield from _pieces(item, chunk, most_chars)
        yield "}"
    elif isinstance(value, (list, tuple)):
        is_list = isinstance(value, list)
        yield "[" if is_list else "("
        for start in range(0, len(value), chunk):
            items = value[start : start + chunk]
            if start:
                yield ", "
            if chunk > 1 and not any(issubclass(kind, _NESTED) for kind in set(map(type, items))):
                yield repr(list(items))[1:-1]
                continue
            for index, item in enumerate(items):
                if index:
                    yield ", "
                yield from _pieces(item, chunk, most_chars)
        yield "]" if is_list else ",)" if len(value) == 1 else ")"
    else:
        yield _scalar(value, most_chars)


def _scalar(value: Any, most_chars: int | None) -> str:
    if most_chars is not None and isinstance(value, str):
        return repr(value[:most_chars])
    if most_chars is not None and isinstance(value, int) and value.bit_length() > 200:
        return "an integer of many digits"
    return repr(value)
