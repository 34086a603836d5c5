"""The responses route through the official client: create, stream, continue, read and delete; errors keep the names of the route."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI

from rtlang.contract.errors import NumericsError
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

KEYS = {"ann": "a" * 20, "bob": "b" * 20}


@pytest.fixture(scope="module")
def target() -> Iterator[FakeTarget]:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target:
        yield target


@pytest.fixture(scope="module")
def url(target: FakeTarget) -> Iterator[str]:
    with serving(target) as server:  # type: ignore[arg-type]
        yield server.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="any", max_retries=0) as client:
        yield client


def test_a_response_is_created_read_and_deleted(client: OpenAI) -> None:
    made = client.responses.create(model="default", input="hi", instructions="be", metadata={"a": "b"})
    assert made.output_text == "[<system>be</><user>hi</><assistant>]"
    assert (made.status, made.metadata, made.store) == ("completed", {"a": "b"}, True)
    assert client.responses.retrieve(made.id).output_text == made.output_text
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_a_response_is_continued_without_its_instructions(client: OpenAI) -> None:
    first = client.responses.create(model="default", input="1", instructions="be")
    second = client.responses.create(model="default", input="2", previous_response_id=first.id)
    answer = "[<system>be</><user>1</><assistant>]"
    assert second.output_text == f"[<user>1</><assistant>{answer}</><user>2</><assistant>]"
    third = client.responses.create(model="default", input="3", previous_response_id=second.id, store=False)
    assert third.output_text.startswith(f"[<user>1</><assistant>{answer}</><user>2</>")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="default", input="4", previous_response_id=third.id)
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


def test_a_stream_ends_with_the_response(client: OpenAI) -> None:
    with client.responses.stream(model="default", input="hi") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == "[<user>hi</><assistant>]"
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert client.responses.retrieve(final.id).output_text == final.output_text


def test_a_failed_request_is_an_error_response_before_its_first_event(client: OpenAI, target: FakeTarget) -> None:
    script, target.script = target.script, lambda call: NumericsError("nan")
    try:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError) as caught:
                client.responses.create(model="default", input="hi", stream=stream)
            assert "nan" not in str(caught.value)
    finally:
        target.script = script


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "a", "max_output_tokens": 0}, "max_output_tokens"),
        ({"input": "a", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": [{"role": "boss", "content": "a"}]}, "input[0].role"),
        ({"input": "a", "store": 1}, "store"),
        ({"input": "a", "previous_response_id": 3}, "previous_response_id"),
        ({"input": "a", "tool_choice": "required"}, "tool_choice"),
    ],
)
def test_errors_name_the_fields_of_this_route(url: str, body: dict[str, object], param: str) -> None:
    answer = HttpClient(url).post("/v1/responses", body)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert answer.json["error"]["message"].startswith(param)
