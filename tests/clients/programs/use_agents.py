"""openai-agents with the chat and the responses API, also over WebSocket: text, structured output, tools, streams."""

from __future__ import annotations

import asyncio
from typing import Annotated

from address import ALIAS, KEY, MODEL, QUESTION, SCRIPTED, URL
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    OpenAIResponsesWSModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from dialogue import ADA, ANSWER, COMPARED, DOOR, THOUGHT, TWO_CITIES, WEATHER, get_weather, take_asked
from openai import AsyncOpenAI
from pydantic import Field
from shared import Person, check_person

set_tracing_disabled(True)
KINDS = (OpenAIChatCompletionsModel, OpenAIResponsesModel, OpenAIResponsesWSModel)


@function_tool
def greet(name: Annotated[str, Field(max_length=20)], age: int) -> str:
    """Greets a person."""
    return f"hello {name}, {age}"


async def main() -> None:
    client = AsyncOpenAI(base_url=URL, api_key=KEY)
    for kind in KINDS:
        model, settings = kind(model=MODEL, openai_client=client), ModelSettings(max_tokens=60, temperature=0)
        plain = Agent(name="a", instructions="Be brief.", model=model, model_settings=settings)
        whole = (await Runner.run(plain, QUESTION)).final_output
        assert whole
        streamed = Runner.run_streamed(plain, QUESTION)
        kinds = {event.type async for event in streamed.stream_events()}
        assert "raw_response_event" in kinds
        assert streamed.final_output == whole
        check_person((await Runner.run(Agent(name="a", model=model, output_type=Person), QUESTION)).final_output)
        required = ModelSettings(max_tokens=60, temperature=0, tool_choice="required", parallel_tool_calls=False)
        caller = Agent(
            name="a",
            model=model,
            tools=[greet],
            model_settings=required,
            tool_use_behavior="stop_on_first_tool",
        )
        assert (await Runner.run(caller, QUESTION)).final_output.startswith("hello ")
        streamed = Runner.run_streamed(caller, QUESTION)
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output.startswith("hello ")


async def loops() -> None:
    """Loops of tools with a scripted model: a call, parallel calls, a second turn of the conversation, a handoff."""
    client = AsyncOpenAI(base_url=SCRIPTED, api_key=KEY, max_retries=0)
    tool = function_tool(get_weather)
    for kind in KINDS:
        model = kind(model=ALIAS, openai_client=client)
        agent = Agent(name="forecaster", instructions="Be brief.", model=model, tools=[tool])
        first = await Runner.run(agent, WEATHER)
        assert first.final_output == ANSWER
        assert take_asked() == ["Oslo"]
        kinds = [item.type for item in first.new_items]
        assert "tool_call_item" in kinds
        assert kinds[-1] == "message_output_item"
        second = await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": TWO_CITIES}])
        assert second.final_output == COMPARED
        assert sorted(take_asked()) == ["Oslo", "Rome"]
        streamed = Runner.run_streamed(agent, WEATHER)
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output == ANSWER
        assert take_asked() == ["Oslo"]
        if kind is not OpenAIChatCompletionsModel:
            thoughts = [item for item in streamed.new_items if item.type == "reasoning_item"]
            assert THOUGHT in str(thoughts[0].raw_item)
            chained = await Runner.run(agent, WEATHER, previous_response_id=first.last_response_id)
            assert chained.final_output == ANSWER
            take_asked()
        former = Agent(name="doorman", model=model, output_type=Person)
        assert (await Runner.run(former, DOOR)).final_output.model_dump() == ADA


asyncio.run(main())
asyncio.run(loops())
