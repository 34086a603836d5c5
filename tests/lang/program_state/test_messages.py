"""Messages in the form of the OpenAI API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget


def said(source: Any, **options: Any) -> list[dict[str, str]]:
    """The messages of a program that appends these."""

    @rt.program
    def body(s: Any) -> Any:
        s += rt.messages(source, **options)
        return s.messages()

    messages: list[dict[str, str]] = body.run().value
    return messages


def test_messages_are_those_that_are_appended_one_by_one(target: FakeTarget) -> None:
    class Parsed:
        """A message of a client library."""

        def model_dump(self, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return {"role": "assistant", "content": "Hm.", "reasoning_content": "thought"}

    given = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "refusal": None},
        {"role": "user", "content": 3},
        Parsed(),
        {"role": "tool", "tool_call_id": "1", "content": {"degrees": 21}},
    ]
    assert said(given) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "One two"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "3"},
        {"role": "assistant", "content": "Hm."},
        {"role": "tool", "content": '{"degrees": 21}'},
    ]
    assert said([]) == []


def test_contents_may_be_generated_values_and_generations(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> None:
        s += "Name: " + rt.gen("name")
        other = s.fork(1)[0]
        other += rt.messages(
            [{"role": "user", "content": s["name"]}, {"role": "assistant", "content": rt.gen("reply")}]
        )

    result = body.run()
    assert result.breaks == ()
    assert result.forks[0][0].messages == [
        {"role": "user", "content": result["name"]},
        {"role": "assistant", "content": result["reply"]},
    ]


def test_messages_of_another_sequence_can_be_appended(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> Any:
        s += rt.user("A?") + rt.assistant(rt.gen("a"))

        @rt.program
        def inner(t: Any) -> Any:
            t += rt.messages(s.messages())
            return t.messages()

        return inner()

    result = body.run()
    assert result.value == result.messages


CALL = {"id": "abc", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}


def test_calls_are_written_in_the_format_of_the_model(target: FakeTarget) -> None:
    given = [{"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}]
    expected = '{"name": "weather", "arguments": {"city": "Rome"}}'
    assert said(given) == [{"role": "assistant", "content": f"Let me see.\n{expected}"}]
    as_map = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Rome"}}}
    own = rt.ToolCall("weather", {"city": "Rome"}, {"city": "Rome"})
    for call in (as_map, own):
        assert said([{"role": "assistant", "tool_calls": [call]}]) == [{"role": "assistant", "content": expected}]


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as found:
        yield found


def test_a_written_call_has_the_tokens_of_a_generated_one(runtime: rt.Runtime) -> None:
    def weather(city: str) -> str:
        return city

    def body(s: Any) -> None:
        s += rt.user("Weather in Rome?", tools=[weather])
        s += rt.assistant(rt.gen("call", 40, tools=[weather]))
        s += rt.user("Thanks.")

    result = rt.program(body).run(runtime=runtime)
    call = result["call"]

    def written(s: Any) -> None:
        calls = [{"function": {"name": call.name, "arguments": json.dumps(call.arguments)}}]
        given = [
            {"role": "user", "content": "Weather in Rome?"},
            {"role": "assistant", "tool_calls": calls},
            {"role": "user", "content": "Thanks."},
        ]
        s += rt.messages(given, tools=[weather])

    assert rt.program(written).run(runtime=runtime).text() == result.text()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("text", ["messages", "a list of messages"]),
        ({"role": "user"}, ["messages", "a list of messages"]),
        ([3], ["messages[0]", "a map with role and content"]),
        (
            [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}],
            ["messages[1].role", "'robot'", "assistant"],
        ),
        ([{"role": "user"}], ["messages[0].content", "expected text"]),
        ([{"role": "user", "content": "a", "colour": "red"}], ["messages[0].colour", "'red'", "tool_calls"]),
        ([{"role": "user", "content": [{"type": "image_url"}]}], ["messages[0].content[0].type", "image_url"]),
        ([{"role": "user", "content": "a", "tool_calls": [CALL]}], ["messages[0].tool_calls", "assistant"]),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}], ["tool_calls[0].function.name"]),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}],
            ["messages[0].tool_calls[0].function.arguments", "JSON text of an object"],
        ),
    ],
)
def test_a_malformed_message_is_named(source: Any, words: list[str]) -> None:
    with pytest.raises(rt.ParameterError) as caught:
        rt.messages(source)
    for word in words:
        assert word in str(caught.value)


def test_a_content_that_is_no_text_names_its_place() -> None:
    with pytest.raises(rt.TraceError, match=r"messages\[0\]\.content is a list"):
        rt.messages([{"role": "user", "content": ["a", "b"]}])


def test_tools_belong_to_the_first_message(target: FakeTarget) -> None:
    def weather(city: str) -> str:
        return city

    @rt.program
    def body(s: Any) -> Any:
        s += rt.messages([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], tools=[weather])
        s += rt.gen("x")

    (start, *_), *_ = [node.parts for node in body.run().graph.nodes if hasattr(node, "parts")]
    assert "weather" in start.tools
    with ScriptedRuntime() as scripted:
        result = rt.program(lambda s: None).run(runtime=scripted)
        with pytest.raises(rt.ParameterError, match="tools"):
            rt.messages(result, tools=[weather])


def test_messages_cannot_begin_inside_a_message(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> None:
        with s.user():
            s += rt.messages([{"role": "user", "content": "a"}])

    with pytest.raises(rt.TraceError, match="cannot start inside"):
        body.run()
    with ScriptedRuntime() as scripted:

        @rt.program
        def chat(s: Any) -> None:
            s += rt.user("a")

        result = chat.run(runtime=scripted)

        @rt.program
        def inside(s: Any) -> None:
            with s.user():
                s += rt.messages(result)

        with pytest.raises(rt.TraceError, match="cannot start inside"):
            inside.run(runtime=scripted)
