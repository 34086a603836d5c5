"""The openai package in WebSocket mode of the Responses API: turns, prepared prompts, lanes, tools, structured output, errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from address import ALIAS, KEY, MODEL, QUESTION, SCRIPTED, URL
from dialogue import ANSWER, STORY, TOLD, WEATHER, get_weather, take_asked
from openai import AsyncOpenAI, OpenAI
from shared import SCHEMA, check_person

_LAST = ("response.completed", "response.incomplete", "response.failed", "error")


def ended(connection: Any) -> Any:
    """The last event of the response that runs, with the text that came before it."""
    text = ""
    for event in connection:
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in _LAST:
            assert event.type == "error" or not text or event.response.output_text == text
            return event
    raise AssertionError("the connection ended")


def turns() -> None:
    """Turns on one connection with a model, none of which is stored."""
    limits = {"max_output_tokens": 40, "temperature": 0, "store": False}
    with OpenAI(base_url=URL, api_key=KEY) as client:
        plain = client.responses.create(model=MODEL, input=QUESTION, **limits).output_text
        with client.responses.connect() as connection:
            connection.response.create(model=MODEL, input=QUESTION, generate=False, **limits)
            prepared = ended(connection).response
            assert prepared.output == []
            connection.response.create(model=MODEL, input=QUESTION, **limits)
            whole = ended(connection).response
            assert whole.output_text == plain
            assert whole.usage.input_tokens_details.cached_tokens > 0
            more = {"previous_response_id": whole.id, "input": "And now?"}
            connection.response.create(model=MODEL, **more, **limits)
            second = ended(connection).response
            assert second.usage.input_tokens > whole.usage.input_tokens
            form = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": False}}
            connection.response.create(model=MODEL, input=QUESTION, text=form)
            check_person(json.loads(ended(connection).response.output_text))
            connection.response.create(model=MODEL, **more, **limits)
            failed = ended(connection)
            assert (failed.status, failed.error.code) == (400, "previous_response_not_found")
            connection.response.create(model=MODEL, input=QUESTION, temperature=-3)
            assert ended(connection).error.param == "temperature"
            connection.response.create(model="unknown", input=QUESTION)
            assert ended(connection).status == 404


def tools() -> None:
    """A loop of a tool, of which each turn sends the new item only."""
    tool = {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    with OpenAI(base_url=SCRIPTED, api_key=KEY) as client, client.responses.connect() as connection:
        given: dict[str, Any] = {"model": ALIAS, "tools": [tool], "store": False}
        connection.response.create(input=WEATHER, **given)
        response = ended(connection).response
        (call,) = (item for item in response.output if item.type == "function_call")
        output = get_weather(**json.loads(call.arguments))
        assert take_asked() == ["Oslo"]
        item = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        connection.response.create(input=[item], previous_response_id=response.id, **given)
        assert ended(connection).response.output_text == ANSWER


async def lanes() -> None:
    """Two conversations side by side, and a fork of one."""
    async with AsyncOpenAI(base_url=SCRIPTED, api_key=KEY) as client, client.responses.connect() as connection:
        for lane in ("a", "b"):
            await connection.response.create(model=ALIAS, input=STORY, stream_id=lane, store=False)
        done: dict[str, Any] = {}
        async for event in connection:
            if event.type == "response.completed":
                done[event.stream_id] = event.response
            if len(done) == 2:
                break
        assert {response.output_text for response in done.values()} == {TOLD}
        await connection.response.create(
            model=ALIAS, input=STORY, stream_id="c", store=False, previous_response_id=done["a"].id
        )
        async for event in connection:
            if event.type in _LAST:
                assert (event.type, event.stream_id, event.response.output_text) == ("response.completed", "c", TOLD)
                break


turns()
tools()
asyncio.run(lanes())
