"""Bodies of /generate become graphs; what would change the text and is not supported is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError, RtlangError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, Text, TokenIds
from rtlang.serve.sglang.generate_requests import generate_graph, read_generate


def nodes_of(body: dict[str, Any]) -> list[Any]:
    graph = generate_graph(read_generate(body), {})
    graph.validate()
    return list(graph.nodes)


def test_a_text_is_generated_from_with_the_defaults_of_sglang() -> None:
    text, generate = nodes_of({"text": "a"})
    assert text == Text(0, None, ("a",))
    assert generate == Generate(1, 0, None, SamplingParams(max_tokens=128, temperature=1.0))


def test_lists_of_token_ids_have_options_of_their_own() -> None:
    body = {
        "input_ids": [[5, 6], [7]],
        "sampling_params": [{"max_new_tokens": 3, "n": 2}, {"temperature": 0, "top_k": -1, "stop": ["x"]}],
        "return_logprob": [True, False],
        "top_logprobs_num": [2, 0],
        "logprob_start_len": [1, -1],
    }
    first, generate, second, other = nodes_of(body)
    assert (first.parts, second.parts) == ((TokenIds((5, 6)),), (TokenIds((7,)),))
    assert generate.params == SamplingParams(max_tokens=3, temperature=1.0, n=2, logprobs=2, prompt_logprobs=2)
    assert other.params == SamplingParams(max_tokens=128, stop=("x",))
    request = read_generate(body)
    assert (request.is_list, request.items[0].start, request.items[1].start) == (True, 1, None)


@pytest.mark.parametrize(
    ("options", "constraint"),
    [
        ({"regex": "[ab]+"}, Constraint(ConstraintKind.REGEX, "[ab]+")),
        ({"json_schema": '{"type": "integer"}'}, Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "integer"}')),
        ({"json_schema": "$$ANY$$"}, Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "object"}')),
        ({"ebnf": 'root ::= "a"'}, Constraint(ConstraintKind.GBNF, 'root ::= "a"')),
        ({"ebnf": 'start: "a"'}, Constraint(ConstraintKind.LARK, 'start: "a"')),
        ({"regex": "", "ebnf": None}, None),
    ],
)
def test_constraints(options: dict[str, Any], constraint: Constraint | None) -> None:
    assert nodes_of({"text": "a", "sampling_params": options})[1].constraint == constraint


def test_filters_are_taken_and_refused_by_name() -> None:
    options = {"typical_p": 0.5, "bad_words": ["x"], "dry_multiplier": 1, "dry_penalty_last_n": 9, "mirostat": 2}
    expected = SamplingParams(
        temperature=1.0, typical_p=0.5, bad_words=("x",), dry_multiplier=1, dry_range=9, mirostat=2
    )
    assert nodes_of({"text": "a", "sampling_params": options})[1].params == expected
    with pytest.raises(ParameterError, match="mode 1 is not supported") as caught:
        read_generate({"text": "a", "sampling_params": {"mirostat": 1}})
    assert caught.value.field == "sampling_params.mirostat"


def test_fields_without_an_effect_are_accepted() -> None:
    body = {
        "text": "a",
        "image_data": None,
        "lora_path": None,
        "log_metrics": True,
        "sampling_params": {
            "skip_special_tokens": True,
            "spaces_between_special_tokens": True,
            "sampling_seed": -1,
            "logit_bias": {"5": -1.5},
            "custom_params": {},
            "stop": [],
        },
    }
    params = nodes_of(body)[1].params
    assert (params.seed, params.logit_bias, params.stop) == ((1 << 64) - 1, ((5, -1.5),), ())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": "a", "input_ids": [1]}, "text"),
        ({"text": [1]}, "text"),
        ({"text": []}, "text"),
        ({"input_ids": []}, "input_ids"),
        ({"input_ids": [1.0]}, "input_ids"),
        ({"input_ids": [[1], []]}, "input_ids"),
        ({"text": ["a", "b"], "return_logprob": [True]}, "return_logprob"),
        ({"text": "a", "lora_path": "x"}, "lora_path"),
        ({"text": "a", "image_data": "x.png"}, "image_data"),
        ({"text": "a", "rid": "\n"}, "rid"),
        ({"text": "a", "rid": ["a", "b"]}, "rid"),
        ({"text": "a", "top_logprobs_num": 1000, "return_logprob": True}, "top_logprobs_num"),
        ({"text": "a", "sampling_params": 3}, "sampling_params"),
        ({"text": "a", "sampling_params": {"top_p": 2}}, "sampling_params.top_p"),
        ({"text": "a", "sampling_params": {"speed": 2}}, "sampling_params.speed"),
        ({"text": "a", "sampling_params": {"skip_special_tokens": False}}, "sampling_params.skip_special_tokens"),
        ({"text": "a", "sampling_params": {"max_new_tokens": -1}}, "sampling_params.max_new_tokens"),
        ({"text": "a", "sampling_params": {"json_schema": "{"}}, "sampling_params.json_schema"),
        ({"text": "a", "sampling_params": {"regex": "a", "ebnf": 'start: "a"'}}, "sampling_params.regex"),
        ({"text": "a", "sampling_params": {"logit_bias": {"x": 1}}}, "sampling_params.logit_bias"),
        ({"text": "a", "sampling_params": {"logit_bias": {"9" * 5000: 1}}}, "sampling_params.logit_bias"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        nodes_of(body)
    assert isinstance(caught.value, RtlangError)
    assert (caught.value.field, field in caught.value.message) == (field, True)


def test_texts_are_encoded_first_where_the_response_lists_their_tokens() -> None:
    scored = {"text": ["a", "b"], "return_logprob": [True, False], "logprob_start_len": 0}
    assert read_generate(scored).needs_ids == (0,)
    assert read_generate({"text": "a"}, parses_special=True).needs_ids == (0,)
    assert read_generate({"input_ids": [1], "return_logprob": True, "logprob_start_len": 0}).needs_ids == ()
    graph = generate_graph(read_generate(scored), {0: [1, 97]})
    assert graph.nodes[0] == Text(0, None, (TokenIds((1, 97)),))
