"""The official Python client, versions 2 and 3: chat, completions, responses, streams, tools, errors."""

from __future__ import annotations

import asyncio
import json

import openai
from address import ALIAS, KEY, MESSAGES, MODEL, QUESTION, URL
from shared import SCHEMA, TOOL, Person, check_person

client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)


def chat() -> None:
    assert {MODEL, ALIAS} == {model.id for model in client.models.list()}
    assert client.models.retrieve(MODEL).id == MODEL
    options = {"model": MODEL, "messages": MESSAGES, "temperature": 0, "max_tokens": 12}
    whole = client.chat.completions.create(**options)
    text = whole.choices[0].message.content
    assert text
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    chunks = list(client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    seeded = {"model": MODEL, "messages": MESSAGES, "max_completion_tokens": 8, "seed": 5, "n": 3}
    texts = [[each.message.content for each in client.chat.completions.create(**seeded).choices] for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3
    scored = client.chat.completions.create(**options, logprobs=True, top_logprobs=2)
    content = scored.choices[0].logprobs.content
    assert "".join(entry.token for entry in content) == text
    assert all(len(entry.top_logprobs) == 2 for entry in content)
    biased = client.chat.completions.create(**options | {"stop": [text[3:5]]})
    assert biased.choices[0].message.content == text[: text.index(text[3:5])]
    assert biased.choices[0].finish_reason == "stop"


def structured() -> None:
    parsed = client.chat.completions.parse(model=MODEL, messages=MESSAGES, response_format=Person)
    check_person(parsed.choices[0].message.parsed)
    with client.chat.completions.stream(model=MODEL, messages=MESSAGES, response_format=Person) as stream:
        assert any(event.type == "content.delta" for event in stream)
        check_person(stream.get_final_completion().choices[0].message.parsed)
    for options, allowed in (
        ({"structured_outputs": {"choice": ["yes", "no"]}}, ("yes", "no")),
        ({"regex": "(red|blue) car"}, ("red car", "blue car")),
        ({"structured_outputs": {"grammar": 'start: "a" | "b"'}}, ("a", "b")),
    ):
        made = client.chat.completions.create(model=MODEL, messages=MESSAGES, extra_body=options)
        assert made.choices[0].message.content in allowed


def tools() -> None:
    other = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    for choice in ("required", {"type": "function", "function": {"name": "greet"}}):
        made = client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[TOOL, other], tool_choice=choice)
        (first, *_) = made.choices[0].message.tool_calls
        assert made.choices[0].finish_reason == "tool_calls"
        assert first.function.name in ("greet", "now")
        if first.function.name == "greet":
            check_person(json.loads(first.function.arguments))
    tool = openai.pydantic_function_tool(Person)
    named = {"type": "function", "function": {"name": "Person"}}
    with client.chat.completions.stream(model=MODEL, messages=MESSAGES, tools=[tool], tool_choice=named) as stream:
        kinds = {event.type for event in stream}
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert "tool_calls.function.arguments.delta" in kinds
    check_person(call.function.parsed_arguments)
    history = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump(include={"id", "type", "function"})]},
        {"role": "tool", "tool_call_id": call.id, "content": "hello"},
    ]
    history[1]["tool_calls"][0]["function"].pop("parsed_arguments", None)
    after = client.chat.completions.create(
        model=MODEL, messages=history, tools=[tool], tool_choice="none", max_tokens=8
    )
    assert not after.choices[0].message.tool_calls


def completions() -> None:
    made = client.completions.create(model=MODEL, prompt=["The sun is", "A dog"], max_tokens=5, temperature=0)
    assert [choice.index for choice in made.choices] == [0, 1]
    echoed = client.completions.create(model=MODEL, prompt="The sun is", max_tokens=1, echo=True, logprobs=1)
    assert echoed.choices[0].text.startswith("The sun is")
    assert echoed.choices[0].logprobs.token_logprobs[0] is None
    streamed = client.completions.create(model=MODEL, prompt="The sun is", max_tokens=5, temperature=0, stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed if chunk.choices) == made.choices[0].text


def responses() -> None:
    first = client.responses.create(model=MODEL, input=QUESTION, temperature=0, max_output_tokens=8)
    assert first.output_text
    assert first.incomplete_details.reason == "max_output_tokens"
    second = client.responses.create(model=MODEL, input="And then?", previous_response_id=first.id, max_output_tokens=4)
    assert second.usage.input_tokens > first.usage.input_tokens
    assert client.responses.retrieve(first.id).output_text == first.output_text
    check_person(client.responses.parse(model=MODEL, input=QUESTION, text_format=Person).output_parsed)
    with client.responses.stream(model=MODEL, input=QUESTION, text_format=Person) as stream:
        numbers = [event.sequence_number for event in stream]
        check_person(stream.get_final_response().output_parsed)
    assert numbers == sorted(set(numbers))
    function = {"type": "function", "name": "greet", "parameters": SCHEMA, "strict": True}
    made = client.responses.create(model=MODEL, input=QUESTION, tools=[function], tool_choice="required")
    call = made.output[0]
    check_person(json.loads(call.arguments))
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "hello"}
    client.responses.create(model=MODEL, input=[result], previous_response_id=made.id, max_output_tokens=4)


def errors() -> None:
    def refused(
        kind: type[openai.APIStatusError], client: openai.OpenAI = client, **options: object
    ) -> openai.APIStatusError:
        try:
            client.chat.completions.create(**{"model": MODEL, "messages": MESSAGES} | options)
        except kind as error:
            return error
        raise AssertionError(f"{options} was accepted")

    assert refused(openai.BadRequestError, extra_body={"speed": 2}).param == "speed"
    assert refused(openai.BadRequestError, top_p=7).param == "top_p"
    assert refused(openai.NotFoundError, model="other").code == "model_not_found"
    long = [{"role": "user", "content": "word " * 5000}]
    assert refused(openai.BadRequestError, messages=long).code == "context_length_exceeded"
    stranger = openai.OpenAI(base_url=URL, api_key="wrong", max_retries=0)
    assert refused(openai.AuthenticationError, stranger).code == "invalid_api_key"


async def many() -> None:
    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY) as client:
        made = await asyncio.gather(
            *(client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8) for _ in range(16))
        )
        assert all(each.choices[0].message.content is not None for each in made)
        stream = await client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=500, stream=True)
        async for _ in stream:
            break
        await stream.close()


chat()
structured()
tools()
completions()
responses()
errors()
asyncio.run(many())
