"""Mutated requests: each becomes a valid graph or an error that names a field, never another exception.

RTLANG_NUM_MUTATIONS sets how many are tried (default 1,500; 100,000 take a minute).
"""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.openai.completions import read_completion

NUM_MUTATIONS = int(os.environ.get("RTLANG_NUM_MUTATIONS", "1500"))
FUNCTION = {"type": "function", "function": {"name": "f"}}
CITY = {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}, "required": ["a"]}
USER = {"role": "user", "content": [{"type": "text", "text": "a"}]}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CHATS: list[dict[str, Any]] = [
    {
        "messages": [
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": CITY, "strict": True}}],
        "tool_choice": FUNCTION,
        "n": 2,
        "logit_bias": {"3": 1},
        "logprobs": True,
        "top_logprobs": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    {
        "messages": [USER],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY, "strict": True}},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": CITY}}}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION]}},
    },
    {"messages": [USER], "structured_outputs": {"choice": ["a"]}, "stop": ["x"], "seed": 1},
]
COMPLETIONS: list[dict[str, Any]] = [
    {"prompt": ["a", [1, 2]], "echo": True, "logprobs": 1, "max_tokens": 0, "logit_bias": {"1": 1}, "regex": "a"},
    {"prompt": [1, 2], "structured_outputs": {"json": CITY}, "n": 2, "stop_token_ids": [1]},
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 1 << 63, 1 << 70, 0.5, 1e300, "", "a", "none", "auto", "json_object", "\x00"),
    *([], [1], ["a"], [[]], [{}], [None], {}, {"type": "function"}, {"name": "f"}, {"a": {"b": []}}, {"$ref": "#"}),
    *({"type": ["x"]}, {"required": 3}, {"properties": []}, {"allOf": 3}, {"properties": {"arguments": 3}}),
]
FORMATS = (None, "hermes", "harmony", "llama-3", "llama-4", "mistral", "qwen-coder")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def mutate(rng: random.Random, body: dict[str, Any]) -> None:
    found = list(places(body))
    if not found:
        return
    *path, last = rng.choice(found)
    at: Any = body
    for key in path:
        at = at[key]
    at[last] = copy.deepcopy(rng.choice(VALUES))


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_request_is_read_or_refused_by_name(seed: int) -> None:
    rng = random.Random(seed)
    num_read, refused = 0, list[ParameterError | GraphError]()
    for _ in range(NUM_MUTATIONS // 3):
        is_chat = rng.random() < 0.7
        body = copy.deepcopy(rng.choice(CHATS if is_chat else COMPLETIONS))
        for _ in range(rng.randrange(1, 3)):
            mutate(rng, body)
        try:
            request = read_chat(body, rng.choice(FORMATS), 500) if is_chat else read_completion(body)
            request.asked.graph.validate()
            num_read += 1
        except (ParameterError, GraphError) as error:
            refused.append(error)
    assert all(error.field == "parts" if isinstance(error, GraphError) else error.field for error in refused)
    assert min(num_read, len(refused)) > NUM_MUTATIONS // 60
