"""Bodies of /v1/messages as bodies of the chat route, which reads each of them."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.anthropic.request import MessagesRequest, read_messages_request, renamed_error
from rtlang.serve.openai.chat import ChatRequest, read_chat

HI = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
TOOL = {"name": "look", "input_schema": SCHEMA}
FORMAT = {"type": "json_schema", "schema": SCHEMA}


def asked(**more: Any) -> MessagesRequest:
    return read_messages_request(HI | more)


def read(**more: Any) -> ChatRequest:
    try:
        return read_chat(asked(**more).chat, "hermes", 512)
    except ParameterError as error:
        raise renamed_error(error) from None


def test_fields_get_the_names_of_the_chat_route() -> None:
    made = asked(
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop_sequences=["x"],
        stream=True,
        tools=[TOOL],
        tool_choice={"type": "any"},
    )
    assert made.stops == ("x",)
    assert made.chat == {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "stream": True,
        "messages": HI["messages"],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
        "tool_choice": "required",
        "stop": ["x"],
        "max_completion_tokens": 9,
    }


def test_hints_change_nothing() -> None:
    hints = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "inference_geo": "us",
        "speed": "fast",
        "diagnostics": {"previous_message_id": None},
        "betas": ["a-2025-01-01"],
        "anthropic_version": "x",
        "mcp_servers": [],
        "container": None,
        "cache_control": None,
    }
    assert asked(**hints) == asked()
    assert asked(context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}).edits_context


def test_thought_and_effort_reach_the_plan_of_the_reply() -> None:
    for fields, budget, effort, shows in (
        ({}, None, None, True),
        ({"thinking": {"type": "enabled", "budget_tokens": 7}}, 7, None, True),
        ({"thinking": {"type": "enabled", "budget_tokens": 7, "display": "omitted"}}, 7, None, False),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, None, "low", True),
        ({"output_config": {"effort": "max"}}, None, "max", True),
        ({"thinking": {"type": "disabled"}}, 0, None, True),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, 0, None, True),
        ({"thinking": {"type": "between_tools"}}, 0, None, True),
    ):
        made = read(**fields).plan.thought.request
        assert (made.budget, made.effort) == (budget, effort), fields
        assert asked(**fields).shows_thought is shows


def test_a_schema_binds_the_output_by_either_name() -> None:
    for fields in ({"output_config": {"format": FORMAT}}, {"output_format": FORMAT}):
        plan = read(**fields).plan
        assert plan.constraint is not None
        assert plan.field == "response_format"
        assert read(**fields, tools=[TOOL]).plan.is_either


def test_the_last_message_of_the_assistant_is_continued() -> None:
    history = [*HI["messages"], {"role": "assistant", "content": [{"type": "text", "text": "The"}]}]  # type: ignore[misc]
    made = asked(messages=history)
    assert made.chat["continue_final_message"] is True
    prompt = read(messages=history).asked.graph.nodes[0]
    assert list(prompt.parts)[-1] == "The"  # type: ignore[union-attr]


def test_a_prompt_may_be_computed_or_counted_without_output() -> None:
    bound = {"tools": [TOOL], "tool_choice": {"type": "any"}, "output_config": {"format": FORMAT}}
    made = asked(max_tokens=0, **bound)
    counted = read_messages_request(
        {name: value for name, value in (HI | bound).items() if name != "max_tokens"}, counts=True
    )
    assert (made.is_prefill, counted.is_prefill) == (True, False)
    for each in (made, counted):
        assert read_chat(each.chat, "hermes", 512).plan.constraint is None
        assert each.chat["tools"] == asked(**bound).chat["tools"]


def test_the_session_and_its_retention_reach_the_run() -> None:
    control = {"type": "ephemeral", "ttl": "1h"}
    made = read_messages_request(HI | {"cache_control": control}, key="k")
    assert made.keep_s == 3600.0
    session = read_chat(made.chat, "hermes", 512).asked.session
    assert session is not None
    assert session.key == "k"


def test_errors_name_the_field_of_this_route() -> None:
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    unnamed = {"name": "a b", "input_schema": SCHEMA}
    for fields, field in (
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"n": 2}, "n"),
        ({"stream": 1}, "stream"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_k": -3}, "top_k"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"stop_sequences": [3]}, "stop_sequences[0]"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"system": 3}, "system"),
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"cache_control": {"type": "ephemeral", "ttl": 5}}, "cache_control.ttl"),
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [unnamed]}, "tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "leap"}}, "tool_choice.name"),
        ({"thinking": {"type": "on"}}, "thinking.type"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 9}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": "x"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "display": "all"}}, "thinking.display"),
        ({"output_config": {"effort": "none"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"output_config": {"format": FORMAT}, "output_format": FORMAT}, "output_format"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management.edits[0].type"),
        (
            {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": 1}]}},
            "context_management.edits[0].keep",
        ),
        (
            {
                "context_management": {
                    "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 0}}]
                }
            },
            "context_management.edits[0].keep",
        ),
        ({"messages": [*HI["messages"], {"role": "assistant", "content": [use]}]}, "messages[1]"),  # type: ignore[misc]
    ):
        with pytest.raises(ParameterError) as caught:
            read(**fields)
        assert caught.value.field == field, fields
        assert caught.value.message.startswith(field), caught.value.message


def test_errors_of_the_chat_route_are_renamed() -> None:
    for chat, here in (
        ("max_completion_tokens", "max_tokens"),
        ("reasoning_effort", "output_config.effort"),
        ("response_format.json_schema.schema", "output_config.format.schema"),
        ("response_format", "output_config.format"),
        ("tools[3].function.parameters", "tools[3].input_schema"),
        ("tools[3].function.name", "tools[3].name"),
        ("tool_choice.function.name", "tool_choice.name"),
        ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
        ("top_p", "top_p"),
    ):
        error = renamed_error(ParameterError(chat, 1, "expected 2"))
        assert (error.field, error.message.startswith(here)) == (here, True)


def test_an_edit_clears_the_thoughts_of_older_turns() -> None:
    def thinking(thought: str, *calls: str) -> dict[str, Any]:
        uses = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in calls]
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": thought, "signature": "s"}, *uses]}

    def user(*results: str) -> dict[str, Any]:
        blocks = [{"type": "tool_result", "tool_use_id": each, "content": "r"} for each in results]
        return {"role": "user", "content": blocks or "go on"}

    turns = [user(), thinking("1", "a"), user("a"), thinking("2"), user(), thinking("3"), user()]
    turns += [thinking("4", "b"), user("b"), thinking("5", "c"), user("c")]
    for keep, kept, num_cleared in ((None, "45", 2), (1, "45", 2), (2, "345", 1), (3, "12345", 0), ("all", "12345", 0)):
        edit: dict[str, Any] = {"type": "clear_thinking_20251015"}
        if keep is not None:
            edit["keep"] = {"type": "thinking_turns", "value": keep} if isinstance(keep, int) else keep
        made = asked(messages=turns, context_management={"edits": [edit]})
        thoughts = [message.get("reasoning_content", "") for message in made.chat["messages"]]
        assert ("".join(thoughts), made.num_cleared) == (kept, num_cleared)
        whole = asked(messages=turns).chat["messages"]
        assert made.unedited == (whole if num_cleared else None)
        without = [{name: value for name, value in each.items() if name != "reasoning_content"} for each in whole]
        assert [
            {k: v for k, v in each.items() if k != "reasoning_content"} for each in made.chat["messages"]
        ] == without
