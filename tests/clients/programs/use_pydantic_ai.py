"""pydantic-ai with its models of the chat, responses and messages APIs: text, structured output, tools, thoughts, streams."""

from __future__ import annotations

import asyncio
from typing import Annotated

from address import ALIAS, KEY, MODEL, QUESTION, SCRIPTED, URL
from dialogue import ADA, ANSWER, COMPARED, DOOR, STORY, THOUGHT, TOLD, TWO_CITIES, WEATHER, get_weather, take_asked
from pydantic import Field
from pydantic_ai import Agent, ModelSettings, NativeOutput, RunContext, ToolDefinition, ToolOutput
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
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


async def loops() -> None:
    """Loops of tools with a scripted model, with thoughts, parallel calls, a second turn, structured output and streams."""
    openai = OpenAIProvider(base_url=SCRIPTED, api_key=KEY)
    anthropic = AnthropicProvider(base_url=SCRIPTED.removesuffix("/v1"), api_key=KEY)
    models: list[Model] = [
        OpenAIChatModel(ALIAS, provider=openai),
        OpenAIResponsesModel(ALIAS, provider=openai),
        AnthropicModel(ALIAS, provider=anthropic),
    ]
    for model in models:
        agent = Agent(model, tools=[get_weather])
        first = await agent.run(WEATHER)
        assert (first.output, take_asked()) == (ANSWER, ["Oslo"]), model
        thoughts = [part for each in first.all_messages() for part in each.parts if isinstance(part, ThinkingPart)]
        said = [(part.content, *(part.provider_details or {}).get("raw_content", ())) for part in thoughts]
        assert any(THOUGHT in each for each in said), thoughts
        second = await agent.run(TWO_CITIES, message_history=first.all_messages())
        assert (second.output, sorted(take_asked())) == (COMPARED, ["Oslo", "Rome"])
        assert second.usage.cache_read_tokens > 0
        async with agent.run_stream(STORY) as stream:
            assert "".join([piece async for piece in stream.stream_text(delta=True, debounce_by=None)]) == TOLD
        assert (await Agent(model, output_type=ToolOutput(Person)).run(DOOR)).output.model_dump() == ADA
        if not isinstance(model, AnthropicModel):  # it knows by their names which models have this
            assert (await Agent(model, output_type=NativeOutput(Person)).run(DOOR)).output.model_dump() == ADA


asyncio.run(main())
asyncio.run(loops())
