"""A forgotten `s +=` is an error at its line; expressions that a path may use, or that were made elsewhere, are not."""

from __future__ import annotations

import textwrap
from types import FunctionType
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import TraceError
from rtlang.testing import ScriptedRuntime

OUTSIDE = rt.gen("outside")
HEAD = "def body(s):\n    s += 'Begin'\n"


def ask(question: str) -> Any:
    """A helper that makes a question and its answer."""
    return rt.user(question) + rt.assistant(rt.gen("answer"))


def run(source: str) -> rt.Result[Any]:
    space = dict(globals())
    exec(compile(HEAD + textwrap.indent(textwrap.dedent(source), "    "), "<nowhere>", "exec"), space)
    function = space["body"]
    assert isinstance(function, FunctionType)
    return rt.program(function).run(runtime=ScriptedRuntime())


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ("rt.gen('x')", 3, "rt.gen('x')"),
        ("s += 'y'\nx = rt.gen('x')\nreturn s.text()", 4, "rt.gen('x')"),
        ("rt.select('x', ['a', 'b'])", 3, "rt.select('x')"),
        ("rt.user('Hello')", 3, "rt.user(...)"),
        ("rt.text('Hello')", 3, "rt.text(...)"),
        ("rt.tokens([1])", 3, "rt.tokens(...)"),
        ("rt.tool({'x': 1})", 3, "rt.tool(...)"),
        ("rt.messages([{'role': 'user', 'content': 'Hello'}])", 3, "rt.messages(...)"),
        ("rt.fit([{'role': 'user', 'content': 'Hello'}], 100)", 3, "rt.fit(...)"),
        ("rt.best_of(2, rt.gen('x', temperature=1.0))", 3, "rt.gen('x')"),
        ("rt.best_of(2, rt.gen('x', temperature=1.0), by=len)", 3, "rt.best_of(2, rt.gen('x'))"),
        ("'Hello' + rt.gen('x')", 3, "rt.gen('x')"),
        ("rt.user('Q') + rt.assistant(rt.gen('x'))", 3, "rt.user(...)"),
        ("ask('Why?')", 3, "rt.user(...)"),
        ("for fork in s.fork(2):\n    rt.assistant(rt.gen('x'))", 4, "rt.assistant(...)"),
        ("with s.assistant():\n    rt.gen('x')", 4, "rt.gen('x')"),
        ("parts = [rt.user('Q'), rt.gen('x')]", 3, "rt.user(...)"),
        ("if s.text() == '': s += 'x'\nelse: rt.gen('x')", 4, "rt.gen('x')"),
        ("def step(b):\n    rt.gen('x')\nrt.repeat(step, at_most=2)", 4, "rt.gen('x')"),
        ("def inner(t):\n    rt.gen('x')\nrt.program(inner)(s)", 4, "rt.gen('x')"),
    ],
)
def test_a_forgotten_append_is_named_with_its_line(source: str, line: int, name: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(source)
    assert str(caught.value).startswith(f"<nowhere>:{line}: {name} is not part of a sequence")
    assert f"write s += {name}" in str(caught.value)


def test_a_forgotten_generation_names_the_typed_handle() -> None:
    with pytest.raises(TraceError, match=r"or s\.gen\('x'\), which returns its value"):
        run("x = rt.gen('x')")


@pytest.mark.parametrize(
    "source",
    [
        "s += OUTSIDE",
        "x = rt.gen('x')\nif s.text() == 'no': s += x",
        "xs = {k: rt.gen(k) for k in 'abc'}\ns += xs['a']",
        "xs = [rt.gen(k) for k in 'abc']\nfor x in xs:\n    if s.text() == 'no': s += x",
        "xs = []\nxs.extend(map(ask, ['a', 'b']))",
        "xs = []\nxs.append(rt.gen('x'))\nfor x in xs: s += x",
        "x = None\nfor _ in range(2):\n    if x is not None: s += x\n    x = rt.gen('x')",
        "try:\n    x = rt.gen('x')\nexcept ValueError:\n    s += 'failed'\nelse:\n    s += x",
        "x = rt.gen('x')\ndef later():\n    nonlocal s\n    s += x\nlater()",
        "box = {}\nbox['x'] = rt.gen('x')",
        "def made():\n    yield rt.gen('x')\nfor each in made(): s += each",
        "rt.switch('a', {'a': rt.gen('x'), 'b': rt.gen('y')})",
        "s.gen('x')\ny = s.gen('y')\ns.select('z', ['a', 'b'])",
        "s += (rt.gen('x') if s.text() else rt.gen('y'))",
        "sorted('ba', key=lambda k: (k, rt.gen(k))[0])",
        "import functools\nfunctools.partial(ask, 'q')()",
    ],
)
def test_an_expression_that_may_be_used_is_no_mistake(source: str) -> None:
    assert run(source).error is None


def test_expressions_outside_of_programs_are_no_mistake() -> None:
    rt.gen("x")
    unused = rt.user("y") + rt.gen("z")
    for _ in range(2):
        rt.select("x", ["a", "b"])
    del unused


def test_the_error_is_that_of_the_run() -> None:
    @rt.program
    def main(s: rt.State) -> None:
        s += "Hello " + rt.gen("fine")
        rt.gen("lost")

    result = main.run(runtime=ScriptedRuntime(), on_error="result")
    assert isinstance(result.error, TraceError)
    with pytest.raises(TraceError, match=r"test_lost_expressions\.py"):
        main.graph()


@pytest.mark.parametrize("returned", ["rt.gen('x')", "[rt.gen('x')]", "(1, rt.gen('x'))", "{'x': rt.gen('x')}"])
def test_a_returned_expression_is_refused(returned: str) -> None:
    with pytest.raises(TraceError, match=r"returns rt\.gen\('x'\), which is not part of a sequence"):
        run(f"return {returned}")


def test_a_branch_that_returns_an_expression_is_refused() -> None:
    for source in ("rt.switch('a', {'a': lambda b: rt.gen('x')})", "rt.repeat(lambda b: rt.gen('x'), at_most=2)"):
        with pytest.raises(TraceError, match=r"a branch returns rt\.gen\('x'\)"):
            run(source)


def test_a_state_cannot_be_an_operand_of_plus() -> None:
    with pytest.raises(TraceError, match=r"is a state; write s \+= \.\.\."):
        run("s + rt.gen('x')")
