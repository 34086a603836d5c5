"""Each field that a client can send is read, refused by name, or on the lists of ignored ones in docs/serving.md.

A field that is given values of no meaning, one after the other, and refuses none of them, is ignored. The names are those of types of the
`openai` package and of other servers; every map inside a request gets every name that one of these maps has.
"""

from __future__ import annotations

import copy
import re
import typing
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from openai.types import chat, responses
from openai.types import shared_params as shared
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase as CompletionParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase as ResponseParams

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.openai.completions import read_completion
from rtlang.serve.responses.input_items import read_items
from rtlang.serve.responses.request_body import read_body, renamed_error

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
ROOTS: tuple[Any, ...] = (ChatParams, CompletionParams, ResponseParams)
INNER: tuple[Any, ...] = (
    chat.ChatCompletionStreamOptionsParam,
    chat.ChatCompletionAssistantMessageParam,
    chat.ChatCompletionToolMessageParam,
    chat.ChatCompletionContentPartTextParam,
    chat.ChatCompletionFunctionToolParam,
    chat.ChatCompletionMessageFunctionToolCallParam,
    chat.ChatCompletionNamedToolChoiceParam,
    shared.FunctionDefinition,
    shared.Reasoning,
    shared.ResponseFormatJSONSchema,
    responses.EasyInputMessageParam,
    responses.FunctionToolParam,
    responses.ResponseFormatTextJSONSchemaConfigParam,
    responses.ResponseFunctionToolCallParam,
    responses.ResponseInputTextParam,
    responses.ResponseOutputTextParam,
    responses.ResponseReasoningItemParam,
    responses.ResponseTextConfigParam,
    responses.ToolChoiceAllowedParam,
    responses.response_input_param.FunctionCallOutput,
    responses.response_input_param.Message,
)
OF_OTHER_SERVERS = (
    "top_k min_p min_tokens repetition_penalty stop_token_ids ignore_eos priority best_of use_beam_search "
    "length_penalty skip_special_tokens spaces_between_special_tokens include_stop_str_in_output "
    "truncate_prompt_tokens prompt_logprobs allowed_token_ids bad_words guided_json guided_regex guided_choice "
    "guided_grammar guided_json_object guided_decoding_backend guided_whitespace_pattern structured_outputs "
    "structural_tag chat_template chat_template_kwargs documents mm_processor_kwargs add_generation_prompt "
    "continue_final_message add_special_tokens echo return_tokens_as_token_ids return_token_ids cache_salt "
    "extra_key kv_transfer_params vllm_xargs request_id logits_processors detokenize regex ebnf json_schema "
    "json_style no_stop_trim separate_reasoning stream_reasoning include_reasoning lora_path session_params rid "
    "return_hidden_states custom_logit_processor enable_thinking thinking thinking_budget thinking_token_budget "
    "max_thinking_tokens thinking_budget_tokens reasoning_effort extra_body nonsense "
)
IN_OTHER_MAPS = (
    "reasoning_content reasoning_details annotations index budget_tokens enabled exclude max_tokens keep "
    "clear_thinking display cache_control continuous_usage_stats logprobs mode tools nonsense "
)


def names_of(types: tuple[Any, ...], others: str) -> list[str]:
    return sorted({name for each in types for name in typing.get_type_hints(each)} | set(others.split()))


ROOT_NAMES, INNER_NAMES = names_of(ROOTS, OF_OTHER_SERVERS), names_of(INNER, IN_OTHER_MAPS)
NO_MEANING: list[Any] = [{"\x01": {"x": 1}}, ["\x01", 0.5], "no meaning \x01", -7.25, -7, True]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FREE = (
    "parameters",
    "schema",
    "logit_bias",
    "chat_template_kwargs",
    "metadata",
    *("guided_json", "json_schema", "json"),
)
"""Maps whose names are the client's own."""
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
FUNCTION = {"type": "function", "function": {"name": "f"}}
CHATS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION]}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning": {"effort": "low"},
    },
    {"messages": [{"role": "user", "content": "a"}], "thinking": {"type": "enabled"}},
    {
        "messages": [{"role": "user", "content": "a"}],
        "tools": [FUNCTION],
        "tool_choice": FUNCTION,
    },
    {"messages": [{"role": "user", "content": "a"}],
     "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    {"messages": [{"role": "user", "content": "a"}], "structured_outputs": {"choice": ["a"]}, "json_style": {"order": "any"}},
]  # fmt: skip
COMPLETIONS: list[dict[str, Any]] = [
    {"prompt": "a", "stream": True, "stream_options": {"include_usage": True}, "response_format": {"type": "json_object"}},
    {"prompt": "a", "structured_outputs": {"regex": "a"}},
]  # fmt: skip
RESPONSES: list[dict[str, Any]] = [
    {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "t"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
        "tool_choice": {"type": "function", "name": "f"},
        "reasoning": {"effort": "low"},
        "stream": True,
        "stream_options": {},
    },
    {"input": "a", "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
]


def read_response(body: dict[str, Any]) -> object:
    items = read_items(body.get("input") or [], lambda prefix: prefix, lambda item_id: None)
    found = read_body(body, [], items, lambda *sealed: None)
    try:
        return read_chat(found.chat, "hermes", 500)
    except ParameterError as error:
        raise renamed_error(error, found) from None


READ_BY_THE_ROUTE = {"previous_response_id", "conversation", "background"}
CHECKED_BY_RESPONSES = {"reasoning.summary", "reasoning.generate_summary"}
"""Fields that chats ignore, and responses show."""
Read = Callable[[dict[str, Any]], object]
ROUTES: dict[str, tuple[Read, list[dict[str, Any]]]] = {
    "chat": (lambda body: read_chat(body, "hermes", 500), CHATS),
    "completions": (read_completion, COMPLETIONS),
    "responses": (read_response, RESPONSES),
}


def maps_of(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The maps of a request by their path, but for those of free names."""
    if isinstance(value, dict):
        yield path, value
        for name, each in value.items():
            if name not in FREE or (name == "json_schema" and "schema" in each):
                yield from maps_of(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from maps_of(each, f"{path}[{i}]")


def refusal_of(read: Read, body: dict[str, Any], path: str, name: str) -> ParameterError | None:
    """How the first value that is refused in a field at a path is refused; None if all are taken."""
    for value in NO_MEANING:
        changed = copy.deepcopy(body)
        dict(maps_of(changed))[path][name] = value
        try:
            read(changed)
        except ParameterError as error:
            return error
    return None


def is_named(error: ParameterError, body: dict[str, Any], path: str, name: str) -> bool:
    """Whether a refusal names the field, or the one of the request that it contradicts."""
    root = re.split(r"[.\[]", error.field)[0]
    return root == re.split(r"[.\[]", path or name)[0] or name in str(error) or root in body


@lru_cache
def published(route: str) -> frozenset[str]:
    """The fields that docs/serving.md says are ignored, by their path without indices."""
    starts = ("Ignored fields", "Ignored inside other fields", "Ignored in bodies of responses")
    outer, inner, own = (re.search(rf"(?m)^{start}: (.*(?:\n.+)*)", PAGE) for start in starts)
    assert outer is not None
    assert inner is not None
    assert own is not None
    found = set(re.findall(r"`(\w+)`", outer[1]))
    sentences = (inner[1] + (";" + own[1].partition(". ")[0] if route == "responses" else "")).split(";")
    for sentence in sentences:  # paths, or fields "of" the paths
        parts = re.findall(r"`([\w.\[\]]+)`", sentence)
        places = [each for each in parts if each.endswith("[]")]
        found |= (
            {f"{place}.{name}" for place in places for name in parts if name not in places} if places else set(parts)
        )
    return frozenset(found)


@pytest.mark.parametrize("route", ROUTES)
def test_exactly_the_published_fields_are_ignored(route: str) -> None:
    read, bodies = ROUTES[route]
    ignored, places = set[str](), set[str]()
    checked = CHECKED_BY_RESPONSES if route == "responses" else set()
    for body in bodies:
        read(copy.deepcopy(body))  # as it is, it is valid
        for path, place in maps_of(body):
            for name in INNER_NAMES if path else ROOT_NAMES:
                whole = re.sub(r"\[\d+\]", "[]", f"{path}.{name}" if path else name)
                places.add(whole)
                if name in place or whole in READ_BY_THE_ROUTE:
                    continue
                error = refusal_of(read, body, path, name)
                if error is None:
                    ignored.add(whole)
                else:
                    assert is_named(error, body, path, name), (whole, error)
    assert ignored - published(route) == set()
    assert (published(route) & places) - ignored - checked == set(), "published as ignored, but it is read"
    assert len(places) > 100
