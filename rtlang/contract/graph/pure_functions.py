"""The pure functions of `Apply` nodes, on plain values.

The client and the engine use the same table, so both compute the same. Each function behaves as the Python operation of its name and is
bounded: arguments and results have at most `MAX_SIZE` characters and items in all, so no call takes long.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ApplyError
from rtlang.contract.graph.tool_list import tools_from_text
from rtlang_grammars import GrammarError
from rtlang_grammars.formats.parsing import parse_output

MAX_SIZE = 1_000_000
"""Characters and items of one value, nested ones included."""

MAX_DIGITS = 4_000
MAX_TOOL_CHARS = 200_000  # takes up to 0.2 s
MAX_DEPTH = 64
_BOOLEANS = {"true": True, "false": False}


def apply(function: str, args: Sequence[Any]) -> Any:
    """Compute a function of the table.

    Raises:
        ApplyError: the function cannot be computed of these values, or the result is too large; names the function and the values.
    """
    try:
        for arg in args:
            _check_size(arg)
        result = FUNCTIONS[function](*args)
        _check_size(result)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"no item {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ApplyError(function, [_shown(arg) for arg in args], reason) from None
    return result


def text_of_plain(value: Any) -> str:
    """The text of a value within text: a string as it is, other values as `str` formats them."""
    return value if isinstance(value, str) else str(value)


def check_plain(value: object) -> str | None:
    """None if `value` is plain data of allowed size, else the reason why not."""
    try:
        _check_size(value)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _check_size(value: object) -> None:
    size, level, depth = 0, [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"a value is nested more than {MAX_DEPTH} levels deep")
        below: list[object] = []
        for item in level:
            size += 1
            if isinstance(item, str):
                size += len(item)
            elif isinstance(item, bool) or item is None:
                continue
            elif isinstance(item, int):
                if item.bit_length() > MAX_DIGITS * 10 // 3:
                    raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
            elif isinstance(item, float):
                if not math.isfinite(item):
                    raise ValueError(f"{item} is not a finite number")
            elif isinstance(item, (list, tuple)):
                below.extend(item)
            elif isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    raise TypeError("expected only text as keys")
                size += sum(map(len, item))
                below.extend(item.values())
            else:
                raise TypeError(f"a {type(item).__name__} is not plain data: None, bool, int, float, str, list or dict")
        if size + len(below) > MAX_SIZE:
            raise ValueError(f"a value has more than {MAX_SIZE} characters and items")
        level = below


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of many digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {type(value).__name__}")
    return value


def _number(value: object) -> int | float:
    if isinstance(value, (int, float)):
        return value
    raise TypeError(f"expected a number, not {type(value).__name__}")


def _int(value: object) -> int:
    if isinstance(value, str) and len(value) > MAX_DIGITS:
        raise ValueError(f"expected at most {MAX_DIGITS} digits")
    if isinstance(value, (int, float, str)):
        return int(value)
    raise TypeError(f"expected a number or text, not {type(value).__name__}")


def _float(value: object) -> float:
    if isinstance(value, (int, float, str)):
        return float(value)
    raise TypeError(f"expected a number or text, not {type(value).__name__}")


def _parse_json(text: object) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.loads(_text(text), parse_constant=refuse)


def _parse_tools(text: object, tool_format: object, tools: object, has_begun: object = False) -> dict[str, Any]:
    """Parse a text with tool calls in a format, given by name; `tools` is a text of `tool_list`."""
    if len(_text(text)) > MAX_TOOL_CHARS:
        raise ValueError(f"expected at most {MAX_TOOL_CHARS} characters")
    try:
        found = parse_output(_text(tool_format), _text(text), tools_from_text(tools), is_reasoning=bool(has_begun))
    except GrammarError as error:
        raise ValueError(str(error)) from None
    calls = [{"name": each.name, "arguments": each.arguments, "id": each.id} for each in found.calls]
    return {"content": found.content, "reasoning": found.reasoning, "calls": calls}


def _parse_bool(text: object) -> bool:
    found = _BOOLEANS.get(_text(text).strip().lower())
    if found is None:
        raise ValueError(f"expected true or false, not {text!r:.60}")
    return found


def _item(value: object, key: object) -> Any:
    if isinstance(value, Mapping):
        return value[key]
    if isinstance(value, (str, list, tuple)) and isinstance(key, int):
        return value[key]
    raise TypeError(f"a {type(value).__name__} has no item {key!r:.60}")


def _field(value: object, name: object, *default: object) -> Any:
    if isinstance(value, Mapping):
        return value[name] if not default or name in value else default[0]
    raise TypeError(f"a {type(value).__name__} has no field {name!r:.60}")


def _present(value: object) -> object:
    if value is None:
        raise TypeError("expected a value, not None")
    return value


def _json_or_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else text_of_plain(value)


def _slice(value: object, start: Any, stop: Any, step: Any = None) -> Any:
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(f"a {type(value).__name__} cannot be sliced")
    return value[slice(start, stop, step)]


def _add(left: object, right: object) -> Any:
    if isinstance(left, str) or isinstance(right, str):
        return _text(left) + _text(right)
    if isinstance(left, list) or isinstance(right, list):
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        raise TypeError(f"cannot add {type(left).__name__} and {type(right).__name__}")
    return _number(left) + _number(right)


def _replace(text: object, old: object, new: object, count: object = -1) -> str:
    whole, found, put = _text(text), _text(old), _text(new)
    if len(whole) + (whole.count(found) if found else len(whole) + 1) * len(put) > MAX_SIZE:
        raise ValueError(f"the result has more than {MAX_SIZE} characters")
    return whole.replace(found, put, operator.index(count))  # type: ignore[arg-type]


def _split(text: object, separator: object = None, most: object = -1) -> list[str]:
    return _text(text).split(separator, operator.index(most))  # type: ignore[arg-type]


def _starts(text: object, prefix: object) -> bool:
    return _text(text).startswith(tuple(map(_text, prefix)) if isinstance(prefix, (list, tuple)) else _text(prefix))


def _ends(text: object, suffix: object) -> bool:
    return _text(text).endswith(tuple(map(_text, suffix)) if isinstance(suffix, (list, tuple)) else _text(suffix))


def _join(separator: object, items: object) -> str:
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"expected a list, not {type(items).__name__}")
    pieces = [text_of_plain(item) for item in items]
    if sum(map(len, pieces)) + len(_text(separator)) * len(pieces) > MAX_SIZE:
        raise ValueError(f"the result has more than {MAX_SIZE} characters")
    return _text(separator).join(pieces)


_SLOT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def _format(template: object, *values: object) -> str:
    """`{}` and `{0}` stand for values, `{{` and `}}` for braces. Conversions and format specifications are not allowed."""
    numbers = iter(range(len(values)))

    def slot(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        name = match[1]
        if name and not (name.isascii() and name.isdigit()):
            raise ValueError(f"{match[0]!r:.60}: expected {{}} or the number of a value in braces")
        index = int(name) if name else next(numbers, len(values))
        if index >= len(values):
            raise ValueError(f"{match[0]}: there are only {len(values)} values")
        return text_of_plain(values[index])

    text = _SLOT.sub(slot, _text(template))
    if len(text) > MAX_SIZE:
        raise ValueError(f"the result has more than {MAX_SIZE} characters")
    return text


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    return lambda left, right: bool(compare(left, right))


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: compute(_number(left), _number(right))


def _of_text(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, *args: method(_text(text), *args)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "parse_json": _parse_json,
    "parse_int": lambda text: _int(_text(text)),
    "parse_float": lambda text: _float(_text(text)),
    "parse_bool": _parse_bool,
    "parse_tools": _parse_tools,
    "item": _item,
    "field": _field,
    "present": _present,
    "json_or_text": _json_or_text,
    "slice": _slice,
    "strip": _of_text(str.strip),
    "lstrip": _of_text(str.lstrip),
    "rstrip": _of_text(str.rstrip),
    "removeprefix": _of_text(str.removeprefix),
    "removesuffix": _of_text(str.removesuffix),
    "lower": _of_text(str.lower),
    "upper": _of_text(str.upper),
    "title": _of_text(str.title),
    "capitalize": _of_text(str.capitalize),
    "replace": _replace,
    "split": _split,
    "splitlines": _of_text(str.splitlines),
    "startswith": _starts,
    "endswith": _ends,
    "join": _join,
    "format": _format,
    "len": lambda value: len(value),
    "str": text_of_plain,
    "int": _int,
    "float": _float,
    "bool": bool,
    "add": _add,
    "sub": _arithmetic(operator.sub),
    "mul": _arithmetic(operator.mul),
    "truediv": _arithmetic(operator.truediv),
    "floordiv": _arithmetic(operator.floordiv),
    "mod": _arithmetic(operator.mod),
    "neg": lambda value: -_number(value),
    "eq": _ordered(operator.eq),
    "ne": _ordered(operator.ne),
    "lt": _ordered(operator.lt),
    "le": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "ge": _ordered(operator.ge),
    "contains": lambda container, item: item in container,
    "not": operator.not_,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
    "list": lambda *items: list(items),
    "min": lambda *items: min(items),
    "max": lambda *items: max(items),
    "sum": lambda *items: sum(map(_number, items)),
}
"""The functions by name, as Python's operators, methods and built-ins of that name.

`parse_*` read text as the types of `gen` spell them; `item` takes an index or a key; `field` a name, and optionally the value if there is
none; `present` refuses None; `json_or_text` writes dicts and lists as JSON and others as `str`; `slice` takes start, stop and step; `str`
leaves text as it is; `list`, `min`, `max` and `sum` take the items as operands.
"""
