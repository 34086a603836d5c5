"""Canonical form of JSON sources, so that a constraint is compiled only once, however its JSON is laid out."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind

_JSON_KINDS = frozenset({ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICE, ConstraintKind.STRUCTURE})


def canonical(constraint: Constraint) -> Constraint:
    """The constraint with blanks, escapes and overwritten names of its JSON source normalized.

    The order of names is preserved, since it is the order of properties under `PropertyOrder.DECLARED`. Sources that are not JSON are
    unchanged.
    """
    return _canonical(constraint) if constraint.kind in _JSON_KINDS else constraint


@lru_cache(maxsize=4)  # called several times per compile, for the caches in memory and on disk; sources may be long
def _canonical(constraint: Constraint) -> Constraint:
    try:
        source = json.dumps(json.loads(constraint.source), separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return constraint
    return constraint if source == constraint.source else replace(constraint, source=source)
