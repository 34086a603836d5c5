"""Random expressions of values, lazily and eagerly: the same text, the same value, the same failures.

The eager reading is Python on the parsed values. The lazy one is put into text, where the target computes it, and is forced.
"""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, StringConstraints, field_validator
from typing_extensions import TypedDict

import rtlang as rt
from rtlang.contract.request_graph import Apply
from rtlang.contract.runs.run_options import RunOptions
from rtlang.lang.output_types.types import output_type
from tests.support.long_tests import sized
from tests.support.programs.fake_target import Call, FakeTarget, by_name, default_script


class City(TypedDict):
    name: str
    size: float


@dataclass
class Point:
    x: int
    y: float
    city: City


class Sheet(BaseModel):
    name: str
    age: int = Field(alias="years")
    ratio: float
    good: bool
    kind: Literal["a", "b"]
    traits: list[str]
    numbers: list[float]
    counts: dict[str, int]
    point: Point
    nickname: str = "none"


TYPES: dict[str, Any] = {
    "word": str,
    "other": str,
    "number": int,
    "float": float,
    "flag": bool,
    "sheet": Sheet,
    "city": City,
    "items": list[str],
    "small": Annotated[int, Field(ge=0)],
}
WORDS = st.text("aB ß\tİ,-éx1", max_size=8)
NUMBERS = st.integers(-30, 30)
FLOATS = st.floats(-9, 9, allow_nan=False).map(lambda value: float(f"{value:.4f}"))


@st.composite
def texts(draw: st.DrawFn) -> dict[str, str]:
    """The generated text of each variable."""
    city = {"name": draw(WORDS), "size": draw(st.one_of(NUMBERS, FLOATS))}
    sheet = {
        "name": draw(WORDS),
        "years": draw(st.one_of(NUMBERS, NUMBERS.map(float))),
        "ratio": draw(st.one_of(NUMBERS, FLOATS)),
        "good": draw(st.booleans()),
        "kind": "b",
        "traits": draw(st.lists(WORDS, max_size=3)),
        "numbers": draw(st.lists(st.one_of(NUMBERS, FLOATS), max_size=3)),
        "counts": {"k": draw(NUMBERS)},
        "point": {"x": draw(NUMBERS), "y": draw(NUMBERS), "city": city},
    }
    return {
        "word": draw(WORDS),
        "other": draw(WORDS),
        "number": str(draw(NUMBERS)),
        "float": draw(st.sampled_from(["2.50", "-0", "7", "0.1", "3.000"])),
        "flag": draw(st.sampled_from(["true", "false"])),
        "sheet": json.dumps(sheet),
        "city": json.dumps(city, ensure_ascii=False),
        "items": json.dumps(draw(st.lists(WORDS, max_size=4))),
        "small": draw(st.sampled_from(["0", "12", "12.0"])),
    }


# An expression is a tuple: the name of a rule, and its parts.
NAMES = st.sampled_from(list(TYPES)).map(lambda name: ("var", name))
CONSTANTS = st.one_of(WORDS, NUMBERS, FLOATS, st.booleans(), st.none(), st.just(1 << 80)).map(lambda v: ("const", v))
METHODS = [
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "capitalize",
    "replace",
    "split",
    "splitlines",
    "startswith",
]
METHODS += ["endswith", "removeprefix", "removesuffix", "swapcase"]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"]
FIELDS = [
    "name",
    "age",
    "ratio",
    "good",
    "kind",
    "traits",
    "numbers",
    "counts",
    "point",
    "city",
    "x",
    "y",
    "nickname",
    "years",
]
KEYS = st.one_of(
    st.sampled_from(["name", "size", "k", "none"]).map(lambda key: ("const", key)),
    NUMBERS.map(lambda n: ("const", n % 5 - 2)),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bound = st.one_of(st.none(), st.integers(-4, 4))
    return st.one_of(
        st.tuples(
            st.just("method"), st.sampled_from(METHODS), inner, st.lists(st.one_of(inner, CONSTANTS), max_size=2)
        ),
        st.tuples(
            st.just("operator"), st.sampled_from(OPERATORS), st.one_of(inner, CONSTANTS), st.one_of(inner, CONSTANTS)
        ),
        st.tuples(st.just("field"), st.sampled_from(FIELDS), inner),
        st.tuples(st.just("item"), inner, st.one_of(KEYS, inner)),
        st.tuples(st.just("slice"), inner, bound, bound, bound),
        st.tuples(st.just("neg"), inner),
        st.tuples(st.just("length"), inner),
        st.tuples(
            st.just("join"),
            st.one_of(inner, CONSTANTS),
            st.one_of(inner, st.lists(st.one_of(inner, CONSTANTS), max_size=3)),
        ),
        st.tuples(
            st.just("format"),
            st.sampled_from(
                ["{}", "{} and {}", "{1}{0}", "{{{}}}", "{:>4}", "{!r}", "{", "{0:}", "{2}", "{}{0}", "}}{}{{", "{00}"]
            ),
            st.lists(st.one_of(inner, CONSTANTS), max_size=2),
        ),
    )


EXPRESSIONS = st.recursive(NAMES, larger, max_leaves=6)


def evaluate(tree: Any, variables: Any, *, is_lazy: bool) -> Any:
    """Perform an expression on lazy values, or on actual ones by Python's own means."""

    def of(part: Any) -> Any:
        return evaluate(part, variables, is_lazy=is_lazy)

    match tree:
        case ("var", name):
            return variables[name]
        case ("const", value):
            return value
        case ("method", name, owner, args):
            return getattr(of(owner), name)(*map(of, args))
        case ("operator", name, left, right):
            first, second = of(left), of(right)
            if (
                name == "mod" and type(first) is str
            ):  # formatting takes a lazy value for a mapping, which may have more items
                second = rt.value(second)
            return getattr(operator, name)(first, second)
        case ("field", name, owner):
            return getattr(of(owner), name)
        case ("item", owner, key):
            return of(owner)[of(key)]
        case ("slice", owner, *bounds):
            return of(owner)[slice(*bounds)]
        case ("neg", part):
            return -of(part)
        case ("length", part):
            return (rt.length if is_lazy else len)(of(part))
        case ("join", separator, list() as parts):
            items = [of(part) for part in parts]
            return rt.join(of(separator), items) if is_lazy else of(separator).join(map(str, items))
        case ("join", separator, part):
            if is_lazy:
                return rt.join(of(separator), of(part))
            items = of(part)
            if isinstance(items, str):
                raise TypeError("a string is no list")
            return of(separator).join(map(str, items))
        case ("format", template, parts):
            args = [of(part) for part in parts]
            return rt.format(template, *args) if is_lazy else template.format(*args)
    raise AssertionError(tree)


def shown(value: Any) -> str:
    """What a value is in text."""
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError("not text")


def attempt(make: Any) -> tuple[bool, Any]:
    try:
        return True, make()
    except Exception as error:
        return False, error


def run(texts: dict[str, str], body: Any) -> tuple[list[str], rt.Result[Any]]:
    """Run a body on the variables; the prompts of the generation `end`, and the result."""
    prompts: list[str] = []

    def script(call: Call) -> Any:
        if call.name == "end":
            prompts.append(call.prompt)
        return by_name(texts)(call)

    with FakeTarget(script) as target:

        @rt.program
        def program(s: Any) -> Any:
            for name, kind in TYPES.items():
                (fork,) = s.fork(1)
                fork += name + rt.gen(name, type=kind)
                s.set(name, fork[name])
            return body(s)

        result = program.run(runtime=target, on_error="result")
    return prompts, result


def actual_values(texts: dict[str, str]) -> dict[str, Any]:
    return {name: output_type(type=kind).parse(texts[name]) for name, kind in TYPES.items()}


@given(texts(), st.lists(EXPRESSIONS, min_size=1, max_size=4))
@settings(max_examples=sized(100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_lazy_and_eager_expressions_are_the_same(texts: dict[str, str], trees: list[Any]) -> None:
    for tree in trees:
        check(tree, texts)


def check(tree: Any, texts: dict[str, str]) -> None:
    is_fine, expected = attempt(lambda: evaluate(tree, actual_values(texts), is_lazy=False))
    forced = run(texts, lambda s: rt.value(evaluate(tree, s, is_lazy=True)))[1]
    assert (forced.error is None) == is_fine, (tree, forced.error, expected)
    if is_fine:
        assert type(forced.value) is type(expected), tree
        assert repr(forced.value) == repr(expected), tree

    def into_text(s: Any) -> None:
        s += rt.text("<", evaluate(tree, s, is_lazy=True), ">") + rt.gen("end")

    is_text, text = attempt(lambda: shown(expected)) if is_fine else (False, None)
    if tree[0] == "var":  # a variable itself stands for the text that was generated
        is_text, text = True, texts[tree[1]]
    prompts, result = run(texts, into_text)
    if is_text:
        assert result.error is None, (tree, result.error)
        assert prompts == [f"<{text}>"], tree
    else:
        assert result.error is not None, (tree, prompts)


def test_expressions_are_lazy_where_types_are_known() -> None:
    texts = dict.fromkeys(TYPES, "x")
    texts |= {"number": "3", "float": "2.5", "flag": "true", "small": "4", "word": " Ab c ", "items": '["p", "q"]'}
    point = {"x": 2.0, "y": 1, "city": {"name": "r", "size": 5}}
    texts["city"] = '{"name":"s","size":1}'
    texts["sheet"] = json.dumps(
        {"name": "n", "years": 9.0, "ratio": 2, "good": False, "kind": "a", "traits": ["t", "u"], "numbers": [1, 2.5]}
        | {"counts": {"k": 6}, "point": point}
    )

    def body(s: Any) -> None:
        sheet = s["sheet"]
        pieces = [
            s["word"].strip().lower(),
            s["word"].split()[1].upper(),
            s["word"][1:-1],
            s["number"] * 2 + 1,
            s["float"] / s["number"] > 0.5,
            -s["small"],
            sheet.name,
            sheet.age,
            sheet.ratio,
            sheet.good,
            sheet.kind + "!",
            sheet.traits[-1],
            sheet.numbers[0],
            sheet.counts["k"],
            sheet.point.x,
            sheet.point.city["size"],
            s["city"]["name"],
            s["items"][s["number"] - 2],
            rt.join("+", s["items"]),
            rt.join("+", [s["word"].strip(), 1, s["number"]]),
            rt.format("{1}:{0}", s["flag"], sheet.traits[0]),
            rt.length(s["items"]),
            s["word"] == " Ab c ",
        ]
        s += rt.text(*[part for piece in pieces for part in (piece, "|")]) + rt.gen("end")

    prompts, result = run(texts, body)
    assert result.breaks == ()
    expected = "ab c|C|Ab c|7|True|-4|n|9|2.0|False|a!|u|1.0|6|2|5.0|s|q|p+q|Ab c+1+3|t:True|2|True|"
    assert prompts == [expected]
    nodes = [node for node in result.graph.nodes if isinstance(node, Apply)]
    assert len({(node.function, repr(node.args)) for node in nodes}) == len(nodes), "equal terms are one node"


class Strict(BaseModel):
    stripped: Annotated[str, StringConstraints(strip_whitespace=True)]
    checked: str
    optional: str | None

    @field_validator("checked")
    @classmethod
    def check(cls, value: str) -> str:
        return value.upper()


@pytest.mark.parametrize("name", ["stripped", "checked", "optional"])
def test_what_a_validator_may_change_is_a_break(name: str) -> None:
    text = '{"stripped": " a ", "checked": "b", "optional": "c"}'
    with FakeTarget(by_name({"x": text})) as target:

        @rt.program
        def body(s: Any) -> Any:
            s += rt.gen("x", type=Strict)
            s += rt.text(getattr(s["x"], name)) + rt.gen("end")
            return s.text()

        result = body.run(runtime=target)
    assert len(result.breaks) == 1
    assert result.value == text + {"stripped": "a", "checked": "B", "optional": "c"}[name] + result["end"]


def test_an_input_of_a_graph_is_computed_when_it_is_given() -> None:
    events: list[Any] = []

    @rt.program
    def body(s: Any, name: Any) -> None:
        s += rt.text("Dear ", name.strip().title(), ", ", rt.length(name)) + rt.gen("end")

    graph = body.graph(name=rt.arg("who"))
    with FakeTarget(default_script) as target:
        target.submit(graph, events.append, RunOptions(inputs={"who": " ada "}))
        assert target.runs[0].ended.wait(30)
    assert graph.inputs == ("who",)
    text = next(call for call in target.runs[0].nodes.values() if type(call).__name__ == "Text")
    assert target.runs[0].render(text) == "Dear Ada, 5"


def test_a_failed_operation_says_what_and_where() -> None:
    with FakeTarget(by_name({"x": "only one"})) as target:

        @rt.program
        def body(s: Any) -> None:
            s += rt.gen("x")
            s += rt.text("third: ", s["x"].split()[2]) + rt.gen("end")

        error = body.run(runtime=target, on_error="result").error
    line = body._body.function.__code__.co_firstlineno + 3
    assert isinstance(error, rt.ApplyError)
    assert "item(['only', 'one'], 2): list index out of range" in str(error)
    assert error.recorded_at == f"{__file__}:{line}"


def test_a_long_chain_is_cut_before_it_is_too_deep() -> None:
    with FakeTarget(by_name({"n": "1", "w": "a"})) as target:

        @rt.program
        def body(s: Any) -> Any:
            s += rt.gen("n", type=int) + rt.gen("w")
            total, text = s["n"], s["w"]
            for number in range(400):
                total = total + number
                text = text + s["w"].upper()
            s += rt.text(total, text) + rt.gen("end")
            return total

        result = body.run(runtime=target)
    assert result.value == 1 + sum(range(400))
    assert result.text().startswith("1a" + str(result.value) + "a" + "A" * 400)
