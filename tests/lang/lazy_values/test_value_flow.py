"""Where bytecode takes a value: against random functions that are run on all their paths, and against functions by hand."""

from __future__ import annotations

import dis
import random
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType
from typing import Any

import pytest

from rtlang.lang.lazy_values.value_flow import (
    Fate,
    IdentityTest,
    calls_by_name,
    fate_of,
    fate_of_parameter,
)
from tests.support.long_tests import sized

NUM_PROGRAMS, NUM_RUNS = sized(150, usual=75), 500
NAMES = ("a", "b", "c")


def code_of(source: str) -> CodeType:
    """The code of the one function in a source."""
    module = compile(textwrap.dedent(source), "<source>", "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType))


def calls_of(code: CodeType, source: str, call: str) -> list[tuple[CodeType, int]]:
    """The places of the calls that are written as `call`: the code objects and the offsets, in order."""
    lines = ["", *source.splitlines()]
    found = []
    for each in dis.get_instructions(code):
        at = each.positions
        if each.opname != "CALL" or at is None or at.lineno is None or at.lineno != at.end_lineno:
            continue
        if lines[at.lineno][at.col_offset : at.end_col_offset] == call:
            found.append((code, each.offset))
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return found + [place for each in inner for place in calls_of(each, source, call)]


def fate_in(source: str, *, is_list: bool = False) -> Fate:
    """The fate of the value of the first call `make()` in a source."""
    code, offset = calls_of(code_of(source), source, "make()")[0]
    return fate_of(code, offset, is_list=is_list)


# Random functions


class Failed(Exception):
    """Raised by some calls of a random function."""


class Writer:
    """Writes a random function twice: as it is, and with `is` and uses replaced by calls that note the value."""

    def __init__(self, seed: int, *, has_try: bool) -> None:
        self.random, self.has_try = random.Random(seed), has_try
        self.lines, self.noted = ["def f(make, other, flag, use, note):"], ["def f(make, other, flag, use, note):"]
        self.source_line = 0
        for name in NAMES:
            self.write(1, f"{name} = other()")
        self.block(1, 0)
        if not self.source_line:
            self.write(1, "a = make()")
            self.source_line = len(self.lines)
        self.block(1, 0)

    def write(self, depth: int, line: str, noted: str | None = None) -> None:
        self.lines.append("    " * depth + line)
        self.noted.append("    " * depth + (line if noted is None else noted))

    def test(self) -> tuple[str, str]:
        name, operator = self.random.choice(NAMES), self.random.choice(("is", "is not"))
        constant = self.random.choice(("None", "True", "False"))
        return f"{name} {operator} {constant}", f"note({name}, {len(self.lines) + 1})"

    def block(self, depth: int, nesting: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, nesting)

    def statement(self, depth: int, nesting: int) -> None:
        pick, one, other = self.random.random(), self.random.choice(NAMES), self.random.choice(NAMES)
        if pick < 0.1 and not self.source_line:
            self.write(depth, f"{one} = make()")
            self.source_line = len(self.lines)
        elif pick < 0.2:
            self.write(depth, f"{one} = other()")
        elif pick < 0.35:
            self.write(depth, f"{one} = {other}")
        elif pick < 0.42:
            self.write(depth, f"{one}, {other} = {other}, {one}")
        elif pick < 0.5:
            self.write(depth, f"{one} = {other} if flag() else {self.random.choice(NAMES)}")
        elif pick < 0.55:
            self.write(depth, f"use({one})")
        elif pick < 0.7:
            plain, noted = self.test()
            self.write(depth, f"if {plain}: pass", f"if {noted}: pass")
        elif pick < 0.76:
            plain, noted = self.test()
            self.write(depth, f"x = {plain} and flag()", f"x = {noted} and flag()")
        elif nesting < 2 and pick < 0.86:
            self.write(depth, "if flag():")
            self.block(depth + 1, nesting + 1)
            self.write(depth, "else:")
            self.block(depth + 1, nesting + 1)
        elif nesting < 2 and pick < 0.92:
            self.write(depth, "while flag():" if self.random.random() < 0.5 else "for _ in [1, 2] * flag():")
            self.block(depth + 1, nesting + 1)
        elif nesting < 2 and self.has_try:
            self.write(depth, "try:")
            self.block(depth + 1, nesting + 1)
            self.write(depth, "except Exception:")
            self.block(depth + 1, nesting + 1)
        else:
            self.write(depth, "pass")

    def static(self) -> tuple[set[int], bool]:
        fate = fate_in("\n".join(self.lines))
        return {each.line for each in fate.tests}, fate.is_used

    def dynamic(self) -> tuple[set[int], bool]:
        tested, used = set[int](), set[bool]()
        space: dict[str, Any] = {}
        exec("\n".join(self.noted), space)
        for run in range(NUM_RUNS):
            choose = random.Random(run)
            value, steps = object(), iter(range(60))

            def fails(choose: random.Random = choose, steps: Iterator[int] = steps) -> bool:
                return next(steps, None) is None or (self.has_try and choose.random() < 0.1)

            def flag(choose: random.Random = choose) -> bool:
                if fails():
                    raise Failed
                return choose.random() < 0.5

            def other() -> object:
                if fails():
                    raise Failed
                return object()

            def use(item: object, value: object = value) -> None:
                if item is value:
                    used.add(True)

            def note(item: object, line: int, value: object = value, choose: random.Random = choose) -> bool:
                if item is value:
                    tested.add(line)
                    used.add(True)
                return choose.random() < 0.5

            with suppress(Failed):
                space["f"](lambda value=value: value, other, flag, use, note)
        return tested, bool(used)


def test_the_tests_of_random_functions_are_those_that_their_runs_meet() -> None:
    for seed in range(NUM_PROGRAMS):
        writer = Writer(seed, has_try=False)
        assert writer.static() == writer.dynamic(), "\n".join(writer.lines)


def test_no_test_of_random_functions_with_handlers_is_missed() -> None:
    for seed in range(NUM_PROGRAMS):
        writer = Writer(seed, has_try=True)
        (found, is_used), (met, was_used) = writer.static(), writer.dynamic()
        assert met <= found, "\n".join(writer.lines)
        assert is_used >= was_used, "\n".join(writer.lines)


# By hand


def places(body: str, *, is_list: bool) -> list[tuple[int, str]]:
    """The tests of the value of `make()` in the body of a function: their lines, and the other operand."""
    fate = fate_in("def f(make, other, a=None):\n" + textwrap.indent(body, "    "), is_list=is_list)
    return sorted((each.line, shown(each)) for each in fate.tests)


def shown(test: IdentityTest) -> str:
    """The other operand of a test."""
    if test.operator == "match":
        return "match"
    return repr(test.constant[0]) if test.constant is not None else test.name or "?"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return make() is None", [(2, "None")]),
        ("return None is make()", [(2, "?")]),
        ("if (x := make()) is not True: return x", [(2, "True")]),
        ("return make() is other.RED", [(2, "RED")]),
        ("return make() is other", [(2, "other")]),
        ("return make() is 'yes'", [(2, "'yes'")]),
        ("x = y = make()\nreturn y is None", [(3, "None")]),
        ("x = make()\nx = other()\nreturn x is None", []),
        ("x = make()\nreturn other(x) is None", []),
        ("x = make()\nreturn x.field is None", []),
        ("x = make()\nreturn x == None", []),
        ("x = make()\nreturn a is None", []),
        ("x = make() or a\nreturn x is None", [(3, "None")]),
        ("x = make() if a else None\nreturn x is None", [(3, "None")]),
        ("x = make()\nreturn lambda: x is None", [(3, "None")]),
        ("x = make()\ndef g():\n    def h():\n        return x is False\n    return h", [(5, "False")]),
        ("match make():\n    case None: return 1\n    case 'a': return 2", [(3, "None")]),
        ("match make():\n    case 'a' | 1: return 2\n    case _: return 3", []),
        ("match make():\n    case str(): return 1", [(3, "match")]),
        ("match make():\n    case other.Card(x=1): return 1", [(3, "match")]),
        ("match make():\n    case [x, *_]: return 1", [(3, "match")]),
        ("match make():\n    case {'k': x}: return 1", [(3, "match")]),
        ("with make() as x: return x is None", []),
    ],
)
def test_the_places_of_tests(body: str, expected: list[tuple[int, str]]) -> None:
    with pytest.warns(SyntaxWarning) if "'yes'" in body else pytest.MonkeyPatch.context():
        assert places(body, is_list=False) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = make()\nreturn x is None", []),
        ("x = make()\nreturn x[0] is None", [(3, "None")]),
        ("x = make()\nfor y in x:\n    if y is None: return 1", [(4, "None")]),
        ("return [y for y in make() if y is not None]", [(2, "None")]),
        ("return sum(1 for y in make() if y is not None)", [(2, "None")]),
        ("y, z = make()\nreturn z is True", [(3, "True")]),
    ],
)
def test_the_places_of_tests_of_items(body: str, expected: list[tuple[int, str]]) -> None:
    assert places(body, is_list=True) == expected


@pytest.mark.parametrize(
    ("body", "is_lost"),
    [
        ("make()", True),
        ("x = make()", True),
        ("x = y = make()", True),
        ("x = [make(), 1]", True),
        ("x = {'k': make()}", True),
        ("x = make()\nif a: other(x)", False),
        ("x = make()\nx = other()\nother(x)", True),
        ("x = [make()]\nfor y in x: pass", False),
        ("x = {k: make() for k in 'ab'}", False),
        ("other.x = make()", False),
        ("a[0] = make()", False),
        ("a += make()", False),
        ("try:\n    x = make()\n    other()\nexcept Exception:\n    other(x)", False),
        ("while a:\n    x = make()\n    if other(): a.append(x)", False),
        ("x = make()\nreturn lambda: x", False),
        ("return make()", False),
        ("return [make()]", False),
        ("return make() and 1", False),
        ("yield make()", False),
        ("x = f'{make()}'", False),
        ("raise make()", False),
        ("assert make()", False),
    ],
)
def test_a_value_is_lost_if_no_path_uses_it(body: str, is_lost: bool) -> None:
    assert fate_in("def f(make, other, a):\n" + textwrap.indent(body, "    ")).is_lost is is_lost


def test_a_parameter_is_followed() -> None:
    code = code_of("def f(x, y=None):\n    if y is None: y = 1\n    return x, y is True")
    assert [each.line for each in fate_of_parameter(code, "y").tests] == [2, 3]
    assert fate_of_parameter(code, "x") == Fate(True, False, ())


def test_a_call_is_told_by_its_name() -> None:
    source = "def f(ask, obj, items):\n    ask(1)\n    obj.ask(2)\n    items.extend(map(ask, items))"
    code = code_of(source)
    calls = [calls_of(code, source, each)[0] for each in ("ask(1)", "obj.ask(2)", "items.extend(map(ask, items))")]
    assert [calls_by_name(code, offset, "ask") for code, offset in calls] == [True, True, False]


def test_a_function_that_is_too_long_counts_as_a_use() -> None:
    body = "x = make()\n" + "if a: x = x\n" * 8_000
    assert not fate_in("def f(make, a):\n" + textwrap.indent(body, "    ")).is_lost
