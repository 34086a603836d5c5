"""Expressions: what the functions accept and refuse, and how they are put in a row."""

from __future__ import annotations

from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang import expressions as ex


def test_strings_and_expressions_are_concatenated_in_any_order() -> None:
    made = "a" + sgl.gen("x") + "b" + ("c" + sgl.gen("y"))
    assert [type(item).__name__ for item in made.items] == ["Text", "Gen", "Text", "Text", "Gen"]
    assert sgl.user("a" + sgl.gen("x")).items[0] == sgl.user_begin()


def test_a_message_is_a_start_a_content_and_an_end() -> None:
    assert sgl.assistant("hi") == ex.Series((sgl.assistant_begin(), ex.Text("hi"), sgl.assistant_end()))
    assert sgl.system() == ex.Series((sgl.system_begin(), sgl.system_end()))


def test_an_expression_in_an_f_string_is_refused() -> None:
    with pytest.raises(rt.TraceError, match=r"Gen\(name='x'.*concatenate with \+ instead"):
        f"{sgl.gen('x')}"
    with pytest.raises(rt.TraceError, match="f-string"):
        str(sgl.user("x"))


def test_choices_make_a_select() -> None:
    assert sgl.gen("x", choices=["a", "b"]) == sgl.select("x", ["a", "b"])
    method = sgl.greedy_token_selection
    assert sgl.gen("x", choices=["a"], choices_method=method) == sgl.select("x", ["a"], choices_method=method)
    with pytest.warns(UserWarning, match="max_tokens has no effect on sgl.gen"):
        sgl.gen("x", choices=["a"], max_tokens=4, temperature=0)


def test_kinds_of_values_have_functions_of_their_own() -> None:
    assert sgl.gen_int("x", 8, stop=",") == sgl.gen("x", 8, stop=",", dtype=int)
    assert sgl.gen_string("x", temperature=0.5) == sgl.gen("x", temperature=0.5, dtype=str)
    with pytest.raises(TypeError, match=r"gen_int\(\) got an unexpected keyword argument 'regex'"):
        sgl.gen_int("x", regex="a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sgl.gen("x", dtype=list), "dtype = <class 'list'>: expected int, float, bool or str"),
        (lambda: sgl.gen("x", regex="(a"), "regex = '\\(a': expected a valid pattern"),
        (lambda: sgl.gen("x", json_schema="{"), "json_schema = '{': expected JSON"),
        (lambda: sgl.gen("x", choices_method=sgl.token_length_normalized), "expected choices beside it"),
        (lambda: sgl.select("x"), "choices = None: expected a list of texts"),
        (lambda: sgl.select("x", []), "choices = \\[\\]"),
        (lambda: sgl.select("x", ["a", 1]), "choices = \\['a', 1\\]: expected a list of texts"),  # type: ignore[list-item]
        (lambda: sgl.select("x", "ab"), "choices = 'ab'"),
        (lambda: sgl.select("x", ["a"], temperature=0.7), "temperature = 0.7: a select takes the best choice"),
        (lambda: sgl.image("cat.png"), "image = 'cat.png': models with images are not supported"),
        (lambda: sgl.video("cat.mp4", 8), "video = 'cat.mp4': models with videos are not supported"),
        (lambda: sgl.separate_reasoning(sgl.gen("x")), "model_type = None"),
        (lambda: sgl.separate_reasoning(model_type="qwen3"), "expr = None"),
    ],
)
def test_a_wrong_argument_is_refused_where_it_is_written(make: Any, message: str) -> None:
    with pytest.raises(rt.ParameterError, match=message):
        make()


def test_a_list_of_token_ids_is_an_expression() -> None:
    assert ex.as_expression([1, 2]) == ex.Tokens((1, 2))
    for wrong in ([], [1, "a"], [True], [-1]):
        with pytest.raises(rt.TraceError, match="cannot append a list"):
            ex.as_expression(wrong)
