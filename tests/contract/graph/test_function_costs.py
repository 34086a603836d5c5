"""Every pure function has a price and a bound: its result is never larger, and one that is too large is refused before it is built."""

from __future__ import annotations

import json
import operator
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rtlang.contract.errors import ApplyError
from rtlang.contract.graph import function_costs
from rtlang.contract.graph.pure_functions import FUNCTIONS, Makes, apply, compute, price_of
from rtlang.contract.graph.value_size import MAX_SIZE, Measured, check_plain, measured
from tests.support.long_tests import sized

SIZES = (0, 1, 2, 5, 40, 300, 2_500)
LETTERS = ("a", "b", " ", "\n", "ß", "\u2028", "ŉ", "漢", "😀", '"', "\\", "{", "}", "0", ",")


def texts(random: Random) -> str:
    letters = random.choice((LETTERS, LETTERS[:4], LETTERS[:2], ("a",), ("0", "1"), ("{", "}", "0"), ("\n", "\r")))
    return "".join(random.choices(letters, k=random.choice(SIZES)))


def scalars(random: Random) -> Any:
    number = random.choice((0, -1, 7, 2**31, 10 ** random.randint(10, 3_900), random.random(), -1e300, 0.1))
    return random.choice((number, True, None, texts(random)))


def values(random: Random, depth: int = 4) -> Any:
    """Any plain value; the same object may occur several times in it."""
    if depth == 0 or random.random() < 0.4:
        return scalars(random)
    items = [values(random, depth - 1) for _ in range(random.randint(0, 4))]
    kind = random.random()
    if kind < 0.15 and items:
        return [random.choice(items)] * random.choice(SIZES[:-1])
    if kind < 0.3:
        return [random.choice((0.5, 3, "é", "ab", ""))] * random.choice(SIZES)
    if kind < 0.6:
        return {texts(random)[:8]: item for item in items}
    return items


def arguments(random: Random, name: str) -> list[Any]:
    """Arguments that a function mostly accepts."""
    text, other = texts(random), texts(random)[: random.choice((1, 2, 9))]
    value = values(random)
    match name:
        case "parse_json":
            return [json.dumps(value, ensure_ascii=random.random() < 0.5)]
        case "parse_int" | "parse_float" | "int" | "float":
            return [str(random.choice((3, 10**3_900, 0.25, "x")))]
        case "parse_tools":
            return [
                json.dumps({"name": "f", "arguments": {"x": random.choice((1, [[]] * 99))}}),
                "json",
                '[{"name": "f"}]',
            ]
        case "parse_bool":
            return [random.choice(("true", " False ", text))]
        case "field":
            return [{"a": value, "b": text}, random.choice("abc"), *random.choice(((), (None,)))]
        case "item" | "slice" | "contains":
            of = random.choice((text, value, [value] * 3))
            key = random.choice([*of][:1] or [0]) if isinstance(of, dict) else random.choice((0, -1, 2))
            return [
                of,
                *((key,) if name != "slice" else (key, random.choice((None, 3, -1)), random.choice((None, -1, 2)))),
            ]
        case "replace":
            return [text, other, texts(random), *random.choice(((), (2,)))]
        case "split":
            return [text, *random.choice(((), (None,), (other,), (other, 3), (None, 2)))]
        case "strip" | "lstrip" | "rstrip":
            return [text, *random.choice(((), (text[-3:] + other,)))]
        case "startswith" | "endswith":
            return [text, random.choice((other, text[:1], [other, text[:2]]))]
        case "removeprefix" | "removesuffix":
            return [text, other]
        case "join":
            return [other, random.choice(([value] * 3, [text] * random.choice(SIZES), value))]
        case "format":
            return [random.choice(("{}{}", "{1}" * 300, "{{{0}}}", text)), value, text]
        case "list" | "min" | "max" | "sum":
            item = random.choice((value, 3, text))
            return [random.choice((item, item, scalars(random))) for _ in range(random.randint(0, 6))]
        case "add":
            return random.choice(([text, other], [[value], [text] * 3], [scalars(random), scalars(random)]))
        case "sub" | "mul" | "truediv" | "floordiv" | "mod":
            return [scalars(random), scalars(random)]
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "and" | "or":
            return [value, random.choice((value, values(random), json.loads(json.dumps(value))))]
        case "lower" | "upper" | "title" | "capitalize" | "splitlines":
            return [text]
        case _:
            return [value]


ORACLES: dict[str, Callable[..., Any]] = {
    **{name: getattr(str, name) for name in ("strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize")},
    **{name: getattr(str, name) for name in ("replace", "split", "splitlines", "removeprefix", "removesuffix")},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "truediv", "floordiv")},
    "startswith": lambda text, of: text.startswith(tuple(of) if isinstance(of, list) else of),
    "endswith": lambda text, of: text.endswith(tuple(of) if isinstance(of, list) else of),
    "parse_json": json.loads,
    "item": operator.getitem,
    "slice": lambda value, *at: value[slice(*at)],
    "contains": operator.contains,
    "list": lambda *items: [*items],
    "add": operator.add,
    "min": lambda *items: min(items) if len(items) > 1 else min(*items),
    "max": lambda *items: max(items) if len(items) > 1 else max(*items),
    "sum": lambda *items: sum(items),
    "str": lambda value: value if isinstance(value, str) else str(value),
    "json_or_text": lambda value: (
        json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    ),
    "join": lambda between, items: between.join([str(item) for item in [*items]]) if isinstance(items, list) else {}[0],
    "len": len,
    "bool": bool,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}


def memory_of(value: object) -> int:
    """Bytes of the objects of a value, each counted once."""
    seen: dict[int, int] = {}
    pending = [value]
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        is_text = isinstance(each, str) and len(each) < 2 and each.isascii()
        is_only_one = each is None or isinstance(each, bool) or is_text
        seen[id(each)] = 0 if is_only_one else each.__sizeof__()
        if isinstance(each, (list, tuple)):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend((*each, *each.values()))
    return sum(seen.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_is_pythons_and_within_its_bound(name: str) -> None:
    random, oracle = Random(name), ORACLES.get(name)
    num_computed = 0
    for _ in range(sized(600, usual=40)):
        args = arguments(random, name)
        if any(check_plain(each) is not None for each in args):
            continue
        operands = [measured(each) for each in args]
        reserved: list[int] = []
        try:
            assert price_of(name, operands) > 0
            found, num_bytes = compute(name, operands, reserved.append)
        except ApplyError as error:
            assert sum(reserved) == 0, "what was reserved for a failed call is given back"
            if oracle is not None and "more than" not in error.reason and name != "add":
                with pytest.raises(Exception):  # noqa: B017 - whatever Python raises
                    oracle(*args)
            continue
        num_computed += 1
        if oracle is not None:
            assert found.value == oracle(*args)
        assert found.measure.size == measured(found.value).size
        assert found.measure.depth == measured(found.value).measure.depth
        assert num_bytes == sum(reserved) <= reserved[0], args
        assert memory_of(found.value) <= found.measure.num_bytes
        if FUNCTIONS[name].makes is Makes.ALL and not any(found.value is each for each in args):
            assert memory_of(found.value) <= reserved[0]
    assert num_computed


def test_every_function_has_a_price_that_grows_with_the_sum_of_its_arguments() -> None:
    flat = {"len", "bool", "not", "and", "or", "present", "neg", "list", "parse_int", "int", "sum", "truediv"}
    flat |= {"sub", "mul", "floordiv", "mod", "item", "field"}  # numbers, and parts of flat values
    for name, function in FUNCTIONS.items():
        prices = [
            function.price([measured("x" * size), measured("y" * size), measured("z" * size)]) for size in (10, 100_000)
        ]
        assert 0 < prices[0] < 100
        assert prices[1] > prices[0] * 10 or name in flat, name


def test_an_argument_that_is_given_often_counts_once() -> None:
    large = measured([1.5] * 100_000)
    for name in ("min", "max", "format", "contains", "eq"):
        assert price_of(name, [large] * 2) < 3 * price_of(name, [large, measured(1)]) + 100_000
    assert price_of("max", [large] * 4_000) < 50_000


TOO_LARGE: list[tuple[str, list[Any]]] = [
    ("list", [[1] * 5_000] * 200),
    ("format", ["{0}" * 2_000, "x" * 999_990]),
    ("format", ["{0}" * 2_000, [1.5] * 90_000]),
    ("join", ["x" * 900_000, [""] * 99_000]),
    ("join", ["", [[0.123456789] * 90_000] * 5]),
    ("replace", ["a" * 500_000, "", "b" * 400_000]),
    ("replace", ["a" * 500_000, "a", "b" * 400_000]),
    ("add", ["x" * 600_000, "y" * 600_000]),
    ("add", [[0] * 600_000, [0] * 600_000]),
    ("str", [[0.123456789] * 400_000]),
    ("json_or_text", [{"a": ["x", 0.5] * 200_000}]),
    ("str", [["\\" * 400_000, "\\" * 400_000]]),
]


@pytest.mark.parametrize(("name", "args"), TOO_LARGE, ids=[name for name, _ in TOO_LARGE])
def test_a_result_that_is_too_large_is_refused_before_it_is_built(name: str, args: list[Any]) -> None:
    found = {id(each): measured(each) for each in args}
    operands = [found[id(each)] for each in args]
    tracemalloc.start()
    try:
        with pytest.raises(ApplyError, match="more than"):
            compute(name, operands)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_memory_of_a_call_stays_within_its_bound() -> None:
    calls: list[tuple[str, list[Any]]] = [
        ("parse_json", ["[" + "[]," * 30_000 + "0]"]),
        ("parse_json", ["[" + '{"":0},' * 20_000 + "0]"]),
        ("parse_json", ['["' + "a" * 90_000 + '\\u65e5"]']),
        ("split", ["漢字 " * 20_000]),
        ("splitlines", ["\n" * 50_000]),
        ("upper", ["ŉ" * 200_000]),
        ("list", [[1] * 5_000] * 150),
        ("slice", [[1] * 500_000, None, None, -1]),
    ]
    for name, args in calls:
        found = {id(each): measured(each) for each in args}
        operands, reserved = [found[id(each)] for each in args], list[int]()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            result, num_bytes = compute(name, operands, reserved.append)
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before <= num_bytes + 10_000 <= reserved[0] + 10_000, name
        assert peak - before <= 2 * reserved[0] + 10_000_000, name
        assert result.size <= MAX_SIZE


def test_letters_to_strip_are_not_searched_for_each_character() -> None:
    letters = "".join(map(chr, range(0x4E00, 0x9000)))
    text = letters[::-1] * 20
    assert apply("strip", [text, letters]) == ""
    assert apply("lstrip", [text + "a" + text, letters]) == "a" + text
    assert apply("rstrip", [text + "a" + text, letters]) == text + "a"


def test_nested_lists_are_ordered_as_python_does() -> None:
    random = Random(3)
    for _ in range(sized(2_000, usual=200)):
        left, right = ([values(random, 3) for _ in range(3)] for _ in range(2))
        if random.random() < 0.5:
            right = [*left[:2], right[0]]
        for name, compare in (("lt", operator.lt), ("ge", operator.ge)):
            try:
                expected = compare(left, right)
            except TypeError:
                with pytest.raises(ApplyError):
                    apply(name, [left, right])
            else:
                assert apply(name, [left, right]) is expected


def test_work_beyond_the_limit_is_refused_by_price(monkeypatch: pytest.MonkeyPatch) -> None:
    size = measured([1] * 900_000).measure
    operands = [Measured([each], size) for each in range(100)]
    with pytest.raises(ApplyError, match=r"max\(.*and 84 more\): it takes about \d+ s; at most 5 s are allowed"):
        price_of("max", operands)
    assert function_costs.MAX_PRICE_US == 5e6
