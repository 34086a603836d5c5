"""The pure functions agree with Python, and are bounded."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rtlang.contract.errors import ApplyError
from rtlang.contract.graph.pure_functions import FUNCTIONS, apply
from rtlang.contract.graph.value_size import MAX_SIZE, check_plain
from rtlang.contract.graph.value_text import text_of_plain

TEXTS = ["", "a", " b ", "A b,c", "é\n😀", "12", "-3.5", "true", '{"a": [1, null]}']
NUMBERS = [0, 1, -7, 3.25, 10**30, True]
OTHERS: list[Any] = [None, [], [1, "a"], {"a": 1}]

SAME_AS_PYTHON: dict[str, Callable[..., Any]] = {
    "strip": lambda a: a.strip(),
    "lstrip": lambda a, b: a.lstrip(b),
    "rstrip": lambda a: a.rstrip(),
    "removeprefix": lambda a, b: a.removeprefix(b),
    "removesuffix": lambda a, b: a.removesuffix(b),
    "lower": lambda a: a.lower(),
    "upper": lambda a: a.upper(),
    "title": lambda a: a.title(),
    "capitalize": lambda a: a.capitalize(),
    "replace": lambda a, b, c: a.replace(b, c),
    "split": lambda a, b: a.split(b),
    "splitlines": lambda a: a.splitlines(),
    "startswith": lambda a, b: a.startswith(tuple(b) if isinstance(b, list) else b),  # tuples are lists as plain data
    "endswith": lambda a, b: a.endswith(tuple(b) if isinstance(b, list) else b),
    "item": operator.getitem,
    "len": len,
    "bool": bool,
    "add": operator.add,
    "sub": operator.sub,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": lambda a, b: a % b if not isinstance(a, str) else operator.sub(a, b),  # no formatting of text
    "neg": operator.neg,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "ge": operator.ge,
    "contains": operator.contains,
    "not": operator.not_,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "parse_json": json.loads,
    "parse_int": lambda a: int(operator.add(a, "")),
    "parse_float": lambda a: float(operator.add(a, "")),
}
NUM_ARGS = {
    name: function.__code__.co_argcount for name, function in SAME_AS_PYTHON.items() if hasattr(function, "__code__")
}


@pytest.mark.parametrize("name", SAME_AS_PYTHON)
def test_a_function_does_what_python_does(name: str) -> None:
    random, expected = Random(name), SAME_AS_PYTHON[name]
    unary = ("len", "bool", "neg", "not", "parse_json")
    num_args = NUM_ARGS.get(name, 1 if name in unary else 2)
    num_same = num_refused = 0
    for _ in range(400):
        args = [random.choice([*TEXTS, *NUMBERS, *OTHERS]) for _ in range(num_args)]
        try:
            wanted = expected(*args)
        except Exception:
            with pytest.raises(ApplyError):
                apply(name, args)
            num_refused += 1
            continue
        if check_plain(wanted) is not None:
            continue
        try:
            found = apply(name, args)
        except ApplyError:  # stricter than Python, which concatenates tuples, multiplies text, ...
            num_refused += 1
            continue
        assert (found, type(found)) == (wanted, type(wanted)), args
        num_same += 1
    assert num_same > 0
    assert num_same + num_refused > 100


def test_join_and_format_take_text_of_any_value() -> None:
    assert apply("join", [", ", ["a", 1, None, True]]) == "a, 1, None, True"
    assert apply("format", ["{} {{x}} {1} {0}", "a", 2]) == "a {x} 2 a"
    for template in ("{name}", "{0.x}", "{2}", "{!r}", "{:>9}"):
        with pytest.raises(ApplyError):
            apply("format", [template, 1, 2])


def test_an_error_names_function_operands_and_reason() -> None:
    with pytest.raises(ApplyError, match=r"item\(\[1\], 3\): list index out of range") as caught:
        apply("item", [[1], 3])
    assert caught.value.facts == {"function": "item", "operands": ["[1]", "3"], "reason": "list index out of range"}
    with pytest.raises(ApplyError, match=r"field\(\{\}, 'a'\): no item 'a'"):
        apply("field", [{}, "a"])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("replace", ["a" * 1_000, "", "b" * 10_000]),
        ("mul", [10**3_000, 10**3_000]),
        ("mul", ["ab", 10**9]),
        ("join", ["x" * 1_000, [""] * 2_000]),
        ("format", ["{0}" * 1_000, "x" * 2_000]),
        ("add", ["x" * MAX_SIZE, "x"]),
        ("parse_int", ["9" * 5_000]),
        ("parse_json", ["[" * 100_000]),
        ("truediv", [10**400, 3]),
        ("floordiv", [1, 0]),
    ],
)
def test_results_are_bounded(name: str, args: list[Any]) -> None:
    with pytest.raises(ApplyError):
        apply(name, args)


def test_every_result_is_plain_data() -> None:
    random = Random(1)
    for _ in range(3_000):
        name = random.choice(list(FUNCTIONS))
        args = [random.choice([*TEXTS, *NUMBERS, *OTHERS]) for _ in range(random.randint(0, 3))]
        try:
            assert check_plain(apply(name, args)) is None
        except ApplyError:
            continue


def test_the_text_of_a_value_is_what_str_gives() -> None:
    assert [text_of_plain(value) for value in ("a", 1, True, None, [1, "a"])] == ["a", "1", "True", "None", "[1, 'a']"]


TOOLS = '[{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]'


def test_calls_of_tools_are_read_in_their_format() -> None:
    call = {"name": "f", "arguments": {"x": 3}, "id": None}
    plain = '{"name": "f", "arguments": {"x": 3}}'
    assert apply("parse_tools", [plain, "json", TOOLS]) == {"content": "", "reasoning": "", "calls": [call]}
    hermes = f"Hm.<tool_call>\n{plain}\n</tool_call>"
    assert apply("parse_tools", [hermes, "hermes", TOOLS]) == {"content": "Hm.", "reasoning": "", "calls": [call]}
    opened = apply("parse_tools", ["Because.</think>Yes.", "hermes", TOOLS, True])
    assert (opened["reasoning"], opened["content"]) == ("Because.", "Yes.")


@pytest.mark.parametrize(
    "args",
    [
        ["<tool_call>{", "hermes", TOOLS],
        ["x", "unknown", TOOLS],
        ["x", "json", "[3]"],
        ["x", "json", 3],
        [3, "json", TOOLS],
        ["x" * 200_001, "json", TOOLS],
        ["x", "json"],
    ],
)
def test_calls_that_cannot_be_read_are_typed_errors(args: list[Any]) -> None:
    with pytest.raises(ApplyError, match="parse_tools"):
        apply("parse_tools", args)


def test_fields_defaults_and_present_values() -> None:
    assert apply("field", [{"a": None}, "a", 3]) is None
    assert apply("field", [{}, "a", 3]) == 3
    assert apply("present", [0]) == 0
    with pytest.raises(ApplyError, match="not None"):
        apply("present", [None])
    assert [apply("json_or_text", [each]) for each in ("a", 3, True, {"é": [1]})] == ["a", "3", "True", '{"é": [1]}']
