"""Ollama's Python client: chat, generate, streams, tools, formats, models, errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import ollama
from address import KEY, MESSAGES, MODEL, QUESTION, SERVER
from shared import SCHEMA, TOOL, check_person

HEADERS = {"authorization": f"Bearer {KEY}"}
client = ollama.Client(host=SERVER, headers=HEADERS)
OTHER = {"type": "function", "function": TOOL["function"] | {"name": "wave"}}
OPTIONS = {"temperature": 0, "num_predict": 8}


def models() -> None:
    (listed, *_) = client.list().models
    assert listed.model == MODEL
    (running, *_) = client.ps().models
    assert running.model == MODEL
    assert running.context_length
    shown = client.show(MODEL)
    assert "completion" in shown.capabilities
    assert shown.modelinfo["rtlang.context_length"] == running.context_length
    assert client.chat(MODEL, []).done_reason == "load"
    assert client.generate(f"{MODEL}:latest", keep_alive="5m").done_reason == "load"


def chat() -> None:
    whole = client.chat(MODEL, MESSAGES, options=OPTIONS, keep_alive="10m")
    assert whole.done
    assert whole.done_reason == "length"
    assert whole.eval_count == 8
    assert whole.prompt_eval_count > 5
    parts = list(client.chat(MODEL, MESSAGES, options=OPTIONS, stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == 8
    scored = client.chat(MODEL, MESSAGES, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert "".join(entry.token for entry in scored.logprobs) == whole.message.content
    assert all(len(entry.top_logprobs) == 2 for entry in scored.logprobs)
    stopped = client.chat(MODEL, MESSAGES, options=OPTIONS | {"stop": [whole.message.content[3:5]]})
    assert stopped.done_reason == "stop"
    assert whole.message.content.startswith(stopped.message.content)


def structured() -> None:
    check_person(json.loads(client.chat(MODEL, MESSAGES, format=SCHEMA).message.content))
    check_person(json.loads(client.generate(MODEL, QUESTION, format=SCHEMA).response))
    streamed = client.chat(MODEL, MESSAGES, format=SCHEMA, stream=True)
    check_person(json.loads("".join(part.message.content for part in streamed)))


def tools() -> None:
    def greet(name: str, age: int) -> str:
        """Greets a person.

        Args:
            name: of the person
            age: in years
        """
        return f"hello {name}"

    history = [
        *MESSAGES,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "greet", "arguments": {"name": "Ann"}}}],
        },
        {"role": "tool", "tool_name": "greet", "content": "hello Ann"},
    ]
    for stream in (False, True):
        made = client.chat(MODEL, history, tools=[greet, OTHER], options={"num_predict": 60}, stream=stream)
        for part in made if stream else [made]:
            for call in part.message.tool_calls or ():
                assert call.function.name in ("greet", "wave")


def generate() -> None:
    whole = client.generate(MODEL, QUESTION, system="Be brief.", options=OPTIONS)
    parts = list(client.generate(MODEL, QUESTION, system="Be brief.", options=OPTIONS, stream=True))
    assert "".join(part.response for part in parts) == whole.response
    raw = client.generate(MODEL, "The sun is", raw=True, options=OPTIONS)
    assert raw.response != whole.response
    assert (
        "".join(part.response for part in client.generate(MODEL, "The sun is", raw=True, options=OPTIONS, stream=True))
        == raw.response
    )


def errors() -> None:
    for call, status, name in (
        (lambda: client.chat("other", MESSAGES), 404, "other"),
        (lambda: client.chat(MODEL, MESSAGES, options={"top_p": 7}), 400, "top_p"),
        (
            lambda: client.chat(MODEL, MESSAGES, options={"repeat_penalty": 1.1, "repeat_last_n": 64}),
            400,
            "repeat_last_n",
        ),
        (lambda: list(client.chat(MODEL, MESSAGES, options={"top_p": 7}, stream=True)), 400, "top_p"),
        (lambda: client.generate(MODEL, "x", suffix="y"), 400, "suffix"),
        (lambda: client.generate(MODEL, "x", images=["aGk="]), 400, "images"),
        (lambda: client.embed(MODEL, "x"), 501, "embeddings"),
        (lambda: client.pull(MODEL), 501, "pulls"),
        (lambda: ollama.Client(host=SERVER, headers={"authorization": "Bearer wrong"}).list(), 401, "key"),
    ):
        error = refusal(call)
        assert error.status_code == status, (error, name)
        assert name in str(error), (error, name)


def refusal(call: Callable[[], object]) -> ollama.ResponseError:
    try:
        call()
    except ollama.ResponseError as error:
        return error
    raise AssertionError("it was accepted")


async def many() -> None:
    client = ollama.AsyncClient(host=SERVER, headers=HEADERS)
    made = await asyncio.gather(*(client.chat(MODEL, MESSAGES, options={"num_predict": 8}) for _ in range(16)))
    assert all(each.done for each in made)
    async for _ in await client.chat(MODEL, MESSAGES, options={"num_predict": 500}, stream=True):
        break


models()
chat()
structured()
tools()
generate()
errors()
asyncio.run(many())
