"""The served model for the HTTP routes: how it writes replies is asked of the target once, and only if needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.nodes import RoleStart, TokenIds
from rtlang.contract.principal import Principal, PrincipalLimits
from rtlang.serve.http.text_models import read_served_chat
from tests.support.scripted_target import ScriptedTarget

BODY = {"messages": [{"role": "user", "content": "Hi"}]}
CALLS = [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]


class Texts:
    """A tokenizer of characters, whose only other token is <tool_call>."""

    def __init__(self, prompt: str) -> None:
        self.prompt, self.num_asked = prompt, 0

    def encode(self, text: str, *, adds_start: bool, allow_special: bool) -> list[int]:
        assert allow_special
        assert not adds_start
        return [7] if text == "<tool_call>" else list(map(ord, text))

    def encode_parts(self, parts: Any) -> list[int]:
        self.num_asked += 1
        assert isinstance(parts[-1], RoleStart)
        return list(map(ord, self.prompt))

    def history_parts(self, messages: Any, tools: str | None, end: str) -> None:
        return None  # the calls are written in the format of the catalogue

    def decode(self, token_ids: list[int], *, shows_special: bool) -> str:
        assert shows_special
        return "".join(map(chr, token_ids))


def service_of(prompt: str, tool_format: str | None) -> Any:
    target = ScriptedTarget()
    target.tool_format = tool_format
    target.text_service = Texts(prompt)  # type: ignore[attr-defined]
    info = SimpleNamespace(models=({"model": "m", "max_model_len": 90},))
    return SimpleNamespace(target=target, server_info=info, chat_format=None)


@pytest.mark.parametrize(
    ("prompt", "tool_format", "is_reasoning"),
    [
        ("<|im_start|>assistant\n<think>\n", "hermes", True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "hermes", False),
        ("<|im_start|>assistant\n", "hermes", False),
        ("Assistant: <think>", None, False),
    ],
)
def test_reasoning_that_the_prompt_begins_is_seen_in_the_prompt(
    prompt: str, tool_format: str | None, is_reasoning: bool
) -> None:
    service = service_of(prompt, tool_format)
    for _ in range(2):
        assert read_served_chat(service, BODY).plan.is_reasoning is is_reasoning
    assert service.target.text_service.num_asked == (tool_format is not None)


def test_marks_of_calls_become_single_tokens_only() -> None:
    history = [*BODY["messages"], {"role": "assistant", "tool_calls": CALLS}]
    graph = read_served_chat(service_of("", "hermes"), {"messages": history}).asked.graph
    assert graph.nodes[0].parts[4:7] == (  # type: ignore[union-attr]
        TokenIds((7,)),
        '\n{"name": "f", "arguments": {}}\n',
        "</tool_call>",
    )


def test_max_tokens_is_what_model_and_principal_allow() -> None:
    service = service_of("", None)
    for limit, n, expected in ((None, 2, 90), (1000, 2, 90), (100, 2, 50), (1, 2, 1)):
        principal = Principal("p", limits=PrincipalLimits(max_output_tokens=limit))
        graph = read_served_chat(service, BODY | {"n": n}, principal).asked.graph
        assert graph.nodes[1].params.max_tokens == expected  # type: ignore[union-attr]
