"""huggingface_hub.InferenceClient and its asynchronous form: chat, tools, structured output, streams, errors."""

from __future__ import annotations

import asyncio
import json

from address import ALIAS, KEY, SCRIPTED
from dialogue import ADA, ANSWER, DOOR, STORY, TOLD, WEATHER, get_weather
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from shared import SCHEMA

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


def asked(text: str) -> list[dict[str, str]]:
    """A conversation with one message."""
    return [{"role": "user", "content": text}]


client = InferenceClient(base_url=SCRIPTED, api_key=KEY)
assert client.chat_completion(asked(STORY), model=ALIAS).choices[0].message.content == TOLD
pieces = list(
    client.chat.completions.create(
        model=ALIAS, messages=asked(STORY), stream=True, stream_options={"include_usage": True}
    )
)
assert "".join(each.choices[0].delta.content or "" for each in pieces if each.choices) == TOLD
assert pieces[-1].usage.completion_tokens > 0
schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
assert (
    json.loads(client.chat_completion(asked(DOOR), model=ALIAS, response_format=schema).choices[0].message.content)
    == ADA
)
history = asked(WEATHER)
first = client.chat_completion(history, model=ALIAS, tools=TOOLS, tool_choice="auto").choices[0].message
(call,) = first.tool_calls
assert json.loads(call.function.arguments) == {"city": "Oslo"}
plain = {"id": call.id, "type": "function", "function": {"name": "get_weather", "arguments": call.function.arguments}}
history += [
    {"role": "assistant", "content": first.content, "tool_calls": [plain]},
    {"role": "tool", "tool_call_id": call.id, "content": get_weather("Oslo")},
]
assert client.chat_completion(history, model=ALIAS, tools=TOOLS).choices[0].message.content == ANSWER
streamed = list(client.chat_completion(asked(WEATHER), model=ALIAS, tools=TOOLS, stream=True))
parts = [part for each in streamed if each.choices for part in each.choices[0].delta.tool_calls or ()]
assert json.loads("".join(part.function.arguments or "" for part in parts)) == {"city": "Oslo"}
refusal = None
try:
    client.chat_completion(asked("refuse this"), model=ALIAS)
except HfHubHTTPError as error:
    refusal = error
assert refusal is not None
assert refusal.response.status_code == 400
assert "this reply is refused" in str(refusal)


async def many() -> None:
    """The asynchronous client."""
    async with AsyncInferenceClient(base_url=SCRIPTED, api_key=KEY) as client:
        found = await asyncio.gather(*(client.chat_completion(asked(STORY), model=ALIAS) for _ in range(8)))
        assert {each.choices[0].message.content for each in found} == {TOLD}
        stream = await client.chat_completion(asked(STORY), model=ALIAS, stream=True)
        assert "".join([each.choices[0].delta.content or "" async for each in stream if each.choices]) == TOLD


asyncio.run(many())
