"""Options of a generation: what is refused, and the way through plain data."""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import math
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams, Usage, as_constraint, sampling_params

REFUSED: list[tuple[str, Any]] = [
    ("max_tokens", -1),
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("max_tokens", 1 << 30),
    ("min_tokens", -1),
    ("min_tokens", 129),  # over max_tokens
    ("stop", ("",)),
    ("stop", ("a",) * 33),
    ("stop", (1,)),
    ("stop_regex", ("(a",)),
    ("stop_token_ids", (-1,)),
    ("stop_token_ids", ("a",)),
    ("temperature", -0.1),
    ("temperature", math.nan),
    ("temperature", math.inf),
    ("temperature", "hot"),
    ("top_k", -1),
    ("top_p", 0.0),
    ("top_p", 1.1),
    ("min_p", -0.1),
    ("min_p", 2),
    ("presence_penalty", 101),
    ("frequency_penalty", math.nan),
    ("repetition_penalty", 0),
    ("bad_words", ("",)),
    ("bad_words", ("a",) * 1025),
    ("bad_words", (3,)),
    ("allowed_token_ids", ()),
    ("allowed_token_ids", (-1,)),
    ("allowed_token_ids", 7),
    ("no_repeat_ngram_size", -1),
    ("no_repeat_ngram_size", 2.0),
    ("typical_p", 0.0),
    ("typical_p", 1.01),
    ("top_n_sigma", -1.0),
    ("top_n_sigma", math.nan),
    ("xtc_probability", 1.5),
    ("xtc_probability", 0.5),  # of the most likely token there is no other choice
    ("xtc_threshold", -0.1),
    ("dry_multiplier", -0.1),
    ("dry_base", 0.9),
    ("dry_allowed_length", 0),
    ("dry_sequence_breakers", ("",)),
    ("dry_sequence_breakers", ("a" * 41,)),
    ("dry_sequence_breakers", (1,)),
    ("dry_range", -1),
    ("mirostat", 1),
    ("mirostat", 3),
    ("mirostat", 2.0),
    ("mirostat", 2),  # without a temperature
    ("mirostat_tau", 0.0),
    ("mirostat_eta", 0.0),
    ("mirostat_eta", 1.5),
    ("dynatemp_range", -1.0),
    ("dynatemp_range", 0.5),  # without a temperature
    ("dynatemp_exponent", -1.0),
    ("logit_bias", {-1: 2.0}),
    ("logit_bias", ((1, 2.0, 3),)),
    ("logit_bias", ((-1, 2.0),)),
    ("logit_bias", ((1, math.inf),)),
    ("seed", -1),
    ("seed", 1 << 64),
    ("n", 0),
    ("n", 129),
    ("best_of", 0),
    ("best_of", 2),  # all candidates are equal at temperature 0
    ("logprobs", 101),
    ("logprobs", -1),
    ("prompt_logprobs", 1.0),
    ("ignore_eos", 1),
    ("include_stop_str_in_output", 1),
    ("truncate_prompt_tokens", 0),
    ("truncate_prompt_tokens", -1),
    ("truncate_prompt_tokens", True),
    ("logits_processors", (1,)),
    ("logits_processors", (print,) * 33),
    ("priority", 1.0),
    ("priority", 1_000_001),
    ("deadline_s", 0),
    ("deadline_s", "soon"),
    ("deadline_s", math.nan),
    ("token_healing", "yes"),
    ("distortion", 1),
    ("max_retries", -1),
    ("x_fault", "crash"),
    ("thought_marks", ("<a>",)),
    ("thought_marks", ("<a>", "")),
    ("thought_marks", ("<a>", 3)),
    ("max_thought_tokens", 3),  # without marks
    ("max_thought_tokens", -1),
    ("shows_special", 1),
    ("keeps_invalid", 1),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=str)
def test_a_wrong_value_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        SamplingParams(**{name: value})
    assert caught.value.field == name


def test_every_option_has_a_value_that_is_refused() -> None:
    assert {name for name, _ in REFUSED} == {field.name for field in fields(SamplingParams)}


def params() -> st.SearchStrategy[SamplingParams]:
    words = st.lists(st.text(min_size=1, max_size=5), max_size=3).map(tuple)
    number = st.floats(-100, 100)
    return st.builds(
        SamplingParams,
        max_tokens=st.integers(50, 1000),
        min_tokens=st.integers(0, 50),
        stop=words,
        stop_token_ids=st.lists(st.integers(0, 99), max_size=3).map(tuple),
        stop_regex=st.lists(st.sampled_from(("a+", "(b|c)", r"\d{2}", "é")), max_size=3).map(tuple),
        temperature=st.floats(0.1, 100),
        top_k=st.integers(0, 50),
        top_p=st.floats(0.1, 1),
        min_p=st.floats(0, 1),
        presence_penalty=number,
        frequency_penalty=number,
        repetition_penalty=st.floats(0.1, 100),
        bad_words=words,
        allowed_token_ids=st.none() | st.lists(st.integers(0, 99), min_size=1, max_size=3).map(tuple),
        no_repeat_ngram_size=st.integers(0, 9),
        typical_p=st.floats(0.1, 1),
        top_n_sigma=st.floats(0, 9),
        xtc_probability=st.floats(0, 1),
        xtc_threshold=st.floats(0, 1),
        dry_multiplier=st.floats(0, 9),
        dry_base=st.floats(1, 9),
        dry_allowed_length=st.integers(1, 9),
        dry_sequence_breakers=words,
        dry_range=st.integers(0, 999),
        mirostat=st.sampled_from((0, 2)),
        mirostat_tau=st.floats(0.1, 9),
        mirostat_eta=st.floats(0.1, 1),
        dynatemp_range=st.floats(0, 9),
        dynatemp_exponent=st.floats(0, 9),
        logit_bias=st.lists(st.tuples(st.integers(0, 99), number), max_size=3).map(tuple),
        seed=st.none() | st.integers(0, (1 << 64) - 1),
        n=st.integers(1, 128),
        logprobs=st.none() | st.integers(0, 100),
        prompt_logprobs=st.none() | st.integers(0, 100),
        ignore_eos=st.booleans(),
        include_stop_str_in_output=st.booleans(),
        truncate_prompt_tokens=st.none() | st.integers(1, 99),
        priority=st.none() | st.integers(-9, 9),
        deadline_s=st.none() | st.floats(0.1, 1e6),
        thought_marks=st.just(("<a>", "</a>")),
        max_thought_tokens=st.none() | st.integers(0, 100),
        shows_special=st.booleans(),
        keeps_invalid=st.booleans(),
    )


@given(params())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_options_come_back_from_their_plain_form(given_params: SamplingParams) -> None:
    plain = json.loads(json.dumps(given_params.to_plain()))
    assert SamplingParams.from_plain(plain) == given_params


def test_the_plain_form_holds_only_what_was_changed() -> None:
    assert SamplingParams().to_plain() == {}
    assert SamplingParams(stop=("a",), logit_bias=((3, -1.0),)).to_plain() == {"stop": ["a"], "logit_bias": [[3, -1.0]]}


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"top_q.*unknown option.*top_p"):
        SamplingParams.from_plain({"top_q": 1})


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)


def test_a_compiled_stop_regex_with_flags_is_refused() -> None:
    pattern = re.compile("(?i)a+")
    assert SamplingParams(stop_regex=pattern).stop_regex == (pattern.pattern,)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"stop_regex = .*inline flags"):
        SamplingParams(stop_regex=re.compile("a+", re.IGNORECASE))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": "\ud800"}, "lone surrogates"),
        ({"stop": ""}, "stop = '': expected a string or a list of strings, none of them empty"),
        ({"stop_regex": re.compile(b"a")}, "not a bytes pattern"),
        ({"stop_token_ids": 5}, "stop_token_ids = 5: expected a list of"),
        ({"stop_token_ids": [1 << 31]}, "from 0 to 2147483647"),
        ({"mirostat": 1, "temperature": 1.0}, r"mirostat = 1: expected 0 \(off\) or 2 .* mode 1 is not supported"),
        ({"xtc_probability": 0.5}, "xtc_probability = 0.5: expected 0 with temperature 0"),
        ({"allowed_token_ids": []}, "allowed_token_ids = \\[\\]: expected at least one token id"),
        ({"bad_words": "\ud800"}, "bad_words = .*lone surrogates"),
        ({"logit_bias": {7: "a"}}, "logit_bias = 'a': .* for token 7"),
    ],
)
def test_a_message_says_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SamplingParams(**options)


def test_a_pattern_that_python_warns_of_is_taken() -> None:
    assert SamplingParams(stop_regex="[[a]").stop_regex == ("[[a]",)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=str)
def test_shared_parameters_refuse_the_same_options(name: str, value: Any) -> None:
    if isinstance(value, bool):  # the equal integer may be valid, and must not hide the mistake
        with contextlib.suppress(ParameterError):
            sampling_params({name: int(value)})
    with pytest.raises(ParameterError) as caught:
        sampling_params({name: value})
    assert caught.value.field == name


def test_equal_options_share_their_parameters() -> None:
    base = SamplingParams(temperature=1.0)
    for given_base in (None, base):
        for options in ({"max_tokens": 7, "stop": ("a",)}, {"logit_bias": ((1, 2.0),)}, {"stop": "a"}):
            whole = SamplingParams(**options) if given_base is None else replace(given_base, **options)
            assert sampling_params(options, given_base) == whole
    assert sampling_params({"max_tokens": 7}) is sampling_params({"max_tokens": 7})
    assert sampling_params({}, base) is base
    assert type(sampling_params({"temperature": 1}).temperature) is int
    assert type(sampling_params({"temperature": 1.0}).temperature) is float


def test_type_checkers_know_the_options_and_their_defaults() -> None:
    tree = ast.parse(inspect.getsource(SamplingParams))
    (typed,) = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    names = [each.arg for each in typed.args.args[1:]]
    defaults = [ast.literal_eval(each) for each in typed.args.defaults]
    assert dict(zip(names, defaults, strict=True)) == {item.name: item.default for item in fields(SamplingParams)}
    assert list(inspect.signature(SamplingParams).parameters) == names


def test_a_schema_as_a_map_is_a_constraint() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = as_constraint(schema)
    assert made.kind is ConstraintKind.JSON_SCHEMA
    assert json.loads(made.source) == schema
    assert as_constraint(made) is made
    for wrong in ("{}", int, {"enum": [{1, 2}]}):
        with pytest.raises(ParameterError, match="constraint = "):
            as_constraint(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("params", "depends"),
    [
        (SamplingParams(), False),
        (SamplingParams(temperature=1.0), True),
        (SamplingParams(n=2), True),
        (SamplingParams(temperature=1.0, best_of=2), True),
        (SamplingParams(temperature=1.0, seed=3), False),
        (SamplingParams(n=2, seed=0), False),
    ],
)
def test_what_samples_without_a_seed_of_its_own_depends_on_that_of_the_run(
    params: SamplingParams, depends: bool
) -> None:
    warm_rule = Constraint(ConstraintKind.LARK, 'start: a\na[temperature=1]: "b"')
    for constraint in (None, Constraint(ConstraintKind.LARK, 'start: "temperature"')):
        assert params.depends_on_run_seed(constraint) is depends
    assert params.depends_on_run_seed(warm_rule) is (params.seed is None)
