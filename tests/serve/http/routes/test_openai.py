"""The OpenAI routes of a server, through the official client: one request of each kind, errors, and clients that leave."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import OverloadError
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.http_client import HttpClient
from tests.support.servers.openai_models import calls_of, joined_chunks, read_chat, read_completion
from tests.support.servers.serving import serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

MESSAGES: list[Any] = [{"role": "user", "content": "Hi"}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "parameters": CITY}},
    {"type": "function", "function": {"name": "now"}},
]

NO_SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "x"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with rt.Runtime() as runtime:
        info = TokenizerInfo("models/rtlang:tiny", 2048, 1024, runtime.tool_format)
        with running_server(runtime, ServeConfig(port=0, api_key="secret"), info) as url:
            yield url


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.replace("ws", "http", 1) + "/v1", api_key="secret", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def plain(server: str) -> HttpClient:
    return HttpClient(server, "secret")


def test_models_are_listed(client: OpenAI) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.object) == ("models/rtlang:tiny", "model")
    assert client.models.retrieve("models/rtlang:tiny") == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")


@pytest.mark.parametrize("name", ["models/rtlang:tiny", "rtlang:tiny", "default"])
def test_a_model_has_names_and_answers_have_its_own(client: OpenAI, name: str) -> None:
    assert client.completions.create(model=name, prompt="Once", max_tokens=1).model == "models/rtlang:tiny"


def test_aliases_are_listed_and_answers_have_the_first() -> None:
    config = ServeConfig(port=0, served_model_name=("gpt-4o", "team/small"))
    with rt.Runtime() as runtime:
        info = TokenizerInfo(runtime.config.model_name, 2048, 1024, runtime.tool_format)
        with (
            running_server(runtime, config, info) as url,
            OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="x") as own,
        ):
            models = own.models.list().data
            assert [(model.id, model.root) for model in models] == [("gpt-4o", "gpt-4o"), ("team/small", "gpt-4o")]  # type: ignore[attr-defined]
            assert own.models.retrieve("team/small").id == "team/small"
            plain = HttpClient(url)
            bodies: dict[str, dict[str, Any]] = {
                "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
                "/v1/completions": {"prompt": "Once", "max_tokens": 1},
                "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
            }
            for path, body in bodies.items():
                for name in ("gpt-4o", "team/small", "small", "default"):
                    assert plain.post(path, body | {"model": name}).json["model"] == "gpt-4o"
                assert plain.post(path, body).json["model"] == "gpt-4o"
            graph = {"nodes": [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]}
            bodies |= {
                "/tokenize": {"prompt": "x"},
                "/detokenize": {"tokens": [5]},
                "/v1/cache/explain": {"prompt": "x"},
                "/v1/programs": {"graph": graph, "stream": False},
            }
            for path, body in bodies.items():
                answer = plain.post(path, body | {"model": "rtlang:tiny"})
                error = answer.json["error"]
                assert (answer.status, error["code"], error["param"]) == (404, "model_not_found", "model"), path
                assert plain.post(path, body | {"model": 3}).json["error"]["param"] == "model"


def test_no_answer_has_the_path_of_the_model(tmp_path: Path) -> None:
    secret = tmp_path / "secret place" / "my-model"
    shutil.copytree(str(resources.files("rtlang.tiny")), secret)
    with rt.Runtime(str(secret)) as runtime:
        info = TokenizerInfo(runtime.config.model_name, 2048, 1024, runtime.tool_format)
        with running_server(runtime, ServeConfig(port=0), info) as url:
            client = HttpClient(url)
            found = client.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "model": "my-model"})
            assert found.json["model"] == "my-model"
            wrong = client.post("/v1/completions", {"prompt": "x", "model": str(secret)})
            assert wrong.status == 404
            assert wrong.json["error"]["message"].endswith("expected 'my-model'")
            paths = (
                "/v1/models",
                "/version",
                "/server_info",
                "/get_model_info",
                "/v1/engine/snapshot",
                "/tokenizer_info",
                "/metrics",
                "/ready",
            )
            for path in paths:
                answer = client.get(path)
                assert answer.status == 200, path
                assert b"secret" not in answer.body, path
            with WireClient(url) as wire:
                assert "secret" not in str(wire.greet())


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.completions.create(model="gpt", prompt="Once")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_seed_repeats_a_chat_and_its_stream(client: OpenAI, plain: HttpClient) -> None:
    body = {"model": "default", "messages": MESSAGES, "n": 2, "seed": 5, "max_tokens": 12, "temperature": 1.5}
    whole = read_chat(plain.post("/v1/chat/completions", body).json)
    texts = [choice.message.content for choice in whole.choices]
    again = client.chat.completions.create(**body)  # type: ignore[call-overload]
    assert [choice.message.content for choice in again.choices] == texts
    events = plain.post(
        "/v1/chat/completions", body | {"stream": True, "stream_options": {"include_usage": True}}
    ).events
    found = joined_chunks(events)
    assert [found[i]["content"] for i in range(2)] == texts
    assert events[-1]["usage"]["completion_tokens"] == whole.usage.completion_tokens  # type: ignore[union-attr]


VERDICT = {
    "type": "object",
    "properties": {
        "thought": {"type": "string", "maxLength": 8},
        "count": {"type": "integer"},
        "answer": {"enum": ["yes", "no"]},
    },
    "required": ["thought", "count", "answer"],
    "additionalProperties": False,
}
VERDICT_TOOL: list[Any] = [{"type": "function", "function": {"name": "tell", "parameters": VERDICT}}]
VERDICT_FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": VERDICT}}
VERDICT_TAG: Any = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": VERDICT}}


@pytest.mark.parametrize(
    "door", ["response_format", "tag", "guided_json", "outputs", "tools", "completions", "responses"]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_verdict_follows_its_thought_and_counts_are_integers_at_every_door(
    client: OpenAI, door: str, seed: int
) -> None:
    chat: Any = {"model": "default", "messages": MESSAGES, "max_tokens": 60, "temperature": 1.5, "seed": seed}
    extra = {"guided_json": {"guided_json": VERDICT}, "outputs": {"structured_outputs": {"json": VERDICT}}}
    text: str | None
    if door == "completions":
        options: Any = {key: chat[key] for key in chat if key != "messages"}
        guided = extra["guided_json"]
        text = client.completions.create(prompt="Once", extra_body=guided, **options).choices[0].text
    elif door == "responses":
        form: Any = {"format": {"type": "json_schema", "name": "v", "strict": True, "schema": VERDICT}}
        text = client.responses.create(
            model="default", input="Hi", text=form, max_output_tokens=60, temperature=1.5
        ).output_text
    elif door == "tools":
        reply = client.chat.completions.create(tools=VERDICT_TOOL, tool_choice="required", **chat)
        (call,) = reply.choices[0].message.tool_calls or []
        text = call.function.arguments  # type: ignore[union-attr]
    else:
        forms = {"response_format": VERDICT_FORMAT, "tag": VERDICT_TAG}
        body = extra.get(door) or {"response_format": forms[door]}
        text = client.chat.completions.create(extra_body=body, **chat).choices[0].message.content
    value = json.loads(text or "")
    assert list(value) == list(VERDICT["properties"])  # type: ignore[call-overload]
    assert type(value["count"]) is int


def test_a_request_may_ask_for_every_order_and_every_spelling(client: OpenAI) -> None:
    options: Any = {"model": "default", "messages": MESSAGES, "max_tokens": 90, "temperature": 1.5}
    texts = [
        client.chat.completions.create(
            response_format=VERDICT_FORMAT,
            seed=seed,
            extra_body={"json_style": {"order": "any", "numbers": "any", "whitespace": "compact"}},
            **options,
        )
        .choices[0]
        .message.content
        for seed in range(12)
    ]
    values = [json.loads(text) for text in texts]
    assert len({tuple(value) for value in values}) > 1
    assert {type(value["count"]) for value in values} == {int, float}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(extra_body={"json_style": {"order": "sideways"}}, **options)
    assert caught.value.param == "json_style.order"


@pytest.mark.parametrize("is_stream", [False, True])
def test_log_probabilities_belong_to_the_tokens(plain: HttpClient, is_stream: bool) -> None:
    body = {"messages": MESSAGES, "max_tokens": 6, "logprobs": True, "top_logprobs": 2, "temperature": 0}
    answer = plain.post("/v1/chat/completions", body | {"stream": is_stream})
    if is_stream:
        (choice,) = joined_chunks(answer.events).values()
        content, tokens = choice["content"], choice["tokens"]
    else:
        (found,) = read_chat(answer.json).choices
        assert found.logprobs is not None
        content, tokens = found.message.content, found.logprobs.content
    assert b"".join(bytes(each.bytes) for each in tokens).decode() == content
    assert all(each.top_logprobs[0].token == each.token for each in tokens)  # at temperature 0


def test_prompts_of_text_and_of_token_ids_are_completed_alike(plain: HttpClient) -> None:
    ids = plain.post("/v1/completions", {"prompt": "Once upon", "echo": True, "logprobs": 0, "max_tokens": 0}).json
    tokens = read_completion(ids).choices[0].logprobs
    assert tokens is not None
    assert tokens.tokens is not None
    assert "".join(tokens.tokens) == "Once upon"
    body = {"prompt": ["Once upon", "Once upon"], "max_tokens": 5, "temperature": 0, "echo": True}
    first, second = read_completion(plain.post("/v1/completions", body).json).choices
    assert first.text == second.text
    assert first.text.startswith("Once upon")
    events = plain.post("/v1/completions", body | {"stream": True, "echo": False}).events
    texts = ["".join(c["text"] for event in events for c in event["choices"] if c["index"] == i) for i in range(2)]
    assert [f"Once upon{text}" for text in texts] == [first.text, second.text]


def test_a_completion_begins_and_ends_where_it_is_asked_to(plain: HttpClient) -> None:
    def choice(**options: Any) -> dict[str, Any]:
        body = {
            "prompt": "Once upon a time there was",
            "temperature": 0,
            "max_tokens": 12,
            "ignore_eos": True,
        } | options
        response = plain.post("/v1/completions", body).json
        assert "choices" in response, response
        return response["choices"][0] | {"usage": response["usage"]}

    nothing = choice(max_tokens=0)
    assert (nothing["text"], nothing["finish_reason"], nothing["usage"]["completion_tokens"]) == ("", "length", 0)
    whole = choice()["text"]
    stop = whole[3:5]
    end = whole.index(stop)
    assert choice(stop=stop)["text"] == whole[:end]
    assert choice(stop=stop, include_stop_str_in_output=True)["text"] == whole[: end + 2]
    short = choice(truncate_prompt_tokens=3)
    assert short["usage"]["prompt_tokens"] == 3
    number = choice(regex="[0-9]{2}(, [0-9]{2})*", stop=", ")
    assert (number["text"].isdecimal(), number["finish_reason"]) == (True, "stop")
    for field, options in (
        ("truncate_prompt_tokens", {"truncate_prompt_tokens": 3, "echo": True}),
        ("truncate_prompt_tokens", {"truncate_prompt_tokens": -1}),
        ("include_stop_str_in_output", {"include_stop_str_in_output": True, "regex": "a+"}),
        ("logits_processors", {"logits_processors": ["f"]}),
    ):
        refused = plain.post("/v1/completions", {"prompt": "Once"} | options)
        assert (refused.status, refused.json["error"]["param"]) == (400, field)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_chat_that_is_too_long_for_the_model_may_be_truncated(plain: HttpClient, is_stream: bool) -> None:
    body = {"messages": [{"role": "user", "content": "all of it " * 1000}], "max_tokens": 4, "stream": is_stream}
    assert plain.post("/v1/chat/completions", body).status == 400
    response = plain.post("/v1/chat/completions", body | {"truncate_prompt_tokens": 100})
    assert response.status == 200
    if not is_stream:
        assert response.json["usage"]["prompt_tokens"] == 100


@pytest.mark.parametrize(
    "extra",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY, "strict": True}}},
        {"structured_outputs": {"json": CITY}},
        {"ebnf": 'root ::= "{\\"city\\": \\"" [a-z]{1,5} "\\"}"'},
        {"regex": '\\{"city": "[a-z]{1,5}"\\}'},
    ],
)
def test_structured_output_is_held_to_its_form(client: OpenAI, extra: dict[str, Any]) -> None:
    answer = client.chat.completions.create(model="default", messages=MESSAGES, max_tokens=60, extra_body=extra)
    assert isinstance(json.loads(answer.choices[0].message.content or "")["city"], str)


def test_calls_are_held_to_the_tools_and_their_results_go_on(client: OpenAI) -> None:
    named: Any = {"type": "function", "function": {"name": "weather"}}
    options: dict[str, Any] = {"model": "default", "tools": TOOLS, "max_tokens": 80}
    found = client.chat.completions.create(messages=MESSAGES, tool_choice=named, **options)
    ((name, arguments),) = calls_of(found)
    assert name == "weather"
    assert json.loads(arguments).keys() == {"city"}
    assert found.choices[0].finish_reason == "tool_calls"
    message = found.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}  # type: ignore[index]
    chunks = client.chat.completions.create(
        messages=[*MESSAGES, message, result], tool_choice="required", stream=True, **options
    )
    (choice,) = joined_chunks(chunk.to_dict() for chunk in chunks).values()
    assert {name for name, _, _ in choice["calls"]} <= {"weather", "now"}
    assert all(isinstance(json.loads(arguments), dict) for _, arguments, _ in choice["calls"])


CHECKED: dict[str, dict[str, Any]] = {
    "distinct": {"type": "array", "items": {"type": "string", "maxLength": 4}, "uniqueItems": True, "maxItems": 3},
    "distinct objects": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
        "uniqueItems": True,
        "maxItems": 2,
    },
    "pattern": {"type": "string", "format": "regex", "maxLength": 2},
    "names": {"type": "object", "minProperties": 2, "maxProperties": 3, "propertyNames": {"maxLength": 3}},
    "one of a kind": {"type": "array", "contains": {"const": 1}, "maxContains": 1, "maxItems": 2},
    "not": {"type": "array", "items": {"enum": [0, 1]}, "maxItems": 3, "not": {"contains": {"const": 1}}},
}
"""Schemas with keywords that only a check enforces."""
UNCOMPILED = {"backreference": {"pattern": r"^(.)\1$"}, "elsewhere": {"$ref": "https://example.org/a.json"}}
"""Schemas that cannot be compiled."""


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", "required", "put"])
@pytest.mark.parametrize("kind", CHECKED)
def test_keywords_of_a_tool_that_masks_cannot_hold_are_checked(
    client: OpenAI, kind: str, choice: str, is_stream: bool
) -> None:
    parameters = {"type": "object", "properties": {"value": CHECKED[kind]}, "required": ["value"]}
    put: Any = {"type": "function", "function": {"name": "put", "parameters": parameters}}
    named: Any = {"type": "function", "function": {"name": "put"}} if choice == "put" else choice
    options: dict[str, Any] = {"model": "default", "max_tokens": 200, "tools": [*TOOLS, put], "tool_choice": named}
    refusals: list[openai.APIError] = []
    for seed in range(3):
        try:
            found = client.chat.completions.create(messages=MESSAGES, seed=seed, stream=is_stream, **options)
            chunks = [chunk.to_dict() for chunk in found] if is_stream else []
        except openai.APIError as error:
            refusals.append(error)
            continue
        calls = [call[:2] for call in joined_chunks(chunks)[0]["calls"]] if is_stream else calls_of(found)
        assert calls or choice == "auto"
        for name, arguments in calls:
            if name == "put":
                jsonschema.Draft202012Validator(parameters).validate(json.loads(arguments))
    assert {error.code for error in refusals} <= {"invalid_value"}
    assert all("tool put: " in error.message for error in refusals)


@pytest.mark.parametrize("kind", UNCOMPILED)
def test_a_tool_that_cannot_be_compiled_is_refused_only_where_it_must_be_called(plain: HttpClient, kind: str) -> None:
    parameters = {"type": "object", "properties": {"value": UNCOMPILED[kind]}}
    put: Any = {"type": "function", "function": {"name": "put", "parameters": parameters}}
    body = {"messages": MESSAGES, "tools": [*TOOLS, put], "max_tokens": 60}

    def answer(choice: Any, seed: int = 0) -> Any:
        named = choice if choice in ("auto", "required") else {"type": "function", "function": {"name": choice}}
        return plain.post("/v1/chat/completions", body | {"tool_choice": named, "seed": seed})

    assert answer("weather").status == 200
    answers = [answer(choice, seed) for choice in ("auto", "required") for seed in range(6)]
    assert 200 in {each.status for each in answers}
    for each in (answer("put"), *(each for each in answers if each.status != 200)):
        assert (each.status, each.json["error"]["code"], each.json["error"]["param"]) == (400, "constraint", "tools")
        assert each.json["error"]["message"].startswith("tool put: ")
        assert "#/properties/value" in each.json["error"]["message"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"regex": "[a"}, 400, "constraint", "regex"),
        ({"response_format": NO_SCHEMA}, 400, "constraint", "response_format"),
        ({"tools": TOOLS, "tool_choice": "required", "max_tokens": 2}, 400, "budget", "max_tokens"),
        ({"messages": [{"role": "user", "content": "x" * 9000}]}, 400, "context_length_exceeded", None),
        ({"best_efforts": True}, 400, "parameter", "best_efforts"),
        ({"logit_bias": {"99999": 1}}, 400, "parameter", "logit_bias"),
        ({"model": "gpt"}, 404, "model_not_found", "model"),
    ],
)
def test_an_error_before_the_first_token_is_an_error_response(
    plain: HttpClient, body: dict[str, Any], status: int, code: str, param: str | None, is_stream: bool
) -> None:
    answer = plain.post("/v1/chat/completions", {"messages": MESSAGES, "stream": is_stream} | body)
    error = answer.json["error"]
    assert (answer.status, error["code"], error["param"]) == (status, code, param)
    assert error["message"]


def test_malformed_bodies_are_refused(plain: HttpClient) -> None:
    for body, status in ((b"{", 400), (b"[]", 400), (b'{"messages": NaN}', 400), (b" " * (4 << 20) + b"{}", 413)):
        assert plain.post("/v1/chat/completions", body).status == status
    assert plain.get("/v1/chat/completions").status == 405


def test_there_are_no_embeddings(client: OpenAI) -> None:
    with pytest.raises(
        openai.NotFoundError, match=r"no embeddings.*trained to generate text.*server of an embedding model"
    ) as caught:
        client.embeddings.create(model="default", input="a", encoding_format="float")
    assert (caught.value.code, caught.value.param) == ("not_supported", "model")


def test_the_prompt_is_named_where_it_is_wrong(plain: HttpClient) -> None:
    error = plain.post("/v1/completions", {"prompt": [-1]}).json["error"]
    assert (error["param"], error["code"]) == ("prompt", "parameter")


def test_overload_says_when_to_retry() -> None:
    with serving() as server:
        server.target.refusal = OverloadError("the queue is full", 2.5)
        for is_stream in (False, True):
            answer = HttpClient(server.url).post("/v1/completions", {"prompt": "a", "stream": is_stream})
            assert (answer.status, answer.headers["retry-after"]) == (429, "3")


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_cancels_its_graph(is_stream: bool) -> None:
    with serving() as server:
        body = json.dumps({"prompt": "a", "max_tokens": 50, "stream": is_stream}).encode()
        with socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port), 20) as connection:
            connection.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            server.target.wait_for(1)
            server.target.step("piece")
            if is_stream:
                assert b"200 OK" in connection.recv(100)
        run = server.target.runs[0]
        wait_until(lambda: run.was_cancelled)
        server.target.step()


class City(BaseModel):
    city: str


def test_the_helpers_of_the_client_parse_replies(client: OpenAI) -> None:
    options: dict[str, Any] = {"model": "default", "messages": MESSAGES, "max_tokens": 120}
    answer = client.chat.completions.parse(response_format=City, **options)
    assert isinstance(answer.choices[0].message.parsed, City)
    tool = openai.pydantic_function_tool(City)
    with client.chat.completions.stream(tools=[tool], tool_choice="required", **options) as stream:
        kinds = {event.type for event in stream}
        (call, *_) = stream.get_final_completion().choices[0].message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, City)
    assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
