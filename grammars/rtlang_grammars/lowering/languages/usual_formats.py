"""Explores the automata of common string formats before the first schema needs them."""

from __future__ import annotations

import contextlib

from rtlang_grammars.regular.string_formats.formats import format_language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

_FORMATS = (
    "uri",
    "uri-reference",
    "uri-template",
    "date-time",
    "date",
    "time",
    "email",
    "uuid",
    "hostname",
    "ipv4",
)
_EXPLORED_STATES = 400


def explore_usual_formats(limits: Limits) -> None:
    """Explore the first states of each format, as far as the limits allow; the rest is explored on demand."""
    for name in _FORMATS:
        language = format_language(name)
        assert language is not None
        with contextlib.suppress(GrammarError):  # out of time: left to the schemas that need the format
            language.explore(_EXPLORED_STATES, Budget(limits))
