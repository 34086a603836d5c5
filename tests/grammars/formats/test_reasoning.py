"""Marks of reasoning in chat templates, and ends of prompts as the published templates write them."""

from __future__ import annotations

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.catalogue import FORMATS, MARKS, format_named
from rtlang_grammars.formats.parsing import parse_output
from rtlang_grammars.formats.reasoning import (
    PromptEnd,
    continued_end,
    detect_reply_format,
    prompt_end,
    shows_reasoning,
)

_CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


@pytest.mark.parametrize(
    ("template", "names", "found"),
    [
        (_CHATML, (), None),
        (None, (), None),
        (_CHATML + "<think>", (), "json+think"),
        (_CHATML + "{{ m.content.split('</think>')[-1] }}", (), "json+think"),
        (_CHATML, ("<think>", "</think>"), "json+think"),
        (_CHATML + "<tool_call></tool_call>", (), "hermes"),
        (_CHATML + "<tool_call></tool_call><think>", (), "hermes"),
        (_CHATML + "<tool_call></tool_call><mm:think>", (), "hermes+minimax"),
        ("<function=a><parameter=b> <seed:think>", (), "qwen-coder+seed"),
        ("[TOOL_CALLS] [THINK]", (), "mistral+brackets"),
        ("[TOOL_CALLS] [ARGS] [THINK]", (), "mistral-args"),
        ("<|turn>model\n<|channel>thought\n", (), "json+channel"),
        ("<|inner_prefix|>", (), "json+inner"),
        ("<think>", ("<|channel|>", "<|start|>"), "json+think"),
        ("<think>", ("<tool_call>", "</tool_call>"), "hermes"),
        ("<|START_ACTION|><|START_TEXT|>", (), "command-a"),
        ("<|START_ACTION|><|START_RESPONSE|>", (), "command-r7b"),
    ],
)
def test_a_template_shows_the_marks_of_its_reasoning(template: str | None, names: tuple[str, ...], found: str) -> None:
    detected = detect_reply_format(template, names)
    assert (detected and detected.name) == found
    if found is not None:
        assert format_named(found) == detected


def test_a_format_takes_other_marks_by_name() -> None:
    found = format_named("json+channel")
    assert found.reasoning == MARKS["channel"]
    assert found.call == FORMATS["json"].call
    read = parse_output(found, '<|channel>thought\nhm\n<channel|>{"name": "f", "arguments": {}}')
    assert (read.reasoning, [each.name for each in read.calls]) == ("hm", ["f"])
    for wrong in ("json+", "json+none", "xml+think"):
        with pytest.raises(GrammarError, match="expected one of"):
            format_named(wrong)


@pytest.mark.parametrize(
    ("name", "prompt", "end"),
    [
        ("hermes", "<|im_start|>assistant\n", PromptEnd.UNDECIDED),
        ("hermes", "<|im_start|>assistant\n<think>\n", PromptEnd.OPEN),
        ("hermes", "<|im_start|>assistant\n<think>\n\n</think>\n\n", PromptEnd.CLOSED),
        ("hermes", "is <think> a tag?<|im_end|>\n<|im_start|>assistant\n", PromptEnd.UNDECIDED),
        ("glm-4.5", "/nothink<|assistant|>\n<think></think>", PromptEnd.CLOSED),
        ("deepseek-v3.1", "<｜Assistant｜></think>", PromptEnd.CLOSED),
        ("deepseek-v3.1", "<｜Assistant｜><think>", PromptEnd.OPEN),
        ("command-r7b", "<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>", PromptEnd.CLOSED),
        ("command-r7b", "<|CHATBOT_TOKEN|><|START_THINKING|>", PromptEnd.OPEN),
        ("json+channel", "<|turn>model\n<|channel>thought\n<channel|>", PromptEnd.CLOSED),
        ("json+channel", "<|turn>model\n", PromptEnd.UNDECIDED),
        ("json+steps", "<|begin_assistant|>\nHere are my reasoning steps:\n", PromptEnd.OPEN),
        ("harmony", "<|end|><|start|>assistant", PromptEnd.UNDECIDED),
        ("harmony", "<|start|>assistant<|channel|>final<|message|>", PromptEnd.CONTENT),
        ("harmony", "<|start|>assistant<|channel|>analysis<|message|>", PromptEnd.OPEN),
        ("llama-3", "assistant<|end_header_id|>\n\n", PromptEnd.CLOSED),
    ],
)
def test_the_end_of_a_prompt_decides_about_the_reasoning(name: str, prompt: str, end: PromptEnd) -> None:
    assert prompt_end(format_named(name), prompt) is end


def test_a_reply_that_was_begun_goes_on_inside_its_section() -> None:
    found = FORMATS["hermes"]
    assert continued_end(found, "<think>why") is PromptEnd.OPEN
    assert continued_end(found, "<think>why</think>So") is PromptEnd.CONTENT
    assert continued_end(found, "So") is PromptEnd.CONTENT
    assert continued_end(FORMATS["llama-3"], "<think>") is PromptEnd.CONTENT


def test_a_mark_shows_reasoning_by_either_end() -> None:
    assert shows_reasoning(FORMATS["hermes"], "split('</think>')")
    assert not shows_reasoning(FORMATS["hermes"], "<tool_call>")
    assert not shows_reasoning(FORMATS["llama-3"], "<think>")
