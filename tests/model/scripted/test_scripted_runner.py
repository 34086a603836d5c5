"""A scripted model under the real engine and server, through the official client: its text, and what requests do to it."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

import rtlang as rt
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.events import Completion, Event, GraphFailed, NodeFailed, NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.step import Row, Step
from rtlang.engine.planning.calibration import calibrated
from rtlang.model.scripted.scripted_runner import ScriptedRunner
from rtlang.serve.server import TokenizerInfo, running_server

LONG = " ".join(f"word{number}" for number in range(120))
SCRIPT = f"""
first_token_s: 0.01
rules:
  - when: {{user: weather, tools: [get_weather]}}
    replies:
      - thought: I should look.
        content: Let me look.
        calls:
          - {{name: get_weather, arguments: {{city: "São \\"Paulo\\"", days: 2}}}}
          - {{name: get_weather, arguments: {{city: Rome}}}}
      - It rains.
  - when: {{user: invoice}}
    replies: ['{{"total": 3, "paid": true}}']
  - when: {{user: think}}
    replies: [{{thought: "{LONG}", content: '{{"total": 4}}'}}]
  - when: {{user: story}}
    captures: {{name: "story of (\\\\w+)"}}
    replies: ["{{{{name}}}}: {LONG}"]
  - when: {{user: fail}}
    replies: [{{content: "Well, ", error: overloaded}}]
  - when: {{user: break}}
    replies: [{{error: {{kind: internal, message: secret}}}}]
  - when: {{user: refuse}}
    replies: [{{error: {{kind: refused, message: I will not}}}}]
  - when: {{user: too long}}
    replies: [{{error: context_length}}]
  - when: {{user: animal}}
    replies: [dog]
"""
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]


def script_file(folder: Path) -> str:
    path = folder / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    return f"script:{path}"


def schema(**properties: Any) -> Any:
    whole = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": whole}}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rt.Runtime]:
    model = script_file(tmp_path_factory.mktemp("script"))
    with rt.Runtime(model=model, num_pages=100, max_model_len=1500) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def client(runtime: rt.Runtime) -> Iterator[OpenAI]:
    info = TokenizerInfo(runtime.config.model_name, 2048, 1500, runtime.tool_format)
    with (
        running_server(runtime, ServeConfig(port=0), info) as url,
        OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="x", max_retries=0) as client,
    ):
        yield client


def ask(client: OpenAI, text: str, **options: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="script", messages=messages, **options)


def text_of(client: OpenAI, text: str, **options: Any) -> str:
    return str(ask(client, text, **options).choices[0].message.content)


def test_a_tool_loop_is_played_with_cached_tokens(client: OpenAI) -> None:
    first = ask(client, "the weather?", tools=TOOLS)
    message = first.choices[0].message
    assert (message.reasoning_content, message.content) == ("I should look.", "Let me look.")
    arguments = [json.loads(call.function.arguments) for call in message.tool_calls]
    assert arguments == [{"city": 'São "Paulo"', "days": 2}, {"city": "Rome"}]
    history: list[Any] = [{"role": "user", "content": "the weather?"}, message.model_dump(exclude_none=True)]
    history += [{"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls]
    second = client.chat.completions.create(model="script", messages=history, tools=TOOLS)
    assert second.choices[0].message.content == "It rains."
    details = second.usage and second.usage.prompt_tokens_details
    assert details is not None
    assert details.cached_tokens is not None
    assert details.cached_tokens >= first.usage.prompt_tokens - 16
    deltas = [chunk.choices[0].delta for chunk in ask(client, "the weather?", tools=TOOLS, stream=True)]
    assert "".join(delta.content or "" for delta in deltas) == "Let me look."
    pieces = [call.function.arguments for delta in deltas for call in delta.tool_calls or () if call.index == 0]
    assert len(pieces) > 2
    assert json.loads("".join(pieces)) == arguments[0]


def test_a_schema_allows_a_reply_or_fails_with_its_place(client: OpenAI) -> None:
    allowed = schema(total={"type": "integer"}, paid={"type": "boolean"})
    assert json.loads(text_of(client, "invoice", response_format=allowed)) == {"total": 3, "paid": True}
    for refused in (
        schema(total={"type": "string"}, paid={"type": "boolean"}),
        schema(total={"type": "integer"}),
        schema(total={"type": "integer"}, paid={"type": "boolean"}, more={"type": "null"}),
    ):
        with pytest.raises(
            openai.BadRequestError, match=r"rules\[1\].replies\[0\]: the request does not allow"
        ) as caught:
            ask(client, "invoice", response_format=refused)
        assert caught.value.code == "script"
    with pytest.raises(openai.BadRequestError, match="the request does not allow"):
        ask(client, "the weather?", tools=TOOLS, tool_choice="none", response_format=allowed)


def test_a_limited_thought_is_cut_and_the_reply_follows(client: OpenAI) -> None:
    form = schema(total={"type": "integer"})
    whole = ask(client, "think", response_format=form).choices[0].message
    assert (whole.reasoning_content, whole.content) == (LONG, '{"total": 4}')
    cut = ask(client, "think", response_format=form, extra_body={"thinking_token_budget": 20}).choices[0].message
    assert LONG.startswith(cut.reasoning_content.strip())
    assert len(cut.reasoning_content) < 150
    assert cut.content == '{"total": 4}'
    silent = ask(client, "think", extra_body={"chat_template_kwargs": {"enable_thinking": False}}).choices[0].message
    assert (getattr(silent, "reasoning_content", None), silent.content) == (None, '{"total": 4}')


def test_limits_and_stops_cut_a_reply(client: OpenAI) -> None:
    short = ask(client, "story of A", max_tokens=5)
    assert (short.choices[0].finish_reason, short.usage.completion_tokens) == ("length", 5)
    assert f"A: {LONG}".startswith(short.choices[0].message.content)
    assert text_of(client, "story of B", stop=["word7"]) == f"B: {LONG.partition('word7')[0]}"
    both = ask(client, "story of C", n=2, logprobs=True, top_logprobs=1)
    assert [choice.message.content for choice in both.choices] == [f"C: {LONG}"] * 2
    assert {entry.logprob for entry in both.choices[0].logprobs.content} == {0.0}


def test_replies_in_a_small_pool_are_those_of_requests_alone(client: OpenAI) -> None:
    names = [f"N{number}" for number in range(9)]  # of 100 pages, each needs about 30
    with ThreadPoolExecutor(9) as threads:
        found = list(threads.map(lambda name: text_of(client, f"story of {name}"), names))
    assert found == [f"{name}: {LONG}" for name in names]


def test_a_reply_can_be_a_failure(client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as overload:
        ask(client, "fail")
    assert overload.value.code == "overload"
    with ask(client, "fail", stream=True) as stream, pytest.raises(openai.APIError):
        list(stream)
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client, "break")
    assert "secret" not in str(caught.value)
    with pytest.raises(openai.BadRequestError, match="I will not"):
        ask(client, "refuse")
    with pytest.raises(openai.BadRequestError) as too_long:
        ask(client, "too long")
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="no rule matches"):
        ask(client, "something else")


def test_programs_generate_and_select_what_the_script_says(runtime: rt.Runtime) -> None:
    @rt.program
    def choose(s: rt.State) -> None:
        s += rt.user("an animal")
        s += rt.assistant(rt.select("choice", ["cat", "dog", "donkey"]))
        s += rt.user("a story of Bo")
        s += rt.assistant("Bo: word0", rt.gen("rest", max_tokens=700))

    result = choose.run(runtime=runtime)
    assert result["choice"] == "dog"
    assert "Bo: word0" + result["rest"] == f"Bo: {LONG}"


def test_delays_are_waited_for_once_and_by_token(tmp_path: Path) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text("first_token_s: 3\ntokens_per_s: 4\nrules: [{replies: [abc], repeats: true}]")
    slept: list[float] = []
    runner = ScriptedRunner(RuntimeConfig(model=f"script:{path}"), sleep=slept.append)
    runner.load()
    calibrated(runner, 16)
    assert slept == []
    tokens = runner.tokenizer.encode("hello", is_start=True)
    done, outputs = 0, 0
    while tokens[-1] not in runner.tokenizer.eos_token_ids:
        row = Row(1, tokens[done:], done, range(4), 0, True, SamplingParams(), num_output_tokens=outputs)
        flight = runner.launch(Step(outputs, (row,)))
        runner.sample(flight, (row,))
        done, outputs = len(tokens), outputs + 1
        tokens += [token.token_id for token in runner.collect(flight).rows[0].tokens]
    assert slept == [3.0, *[0.25] * (outputs - 1)]
    assert outputs > 1


def test_a_reply_goes_on_after_its_engine_was_lost(tmp_path: Path) -> None:
    prompt = (RoleStart("user"), "story of Ann", RoleEnd(), RoleStart("assistant"))
    graph = RequestGraph((Text(0, None, prompt), Generate(1, 0, None, SamplingParams(max_tokens=300))), outputs=(1,))

    def run(continue_from: dict[int, tuple[tuple[int, ...], ...]]) -> Completion:
        with rt.Runtime(model=script_file(tmp_path)) as runtime:  # its first request has the id of a measured step
            events: queue.Queue[Event] = queue.Queue()
            runtime.submit(graph, events.put, RunOptions(continue_from=continue_from))
            while True:
                event = events.get(timeout=60)
                assert not isinstance(event, NodeFailed | GraphFailed), event
                if isinstance(event, NodeFinished) and event.node_id == 1:
                    return event.completions[0]

    whole = run({})
    assert whole.text.startswith("Ann: word0")
    assert run({1: (whole.token_ids[:5],)}).token_ids == whole.token_ids
