"""Refuses unknown fields of maps that determine an output, so that a misspelled or misplaced option is never dropped silently."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from rtlang.contract.errors import GraphError


def check_fields(given: Iterable[object], allowed: Collection[str], of: str, node_id: int | None = None) -> None:
    """Check that all names are allowed.

    Args:
        of: the map that they are from, for the message.
    Raises:
        GraphError: names the first field that is not allowed.
    """
    for name in given:
        if name not in allowed:
            close = difflib.get_close_matches(str(name)[:40], allowed, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            names = ", ".join(sorted(allowed))
            raise GraphError(node_id, str(name)[:80], f"unknown field of {of}; expected only {names}{hint}")
