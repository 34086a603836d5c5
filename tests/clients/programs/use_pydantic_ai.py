"""pydantic-ai with its models of the chat and of the responses API: text, three kinds of structured output, tools, streams."""

from __future__ import annotations

import asyncio
from typing import Annotated

from address import KEY, MODEL, QUESTION, URL
from pydantic import Field
from pydantic_ai import Agent, ModelSettings, NativeOutput, RunContext, ToolDefinition, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from shared import Person, check_person

provider = OpenAIProvider(base_url=URL, api_key=KEY)
settings = ModelSettings(max_tokens=60, temperature=0)


async def main() -> None:
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = kind(MODEL, provider=provider, settings=settings)
        whole = await Agent(model).run(QUESTION)
        assert whole.output
        assert whole.usage.output_tokens > 0
        for output_type in (Person, NativeOutput(Person), ToolOutput(Person, name="person")):
            check_person((await Agent(model, output_type=output_type).run(QUESTION)).output)
        async with Agent(model).run_stream(QUESTION) as stream:
            text = "".join([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])
        assert text == whole.output
        async with Agent(model, output_type=NativeOutput(Person)).run_stream(QUESTION) as stream:
            check_person(await stream.get_output())
        agent = Agent(model, output_type=ToolOutput(Person))

        async def only_first(context: RunContext[None], definition: ToolDefinition) -> ToolDefinition | None:
            return definition if context.run_step == 1 else None

        @agent.tool_plain(prepare=only_first)
        def look(place: Annotated[str, Field(max_length=10)]) -> str:
            """Looks at a place."""
            return f"nobody at {place}"

        check_person((await agent.run(QUESTION)).output)


asyncio.run(main())
