"""Functions of several values that stay in the graph: `join`, `format` and `length`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.lang.lazy_values import operations
from rtlang.lang.lazy_values.values import Value, derived, lazy_form, real, user_location


def join(separator: Any, values: Any) -> Any:
    """The text `separator.join(str(each) for each in values)`, lazily where possible.

    Args:
        separator: a string, or a lazy one.
        values: strings, numbers and lazy values; or a lazy list of strings, such as `s["text"].split()`.
    Raises:
        TraceError: `values` is a string or cannot be iterated.
    """
    lazy = lazy_form(separator)
    if lazy is not None and isinstance(values, Value):
        whole = lazy_form(values)
        found = None if whole is None else operations.joined(lazy, whole)
        made = derived(found, lambda sep, items: sep.join(items), (separator, values), f"rt.join of {values._rt_what}")
        if made is not None:
            return made
        values = real(values)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TraceError(
            f"rt.join(): values = {values!r:.80}; expected a list of strings, numbers and values", user_location()
        )
    items = list(values)
    if lazy is not None and any(isinstance(each, Value) for each in (separator, *items)):
        found = operations.joined(lazy, [lazy_form(each) for each in items])
        made = derived(found, _joined, (separator, *items), f"rt.join of {len(items)} values")
        if made is not None:
            return made
    return _joined(real(separator), *map(real, items))


def _joined(separator: str, *items: Any) -> str:
    return separator.join(map(str, items))


def format(template: Any, *values: Any) -> Any:
    """The text `template.format(*values)`, lazily where possible: if the fields are `{}` or `{0}`, without specifications.

    Args:
        template: a string with `{}` for each value, or `{0}`, `{1}`, ...; `{{` and `}}` stand for braces.
        values: strings, numbers and lazy values.
    Raises:
        TraceError: a value is a generation that was not appended.
        ValueError, IndexError: the template is malformed, or names a value that is not given, as `str.format` says it.
    """
    for each in values:
        if hasattr(type(each), "_rt_is_expression"):
            raise TraceError(
                "rt.format() got a generation that is not part of a sequence yet; write rt.text(...) with it as an argument",
                user_location(),
            )
    if type(template) is str and any(isinstance(each, Value) for each in values) and _is_simple(template, len(values)):
        lazy = lazy_form(template)
        found = None if lazy is None else operations.formatted(lazy, [lazy_form(each) for each in values])
        made = derived(found, str.format, (template, *values), f"rt.format({template!r:.40})")
        if made is not None:
            return made
    return str(real(template)).format(*map(real, values))


_SIMPLE = re.compile(r"(?:\{\{|\}\}|\{[0-9]*\}|[^{}])*")
_FIELD = re.compile(r"\{\{|\}\}|\{([0-9]*)\}")


def _is_simple(template: str, count: int) -> bool:
    """Whether the fields of a template are `{}`, or numbers, of values that are given."""
    if _SIMPLE.fullmatch(template) is None:
        return False
    names = [match[1] for match in _FIELD.finditer(template) if match[1] is not None]
    if any(names):
        return all(names) and all(len(name) < 6 and int(name) < count for name in names)
    return len(names) <= count


def length(value: Any) -> Any:
    """`len(value)`, lazily where possible. `len` itself must give a number at once, and so is a graph break."""
    lazy = lazy_form(value) if isinstance(value, Value) else None
    found = None if lazy is None else operations.length(lazy)
    made = derived(found, len, (value,), f"the length of {value._rt_what}") if found is not None else None
    return len(real(value)) if made is None else made
