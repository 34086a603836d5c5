"""The served model for the HTTP routes: how it writes replies is asked of the target once, and only if needed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.graph.nodes import RoleStart
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.contract.service.text_service import TextServiceInfo
from rtlang.serve.http.text_models import read_served_chat
from rtlang_grammars.formats.reasoning import PromptEnd
from tests.support.programs.scripted_target import ScriptedTarget

BODY = {"messages": [{"role": "user", "content": "Hi"}]}
CALLS = [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]


class Texts:
    """A tokenizer of characters, whose only other token is <tool_call>."""

    info = TextServiceInfo(0x110000, chat_template="<think>{{ messages }}</think>")

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

    def chat_prompt(
        self, messages: Any, tools: Any, end: Any, template_options: Any = None, max_tokens: Any = None
    ) -> list[int]:
        self.options = template_options
        return list(map(ord, self.prompt))

    def decode(self, token_ids: list[int], *, shows_special: bool = False) -> str:
        return "".join(map(chr, token_ids))


def service_of(prompt: str, tool_format: str | None) -> Any:
    target = ScriptedTarget()
    target.tool_format = tool_format
    target.text_service = Texts(prompt)  # type: ignore[attr-defined]
    info = SimpleNamespace(models=({"model": "m", "max_model_len": 90},))
    return SimpleNamespace(target=target, server_info=info, chat_format=None)


@pytest.mark.parametrize(
    ("prompt", "tool_format", "start"),
    [
        ("<|im_start|>assistant\n<think>\n", "hermes", PromptEnd.OPEN),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "hermes", PromptEnd.CLOSED),
        ("<|im_start|>assistant\n", "hermes", PromptEnd.UNDECIDED),
        ("<｜Assistant｜></think>", "deepseek-v3.1", PromptEnd.CLOSED),
        ("<|turn>model\n<|channel>thought\n", "json+channel", PromptEnd.OPEN),
        ("<|start|>assistant<|channel|>final<|message|>", "harmony", PromptEnd.CONTENT),
        ("Assistant: <think>", None, PromptEnd.UNDECIDED),
    ],
)
def test_reasoning_that_the_prompt_begins_is_seen_in_the_prompt(
    prompt: str, tool_format: str | None, start: PromptEnd
) -> None:
    service = service_of(prompt, tool_format)
    for _ in range(2):
        assert read_served_chat(service, BODY).plan.start is start
    assert service.target.text_service.num_asked == (tool_format is not None)


def test_the_end_of_a_prompt_counts_for_its_own_request() -> None:
    service = service_of("<|im_start|>assistant\n", "hermes")
    seen = []
    for end in ("<think>\n", "</think>\n\n", "\n"):
        service.target.text_service.prompt = "<|im_start|>assistant\n" + end
        seen.append(read_served_chat(service, BODY).plan.start)
    assert seen == [PromptEnd.OPEN, PromptEnd.CLOSED, PromptEnd.UNDECIDED]


def test_what_a_request_says_about_the_thought_reaches_the_template() -> None:
    for body, options in (
        ({"reasoning_effort": "high"}, {"controls": {"effort": "high", "thinks": True}}),
        ({"enable_thinking": True}, {"controls": {"thinks": True}}),
        ({"chat_template_kwargs": {"x": 1}}, {"chat_template_kwargs": {"x": 1}}),
    ):
        service = service_of("<|im_start|>assistant\n", "hermes")
        read_served_chat(service, BODY | body)
        assert json.loads(service.target.text_service.options) == options
    read_served_chat(service, BODY | {"reasoning_effort": "none"})
    assert json.loads(service.target.text_service.options)["controls"]["thinks"] is False


def test_a_reply_that_the_client_has_begun_goes_on_where_it_ends() -> None:
    for content, start in (("So: <think>why", PromptEnd.OPEN), ("<think>why</think>So", PromptEnd.CONTENT)):
        body = {"messages": [*BODY["messages"], {"role": "assistant", "content": content}]}
        read = read_served_chat(service_of("", "hermes"), body | {"continue_final_message": True})
        assert read.plan.start is start


def test_free_text_shows_special_tokens_only_where_marks_are_among_them() -> None:
    service = service_of("<|im_start|>assistant\n", "hermes")
    assert not read_served_chat(service, BODY).asked.graph.nodes[1].params.shows_special  # type: ignore[union-attr]
    service = service_of("<|im_start|>assistant\n", "hermes")
    service.target.text_service.decode = lambda ids, *, shows_special=False: "prompt" * shows_special
    assert read_served_chat(service, BODY).asked.graph.nodes[1].params.shows_special  # type: ignore[union-attr]


def test_a_model_that_knows_no_marks_does_not_think() -> None:
    service = service_of("<|im_start|>assistant\n", "hermes")
    form = {"response_format": {"type": "json_object"}}
    assert read_served_chat(service, BODY | form).plan.thought.marks == ("<think>", "</think>")
    service = service_of("<|im_start|>assistant\n", "hermes")
    service.target.text_service.info = TextServiceInfo(
        0x110000, chat_template="{{ messages }}"
    )  # and no tokens of them
    assert read_served_chat(service, BODY | form).plan.thought.marks == ()


def test_max_tokens_is_what_model_and_principal_allow() -> None:
    service = service_of("", None)
    for limit, n, expected in ((None, 2, 90), (1000, 2, 90), (100, 2, 50), (1, 2, 1)):
        principal = Principal("p", limits=PrincipalLimits(max_output_tokens=limit))
        graph = read_served_chat(service, BODY | {"n": n}, principal).asked.graph
        assert graph.nodes[1].params.max_tokens == expected  # type: ignore[union-attr]
