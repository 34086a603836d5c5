"""The Responses API of the official Python client: background, conversations, custom tools, compaction, opaque thoughts, counts."""

from __future__ import annotations

import re
import time

import openai
from address import KEY, MODEL, QUESTION, URL
from shared import SCHEMA, Person, check_person

client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)
PAIR = 'start: NAME ": " AGE\nNAME: /[A-Z][a-z]{1,8}/\nAGE: /[1-9][0-9]?/\n'
NESTED = 'start: "(" start ")" | "[" start "]" | "7"'


def background() -> None:
    made = client.responses.create(model=MODEL, input=QUESTION, background=True, max_output_tokens=8)
    assert made.status == "queued"
    for _ in range(3000):
        found = client.responses.retrieve(made.id)
        if found.status not in ("queued", "in_progress"):
            break
        time.sleep(0.02)
    assert found.status == "incomplete"
    assert found.output_text
    with client.responses.create(
        model=MODEL, input=QUESTION, background=True, stream=True, max_output_tokens=8, temperature=0
    ) as stream:
        events = list(stream)
    assert [event.type for event in events[:3]] == ["response.created", "response.queued", "response.in_progress"]
    with client.responses.retrieve(events[0].response.id, stream=True, starting_after=4) as stream:
        again = list(stream)
    assert [event.sequence_number for event in again] == [event.sequence_number for event in events[5:]]
    assert again[-1].response.output_text == events[-1].response.output_text
    long = client.responses.create(model=MODEL, input=QUESTION, background=True, max_output_tokens=400)
    assert client.responses.cancel(long.id).status in ("cancelled", "incomplete", "completed")
    client.responses.delete(long.id)
    try:
        client.responses.retrieve(long.id)
    except openai.NotFoundError:
        pass
    else:
        raise AssertionError("a deleted response was found")


def conversations() -> None:
    talk = client.conversations.create(items=[{"role": "user", "content": "I am Ann."}], metadata={"topic": "names"})
    first = client.responses.create(model=MODEL, input="Who am I?", conversation=talk.id, max_output_tokens=4)
    second = client.responses.create(model=MODEL, input="And now?", conversation={"id": talk.id}, max_output_tokens=4)
    assert second.usage.input_tokens > first.usage.input_tokens
    items = list(client.conversations.items.list(talk.id, order="asc", limit=2))
    assert [item.role for item in items] == ["user", "user", "assistant", "user", "assistant"]
    assert items[2].id == first.output[0].id
    listed = client.responses.input_items.list(second.id, order="asc")
    assert [item.id for item in listed] == [item.id for item in items[:4]]
    named = client.responses.create(
        model=MODEL, input=[{"type": "item_reference", "id": items[0].id}], max_output_tokens=4
    )
    assert named.usage.input_tokens < first.usage.input_tokens
    client.conversations.update(talk.id, metadata={"topic": "none"})
    assert client.conversations.retrieve(talk.id).metadata == {"topic": "none"}
    client.conversations.delete(talk.id)


def tools() -> None:
    for form, pattern in (
        ({"type": "grammar", "syntax": "lark", "definition": PAIR}, "[A-Z][a-z]{1,8}: [1-9][0-9]?"),
        ({"type": "grammar", "syntax": "lark", "definition": NESTED}, r"(\(|\[)*7(\)|\])*"),
        ({"type": "grammar", "syntax": "regex", "definition": 'a{2,4}|b\\\\\\"c'}, 'a{2,4}|b\\\\"c'),
    ):
        tool = {"type": "custom", "name": "note", "description": "Takes a note.", "format": form}
        options = {
            "model": MODEL,
            "input": QUESTION,
            "tools": [tool],
            "tool_choice": {"type": "custom", "name": "note"},
        }
        with client.responses.stream(**options) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_response()
        call = final.output[-1]
        assert call.type == "custom_tool_call"
        assert re.fullmatch(pattern, call.input), call.input
        assert "response.custom_tool_call_input.done" in kinds
        result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "noted"}
        client.responses.create(
            model=MODEL, input=[result], tools=[tool], previous_response_id=final.id, max_output_tokens=4
        )
    function = {"type": "function", "name": "greet", "parameters": SCHEMA, "strict": True}
    group = {"type": "namespace", "name": "door", "description": "Tools of the door.", "tools": [function]}
    made = client.responses.create(model=MODEL, input=QUESTION, tools=[group], tool_choice="required")
    assert (made.output[-1].namespace, made.output[-1].name) == ("door", "greet")
    made = client.responses.create(
        model=MODEL, input=QUESTION, tools=[{"type": "shell", "environment": {"type": "local"}}], tool_choice="required"
    )
    assert made.output[-1].type == "shell_call"
    assert isinstance(made.output[-1].action.commands, list)


def context() -> None:
    counted = client.responses.input_tokens.count(model=MODEL, input=QUESTION).input_tokens
    made = client.responses.create(model=MODEL, input=QUESTION, max_output_tokens=1)
    assert made.usage.input_tokens == counted
    compacted = client.responses.compact(model=MODEL, input=[{"role": "user", "content": QUESTION}])
    (item,) = compacted.output
    assert item.type == "compaction"
    history = [item.model_dump(exclude_none=True), {"role": "user", "content": "Go on."}]
    client.responses.create(model=MODEL, input=history, max_output_tokens=4)
    words = [{"role": "user", "content": "word " * 60} for _ in range(100)]
    made = client.responses.create(model=MODEL, input=words, truncation="auto", max_output_tokens=4)
    assert made.truncation == "auto"
    code = None
    try:
        client.responses.create(model=MODEL, input=words, max_output_tokens=4)
    except openai.BadRequestError as error:
        code = error.code
    assert code == "context_length_exceeded"
    hints = {"client_metadata": {"turn": "1"}, "prompt_cache_retention": "24h"}
    person = client.responses.parse(
        model=MODEL,
        input=QUESTION,
        text_format=Person,
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
        text={"verbosity": "low"},
        reasoning={"summary": "auto"},
        extra_body=hints,
    )
    check_person(person.output_parsed)


background()
conversations()
tools()
context()
