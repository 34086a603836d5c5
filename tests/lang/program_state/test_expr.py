"""Expressions: what is accepted as text, and what options mean."""

from __future__ import annotations

import enum
import re
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.params import ConstraintKind
from rtlang.contract.request_graph import Generate, RoleEnd, RoleStart, TokenIds
from rtlang.lang.program_state.expr import Gen, Pieces, Role, Select, Series
from rtlang.testing import ScriptedRuntime


def params_of(**options: Any) -> rt.Sampling:
    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("x", **options)

    (node,) = body.graph().nodes
    assert isinstance(node, Generate)
    return node.params


def parts_of(expression: Any) -> tuple[Any, ...]:
    @rt.program
    def body(s: Any) -> None:
        s += expression

    nodes = body.graph().nodes
    return getattr(nodes[0], "parts", ()) if nodes else ()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (rt.text("a", 1, 2.5, True), "a12.5True"),
        (rt.text(), None),
        (rt.text("", ""), None),
        ("plain", "plain"),
        (7, "7"),
        (rt.text("a") + "b" + 3, "ab3"),
        ("a" + rt.text("b"), "ab"),
        (1 + rt.text("b"), "1b"),
        (rt.text("a", rt.text("b", rt.text("c")), "d"), "abcd"),
    ],
)
def test_text_is_the_pieces_in_a_row(expression: Any, text: str | None) -> None:
    assert parts_of(expression) == (() if text is None else (text,))


class Foreign:
    pass


class Shade(enum.Enum):
    DARK = "dark"


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        (None, "None"),
        (["a"], "a list"),
        (("a",), "a list"),
        (Foreign(), "a Foreign"),
        (b"a", "a bytes"),
        (print, "function 'print'"),
        ({"a": 1}, "a dict"),
        (Shade.DARK, "Shade.DARK; write its .value"),
    ],
)
@pytest.mark.parametrize("function", [rt.text, rt.system, rt.user, rt.assistant, rt.tool])
def test_what_is_no_text_is_refused_by_argument_and_line(function: Any, piece: Any, word: str) -> None:
    if function is rt.tool and isinstance(piece, (list, dict)):
        return  # these are results of tools, which it writes as JSON
    with pytest.raises(rt.TraceError) as caught:
        function("fine", piece)
    assert f"argument 2 of {function.__name__}()" in str(caught.value)
    assert word in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.startswith(f"{__file__}:")


def test_what_is_no_text_is_refused_everywhere() -> None:
    for use in (lambda: rt.text("a") + None, lambda: None + rt.text("a"), lambda: parts_of(None)):
        with pytest.raises(rt.TraceError, match="None"):
            use()


def test_tokens_are_text_in_messages_and_between_other_pieces() -> None:
    assert parts_of(rt.user("a", rt.tokens(range(3)), "b")) == (
        RoleStart("user"),
        "a",
        TokenIds((0, 1, 2)),
        "b",
        RoleEnd(),
    )
    assert parts_of("a" + rt.tokens([7])) == ("a", TokenIds((7,)))
    with pytest.raises(rt.ParameterError, match="token_ids = -1"):
        rt.tokens([-1])
    with pytest.raises(rt.TraceError, match=r"write rt.tokens\(...\)"):
        rt.text([1, 2])
    with pytest.raises(rt.TraceError, match=r"rt.tokens\(...\) has no text yet"):
        str(rt.tokens([1]))


def test_the_text_of_a_state_leaves_tokens_out() -> None:
    @rt.program
    def body(s: Any) -> tuple[Any, Any]:
        s += rt.user("a", rt.tokens([1]), "b")
        return s.text(), s.messages()

    with ScriptedRuntime({}) as runtime:
        result = body.run(runtime=runtime)
    assert result.value == ("ab", [{"role": "user", "content": "ab"}])
    assert result.text() == "ab"


def test_expressions_are_flat_and_immutable() -> None:
    expression = rt.text("a") + rt.gen("x") + (rt.text("b") + rt.gen("y"))
    assert isinstance(expression, Series)
    assert [type(item) for item in expression.items] == [Pieces, Gen, Pieces, Gen]
    with pytest.raises(AttributeError):
        expression.items = ()  # type: ignore[misc]


def test_one_expression_may_be_used_many_times() -> None:
    turn = rt.user("go") + rt.assistant(rt.gen("x"))

    @rt.program
    def body(s: Any) -> None:
        forks = s.fork(2)
        forks += turn

    assert len([node for node in body.graph().nodes if isinstance(node, Generate)]) == 2


def test_a_role_holds_generations_among_text() -> None:
    role = rt.assistant("a", rt.gen("x"), "b", "c", rt.select("y", ["p", "q"]))
    assert isinstance(role, Role)
    assert [type(item) for item in role.content] == [Pieces, Gen, Pieces, Select]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"stop": "\n"}, {"stop": ("\n",)}),
        ({"stop": ["a", "b"]}, {"stop": ("a", "b")}),
        ({"stop_token_ids": [1, 2]}, {"stop_token_ids": (1, 2)}),
        ({"stop_regex": r"\d"}, {"stop_regex": (r"\d",)}),
        ({"stop_regex": re.compile(r"\d")}, {"stop_regex": (r"\d",)}),
        ({"stop_regex": ["a", re.compile("b")]}, {"stop_regex": ("a", "b")}),
        ({"logit_bias": {5: -1.0}}, {"logit_bias": ((5, -1.0),)}),
        ({"logit_bias": [[5, -1.0]]}, {"logit_bias": ((5, -1.0),)}),
        (
            {"temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1, "seed": 3, "n": 2, "min_tokens": 1},
            {"temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1, "seed": 3, "n": 2, "min_tokens": 1},
        ),
        (
            {"presence_penalty": 0.1, "frequency_penalty": 0.2, "repetition_penalty": 1.3, "ignore_eos": True},
            {"presence_penalty": 0.1, "frequency_penalty": 0.2, "repetition_penalty": 1.3, "ignore_eos": True},
        ),
        (
            {
                "bad_words": "a",
                "allowed_token_ids": [1, 2],
                "no_repeat_ngram_size": 3,
                "typical_p": 0.5,
                "top_n_sigma": 1,
            },
            {
                "bad_words": ("a",),
                "allowed_token_ids": (1, 2),
                "no_repeat_ngram_size": 3,
                "typical_p": 0.5,
                "top_n_sigma": 1,
            },
        ),
        (
            {"dry_multiplier": 1, "dry_base": 2, "dry_allowed_length": 3, "dry_sequence_breakers": "b", "dry_range": 9},
            {
                "dry_multiplier": 1,
                "dry_base": 2,
                "dry_allowed_length": 3,
                "dry_sequence_breakers": ("b",),
                "dry_range": 9,
            },
        ),
        (
            {"temperature": 1, "mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2, "dynatemp_range": 0.5},
            {"temperature": 1, "mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2, "dynatemp_range": 0.5},
        ),
        (
            {"temperature": 1, "dynatemp_exponent": 2, "xtc_probability": 0.1, "xtc_threshold": 0.2},
            {"temperature": 1, "dynatemp_exponent": 2, "xtc_probability": 0.1, "xtc_threshold": 0.2},
        ),
        ({"logprobs": 2, "prompt_logprobs": 0}, {"logprobs": 2, "prompt_logprobs": 0}),
        ({"params": rt.Sampling(top_k=3)}, {"top_k": 3}),
        ({"params": rt.Sampling(top_k=3, max_tokens=9), "top_k": 4}, {"top_k": 4, "max_tokens": 9}),
    ],
)
def test_options_become_sampling_params(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert params_of(**options) == rt.Sampling(**expected)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": int}, "max_tokens"),
        ({"max_tokens": int | None}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"stop": ""}, "stop"),
        ({"stop": 3}, "stop"),
        ({"stop": b"a"}, "stop"),
        ({"stop_regex": "("}, "stop_regex"),
        ({"stop_regex": [3]}, "stop_regex"),
        ({"stop_token_ids": "abc"}, "stop_token_ids"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"logit_bias": 3}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"n": 0}, "n"),
        ({"seed": -1}, "seed"),
        ({"ignore_eos": 1}, "ignore_eos"),
        ({"params": {"top_k": 3}}, "params"),
        ({"type": int, "choices": ["a"]}, "type and choices"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(rt.ParameterError) as caught:
        params_of(**options)
    assert caught.value.field == field


def test_a_type_in_the_place_of_max_tokens_says_what_to_write() -> None:
    for given in (int, Shade, list[int], int | None):
        with pytest.raises(rt.ParameterError, match=r"expected a number of tokens; write type= for a type"):
            rt.gen("x", given)  # type: ignore[arg-type]


def test_a_generation_carries_its_constraint() -> None:
    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("x", regex="a+") + rt.gen("y", choices=["a"]) + rt.gen("z")

    kinds = [getattr(node, "constraint", None) for node in body.graph().nodes]
    assert [kind and kind.kind for kind in kinds] == [ConstraintKind.REGEX, ConstraintKind.CHOICE, None]


@pytest.mark.parametrize(("method", "choices"), [("best", ["a"]), (None, ["a"]), ("full_likelihood", [])])
def test_a_wrong_select_is_refused(method: Any, choices: Any) -> None:
    with pytest.raises(rt.ParameterError):
        rt.select("x", choices, method=method)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: rt.gen("x"), "rt.gen('x')"),
        (lambda: rt.gen(), "rt.gen()"),
        (lambda: rt.select("y", ["a"]), "rt.select('y')"),
        (lambda: "Answer: " + rt.gen("x") + "!", "rt.gen('x')"),
        (lambda: rt.user("a"), "rt.user(...)"),
        (lambda: rt.text("a"), "rt.text(...)"),
    ],
)
@pytest.mark.parametrize("use", [str, lambda e: f"{e}", lambda e: f"{e!s}", lambda e: f"{e:>9}", "{}".format])
def test_an_expression_in_an_f_string_is_refused_where_it_stands(make: Any, named: str, use: Any) -> None:
    with pytest.raises(rt.TraceError, match=r"rt\.text\(\.\.\.\) as an argument") as caught:
        use(make())
    assert named in str(caught.value)
    assert caught.value.location.startswith(__file__)
    assert repr(make())  # for debugging
