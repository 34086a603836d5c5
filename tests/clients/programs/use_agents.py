"""openai-agents with the chat and the responses API: text, structured output, tools, streams."""

from __future__ import annotations

import asyncio
from typing import Annotated

from address import KEY, MODEL, QUESTION, URL
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import Field
from shared import Person, check_person

set_tracing_disabled(True)


@function_tool
def greet(name: Annotated[str, Field(max_length=20)], age: int) -> str:
    """Greets a person."""
    return f"hello {name}, {age}"


async def main() -> None:
    client = AsyncOpenAI(base_url=URL, api_key=KEY)
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
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


asyncio.run(main())
