"""How options become those of this language."""

from __future__ import annotations

import re
from typing import Any

import pytest

import rtlang as rt
from rtlang.compat.sglang.options import REGEX_FLOAT, REGEX_INT, LogprobWish, ending_at, request_of, run_options


def request(**options: Any) -> Any:
    return request_of(run_options({}) | options)


def test_a_run_samples_at_temperature_1_and_128_tokens() -> None:
    assert run_options({}) == {"max_tokens": 128, "temperature": 1.0}
    assert run_options({"max_new_tokens": 5, "min_new_tokens": 2, "temperature": 0}) == {
        "max_tokens": 5,
        "min_tokens": 2,
        "temperature": 0,
    }


def test_all_options_have_a_counterpart() -> None:
    options = {
        "n": 2,
        "min_tokens": 3,
        "stop_token_ids": [7],
        "stop_regex": "a+",
        "temperature": 0.5,
        "top_p": 0.9,
        "min_p": 0.1,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.3,
        "ignore_eos": True,
        "top_k": 5,
        "max_tokens": 9,
    }
    found = request(**options, stop=["\n", "."])
    assert found.options == options | {"stop": ("\n", ".")}
    rt.gen("x", **found.options)  # accepts them all


def test_minus_one_turns_top_k_off() -> None:
    assert request(top_k=-1).options["top_k"] == 0


def test_a_constrained_text_ends_where_a_stop_would_end_it() -> None:
    found = request(dtype=int, stop=",")
    assert found.cuts == (",", " ", "\n")
    assert "stop" not in found.options
    for text, is_allowed in [
        ("12", True),
        ("12 ", True),
        ("-3\n", True),
        ("12  ", False),
        ("12 \n", False),
        ("", False),
    ]:
        assert bool(re.fullmatch(found.options["regex"], text)) == is_allowed, text


@pytest.mark.parametrize(("regex", "cuts"), [("[a-z ]*", (" ",)), ("(ab|c)*", ("abc", "cc")), (REGEX_FLOAT, ("\n",))])
def test_a_pattern_that_ends_at_a_stop_has_it_only_at_its_end(regex: str, cuts: tuple[str, ...]) -> None:
    made = re.compile(ending_at(regex, cuts))
    for text in ("", "ab", "ab ", "ab c", "abab", "ababc", "abcc", "ccab", "1.5\n", "1.5 \n", "1.5\n\n"):
        first = min((text.find(cut) + len(cut) for cut in cuts if cut in text), default=len(text))
        expected = bool(re.fullmatch(regex, text)) and first == len(text)
        assert bool(made.fullmatch(text)) == expected, text


def test_a_pattern_without_stops_stays_as_it_is() -> None:
    assert ending_at(REGEX_INT, ()) == REGEX_INT


def test_dtype_wins_against_regex_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="dtype='bool' is used"):
        found = request(dtype="bool", regex="a")
    assert found.options["regex"] == "(True|False)"


def test_a_schema_goes_with_stops_but_without_a_regex() -> None:
    assert request(json_schema="{}", stop="x").options.items() >= {"schema": "{}", "stop": ("x",)}.items()
    with pytest.raises(rt.ParameterError, match="json_schema"):
        request(json_schema="{}", regex="a")


def test_no_tokens_mean_one_that_is_not_kept() -> None:
    found = request(max_tokens=0, stop="x", n=3, regex="a", return_logprob=True, top_logprobs_num=4)
    assert found.is_empty
    assert found.options == {"max_tokens": 1, "temperature": 1.0, "ignore_eos": True, "logprobs": 4}


def test_logprobs_of_the_prompt_are_reported_from_a_start() -> None:
    found = request(return_logprob=True, logprob_start_len=0, top_logprobs_num=2, return_text_in_logprobs=True)
    assert found.logprobs == LogprobWish(2, 0, True)
    assert (found.options["logprobs"], found.options["prompt_logprobs"]) == (2, 2)
    assert request(return_logprob=True, logprob_start_len=-1).logprobs == LogprobWish(0, None, False)
    with pytest.warns(UserWarning, match="top_logprobs_num has no effect on a generation without return_logprob=True"):
        assert request(top_logprobs_num=2).logprobs is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": -1}, "max_tokens = -1: expected an integer of at least 0"),
        ({"max_tokens": True}, "max_tokens = True"),
        ({"stop": 7}, "stop = 7: expected a string or a list of strings"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(rt.ParameterError, match=message):
        request(**options)
