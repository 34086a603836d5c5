"""One form for sources that say the same, so that a constraint is compiled once however its JSON is laid out."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind

_JSON_KINDS = frozenset({ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICE, ConstraintKind.STRUCTURE})


def canonical(constraint: Constraint) -> Constraint:
    """The same constraint without what its JSON source says about nothing: blanks, ways to escape, names that are overwritten.

    The order of names stays: it is the order of properties where that is asked for. Sources that are no JSON stay as they are.
    """
    return _canonical(constraint) if constraint.kind in _JSON_KINDS else constraint


@lru_cache(maxsize=4)  # a compile asks several times, for its place in memory and on disk; sources may be long
def _canonical(constraint: Constraint) -> Constraint:
    try:
        source = json.dumps(json.loads(constraint.source), separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return constraint
    return constraint if source == constraint.source else replace(constraint, source=source)
