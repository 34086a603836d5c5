"""The prices of pure functions, and the bounds of their results, from the sizes of the arguments.

A price is the estimated work in microseconds on the slowest arguments of these sizes; `tests/contract/graph/test_function_costs.py`
compares the prices with measured times. A bound is a number of bytes that the result never exceeds, found before the result is built.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from rtlang.contract.graph.value_size import MAX_DIGITS, MAX_SIZE, Measured, list_bytes, text_bytes

Args = Sequence[Measured]
Cost = Callable[[Args], float]

MAX_PRICE_US = 5_000_000.0
"""The most work of one call."""
BASE_US = 2.0
MEASURE_NS = 150
"""For each character or item of a value that is walked."""
TEXT_NS = 1_000
"""For each item of a list or dict that is written as text."""
MANY_CONTAINERS = 20_000
"""Lists and objects of a JSON text that are built in one step, in about 10 ms."""
_PART = 1_000  # characters of a long text that are looked at for its price
_COMPARE_NS = 30
_FLAT = 2  # depth of a list of scalars
_SCALAR_BYTES = 64
_INT_BYTES = 4_096  # of the largest integer
_TEXT_LINE_ENDS = ("\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def total_size(args: Args) -> int:
    """Characters and items of all arguments; one that is given several times counts once."""
    return sum({id(each.value): each.size for each in args}.values())


# Prices


def flat(args: Args) -> float:
    """The price of a function that looks at no item."""
    return BASE_US + 0.1 * len(args)


def by_size(nanoseconds: float) -> Cost:
    """The price of a function that reads its arguments once."""
    return lambda args: BASE_US + nanoseconds * total_size(args) / 1000


def text_price(each: Measured) -> float:
    """The price of the text of a value, in microseconds."""
    if isinstance(each.value, str):
        return each.size / 1000
    if each.measure.depth > _FLAT:
        return TEXT_NS * each.size / 1000
    num_items = len(each.value) if isinstance(each.value, (list, tuple, dict)) else 1
    return (2 * TEXT_NS * num_items + 20 * each.size) / 1000


def of_texts(nanoseconds: float) -> Cost:
    """The price of a function that writes its arguments as text, and then works on each character."""
    return lambda args: by_size(nanoseconds)(args) + sum({id(each.value): text_price(each) for each in args}.values())


def of_join(args: Args) -> float:
    """The price of the texts of items and a separator between them."""
    between = args[0].size * len(args[1].value) if len(args) > 1 and isinstance(args[1].value, (list, tuple)) else 0
    return of_texts(2)(args) + 2 * min(MAX_SIZE, between) / 1000


def of_format(args: Args) -> float:
    """The price of a template that is read slot by slot."""
    num_chars = min(MAX_SIZE, args[0].size * max((each.size for each in args[1:]), default=1)) if args else 0
    return of_texts(2)(args) + (1_000 * args[0].size / 1000 if args else 0.0) + 2 * num_chars / 1000


def of_replacement(args: Args) -> float:
    """The price of replacing parts of a text."""
    num_chars = min(MAX_SIZE, args[0].size * args[2].size) if len(args) > 2 else 0
    return by_size(10)(args) + 4 * num_chars / 1000


def of_strip(args: Args) -> float:
    """The price of stripping letters from the ends of a text, each of which is looked up among the given ones."""
    return by_size(300 if len(args) > 1 else 5)(args)


def num_containers(text: str) -> int:
    """Lists and objects in a JSON text, as an upper estimate. Takes a millisecond for a million characters."""
    return text.count("[") + text.count("{")


def of_json(args: Args) -> float:
    """The price of parsing a JSON text. With many lists and objects it is read by slower steps, between which other threads run.

    Their number is estimated from three parts of the text.
    """
    text = args[0].value if args else ""
    if not isinstance(text, str) or len(text) <= MANY_CONTAINERS:
        return by_size(150)(args)
    starts = (0, (len(text) - _PART) // 2, len(text) - _PART)
    many = len(text) * max(num_containers(text[start : start + _PART]) for start in starts) / _PART
    return by_size(150)(args) + (4.0 * many if many > MANY_CONTAINERS else 0.0)


def of_digits(args: Args) -> float:
    """The price of the digits of an integer, each of which is multiplied with the others."""
    return BASE_US + min(MAX_DIGITS, max((each.size for each in args), default=0)) ** 2 / 100_000


def of_numbers(args: Args) -> float:
    """The price of arithmetic with two integers, whose digits are multiplied with each other."""
    return BASE_US + math.prod(_kilobits(each) for each in args[:2])


def of_sum(args: Args) -> float:
    """The price of adding numbers."""
    return BASE_US + sum(0.2 + 0.2 * _kilobits(each) for each in args)


def of_part(args: Args) -> float:
    """The price of a function that returns a part of its first argument, which is measured unless it is a scalar."""
    is_nested = bool(args) and args[0].measure.depth > _FLAT
    return BASE_US + (MEASURE_NS * args[0].size / 1000 if is_nested else 0.0)


def of_slice(args: Args) -> float:
    """The price of a slice, whose characters are copied and whose items are measured."""
    is_list = bool(args) and isinstance(args[0].value, (list, tuple))
    return BASE_US + ((MEASURE_NS if is_list else 3) * args[0].size / 1000 if args else 0.0)


def of_equality(args: Args) -> float:
    """The price of a comparison that ends at the first difference."""
    return BASE_US + _COMPARE_NS * min((each.size for each in args), default=0) / 1000


def of_order(args: Args) -> float:
    """The price of a comparison that walks nested lists once at each level."""
    return BASE_US + sum(
        _COMPARE_NS * each.size * each.measure.depth / 1000 for each in {id(each.value): each for each in args}.values()
    )


def of_min(args: Args) -> float:
    """The price of comparisons of each argument with the best one so far."""
    return of_order(args) + 0.5 * len(args)


# Bounds


def no_bytes(args: Args) -> int:
    """The result is an argument, or a part of one."""
    return 0


def scalar(args: Args) -> int:
    """A number, or a boolean."""
    return _SCALAR_BYTES


def number(args: Args) -> int:
    """A number of any size."""
    return _INT_BYTES


def same_text(args: Args) -> int:
    """A text of at most the characters of the first argument."""
    return args[0].measure.num_bytes if args else 0


def grown_text(args: Args) -> int:
    """A text in other letters: one may become three."""
    if not args or not isinstance(args[0].value, str):
        return 0
    text: str = args[0].value
    return text_bytes(len(text) if text.isascii() else 3 * len(text), is_ascii=text.isascii())


def any_text(args: Args) -> int:
    """A text of the allowed size, made of texts of the arguments."""
    is_ascii = all(is_ascii_text(each.value) for each in args)
    most = sum(each.size if isinstance(each.value, str) else MAX_SIZE for each in args)
    return text_bytes(min(MAX_SIZE, most), is_ascii=is_ascii)


def formatted(args: Args) -> int:
    """A text with values in the place of braces."""
    if not args or not isinstance(args[0].value, str):
        return 0
    template: str = args[0].value
    most = max((each.size if isinstance(each.value, str) else MAX_SIZE for each in args[1:]), default=0)
    num_chars = min(MAX_SIZE, len(template) + template.count("{") * most)
    return text_bytes(num_chars, is_ascii=all(is_ascii_text(each.value) for each in args))


def sum_of_parts(args: Args) -> int:
    """Two texts or lists in one, or a number."""
    if all(isinstance(each.value, str) for each in args):
        is_ascii = all(each.value.isascii() for each in args)
        return text_bytes(sum(len(each.value) for each in args), is_ascii=is_ascii)
    if all(isinstance(each.value, list) for each in args):
        return list_bytes(sum(len(each.value) for each in args))
    return _INT_BYTES


def sliced(args: Args) -> int:
    """A part of a text, or a list of some of its items."""
    if not args:
        return 0
    value = args[0].value
    return list_bytes(len(value)) if isinstance(value, (list, tuple)) else args[0].measure.num_bytes


def items(args: Args) -> int:
    """A list of the arguments."""
    return list_bytes(len(args))


def replaced(args: Args) -> int:
    """A text with some parts replaced.

    Raises:
        ValueError: it has too many characters.
    """
    texts = [each.value for each in args[:3]]
    if len(texts) < 3 or not all(isinstance(each, str) for each in texts):
        return 0
    whole, old, new = texts
    most = operator.index(args[3].value) if len(args) > 3 else -1
    num_found = whole.count(old)
    num_found = num_found if most < 0 else min(most, num_found)
    num_chars = len(whole) + num_found * (len(new) - len(old))
    check_chars(num_chars)
    return text_bytes(num_chars, is_ascii=whole.isascii() and new.isascii())


def pieces(args: Args) -> int:
    """A list of the parts of a text between separators.

    Raises:
        ValueError: they have too many characters and items.
    """
    if not args or not isinstance(args[0].value, str):
        return 0
    text: str = args[0].value
    separator = args[1].value if len(args) > 1 else None
    most = operator.index(args[2].value) if len(args) > 2 else -1
    if separator is None:
        num_pieces = len(text) // 2 + 1
        num_chars = 0
    elif isinstance(separator, str) and separator:
        num_pieces = text.count(separator) + 1
        num_chars = len(text) - (num_pieces - 1) * len(separator)
    else:
        return 0
    if most >= 0:
        num_pieces, num_chars = min(num_pieces, most + 1), 0
    if 1 + num_pieces + num_chars > MAX_SIZE:
        raise ValueError(f"the result has more than {MAX_SIZE} characters and items")
    return _bytes_of_pieces(text, num_pieces)


def lines(args: Args) -> int:
    """A list of the lines of a text."""
    if not args or not isinstance(args[0].value, str):
        return 0
    text: str = args[0].value
    return _bytes_of_pieces(text, 1 + sum(map(text.count, _TEXT_LINE_ENDS)))


def parsed(args: Args) -> int:
    """The value of a JSON text."""
    if not args or not isinstance(args[0].value, str):
        return 0
    text: str = args[0].value
    num_lists, num_dicts, num_commas, num_entries = map(text.count, "[{,:")
    num_texts = text.count('"') // 2
    num_items = num_lists + num_dicts + num_commas + 1
    is_ascii = text.isascii() and "\\u" not in text
    return (
        120 * num_lists
        + 280 * num_dicts
        + 120 * num_entries
        + 64 * num_items
        + num_texts * text_bytes(0, is_ascii=True)
        + (1 if is_ascii else 4) * len(text)
        + 256
    )


def parsed_calls(args: Args) -> int:
    """The calls of tools in a text; the arguments of each are JSON."""
    return 3 * parsed(args) + 4 * _SCALAR_BYTES * 8 + (8 * args[0].measure.num_bytes if args else 0)


def check_chars(num_chars: int) -> None:
    """Refuse a text before it is built.

    Raises:
        ValueError: it has more than MAX_SIZE characters.
    """
    if num_chars > MAX_SIZE:
        raise ValueError(f"the result has more than {MAX_SIZE} characters")


def is_ascii_text(value: Any) -> bool:
    """Whether the text of a value is ASCII, as far as that is known without writing it."""
    return value.isascii() if isinstance(value, str) else isinstance(value, (bool, int, float)) or value is None


def _bytes_of_pieces(text: str, num_pieces: int) -> int:
    width = 1 if text.isascii() else 4
    return list_bytes(num_pieces) + num_pieces * text_bytes(0, is_ascii=True) + width * len(text)


def _kilobits(each: Measured) -> float:
    return each.value.bit_length() / 1000 if isinstance(each.value, int) else 0.0
