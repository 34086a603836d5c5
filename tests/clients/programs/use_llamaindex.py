"""LlamaIndex: completion, chat and streams, structured prediction with its default, which sends strict: false, and with strict outputs;
with a scripted model, an agent with tools over both APIs."""

from __future__ import annotations

import asyncio

from address import ALIAS, KEY, QUESTION, SCRIPTED, URL
from dialogue import ANSWER, COMPARED, STORY, TOLD, TWO_CITIES, WEATHER, get_weather, take_asked
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai import OpenAI, OpenAIResponses
from pydantic import BaseModel, Field
from shared import Person, check_person


class Household(BaseModel):
    """A household."""

    street: str = Field(max_length=20)
    people: list[Person] = Field(max_length=2)


options = {"model": ALIAS, "api_base": URL, "api_key": KEY, "max_retries": 0, "temperature": 1.0}
llm = OpenAI(**options, max_tokens=300)
prompt, question = PromptTemplate("{question}"), ChatMessage(role="user", content=QUESTION)
assert llm.complete(QUESTION).text
assert "".join(part.delta or "" for part in llm.stream_chat([question]))
for model in (Person, Household):
    for seed in range(4):
        seeded = OpenAI(**options, max_tokens=300, additional_kwargs={"seed": seed})
        found = seeded.structured_predict(model, prompt, question=QUESTION)
        model.model_validate(found.model_dump())
        program = FunctionCallingProgram.from_defaults(model, prompt=prompt, llm=seeded)
        model.model_validate(program(question=QUESTION).model_dump())
        answer = seeded.as_structured_llm(model).chat([question])
        model.model_validate_json(answer.message.content)
strict = OpenAI(**options, max_tokens=300, strict=True)
check_person(strict.structured_predict(Person, prompt, question=QUESTION).model_dump())


async def loops() -> None:
    """An agent that calls a tool, once and in parallel."""
    for kind in (OpenAI, OpenAIResponses):
        scripted = kind(model=ALIAS, api_base=SCRIPTED, api_key=KEY, max_retries=0)
        assert (
            "".join(part.delta or "" for part in scripted.stream_chat([ChatMessage(role="user", content=STORY)]))
            == TOLD
        )
        for asked, answer, cities in ((WEATHER, ANSWER, ["Oslo"]), (TWO_CITIES, COMPARED, ["Oslo", "Rome"])):
            found = await FunctionAgent(tools=[get_weather], llm=scripted).run(asked)
            assert str(found) == answer, found
            assert sorted(take_asked()) == cities


asyncio.run(loops())
