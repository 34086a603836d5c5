"""Haystack: generators of both APIs, structured output, streams, and its agent with tools."""

from __future__ import annotations

import json
import os
from typing import Annotated

from address import ALIAS, KEY, SCRIPTED
from dialogue import ADA, ANSWER, COMPARED, DOOR, STORY, TOLD, TWO_CITIES, WEATHER, take_asked
from dialogue import get_weather as look
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.tools import tool
from haystack.utils import Secret
from shared import Person

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"


@tool
def get_weather(city: Annotated[str, "the name of a city"]) -> str:
    """The weather in a city."""
    return look(city)


for kind in (OpenAIChatGenerator, OpenAIResponsesChatGenerator):
    options = {"api_key": Secret.from_token(KEY), "model": ALIAS, "api_base_url": SCRIPTED}
    generator = kind(**options)
    pieces: list[str] = []

    def note(chunk: StreamingChunk, pieces: list[str] = pieces) -> None:
        """Keep a piece of a stream."""
        pieces.append(chunk.content or "")

    story = [ChatMessage.from_user(STORY)]
    whole = generator.run(story)["replies"][0]
    assert whole.text == TOLD
    assert generator.run(story, streaming_callback=note)["replies"][0].text == TOLD
    assert "".join(pieces) == TOLD
    if kind is OpenAIChatGenerator:
        formed = kind(**options, generation_kwargs={"response_format": Person})
    else:
        formed = kind(**options, generation_kwargs={"text_format": Person})
    assert json.loads(formed.run([ChatMessage.from_user(DOOR)])["replies"][0].text) == ADA
    for question, answer, cities in ((WEATHER, ANSWER, ["Oslo"]), (TWO_CITIES, COMPARED, ["Oslo", "Rome"])):
        agent = Agent(chat_generator=generator, tools=[get_weather])
        result = agent.run([ChatMessage.from_user(question)])
        assert result["messages"][-1].text == answer, result
        assert sorted(take_asked()) == cities
