"""Bodies of Ollama's clients become chat bodies; what has no counterpart is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.ollama.bodies import chat_body, generate_body
from rtlang.serve.openai.chat import read_chat
from rtlang.serve.openai.completions import read_completion

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_options_and_formats_become_those_of_chats() -> None:
    options = {
        "seed": 5,
        "num_predict": 9,
        "top_k": 3,
        "top_p": 0.5,
        "min_p": 0.1,
        "typical_p": 0.9,
        "temperature": 0.2,
        "repeat_penalty": 1.2,
        "repeat_last_n": -1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "mirostat": 2,
        "mirostat_tau": 4.0,
        "mirostat_eta": 0.2,
        "stop": ["x"],
        "num_ctx": 4096,
        "num_gpu": 1,
        "num_thread": 4,
    }
    body = chat_body({"model": "m:latest", "messages": [USER], "options": options, "stream": False, "keep_alive": -1})
    assert body is not None
    assert (body["model"], body["max_tokens"], body["repetition_penalty"]) == ("m", 9, 1.2)
    read = read_chat(body, None, 100)
    (_, node) = read.asked.graph.nodes
    params = node.params  # type: ignore[union-attr]
    assert (params.seed, params.max_tokens, params.top_k, params.min_p, params.typical_p) == (5, 9, 3, 0.1, 0.9)
    assert (params.temperature, params.repetition_penalty, params.mirostat, params.stop) == (0.2, 1.2, 2, ("x",))
    for form in ("json", SCHEMA):
        shaped = chat_body({"messages": [USER], "format": form})
        assert shaped is not None
        assert read_chat(shaped, None, 100).plan.constraint is not None
    assert (chat_body({"messages": [USER], "format": ""}) or {}).get("response_format") is None
    assert (chat_body({"messages": [USER], "think": False}) or {})["enable_thinking"] is False
    assert (chat_body({"messages": [USER], "think": "high"}) or {})["reasoning_effort"] == "high"
    assert "max_tokens" not in (chat_body({"messages": [USER], "options": {"num_predict": -1}}) or {})
    quiet = chat_body({"messages": [USER], "options": {"repeat_penalty": 1.2, "repeat_last_n": 0}})
    assert "repetition_penalty" not in (quiet or {})
    assert (chat_body({"messages": [USER]}) or {})["stream"] is True


def test_results_of_tools_find_their_calls() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": {"a": 1}}}

    history = [
        USER,
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("x"), call("y"), call("x")]},
        {"role": "tool", "tool_name": "y", "content": "1"},
        {"role": "tool", "tool_name": "x", "content": "2"},
        {"role": "tool", "content": "3"},
        {"role": "assistant", "tool_calls": [call("x") | {"id": "own"}]},
        {"role": "tool", "tool_name": "x", "content": "4"},
    ]
    messages = (chat_body({"messages": history}) or {})["messages"]
    assert [each["tool_call_id"] for each in messages if each["role"] == "tool"] == [
        "call_2",
        "call_1",
        "call_3",
        "own",
    ]
    assert [each["id"] for each in messages[1]["tool_calls"]] == ["call_1", "call_2", "call_3"]
    assert messages[1]["reasoning_content"] == "hm"
    assert read_chat({"messages": messages}, None, 100).n == 1


def test_a_prompt_becomes_a_chat_and_a_raw_one_a_completion() -> None:
    chat, is_raw = generate_body({"prompt": "hi", "system": "be"})
    assert not is_raw
    assert chat is not None
    assert chat["messages"] == [{"role": "system", "content": "be"}, USER]
    body = {
        "prompt": "hi",
        "raw": True,
        "stream": False,
        "logprobs": True,
        "top_logprobs": 2,
        "options": {"num_predict": 3},
    }
    raw, is_raw = generate_body(body)
    assert is_raw
    assert raw is not None
    read = read_completion(raw)
    assert (read.prompts, read.num_logprobs) == (("hi",), 2)
    assert generate_body({"model": "m"}) == (None, False)
    assert chat_body({"model": "m", "messages": []}) is None


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"suffix": "x"}, "suffix"),
        ({"template": "x"}, "template"),
        ({"context": [1]}, "context"),
        ({"images": ["aGk="]}, "images"),
        ({"width": 5}, "width"),
        ({"speed": 1}, "speed"),
        ({"prompt": 5}, "prompt"),
        ({"stream": 1}, "stream"),
        ({"format": "yaml"}, "format"),
        ({"think": "much"}, "think"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"options": []}, "options"),
        ({"options": {"speed": 1}}, "options.speed"),
        ({"options": {"tfs_z": 0.5}}, "options.tfs_z"),
        ({"options": {"repeat_penalty": 1.1, "repeat_last_n": 64}}, "options.repeat_last_n"),
        ({"raw": True, "system": "x"}, "system"),
    ],
)
def test_a_field_that_is_wrong_is_named(more: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        generate_body({"prompt": "x"} | more)
    assert caught.value.field == named


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"role": "user", "content": "x", "images": ["aGk="]}, "messages[0].images"),
        ({"role": "robot", "content": "x"}, "messages[0].role"),
        ({"role": "user", "text": "x"}, "messages[0].text"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ("hi", "messages[0]"),
    ],
)
def test_a_message_that_is_wrong_is_named(message: Any, named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        chat_body({"messages": [message]})
    assert caught.value.field == named
