"""The official Python client of the Messages API: messages, streams, tools, structured output, counts, models, errors."""

from __future__ import annotations

import asyncio
from typing import Literal

import anthropic
from address import ALIAS, KEY, MODEL, QUESTION, SERVER
from anthropic import beta_tool
from anthropic.types import Message, MessageTokensCount
from pydantic import BaseModel
from shared import SCHEMA, check_person

client = anthropic.Anthropic(base_url=SERVER, api_key=KEY, max_retries=0)
MESSAGES = [{"role": "user", "content": QUESTION}]
OPTIONS = {"model": MODEL, "messages": MESSAGES, "max_tokens": 6}
EXACT = {"extra_body": {"temperature": 0}}
TOOL = {"name": "greet", "description": "Greets a person.", "input_schema": SCHEMA}


class Mood(BaseModel):
    """A mood. The client sends no limits of lengths and numbers, so a small model gets choices."""

    mood: Literal["calm", "loud"]
    is_sure: bool


def checked(message: Message) -> Message:
    """The message, after a strict check of all fields that its type has."""
    Message.model_validate(message.model_dump(), strict=False)
    assert message.id.startswith("msg_")
    assert message.usage.output_tokens_details.thinking_tokens <= message.usage.output_tokens
    return message


def num_prompt(message: Message) -> int:
    """The tokens of the prompt, computed and cached ones."""
    return message.usage.input_tokens + message.usage.cache_read_input_tokens


def messages() -> None:
    whole = checked(client.messages.create(**OPTIONS, **EXACT))
    assert (whole.model, whole.role, whole.stop_reason) == (MODEL, "assistant", "max_tokens")
    text = whole.content[0].text
    assert text
    assert whole.usage.output_tokens == OPTIONS["max_tokens"]
    stopped = checked(client.messages.create(**OPTIONS, **EXACT, stop_sequences=["zzz", text[3:5]]))
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", text[3:5])
    assert stopped.content[0].text == text[: text.index(text[3:5])]
    begun = [*MESSAGES, {"role": "assistant", "content": text[:5]}]
    continued = client.messages.create(**OPTIONS | {"messages": begun}, **EXACT)
    assert (text[:5] + continued.content[0].text).startswith(text)
    blocks = [
        {"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Ann, 40"}},
    ]
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    history = [{"role": "user", "content": blocks}, whole.to_param(), {"role": "user", "content": "And then?"}]
    more = checked(client.messages.create(**OPTIONS | {"messages": history}, system=system, metadata={"user_id": "u"}))
    assert num_prompt(more) > num_prompt(whole)
    again = client.messages.create(**OPTIONS | {"messages": history}, system=system)
    assert again.usage.cache_read_input_tokens > 0
    warm = client.messages.create(**OPTIONS | {"max_tokens": 0})
    assert (warm.content, warm.usage.output_tokens) == ([], 0)


def counts() -> None:
    for more in (
        {},
        {"tools": [TOOL]},
        {"system": "Be brief.", "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ):
        counted = client.messages.count_tokens(model=MODEL, messages=MESSAGES, **more)
        assert isinstance(counted, MessageTokensCount)
        assert counted.input_tokens == num_prompt(client.messages.create(**OPTIONS | {"max_tokens": 40}, **more))
    beta = client.beta.messages.count_tokens(model=MODEL, messages=MESSAGES, betas=["token-counting-2024-11-01"])
    assert beta.input_tokens == client.messages.count_tokens(model=MODEL, messages=MESSAGES).input_tokens


def streams() -> None:
    whole = client.messages.create(**OPTIONS, **EXACT)
    with client.messages.stream(**OPTIONS, **EXACT) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
        assert stream.request_id
    assert final.content[0].text == whole.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    assert [kinds[0], kinds[1], kinds[-2], kinds[-1]] == [
        "message_start",
        "content_block_start",
        "message_delta",
        "message_stop",
    ]
    with client.messages.stream(**OPTIONS, **EXACT) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text
    raw = client.beta.messages.create(**OPTIONS, **EXACT, stream=True, betas=["interleaved-thinking-2025-05-14"])
    parts = [event.delta.text for event in raw if event.type == "content_block_delta"]
    assert "".join(parts) == whole.content[0].text


def structured() -> None:
    options = OPTIONS | {"max_tokens": 200}
    assert isinstance(client.messages.parse(**options, output_format=Mood).parsed_output, Mood)
    with client.messages.stream(**options, output_format=Mood) as stream:
        assert isinstance(stream.get_final_message().parsed_output, Mood)
    form = {"type": "json_schema", "schema": {**Mood.model_json_schema(), "additionalProperties": False}}
    made = client.messages.create(**options, output_config={"format": form, "effort": "low"})
    Mood.model_validate_json(made.content[-1].text)


def tools() -> None:
    options = OPTIONS | {"max_tokens": 200, "tools": [TOOL]}
    made = checked(client.messages.create(**options, tool_choice={"type": "any", "disable_parallel_tool_use": True}))
    (use,) = [block for block in made.content if block.type == "tool_use"]
    check_person(use.input)
    assert made.stop_reason == "tool_use"
    with client.messages.stream(**options, tool_choice={"type": "tool", "name": "greet"}) as stream:
        kinds = {event.type for event in stream}
        use = stream.get_final_message().content[-1]
    assert "input_json" in kinds
    check_person(use.input)
    result = {
        "type": "tool_result",
        "tool_use_id": use.id,
        "content": [{"type": "text", "text": "hello"}],
        "is_error": False,
    }
    history = [*MESSAGES, made.to_param(), {"role": "user", "content": [result | {"tool_use_id": made.content[-1].id}]}]
    after = checked(
        client.messages.create(**options | {"messages": history, "max_tokens": 8}, tool_choice={"type": "none"})
    )
    assert not [block for block in after.content if block.type == "tool_use"]
    bash = [{"type": "bash_20250124", "name": "bash"}]
    typed = client.messages.create(**options | {"tools": bash, "max_tokens": 400}, tool_choice={"type": "any"})
    assert typed.content[-1].name == "bash"


def loop() -> None:
    greeted: list[str] = []

    @beta_tool
    def greet(mood: Literal["calm", "loud"], again: bool) -> str:
        """Greets a person.

        Args:
            mood: of the greeting
            again: whether the person was here before
        """
        greeted.append(f"{mood} {again}")
        return f"Hello, {mood} person!"

    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=200, messages=MESSAGES, tools=[greet], tool_choice={"type": "any"}, max_iterations=2
    )
    made = list(runner)
    assert len(made) == 2
    assert greeted


def models() -> None:
    listed, other = client.models.list(limit=5)
    assert other.id == ALIAS
    assert (listed.id, listed.type, listed.lifecycle) == (MODEL, "model", "active")
    assert client.models.retrieve(MODEL) == listed
    assert listed.max_input_tokens > 0


def errors() -> None:
    def refused(
        kind: type[anthropic.APIStatusError], client: anthropic.Anthropic = client, **options: object
    ) -> anthropic.APIStatusError:
        try:
            client.messages.create(**OPTIONS | options)
        except kind as error:
            if error.request_id and error.body["type"] == "error":
                return error
            raise AssertionError(f"{error.body} is no error of the API") from error
        raise AssertionError(f"{options} was accepted")

    assert "speed_of_light" in str(refused(anthropic.BadRequestError, extra_body={"speed_of_light": 2}))
    assert refused(anthropic.BadRequestError, max_tokens=-1).body["error"]["type"] == "invalid_request_error"
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert "messages[0].content[0].type" in str(
        refused(anthropic.BadRequestError, messages=[{"role": "user", "content": [image]}])
    )
    search = [{"type": "web_search_20250305", "name": "web_search"}]
    assert "tools[0].type" in str(refused(anthropic.BadRequestError, tools=search))
    assert "other" in str(refused(anthropic.NotFoundError, model="other"))
    long = [{"role": "user", "content": "word " * 5000}]
    assert "prompt is too long: " in str(refused(anthropic.BadRequestError, messages=long))
    assert refused(anthropic.BadRequestError, stream=True, messages=long).type == "invalid_request_error"
    stranger = anthropic.Anthropic(base_url=SERVER, api_key="wrong", max_retries=0)
    assert refused(anthropic.AuthenticationError, stranger).body["error"]["type"] == "authentication_error"
    bearer = anthropic.Anthropic(base_url=SERVER, api_key=None, auth_token=KEY, max_retries=0)
    assert bearer.messages.create(**OPTIONS).content


async def many() -> None:
    async with anthropic.AsyncAnthropic(base_url=SERVER, api_key=KEY) as client:
        made = await asyncio.gather(*(client.messages.create(**OPTIONS) for _ in range(16)))
        assert all(each.content for each in made)
        async with client.messages.stream(**OPTIONS | {"max_tokens": 500}) as stream:
            async for _ in stream.text_stream:
                break


messages()
counts()
streams()
structured()
tools()
loop()
models()
errors()
asyncio.run(many())
