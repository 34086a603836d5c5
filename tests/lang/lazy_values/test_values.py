"""Lazy values: what stays lazy, what needs the real value, and that it then behaves as the real value does."""

from __future__ import annotations

import asyncio
import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Apply, Arg, Const, Ref
from rtlang.lang.lazy_values.values import Value, operand_of, user_location
from rtlang.lang.output_types.types import output_type
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from tests.support.programs.fake_target import FakeTarget, by_name

TEXTS = {"word": "hello", "number": "7", "float": "2.5", "flag": "false", "list": "[3, 1, 2]", "point": '{"x": 1}'}


def outcome(use: Callable[..., Any], target: FakeTarget, *names: str) -> tuple[Any, int]:
    """What `use` gives for the named values in a body, and how many graph breaks it took."""
    target.script = by_name(TEXTS)

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("word") + rt.gen("number", type=int) + rt.gen("float", type=float) + rt.gen("flag", type=bool)
        s += rt.gen("list", type=list[int]) + rt.gen("point", schema={"type": "object"})
        return use(*(s[name] for name in names))

    result = body.run()
    return result.value, len(result.breaks)


REAL = {"word": "hello", "number": 7, "float": 2.5, "flag": False, "list": [3, 1, 2], "point": {"x": 1}}


@pytest.mark.parametrize(
    ("use", "names"),
    [
        (str, ["word"]),
        (lambda w: f"{w:>8}", ["word"]),
        (lambda w: "ell" in w, ["word"]),
        (len, ["word"]),
        (list, ["word"]),
        (lambda w: {"hello": 1}[w], ["word"]),
        (lambda w: w * 2, ["word"]),
        (lambda w: w % (), ["word"]),
        (int, ["number"]),
        (float, ["number"]),
        (bool, ["flag"]),
        (lambda n: n**2, ["number"]),
        (lambda n: abs(-n), ["number"]),
        (lambda n: divmod(n, 2), ["number"]),
        (lambda n: divmod(20, n), ["number"]),
        (lambda f: math.floor(f), ["float"]),
        (lambda n: [0] * n, ["number"]),
        (lambda n: list(range(n)), ["number"]),
        (lambda n: n >= 7 and n <= 7 and not n > 7, ["number"]),
        (lambda n: n & 3 | 8 ^ 1, ["number"]),
        (lambda n: 1 << n, ["number"]),
        (lambda f: round(f), ["float"]),
        (lambda f: round(f, 1), ["float"]),
        (sorted, ["list"]),
        (lambda items: list(reversed(items)), ["list"]),
        (lambda items, n: n in items, ["list", "number"]),
        (sum, ["list"]),
        (lambda p: p["x"], ["point"]),
        (lambda p: p.get("y", 5), ["point"]),
        (lambda p: dict(p), ["point"]),
        (operator.index, ["number"]),
    ],
)
def test_a_needed_value_behaves_as_the_real_one(use: Callable[..., Any], names: list[str], target: FakeTarget) -> None:
    expected = use(*(REAL[name] for name in names))
    found, num_breaks = outcome(use, target, *names)
    assert found == expected
    assert type(found) is type(expected)
    assert num_breaks >= 1


@pytest.mark.parametrize(
    ("use", "names"),
    [
        (lambda w: w == "hello", ["word"]),
        (lambda w: w != "hello", ["word"]),
        (lambda w: w < "z", ["word"]),
        (lambda w: w.upper(), ["word"]),
        (lambda w: w[1:3], ["word"]),
        (lambda n: n + 1, ["number"]),
        (lambda n: 1 + n, ["number"]),
        (lambda n: 10 - n, ["number"]),
        (lambda n: n // 2, ["number"]),
        (lambda n: 100 / n, ["number"]),
        (lambda n: -n, ["number"]),
        (lambda n, f: n * f, ["number", "float"]),
        (lambda n, f: n > f, ["number", "float"]),
        (lambda items: items[0], ["list"]),
    ],
)
def test_a_pure_operation_is_no_break_and_gives_the_same(
    use: Callable[..., Any], names: list[str], target: FakeTarget
) -> None:
    expected = use(*(REAL[name] for name in names))
    found, num_breaks = outcome(use, target, *names)
    assert found == expected
    assert type(found) is type(expected)
    assert num_breaks == 0


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda w: w, "hello"),
        (lambda w: [w, {"a": (w,)}], ["hello", {"a": ("hello",)}]),
        (lambda w: w + "!", "hello!"),
        (lambda w: "oh " + w + w, "oh hellohello"),
        (lambda w: copy.deepcopy([copy.copy(w)]), ["hello"]),
        (lambda w: repr(w), "<value of 'word'>"),
        (lambda w: hasattr(w, "__array__"), False),
    ],
)
def test_moving_a_value_around_is_no_break(use: Callable[..., Any], expected: Any, target: FakeTarget) -> None:
    assert outcome(use, target, "word") == (expected, 0)


def test_joined_text_stays_lazy_in_text(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("word")
        greeting = "<" + s["word"] + ">"
        s += greeting + rt.gen("end")
        s += rt.text("and ", greeting)
        s.set("greeting", greeting)

    result = body.run()
    assert result["greeting"] == "<hello>"
    assert result.breaks == ()


def test_a_value_that_is_no_text_is_shown_in_text(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    def body(s: Any) -> None:
        s += rt.user(rt.gen("word"))
        s += rt.text(s.messages()) + rt.gen("x")

    result = body.run()
    assert len(result.breaks) == 1
    assert "".join(part for part in result.graph.nodes[-2].parts if isinstance(part, str)).endswith(  # type: ignore[union-attr]
        "[{'role': 'user', 'content': 'hello'}]"
    )


def test_a_value_can_name_a_file(target: FakeTarget, tmp_path: Any) -> None:
    (tmp_path / "hello").write_text("content")

    def reads(word: Any) -> str:
        with open(tmp_path / word) as file:
            return file.read()

    assert outcome(reads, target, "word")[0] == "content"


def test_an_input_can_be_joined_to_text() -> None:
    @rt.program
    def body(s: Any, name: Any) -> None:
        s += ("Dear " + name + ",") + rt.gen("x")

    assert body.graph(name=rt.arg("who")).nodes[0].parts == ("Dear ", Arg("who"), ",")  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", ["", None, 3])
def test_an_input_has_a_name(wrong: Any) -> None:
    with pytest.raises(rt.TraceError, match="name"):
        rt.arg(wrong)


def test_a_location_is_outside_of_the_package() -> None:
    assert user_location().startswith(f"{__file__}:")


def test_every_break_names_its_line_and_reason(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("word")
        s["word"].swapcase()
        s += rt.gen("number", type=int)
        range(s["number"])

    first, second = body.run().breaks
    line = body._body.function.__code__.co_firstlineno
    assert (first.location, first.what, first.reason) == (f"{__file__}:{line + 3}", "'word'", "attribute .swapcase")
    assert (second.location, second.reason) == (f"{__file__}:{line + 5}", "use as an index")
    assert str(first) == f"{first.location}: needs 'word' for attribute .swapcase"


def test_awaiting_gives_the_parsed_value(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    async def body(s: Any) -> Any:
        s += rt.user(rt.gen("number", type=int))
        number, meta, messages = await asyncio.gather(*map(wait, (s["number"], s.meta("number"), s.messages())))
        return number + 1, meta.finish_reason, messages

    async def wait(value: Any) -> Any:
        return await value

    assert body.run().value == (8, rt.FinishReason.STOP, [{"role": "user", "content": "7"}])


def test_text_of_two_runs_is_joined_for_real(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)
    kept: list[Any] = []

    @rt.program
    def body(s: Any) -> Any:
        s += rt.gen("word")
        kept.append(s["word"])
        return type(kept[0] + s["word"]) is str, kept[0] + s["word"]

    body.run()
    assert body.run().value == (True, "hellohello")


def test_operations_are_awaited_as_values(target: FakeTarget) -> None:
    target.script = by_name(TEXTS)

    @rt.program
    async def body(s: Any) -> Any:
        s += rt.gen("number", type=int) + rt.gen("word")
        double = s["number"] * 2
        s += rt.text(double, s["word"].upper()) + rt.gen("end")
        with pytest.raises(rt.TraceError, match="write `await` before it"):
            bool(double == 14)
        assert await (double == 14)
        return await asyncio.gather(double, s["word"][0]), await rt.value([double])

    result = body.run()
    assert result.value == ([14, "h"], [14])
    assert result.text().startswith("7hello14HELLO")


def test_values_become_operands(target: FakeTarget) -> None:
    recording = Recording(AheadOfTime(is_async=False))
    node_id = recording.add_generate(None, "x", rt.SamplingParams(), output_type(type=int))
    number: Any = Value(recording, (node_id,), (Ref(node_id),), lambda: 3, "'x'")
    parsed, added = operand_of(number, recording), operand_of(number + 1, recording)
    assert operand_of(3, recording) == Const(3)
    assert operand_of(rt.arg("who"), recording) == Arg("who")
    assert operand_of(object(), recording) is None
    assert operand_of(number + 1, recording) == added
    assert [recording.nodes.outer[each.node_id] for each in (parsed, added)] == [
        Apply(1, "parse_int", (Ref(0),)),
        Apply(2, "add", (Ref(1), Const(1))),
    ]
