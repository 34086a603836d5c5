"""Bounds on the results of the functions that a chat template calls, found before a result is built.

A short template can ask for a text of many gigabytes in one call, such as `x.replace("a", x)`. One call of CPython cannot be ended and may
hold all threads, so each function whose result can be larger than its arguments has a bound here; methods and filters of the same name have
the same one. A bound may be larger than the result, never smaller.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from typing import Any

from jinja2.exceptions import SecurityError

MAX_RENDERED_CHARS = 4 << 20
MAX_BOUND_CHARS = 4 * MAX_RENDERED_CHARS
"""Largest bound of one result; bounds are estimates from above."""
MAX_BITS = 4096
"""Bits of an integer."""
MAX_SLOW_CHARS = 50_000
"""Characters that a filter of pure Python may read whose time grows faster than its text."""
MAX_DIRECTIVES = 10_000
_MAX_WIDTH_DIGITS = 4

_DIRECTIVE = re.compile(r"[#0\- +]*(\*|\d*)(?:\.(\*|\d*))?")
_DIGITS = re.compile(r"\d+")
_SLOW = frozenset(("pprint", "striptags", "urlize", "wordwrap"))


class LimitExceeded(SecurityError):
    """A rendering needs more work, time or memory than a template may use."""


def check_size(size: int) -> None:
    """Refuse a value of so many characters and elements.

    Raises:
        LimitExceeded: they are too many.
    """
    if size > MAX_RENDERED_CHARS:
        raise LimitExceeded(f"the template creates a value of more than {MAX_RENDERED_CHARS} elements")


def check_scalar(value: object) -> None:
    """Refuse integers and bytes that no template needs.

    Raises:
        LimitExceeded: an integer has more than MAX_BITS bits, or the value is bytes, whose methods have no bounds.
    """
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise LimitExceeded(f"the template computes a number of more than {MAX_BITS} bits")
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise LimitExceeded("the template makes bytes")


def check_method(name: str, text: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse a call of a method of text whose result could be too large.

    Raises:
        LimitExceeded: the bound of the result is too large.
    """
    bound = _METHOD_BOUNDS.get(name)
    if bound is not None:
        _check_bound(name, bound(text, args, named))


def check_filter(name: str, value: object, args: tuple[Any, ...], named: dict[str, Any], size: int) -> None:
    """Refuse a filter whose result could be too large, or that could run for long.

    Args:
        value: is filtered; args, named: the other arguments.
        size: characters and elements of the value.
    Raises:
        LimitExceeded: the bound of the result, or the value, is too large.
    """
    if name in _SLOW and size > MAX_SLOW_CHARS:
        raise LimitExceeded(f"the template passes more than {MAX_SLOW_CHARS} characters to {name}")
    if name == "tojson":
        indent, separators = _arguments(("ensure_ascii", "indent", "separators"), args, named)[1:]
        _check_bound(name, _json_chars(value, size, indent, separators))
    elif name == "format":
        _check_bound(name, _percent_chars(str(value), _written_chars(args) + _written_chars(named)))
    elif name in _FILTER_BOUNDS:
        _check_bound(name, _FILTER_BOUNDS[name](str(value), args, named))


def check_percent(template: str, values: object) -> None:
    """Refuse `template % values` whose result could be too large.

    Raises:
        LimitExceeded: the bound is too large.
    """
    _check_bound("%", _percent_chars(template, _written_chars(values)))


def has_wide_directive(form: str) -> bool:
    """Whether a format of the time has a width of more than four digits."""
    return any(len(digits) > _MAX_WIDTH_DIGITS for digits in _DIGITS.findall(form))


def _check_bound(name: str, num_chars: int) -> None:
    if num_chars > MAX_BOUND_CHARS:
        raise LimitExceeded(f"the template creates a text of more than {MAX_BOUND_CHARS} characters with {name}")


def bounded_pieces(pieces: Iterable[Any], separator: str, write: Callable[[Any], str]) -> list[str]:
    """The written pieces that are to be joined with a separator.

    Raises:
        LimitExceeded: their text is too long.
    """
    found: list[str] = []
    size = 0
    for piece in pieces:
        text = write(piece)
        size += len(text) + len(separator)
        check_size(size)
        found.append(text)
    return found


def _percent_chars(template: str, size: int) -> int:
    """A bound on the characters of `template % values`; `size`: characters of all values."""
    num_chars, num_directives, at = len(template), 0, template.find("%")
    while at >= 0:
        num_directives += 1
        _check_directives(num_directives)
        at = _end_of_key(template, at + 1)
        directive = _DIRECTIVE.match(template, at)
        assert directive is not None
        num_chars += size + sum(map(_width, directive.groups()))
        at = template.find("%", directive.end() + 1)
    return num_chars


def _json_chars(value: object, size: int, indent: object, separators: object) -> int:
    """A bound on the characters of a value as JSON; `size`: its characters and elements."""
    between = sum(map(len, separators)) if isinstance(separators, list | tuple) else 4
    one_level = len(indent) if isinstance(indent, str) else indent if isinstance(indent, int) else 0
    return size * (between - 3 + one_level * _depth(value)) if between > 4 or one_level else size


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + max(map(_depth, inner), default=0)


def _end_of_key(template: str, at: int) -> int:
    """Where the mapping key of a directive ends; keys may have parentheses in pairs."""
    if not template.startswith("(", at):
        return at
    depth = 0
    for place in range(at, min(len(template), at + MAX_DIRECTIVES)):
        depth += {"(": 1, ")": -1}.get(template[place], 0)
        if depth == 0:
            return place + 1
    raise LimitExceeded("the template uses a format with a key that does not end")


def _width(digits: str | None) -> int:
    if digits == "*" or (digits is not None and len(digits) > _MAX_WIDTH_DIGITS):
        raise LimitExceeded("the template uses too large a format width")
    return int(digits) if digits else 0


def _check_directives(num_directives: int) -> None:
    if num_directives > MAX_DIRECTIVES:
        raise LimitExceeded(f"the template uses a format with more than {MAX_DIRECTIVES} directives")


def _largest(values: Iterable[Any]) -> int:
    return max((_written_chars(value) for value in values), default=0)


def _written_chars(value: Any) -> int:
    """A bound on the characters of a value that was counted before, up to escapes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return 2 + sum(_written_chars(key) + _written_chars(each) + 4 for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return 2 + sum(_written_chars(each) + 2 for each in value)
    return MAX_BITS  # a number has fewer digits, another object a short name


def _format(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    num_chars, each = len(text), _largest((*args, *named.values()))
    num_directives = 0
    for _, field, spec, _ in string.Formatter().parse(text):
        if field is not None:
            num_directives += 1
            _check_directives(num_directives)
            if "{" in (spec or ""):
                raise LimitExceeded("the template uses a format whose width is a value")
            num_chars += each + sum(map(_width, _DIGITS.findall(spec or "")))
    return num_chars


def _replace(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    old, new, count = _arguments(("old", "new", "count"), args, named)
    if not isinstance(old, str) or not isinstance(new, str):
        old, new = str(old), str(new)
    num_found = text.count(old)
    if isinstance(count, int) and count >= 0:
        num_found = min(num_found, count)
    return len(text) + num_found * len(new)


def _translate(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    table = args[0] if args else None
    values: Iterable[Any] = (
        table.values() if isinstance(table, dict) else table if isinstance(table, list | tuple) else ()
    )
    return len(text) * max((len(value) for value in values if isinstance(value, str)), default=1)


def _expandtabs(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    (size,) = _arguments(("tabsize",), args, named)
    return len(text) + text.count("\t") * (size if isinstance(size, int) else 8)


def _indent(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    (width,) = _arguments(("width",), args, named)
    chars = len(width) if isinstance(width, str) else width if isinstance(width, int) else 4
    return len(text) + (len(text.splitlines()) + 1) * chars


def _wordwrap(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    _, _, wrap = _arguments(("width", "break_long_words", "wrapstring"), args, named)
    return len(text) * (1 + (len(wrap) if isinstance(wrap, str) else 1))


def _urlize(text: str, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    added = sum(len(value) for value in (*args, *named.values()) if isinstance(value, str))
    return len(text) * 2 + (text.count(".") + text.count(":") + text.count("@") + 1) * (added + 100)


def _arguments(names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    return [args[index] if index < len(args) else named.get(name) for index, name in enumerate(names)]


_Bound = Callable[[str, tuple[Any, ...], dict[str, Any]], int]
_METHOD_BOUNDS: dict[str, _Bound] = {
    "replace": _replace,
    "translate": _translate,
    "expandtabs": _expandtabs,
    "format": _format,
    "format_map": _format,
}
_FILTER_BOUNDS: dict[str, _Bound] = {
    "replace": _replace,
    "indent": _indent,
    "wordwrap": _wordwrap,
    "urlize": _urlize,
}
