"""Marks of functions decide the policy of their calls; options of a call decide over marks."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import Call, all_nodes
from rtlang.lang.effect_marks import policy_of, strictest


@rt.pure
def double(x: int) -> int:
    return 2 * x


@rt.effect(on_unknown="retry")
def pay(amount: int) -> str:
    return f"paid {amount}"


def post(text: str) -> None:
    pass


class Shop:
    @rt.effect(on_unknown="ask")
    def sell(self, what: str) -> str:
        return what


def policies(body: Any) -> list[str]:
    return [node.policy for node in all_nodes(rt.program(body).graph().nodes) if isinstance(node, Call)]


def test_a_call_has_the_policy_of_its_options_or_of_its_function() -> None:
    def body(s: rt.State) -> None:
        rt.call(post, "a")
        rt.call(double, 1)
        rt.call(pay, 1)
        rt.call(Shop().sell, "tea")
        rt.call(functools.partial(pay, 3))
        rt.call(post, "a", pure=True)
        rt.call(double, 1, pure=False)
        rt.call(pay, 1, on_unknown="once")
        rt.call(double, 1, on_unknown="ask")

    assert policies(body) == ["once", "pure", "retry", "ask", "retry", "pure", "once", "once", "ask"]


def test_a_call_of_tools_has_the_strictest_policy_of_its_tools() -> None:
    def body(s: rt.State) -> None:
        s += "Which?"
        for tools in ([double, pay], [double, pay, Shop().sell], [double, post]):
            s += rt.gen("tool", type=rt.tools(tools, format="hermes"))
            rt.call(s["tool"])

    assert policies(body) == ["retry", "ask", "once"]
    assert strictest([]) == "once"


def test_a_pure_call_that_nothing_needs_is_dropped() -> None:
    from rtlang.compiler.prune import prune
    from rtlang.contract.request_graph import RequestGraph

    calls = (Call(0, "f", (), policy="pure"), Call(1, "f", ()), Call(2, "f", (), policy="retry"))
    assert prune(RequestGraph(calls), ()).nodes == calls[1:]
    assert prune(RequestGraph(calls), (0,)).nodes == calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pure": 1}, "pure = 1: expected True or False"),
        ({"on_unknown": "twice"}, "on_unknown = 'twice': expected"),
        ({"pure": True, "on_unknown": "retry"}, "a pure call has no effect"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    def body(s: rt.State) -> None:
        rt.call(post, "a", **options)

    with pytest.raises(rt.ParameterError, match=message):
        policies(body)


def test_what_cannot_be_marked_is_refused() -> None:
    with pytest.raises(rt.ParameterError, match="on_unknown"):
        rt.effect(on_unknown="pure")  # type: ignore[arg-type]
    with pytest.raises(rt.ParameterError, match="expected a function of Python"):
        rt.pure(len)
    assert policy_of(len, None, None) == "once"
