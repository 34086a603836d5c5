"""litellm with its providers `openai` and `hosted_vllm`."""

from __future__ import annotations

import asyncio
import json

import litellm
from address import KEY, MESSAGES, MODEL, QUESTION, URL
from shared import TOOL, Person, check_person

for provider in ("openai", "hosted_vllm"):
    options = {"model": f"{provider}/{MODEL}", "api_base": URL, "api_key": KEY}
    whole = litellm.completion(**options, messages=MESSAGES, temperature=0, max_tokens=8)
    assert whole.choices[0].message.content
    chunks = list(
        litellm.completion(
            **options,
            messages=MESSAGES,
            temperature=0,
            max_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert any(getattr(chunk, "usage", None) for chunk in chunks)
    formed = litellm.completion(**options, messages=MESSAGES, response_format=Person)
    check_person(json.loads(formed.choices[0].message.content))
    called = litellm.completion(**options, messages=MESSAGES, tools=[TOOL], tool_choice="required")
    check_person(json.loads(called.choices[0].message.tool_calls[0].function.arguments))
    assert litellm.text_completion(**options, prompt="The sun is", max_tokens=4).choices[0].text
    assert litellm.responses(**options, input=QUESTION, max_output_tokens=6).output
    answered = asyncio.run(litellm.acompletion(**options, messages=MESSAGES, max_tokens=4))
    assert answered.choices[0].message.content is not None
