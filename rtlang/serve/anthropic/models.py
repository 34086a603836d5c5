"""The served model as the Messages API describes models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rtlang.contract.errors import ParameterError

ANTHROPIC_VERSION = "anthropic-version"
"""The header that every client of the Messages API sends."""
_MAX_LIMIT = 1000


def described_model(name: str, max_model_len: int | None, started: int) -> dict[str, Any]:
    """A model.

    Args:
        max_model_len: its longest sequence in tokens; None if unknown.
        started: when the server started, in seconds since 1970.
    """
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "max_input_tokens": max_model_len,
        "max_tokens": max_model_len,
    }


def listed_models(
    names: Sequence[str], max_model_len: int | None, started: int, query: Mapping[str, str]
) -> dict[str, Any]:
    """A page of the models.

    Args:
        query: of the address: `limit`, and `after_id` or `before_id`.
    Raises:
        ParameterError: it is malformed; names the field.
    """
    limit = query.get("limit", "20")
    if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= _MAX_LIMIT):
        raise ParameterError("limit", limit, f"expected an integer from 1 to {_MAX_LIMIT}")
    start, end, is_backward = 0, len(names), False
    for field in ("after_id", "before_id"):
        if field not in query:
            continue
        if query[field] not in names:
            raise ParameterError(field, query[field], "expected the id of a model of this server")
        index = names.index(query[field])
        start, end, is_backward = (index + 1, end, False) if field == "after_id" else (start, index, True)
    size = int(limit)
    page = names[max(start, end - size) : end] if is_backward else names[start : min(start + size, end)]
    return {
        "data": [described_model(name, max_model_len, started) for name in page],
        "has_more": end - start > len(page),
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }
