"""langchain-openai: chat and completion models, structured output, tools, streams, batches, the responses API."""

from __future__ import annotations

import asyncio

from address import KEY, MODEL, QUESTION, URL
from langchain_openai import ChatOpenAI, OpenAI
from shared import Person, check_person

options = {"base_url": URL, "api_key": KEY, "model": MODEL, "temperature": 0}
model = ChatOpenAI(**options, max_tokens=10)
whole = model.invoke(QUESTION)
assert whole.content
assert whole.usage_metadata["total_tokens"] > 0
assert "".join(chunk.content for chunk in model.stream(QUESTION)) == whole.content
assert [each.content for each in model.batch([QUESTION] * 4)] == [whole.content] * 4


async def stream() -> str:
    return "".join([chunk.content async for chunk in model.astream(QUESTION)])


assert asyncio.run(stream()) == whole.content
free = ChatOpenAI(**options)
for method in ("json_schema", "function_calling"):
    check_person(free.with_structured_output(Person, method=method).invoke(QUESTION))
called = free.bind_tools([Person], tool_choice="any").invoke(QUESTION)
check_person(called.tool_calls[0]["args"])
answered = ChatOpenAI(**options, use_responses_api=True, max_tokens=20).invoke(QUESTION)
assert answered.content
assert OpenAI(**options, max_tokens=5).invoke("The sun is")
