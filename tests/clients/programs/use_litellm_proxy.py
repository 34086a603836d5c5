"""litellm as a proxy in front of the server: its chat, responses and messages routes, through the clients of these APIs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import anthropic
import openai
from address import ALIAS, KEY, SCRIPTED
from dialogue import ADA, ANSWER, DOOR, STORY, TOLD, WEATHER, get_weather
from shared import Person

START_TIMEOUT_S = 180
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def chat(client: openai.OpenAI) -> None:
    """Chat completions: text, streams, structured output, a loop of tools."""
    told = [{"role": "user", "content": STORY}]
    assert client.chat.completions.create(model="m", messages=told).choices[0].message.content == TOLD
    chunks = client.chat.completions.create(model="m", messages=told, stream=True)
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == TOLD
    door = [{"role": "user", "content": DOOR}]
    parsed = client.chat.completions.parse(model="m", messages=door, response_format=Person)
    assert parsed.choices[0].message.parsed.model_dump() == ADA
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
    history = [{"role": "user", "content": WEATHER}]
    first = client.chat.completions.create(model="m", messages=history, tools=tools).choices[0].message
    (call,) = first.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))}
    history += [first.model_dump(exclude_none=True), result]
    assert client.chat.completions.create(model="m", messages=history, tools=tools).choices[0].message.content == ANSWER


def responses(client: openai.OpenAI) -> None:
    """The responses API, which the proxy passes on."""
    tools = [{"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": False}]
    assert client.responses.create(model="m", input=STORY).output_text == TOLD
    made = client.responses.create(model="m", input=WEATHER, tools=tools)
    (call,) = (each for each in made.output if each.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": get_weather("Oslo")}
    history = [
        {"role": "user", "content": WEATHER},
        *(each.model_dump(exclude_none=True) for each in made.output),
        result,
    ]
    assert client.responses.create(model="m", input=history, tools=tools).output_text == ANSWER
    with client.responses.stream(model="m", input=STORY) as stream:
        assert stream.get_final_response().output_text == TOLD


def messages(client: anthropic.Anthropic) -> None:
    """The messages API, which the proxy translates."""
    options = {"model": "m", "max_tokens": 400}
    tools = [{"name": "get_weather", "description": "Weather.", "input_schema": PARAMETERS}]
    history = [{"role": "user", "content": WEATHER}]
    first = client.messages.create(**options, messages=history, tools=tools)
    (call,) = (block for block in first.content if block.type == "tool_use")
    assert call.input == {"city": "Oslo"}
    history.append(
        {"role": "assistant", "content": [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}]}
    )
    result = {"type": "tool_result", "tool_use_id": call.id, "content": get_weather("Oslo")}
    history.append({"role": "user", "content": [result]})
    last = client.messages.create(**options, messages=history, tools=tools)
    assert [block.text for block in last.content if block.type == "text"] == [ANSWER]
    with client.messages.stream(**options, messages=[{"role": "user", "content": STORY}]) as stream:
        assert stream.get_final_text() == TOLD


with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
parameters = {"model": f"openai/{ALIAS}", "api_base": SCRIPTED, "api_key": KEY}
settings = {
    "model_list": [{"model_name": "m", "litellm_params": parameters}],
    "general_settings": {"master_key": "sk-1"},
}
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "litellm"), "--config", f"{folder}/config.yaml"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    log = Path(folder) / "log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=os.environ, cwd=folder) as proxy:
        try:
            end = time.monotonic() + START_TIMEOUT_S
            while proxy.poll() is None and time.monotonic() < end:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).close()
                    break
                except (OSError, urllib.error.URLError):
                    time.sleep(0.5)
            chat(openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="sk-1", max_retries=0))
            responses(openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="sk-1", max_retries=0))
            messages(anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="sk-1", max_retries=0))
        except BaseException:
            print(log.read_text(encoding="utf-8")[-2500:])
            raise
        finally:
            proxy.terminate()
