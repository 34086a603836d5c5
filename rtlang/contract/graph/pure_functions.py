"""The pure functions of `Apply` nodes, on plain values.

The client and the engine use the same table, so both compute the same. Each function behaves as the Python operation of its name and is
bounded: each argument and the result have at most `MAX_SIZE` characters and items, a result is refused before it is built, and no call
costs more than `MAX_PRICE_US`. No function can be called without its price: the table holds `PureFunction` records.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from sys import getsizeof
from typing import Any, Protocol, TypeVar

from rtlang.contract.errors import ApplyError
from rtlang.contract.graph import function_costs as costs
from rtlang.contract.graph.function_costs import MAX_PRICE_US, Args, Cost
from rtlang.contract.graph.tool_list import tools_from_text
from rtlang.contract.graph.value_size import (
    MAX_DIGITS,
    MAX_SIZE,
    TOO_LARGE,
    Measure,
    Measured,
    list_bytes,
    list_measure,
    measured,
)
from rtlang.contract.graph.value_text import bounded_json, bounded_text, shown, text_of_plain
from rtlang_grammars import GrammarError
from rtlang_grammars.formats.parsing import parse_output

MAX_TOOL_CHARS = 200_000  # takes up to 0.2 s
_MOST_SHOWN = 16  # operands in a message
_BOOLEANS = {"true": True, "false": False}
_NESTED = (list, tuple, dict)
_MAX_SLOT_DIGITS = 9
_LONG = 10_000  # characters or items from which an operation lets other threads run
_FAILURES = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)

_T = TypeVar("_T")

Reserve = Callable[[int], None]
"""Reserves bytes for a result before it is built; raises an error if there is no room."""


class Run(Protocol):
    """Calls a function that has no effect but its result."""

    def __call__(self, act: Callable[[], _T], /) -> _T: ...


def run_directly(act: Callable[[], _T], /) -> _T:
    """The plain `Run`."""
    return act()


class Makes(Enum):
    """The part of a result that is new memory."""

    ALL = auto()
    SPINE = auto()  # a list whose items are items of the arguments
    NOTHING = auto()  # it is an argument, or a part of one


@dataclass(frozen=True, slots=True)
class PureFunction:
    """A function of the table.

    Attributes:
        compute: takes measured arguments if `takes_measured`, else their values.
        price: estimated microseconds for the slowest arguments of these sizes, found without a look at their items.
        bound: bytes that the new part of the result never exceeds. Raises ValueError for a result that is certainly too large. Called
            right before `compute`, at its price.
        takes_measured: whether `compute` takes `Measured` arguments, and may return one.
    """

    compute: Callable[..., Any]
    price: Cost
    bound: Callable[[Args], int]
    makes: Makes = Makes.ALL
    takes_measured: bool = False


def apply(function: str, args: Sequence[Any]) -> Any:
    """Compute a function of the table.

    Raises:
        ApplyError: the function cannot be computed of these values, or the result is too large; names the function and the values.
    """
    found: dict[int, Measured] = {}  # a value that is given several times is walked once
    reason = ""
    try:
        for arg in args:
            if id(arg) not in found:
                found[id(arg)] = measured(arg)
    except (ValueError, TypeError) as error:
        reason = str(error)
    if reason:
        raise ApplyError(function, shown_operands(args), reason)
    operands = [found[id(arg)] for arg in args]
    price_of(function, operands)
    return compute(function, operands)[0].value


def price_of(function: str, args: Args) -> float:
    """Estimated work of a call in microseconds.

    Raises:
        ApplyError: it is more than MAX_PRICE_US, or an argument is too large.
    """
    price = FUNCTIONS[function].price(args)
    if any(each.size > MAX_SIZE for each in args):  # a text that is no result of a function
        raise ApplyError(function, shown_operands([each.value for each in args]), TOO_LARGE)
    if price > MAX_PRICE_US:
        reason = f"it takes about {price / 1e6:.0f} s; at most {MAX_PRICE_US / 1e6:g} s are allowed"
        raise ApplyError(function, shown_operands([each.value for each in args]), reason)
    return price


def compute(
    function: str, args: Args, reserve: Reserve = lambda num_bytes: None, run: Run = run_directly
) -> tuple[Measured, int]:
    """Compute a function of measured values. Returns the result, and the bytes that it adds to the memory of its arguments.

    Args:
        reserve: called with the most bytes that the result may add, before it is built, and then with the difference, which is negative.
        run: calls what has no effect but its result.
    Raises:
        ApplyError: as `apply`. RtlangError: of `reserve`.
    """
    try:
        return _computed(FUNCTIONS[function], args, reserve, run)
    except _FAILURES as error:
        reason = f"no item {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    # Outside of the handler: the cause would keep what was built so far.
    raise ApplyError(function, shown_operands([each.value for each in args]), reason)


def _computed(function: PureFunction, args: Args, reserve: Reserve, run: Run) -> tuple[Measured, int]:
    def act() -> tuple[Measured, int]:
        result = function.compute(*(args if function.takes_measured else [each.value for each in args]))
        return _sized(function, args, result)

    bound = function.bound(args)
    reserve(bound)
    num_bytes = 0
    try:
        found, num_bytes = run(act)
    finally:
        reserve(num_bytes - bound)
    return found, num_bytes


def _sized(function: PureFunction, args: Args, result: Any) -> tuple[Measured, int]:
    """A result with its size, and the bytes that it adds to the memory of the arguments."""
    for arg in args:
        if arg.value is result:
            return arg, 0
    found = result if isinstance(result, Measured) else measured(result)
    match function.makes:
        case Makes.ALL:
            return found, found.measure.num_bytes
        case Makes.SPINE:
            return found, getsizeof(found.value)
        case Makes.NOTHING:
            return found, 0


def shown_operands(args: Sequence[object]) -> list[str]:
    """The operands of a function for a message; the first ones of many."""
    texts = [shown(arg) for arg in args[:_MOST_SHOWN]]
    return texts if len(args) <= _MOST_SHOWN else [*texts, f"and {len(args) - _MOST_SHOWN} more"]


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

    whole = _text(text)
    decoder = json.JSONDecoder(parse_constant=refuse)
    if costs.num_containers(whole) > costs.MANY_CONTAINERS:
        # The decoder in C builds all of them in one step, which would hold up other threads; the one in Python is its equal.
        decoder.parse_array, decoder.parse_object = JSONArray, JSONObject  # type: ignore[attr-defined]
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder.decode(whole)


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
        raise ValueError(f"expected true or false, not {shown(text)}")
    return found


def _item(value: object, key: object) -> Any:
    if isinstance(value, Mapping):
        return value[key]
    if isinstance(value, (str, list, tuple)) and isinstance(key, int):
        return value[key]
    raise TypeError(f"a {type(value).__name__} has no item {shown(key)}")


def _field(value: object, name: object, *default: object) -> Any:
    if isinstance(value, Mapping):
        return value[name] if not default or name in value else default[0]
    raise TypeError(f"a {type(value).__name__} has no field {shown(name)}")


def _present(value: object) -> object:
    if value is None:
        raise TypeError("expected a value, not None")
    return value


def _json_or_text(value: Measured) -> str:
    return bounded_json(value) if isinstance(value.value, (dict, list)) else bounded_text(value)


def _slice(value: object, start: Any, stop: Any, step: Any = None) -> Any:
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(f"a {type(value).__name__} cannot be sliced")
    return value[slice(start, stop, step)]


def _add(first: Measured, second: Measured) -> Any:
    left, right = first.value, second.value
    if isinstance(left, str) or isinstance(right, str):
        costs.check_chars(len(_text(left)) + len(_text(right)))
        return _text(left) + _text(right)
    if isinstance(left, list) or isinstance(right, list):
        if isinstance(left, list) and isinstance(right, list):
            joined = list_measure([first, second], 0)
            depth = max(first.measure.depth, second.measure.depth)
            return Measured(left + right, Measure(joined.size - 2, joined.num_bytes, depth))
        raise TypeError(f"cannot add {type(left).__name__} and {type(right).__name__}")
    return _number(left) + _number(right)


def _list(*items: Measured) -> Measured:
    size = list_measure(list(items), list_bytes(len(items)))
    return Measured([each.value for each in items], size)


def _replace(text: object, old: object, new: object, count: object = -1) -> str:
    return _text(text).replace(_text(old), _text(new), operator.index(count))  # type: ignore[arg-type]


def _split(text: object, separator: object = None, most: object = -1) -> list[str]:
    return _text(text).split(separator, operator.index(most))  # type: ignore[arg-type]


def _starts(text: object, prefix: object) -> bool:
    return _text(text).startswith(tuple(map(_text, prefix)) if isinstance(prefix, (list, tuple)) else _text(prefix))


def _ends(text: object, suffix: object) -> bool:
    return _text(text).endswith(tuple(map(_text, suffix)) if isinstance(suffix, (list, tuple)) else _text(suffix))


def _strip(text: object, letters: object = None, *, at_start: bool = True, at_end: bool = True) -> str:
    whole = _text(text)
    if letters is None or len(_text(letters)) * len(whole) < _LONG:
        method = (str.strip if at_end else str.lstrip) if at_start else str.rstrip
        return method(whole, letters)  # type: ignore[arg-type]
    among = frozenset(_text(letters))  # str.strip searches all letters for each character
    start, end = 0, len(whole)
    while at_start and start < end and whole[start] in among:
        start += 1
    while at_end and end > start and whole[end - 1] in among:
        end -= 1
    return whole[start:end]


def _join(separator: Measured, items: Measured) -> str:
    if not isinstance(items.value, (list, tuple)):
        raise TypeError(f"expected a list, not {type(items.value).__name__}")
    between = len(_text(separator.value))
    pieces, num_chars = [], 0
    for item in items.value:
        # Only a large list has large items.
        text = bounded_text(Measured(item, items.measure)) if isinstance(item, _NESTED) else text_of_plain(item)
        num_chars += len(text) + between
        costs.check_chars(num_chars - between)
        pieces.append(text)
    return str(separator.value.join(pieces))


_SLOT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def _format(template: Measured, *values: Measured) -> str:
    """`{}` and `{0}` stand for values, `{{` and `}}` for braces. Conversions and format specifications are not allowed."""
    numbers = iter(range(len(values)))
    texts: dict[int, str] = {}
    whole = _text(template.value)
    pieces: list[str] = []
    num_chars = at = 0
    for match in _SLOT.finditer(whole):
        pieces += (whole[at : match.start()], _text_in_slot(match, values, numbers, texts))
        at = match.end()
        num_chars += len(pieces[-2]) + len(pieces[-1])
        costs.check_chars(num_chars)
    costs.check_chars(num_chars + len(whole) - at)
    return "".join((*pieces, whole[at:]))


def _text_in_slot(match: re.Match[str], values: Args, numbers: Iterator[int], texts: dict[int, str]) -> str:
    """The text in the place of a match of `_SLOT`. `texts`: of the values so far, so that each is written once."""
    if match[0] in ("{{", "}}"):
        return match[0][0]
    name = match[1]
    if name and not (name.isascii() and name.isdigit()):
        raise ValueError(f"{shown(match[0])}: expected {{}} or the number of a value in braces")
    if len(name) > _MAX_SLOT_DIGITS:
        raise ValueError(f"{shown(match[0])}: there are only {len(values)} values")
    index = int(name) if name else next(numbers, len(values))
    if index >= len(values):
        raise ValueError(f"{match[0]}: there are only {len(values)} values")
    key = id(values[index].value)
    if key not in texts:
        texts[key] = bounded_text(values[index])
    return texts[key]


def _are_lists(left: object, right: object) -> bool:
    return (isinstance(left, list) and isinstance(right, list)) or (
        isinstance(left, tuple) and isinstance(right, tuple)
    )


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """A comparison by order, as Python's. Nested lists are compared level by level, so that no single step takes long."""

    def ordered(left: Any, right: Any) -> bool:
        while _are_lists(left, right):
            at = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a is not b and a != b), None)
            if at is None:
                return bool(compare(len(left), len(right)))
            left, right = left[at], right[at]
        return bool(compare(left, right))

    return ordered


_less, _greater = _ordered(operator.lt), _ordered(operator.gt)


def _equality(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    return lambda left, right: bool(compare(left, right))


def _best(plain: Callable[..., Any], is_better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """`min` or `max`, as `plain` computes it: of one operand it is the best of its items."""

    def best(*items: Any) -> Any:
        of = items[0] if len(items) == 1 else list({id(item): item for item in items}.values())
        if len(items) > 1 and len(of) == 1:
            of *= 2  # it is compared with itself
        if not items or not isinstance(of, (list, tuple)) or not any(isinstance(item, _NESTED) for item in of):
            return plain(of) if items else plain()
        found = of[0]
        for item in of[1:]:
            if is_better(item, found):
                found = item
        return found

    return best


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: compute(_number(left), _number(right))


def _of_text(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, *args: method(_text(text), *args)


def _scalar(compute: Callable[..., Any], price: Cost = costs.flat) -> PureFunction:
    """A function whose result is a number or a boolean."""
    return PureFunction(compute, price, costs.number)


def _of_numbers(compute: Callable[[Any, Any], Any]) -> PureFunction:
    return _scalar(_arithmetic(compute), costs.of_numbers)


def _letters(method: Callable[[str], str]) -> PureFunction:
    return PureFunction(_of_text(method), costs.by_size(20), costs.grown_text)


def _stripped(**sides: bool) -> PureFunction:
    def strip(text: object, *letters: object) -> str:
        return _strip(text, *letters, **sides)

    return PureFunction(strip, costs.of_strip, costs.same_text)


def _chosen(compute: Callable[..., Any], price: Cost = costs.flat) -> PureFunction:
    """A function whose result is an argument, or a part of one."""
    return PureFunction(compute, price, costs.no_bytes, Makes.NOTHING)


def _parts(compute: Callable[..., Any], bound: Callable[[Args], int]) -> PureFunction:
    return PureFunction(compute, costs.by_size(250), bound)


FUNCTIONS: dict[str, PureFunction] = {
    "parse_json": PureFunction(_parse_json, costs.of_json, costs.parsed),
    "parse_int": _scalar(lambda text: _int(_text(text)), costs.of_digits),
    "parse_float": _scalar(lambda text: _float(_text(text)), costs.by_size(2)),
    "parse_bool": _scalar(_parse_bool, costs.by_size(20)),
    "parse_tools": PureFunction(_parse_tools, costs.by_size(1_000), costs.parsed_calls),
    "item": _chosen(_item, costs.of_part),
    "field": _chosen(_field, costs.of_part),
    "present": _chosen(_present),
    "json_or_text": PureFunction(_json_or_text, costs.of_texts(2), costs.any_text, takes_measured=True),
    "slice": PureFunction(_slice, costs.of_slice, costs.sliced, Makes.SPINE),
    "strip": _stripped(),
    "lstrip": _stripped(at_end=False),
    "rstrip": _stripped(at_start=False),
    "removeprefix": PureFunction(_of_text(str.removeprefix), costs.by_size(1), costs.same_text),
    "removesuffix": PureFunction(_of_text(str.removesuffix), costs.by_size(1), costs.same_text),
    "lower": _letters(str.lower),
    "upper": _letters(str.upper),
    "title": _letters(str.title),
    "capitalize": _letters(str.capitalize),
    "replace": PureFunction(_replace, costs.of_replacement, costs.replaced),
    "split": _parts(_split, costs.pieces),
    "splitlines": _parts(_of_text(str.splitlines), costs.lines),
    "startswith": _scalar(_starts, costs.by_size(40)),
    "endswith": _scalar(_ends, costs.by_size(40)),
    "join": PureFunction(_join, costs.of_join, costs.any_text, takes_measured=True),
    "format": PureFunction(_format, costs.of_format, costs.formatted, takes_measured=True),
    "len": _scalar(lambda value: len(value)),
    "str": PureFunction(bounded_text, costs.of_texts(2), costs.any_text, takes_measured=True),
    "int": _scalar(_int, costs.of_digits),
    "float": _scalar(_float, costs.by_size(2)),
    "bool": _scalar(bool),
    "add": PureFunction(_add, costs.by_size(8), costs.sum_of_parts, Makes.SPINE, takes_measured=True),
    "sub": _of_numbers(operator.sub),
    "mul": _of_numbers(operator.mul),
    "truediv": _of_numbers(operator.truediv),
    "floordiv": _of_numbers(operator.floordiv),
    "mod": _of_numbers(operator.mod),
    "neg": _scalar(lambda value: -_number(value)),
    "eq": _scalar(_equality(operator.eq), costs.of_equality),
    "ne": _scalar(_equality(operator.ne), costs.of_equality),
    "lt": _scalar(_less, costs.of_order),
    "le": _scalar(_ordered(operator.le), costs.of_order),
    "gt": _scalar(_greater, costs.of_order),
    "ge": _scalar(_ordered(operator.ge), costs.of_order),
    "contains": _scalar(lambda container, item: item in container, costs.by_size(30)),
    "not": _scalar(operator.not_),
    "and": _chosen(lambda left, right: left and right),
    "or": _chosen(lambda left, right: left or right),
    "list": PureFunction(_list, costs.flat, costs.items, Makes.SPINE, takes_measured=True),
    "min": _chosen(_best(min, _less), costs.of_min),
    "max": _chosen(_best(max, _greater), costs.of_min),
    "sum": _scalar(lambda *items: sum(map(_number, items)), costs.of_sum),
}
"""The functions by name, as Python's operators, methods and built-ins of that name.

`parse_*` read text as the types of `gen` spell them; `item` takes an index or a key; `field` a name, and optionally the value if there is
none; `present` refuses None; `json_or_text` writes dicts and lists as JSON and others as `str`; `slice` takes start, stop and step; `str`
leaves text as it is; `list`, `min`, `max` and `sum` take the items as operands.
"""
