"""Thought before constrained text, through a server, its engine and the official client: a tiny random model under several chat templates.

The model never writes a mark by itself, so budgets end its thoughts; where the model opens a thought, a bias makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openai import OpenAI

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint
from tests.support.servers.openai_models import joined_chunks

NAMES = ("<think>", "</think>", "<|channel|>", "<|message|>", "<|start|>", "<|end|>")
IDS = {name: VOCAB_SIZE + i for i, name in enumerate(NAMES)}
_MESSAGES = "{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}</s>{% endfor %}"
TEMPLATES = {
    "opened": _MESSAGES + "{% if add_generation_prompt %}<s>assistant\n<think>\n{% endif %}",
    "undecided": _MESSAGES
    + "{% if add_generation_prompt %}<s>assistant\n{% if enable_thinking is false %}<think></think>{% endif %}{% endif %}",
    "closed": _MESSAGES + "{% if add_generation_prompt %}<s>assistant\n<think>\n\n</think>\n\n{% endif %}",
    "harmony": "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}{# <|channel|>analysis #}",
}
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 22, 333]}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
REGEX = r"(a|b)c{3,5}(\n[xyz])?"
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "[0-9]{3}"}, "end": "</a>"},
}
BODIES: dict[str, dict[str, Any]] = {
    "schema": {"response_format": FORM},
    "regex": {"extra_body": {"regex": REGEX}},
    "tag": {"response_format": TAG},
    "required": {"tools": [TOOL], "tool_choice": "required"},
    "auto": {"tools": [TOOL], "response_format": FORM},
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_checkpoint(
        tmp_path_factory.mktemp("thinks"), "qwen3", vocab_size=VOCAB_SIZE + len(NAMES), max_position_embeddings=1024
    )
    described = json.loads((path / "tokenizer.json").read_text())
    for name, token_id in IDS.items():
        described["added_tokens"].append(described["added_tokens"][0] | {"id": token_id, "content": name})
        described["model"]["vocab"][name] = token_id
    (path / "tokenizer.json").write_text(json.dumps(described))
    return path


@pytest.fixture(scope="module", params=TEMPLATES)
def served(request: pytest.FixtureRequest, checkpoint: Path) -> Iterator[tuple[str, OpenAI]]:
    (checkpoint / "chat_template.jinja").write_text(TEMPLATES[request.param])
    with rt.Runtime(str(checkpoint)) as runtime:
        info = TokenizerInfo("m", 1024, 512, runtime.tool_format)
        with (
            running_server(runtime, ServeConfig(port=0), info) as url,
            OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="-", max_retries=0) as client,
        ):
            yield request.param, client


def begin_of(name: str) -> dict[str, float]:
    """A bias under which the model opens a thought where it may."""
    return {str(IDS["<|channel|>" if name == "harmony" else "<think>"]): 100.0}


def is_valid(kind: str, message: Any) -> bool:
    if message.tool_calls:
        assert kind in ("required", "auto")
        jsonschema.validate(json.loads(message.tool_calls[0].function.arguments), SCHEMA)
        return not message.content
    match kind:
        case "schema" | "auto":
            jsonschema.validate(json.loads(message.content), SCHEMA)
            return True
        case "regex":
            return re.fullmatch(REGEX, message.content) is not None
        case "tag":
            return re.fullmatch("<a>[0-9]{3}</a>", message.content) is not None
    return False


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("kind", BODIES)
def test_a_thought_ends_within_its_budget_and_the_text_is_complete(
    served: tuple[str, OpenAI], kind: str, opens: bool
) -> None:
    name, client = served
    body = dict(BODIES[kind])
    extra = body.pop("extra_body", {}) | {"thinking_budget": 12}
    bias = begin_of(name) if opens else {}
    options: dict[str, Any] = {"max_tokens": 300, "seed": 5, "logprobs": True, "logit_bias": bias, "extra_body": extra}
    ask: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Why <think>?"}], **body, **options}
    found = client.chat.completions.create(**ask)
    (choice,) = found.choices
    assert is_valid(kind, choice.message), choice.message
    thought = getattr(choice.message, "reasoning_content", "")
    assert found.usage is not None
    assert found.usage.completion_tokens_details is not None
    num_thought = found.usage.completion_tokens_details.reasoning_tokens
    if name == "closed" or (name == "undecided" and not opens):
        assert (thought, num_thought) == ("", 0)
    elif name == "harmony":  # the random model names either channel
        assert num_thought <= 12
        assert bool(thought) is (num_thought > 0)
    else:
        assert thought
        assert 9 <= num_thought <= 12  # a character of four bytes is not begun that would not end in time
    assert choice.logprobs is not None
    content = [each.token for each in choice.logprobs.content or ()]
    before = getattr(choice.logprobs, "reasoning", [])
    assert len(content) + len(before) == found.usage.completion_tokens
    if choice.message.content:
        assert "".join(content) == choice.message.content
    stream = client.chat.completions.create(**ask, stream=True)
    (joined,) = joined_chunks(chunk.model_dump(exclude_unset=True) for chunk in stream).values()
    assert joined["content"] == (choice.message.content or "")
    assert joined["reasoning"] == thought
    assert [each.token for each in joined["tokens"]] == content
    assert len(joined["thought"]) == len(before)
    assert [(name, arguments) for name, arguments, _ in joined["calls"]] == [
        (call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()
    ]


def test_a_thought_without_a_budget_leaves_room_for_the_text(served: tuple[str, OpenAI]) -> None:
    name, client = served
    found = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "a"}],
        response_format=FORM,  # type: ignore[arg-type]
        max_tokens=120,
        seed=1,
        logit_bias=begin_of(name),  # type: ignore[arg-type]
    )
    jsonschema.validate(json.loads(found.choices[0].message.content or ""), SCHEMA)
    details = found.usage.completion_tokens_details  # type: ignore[union-attr]
    assert details.reasoning_tokens <= 60  # type: ignore[union-attr]
    assert (details.reasoning_tokens >= 57) is (name in ("opened", "undecided"))  # type: ignore[union-attr]


def test_free_text_goes_on_behind_a_limited_thought(served: tuple[str, OpenAI]) -> None:
    name, client = served
    found = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "a"}],
        max_tokens=60,
        seed=2,
        logit_bias=begin_of(name) if name == "undecided" else {},  # type: ignore[arg-type]
        extra_body={"reasoning": {"max_tokens": 7}},
    )
    (choice,) = found.choices
    details = found.usage.completion_tokens_details  # type: ignore[union-attr]
    if name in ("opened", "undecided"):
        assert 4 <= details.reasoning_tokens <= 7  # type: ignore[union-attr]
        assert choice.message.reasoning_content  # type: ignore[attr-defined]
    assert choice.message.content


@pytest.mark.parametrize("opens", [False, True])
def test_a_request_that_forbids_the_thought_gets_the_text_at_once(served: tuple[str, OpenAI], opens: bool) -> None:
    name, client = served
    found = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "a"}],
        response_format=FORM,  # type: ignore[arg-type]
        reasoning_effort="none",  # type: ignore[arg-type]
        max_tokens=80,
        seed=3,
        logit_bias=begin_of(name) if opens else {},  # type: ignore[arg-type]
    )
    message = found.choices[0].message
    jsonschema.validate(json.loads(message.content or ""), SCHEMA)
    assert not hasattr(message, "reasoning_content")


def test_a_response_has_the_thought_as_an_item(served: tuple[str, OpenAI]) -> None:
    name, client = served
    ask: dict[str, Any] = {
        "model": "m",
        "input": "a",
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        "max_output_tokens": 90,
        "top_logprobs": 1,
        "include": ["message.output_text.logprobs"],
        "extra_body": {"seed": 3, "reasoning": {"effort": "low", "summary": "auto"}},
    }
    found = client.responses.create(**ask)
    jsonschema.validate(json.loads(found.output_text), SCHEMA)
    part = found.output[-1].content[0]  # type: ignore[union-attr, index]
    assert "".join(each.token for each in part.logprobs) == found.output_text  # type: ignore[union-attr]
    if name in ("undecided", "closed"):
        assert [item.type for item in found.output] == ["message"]
    if name != "opened":  # the others do not open a thought, or do so at random
        return
    assert [item.type for item in found.output] == ["reasoning", "message"]
    assert found.usage is not None
    assert 15 <= found.usage.output_tokens_details.reasoning_tokens <= 18  # a fifth of 90
    assert found.reasoning is not None
    assert found.reasoning.effort == "low"
    events = list(client.responses.create(**ask, stream=True))
    last = events[-1].response  # type: ignore[union-attr]
    assert last.output_text == found.output_text
    assert last.output[0].content == found.output[0].content  # type: ignore[union-attr]
    deltas = [each.delta for each in events if each.type == "response.reasoning_text.delta"]
    assert "".join(deltas) == found.output[0].content[0].text  # type: ignore[union-attr, index]
