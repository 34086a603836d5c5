"""A thought before constrained text: every format and kind of constraint, opened by the prompt or by the model, whole and in pieces."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.runtime.texts.shortest_text import allows
from rtlang.serve.openai.reasoning import read_reasoning
from rtlang.serve.openai.structured import read_structured
from rtlang.serve.openai.tools import ReplyPlan, ReplyReader, plan_reply, read_tool_request
from rtlang_grammars.formats.catalogue import FORMATS, format_named
from rtlang_grammars.formats.description import ToolFormat
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.reasoning import PromptEnd
from rtlang_grammars.formats.rendering import rendered_calls
from tests.support.long_tests import spread

SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "ok": {"type": "boolean"}},
    "required": ["why", "ok"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
ANSWER = '{"why": "it <b>fits</b>", "ok": true}'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<a>",
        "content": {"type": "json_schema", "json_schema": SCHEMA},
        "end": "</a>",
    },
}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
# By name: the fields of the body, a content that they allow, and one that they refuse; None for calls.
BODIES: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "schema": ({"response_format": FORM}, ANSWER, '{"why": 1, "ok": true}'),
    "regex": ({"structured_outputs": {"regex": r"[a-c]{3}\n(x|y) *"}}, "abc\nx ", "abd\nx"),
    "grammar": ({"guided_grammar": 'root ::= "yes" | "no, " [a-z]+'}, "no, never", "maybe"),
    "choice": ({"guided_choice": ["red", "green\n"]}, "green\n", "blue"),
    "tag": ({"response_format": TAG}, f"<a>{ANSWER}</a>", f"<a>{ANSWER}"),
    "required": ({"tools": [TOOL], "tool_choice": "required"}, None, "Hello"),
    "auto": ({"tools": [TOOL], "response_format": FORM}, ANSWER, "Hello"),
    "auto-call": ({"tools": [TOOL], "response_format": FORM}, None, "Hello"),
    "auto-regex": ({"tools": [TOOL], "regex": r"[a-c]+"}, "abba", "Hello"),
}
FORMATS_THAT_THINK = [
    *(name for name, each in FORMATS.items() if each.reasoning is not None),
    "json+think",
    "json+channel",
    "json+inner",
    "json+steps",
    "qwen-coder+seed",
    "mistral+brackets",
]


def plan_of(name: str, body: dict[str, Any], start: PromptEnd, **asks: Any) -> ReplyPlan:
    form = read_structured(body)
    return plan_reply(read_tool_request(body), form, name, start=start, reasoning=read_reasoning(asks))


def is_allowed(plan: ReplyPlan, text: str) -> bool:
    assert plan.constraint is not None
    return allows(plan.constraint, text) is None


def framed(found: ToolFormat, content: str | None, begin: str | None = None) -> str:
    """Content or a call as the model writes it."""
    if content is None:
        return "".join(text for text, _ in rendered_calls(found, [ToolCall("look", {}, "0")])).lstrip("\n")
    if found.content is None:
        return content
    return (found.content.begin if begin is None else begin) + content + found.content.end


def read_whole(plan: ReplyPlan, text: str) -> ReplyReader:
    reader = ReplyReader(plan, lambda: "id")
    reader.push(text)
    reader.finish()
    return reader


def read_in_pieces(plan: ReplyPlan, text: str, rng: random.Random) -> ReplyReader:
    reader = ReplyReader(plan, lambda: "id")
    deltas, at = [], 0
    while at < len(text):
        size = rng.randrange(1, 6)
        deltas += reader.push(text[at : at + size])
        at += size
    deltas += reader.finish()
    assert "".join(each.get("content", "") for each in deltas) == reader.content
    thought = "".join(each.get("reasoning_content", "") for each in deltas)
    assert thought == reader.reasoning
    assert thought == "".join(each.get("reasoning", "") for each in deltas)
    return reader


@pytest.mark.parametrize(("name", "kind"), spread(FORMATS_THAT_THINK, list(BODIES), usual=4))
def test_a_thought_may_stand_before_what_the_request_binds(name: str, kind: str) -> None:
    found, (body, content, wrong), rng = format_named(name), BODIES[kind], random.Random(f"{name} {kind}")
    assert found.reasoning is not None
    good, bad = framed(found, content), framed(found, wrong)
    lines = "" if found.content is not None else "\n\n"
    thought = f'Let me see: {{"ok"\n\nso.{found.reasoning.end}{found.joint}{lines}'
    texts = {
        PromptEnd.OPEN: [(thought, True)],
        PromptEnd.UNDECIDED: [(found.reasoning.begin + thought, True), ("\n" + found.reasoning.begin + thought, True)],
        PromptEnd.CLOSED: [("", True)],
    }
    texts[PromptEnd.UNDECIDED].append(("", True))
    texts[PromptEnd.OPEN].append(("", False))
    texts[PromptEnd.CLOSED].append((found.reasoning.begin + thought, False))
    for start, cases in texts.items():
        plan = plan_of(name, body, start)
        for before, is_possible in cases:
            assert is_allowed(plan, before + good) is is_possible, (start, before + good)
            assert not is_allowed(plan, before + bad), (start, before + bad)
            if not is_possible:
                continue
            for reader in (read_whole(plan, before + good), read_in_pieces(plan, before + good, rng)):
                assert reader.reasoning == (thought.partition(found.reasoning.end)[0] if before else "")
                assert reader.content == (content or "")
                assert len(reader.calls) == (content is None)


@pytest.mark.parametrize("kind", BODIES)
def test_a_constraint_on_harmony_binds_the_final_message_only(kind: str) -> None:
    body, content, _ = BODIES[kind]
    found = FORMATS["harmony"]
    plan = plan_of("harmony", body, PromptEnd.UNDECIDED)
    thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    named = "<|channel|>final <|constrain|>json<|message|>"
    if content is not None:
        assert is_allowed(plan, thought + framed(found, content, named)) is (kind in ("schema", "auto"))
        assert read_whole(plan, thought + framed(found, content, named)).content == content
        assert not is_allowed(plan, thought + content)
        begun = plan_of("harmony", body, PromptEnd.CONTENT)
        assert is_allowed(begun, content)
        assert not is_allowed(begun, framed(found, content))
        assert read_whole(begun, content).content == content
        return
    for call in (
        "<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}<|call|>",
        " to=functions.look<|channel|>commentary json<|message|>{}",
    ):
        assert is_allowed(plan, thought + call)
        assert read_whole(plan, thought + call).calls[0]["function"] == {"name": "look", "arguments": "{}"}


def test_calls_that_must_be_made_are_read_although_the_prompt_has_begun_content() -> None:
    plan = plan_of("command-r7b", BODIES["required"][0], PromptEnd.CONTENT)
    call = framed(FORMATS["command-r7b"], None)
    assert is_allowed(plan, call)
    assert len(read_whole(plan, call).calls) == 1


def test_granite_may_write_marks_around_an_answer_that_follows_a_thought() -> None:
    plan = plan_of("granite-3", {"response_format": FORM}, PromptEnd.UNDECIDED)
    for between in ("", " ", "\n"):
        text = f"<think>hm</think>{between}<response>{ANSWER}</response>"
        assert is_allowed(plan, text)
        assert read_whole(plan, text).content == ANSWER
    assert not is_allowed(plan, f"<response>{ANSWER}</response>")
    assert not is_allowed(plan, f"<think>hm</think><response>{ANSWER}")


def test_a_request_may_forbid_the_thought() -> None:
    body = {"response_format": FORM}
    for asks in (
        {"reasoning_effort": "none"},
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"enabled": False}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"thinking_budget": 0},
        {"thinking": {"type": "disabled"}},
    ):
        plan = plan_of("hermes", body, PromptEnd.UNDECIDED, **asks)
        assert is_allowed(plan, ANSWER)
        assert not is_allowed(plan, f"<think>hm</think>{ANSWER}")
        begun = plan_of("hermes", body, PromptEnd.OPEN, **asks)  # the template has begun it nevertheless
        assert begun.sampling(90) == {"thought_marks": ("", "</think>"), "max_thought_tokens": 0}


def test_a_model_without_marks_has_no_thought_unless_the_prompt_begins_one() -> None:
    form = read_structured({"response_format": FORM})
    plan = plan_reply(read_tool_request({}), form, "hermes", thinks=False)
    assert plan.constraint == form.constraint  # type: ignore[union-attr]
    assert plan.sampling(90) == {}
    begun = plan_reply(read_tool_request({}), form, "hermes", thinks=False, start=PromptEnd.OPEN)
    assert is_allowed(begun, f"hm</think>{ANSWER}")


@pytest.mark.parametrize(
    ("asks", "limit"),
    [
        ({}, None),
        ({"reasoning_effort": "low"}, 200),
        ({"reasoning": {"effort": "high"}}, 800),
        ({"reasoning": {"max_tokens": 70}}, 70),
        ({"thinking_token_budget": 30, "reasoning_effort": "low"}, 30),
        ({"thinking_budget": -1}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 55}}, 55),
    ],
)
def test_the_budget_of_a_request_limits_the_thought(asks: dict[str, Any], limit: int | None) -> None:
    plan = plan_of("hermes", {"response_format": FORM}, PromptEnd.UNDECIDED, **asks)
    assert plan.sampling(1000) == {"thought_marks": ("<think>", "</think>"), "max_thought_tokens": limit}
    free = plan_of("hermes", {}, PromptEnd.OPEN, **asks).sampling(1000)
    limited = {"thought_marks": ("", "</think>"), "max_thought_tokens": limit}
    assert free == ({"shows_special": True} | (limited if limit is not None else {}))
    assert "thought_marks" not in plan_of("llama-3", {}, PromptEnd.CLOSED, **asks).sampling(1000)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_thought_may_stand_in_the_content_or_nowhere(size: int) -> None:
    text = f"<think>\nhm\n</think>\n\n{ANSWER}"
    for asks, content in (
        ({"separate_reasoning": False}, text),
        ({"include_reasoning": False}, ANSWER),
        ({"reasoning": {"exclude": True}}, ANSWER),
    ):
        reader = ReplyReader(plan_of("hermes", {"response_format": FORM}, PromptEnd.UNDECIDED, **asks), lambda: "id")
        deltas = [delta for at in range(0, len(text), size) for delta in reader.push(text[at : at + size])]
        deltas += reader.finish()
        assert reader.message() == {"role": "assistant", "content": content, "refusal": None}
        assert "".join(each["content"] for each in deltas) == content


def test_content_is_read_as_the_constraint_binds_it() -> None:
    for start, before in ((PromptEnd.CLOSED, ""), (PromptEnd.UNDECIDED, ""), (PromptEnd.OPEN, "hm</think>")):
        body = {"regex": r"<i>\n</think>(\n)+"}
        plan = plan_of("hermes", body, start)
        text = "<i>\n</think>\n\n"
        assert is_allowed(plan, before + text)
        assert read_whole(plan, before + text).content == text
