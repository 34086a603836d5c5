"""Conversations through the official client: their items, and the responses that belong to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target, serving(target) as server:  # type: ignore[arg-type]
        yield server.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="any", max_retries=0) as client:
        yield client


def test_a_conversation_is_created_changed_and_deleted(client: OpenAI) -> None:
    made = client.conversations.create(items=[{"role": "user", "content": "one"}], metadata={"a": "b"})
    assert client.conversations.retrieve(made.id) == made
    assert client.conversations.update(made.id, metadata={"c": "d"}).metadata == {"c": "d"}
    added = client.conversations.items.create(
        made.id, items=[{"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
    )
    ids = [item.id for item in client.conversations.items.list(made.id, order="asc", limit=2)]  # follows the pages
    assert ids[1:] == [item.id for item in added.data]
    assert client.conversations.items.retrieve(ids[1], conversation_id=made.id).id == ids[1]
    client.conversations.items.delete(ids[1], conversation_id=made.id)
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(ids[1], conversation_id=made.id)
    assert client.conversations.delete(made.id).deleted
    for again in (client.conversations.retrieve, client.conversations.delete, client.conversations.items.list):
        with pytest.raises(openai.NotFoundError):
            again(made.id)


def test_a_response_reads_its_conversation_and_adds_to_it(client: OpenAI) -> None:
    made = client.conversations.create(items=[{"role": "user", "content": "one"}])
    first = client.responses.create(model="default", input="two", conversation=made.id)
    assert first.output_text == "[<user>one</><user>two</><assistant>]"
    assert first.conversation is not None
    assert first.conversation.id == made.id
    with client.responses.stream(model="default", input="three", conversation={"id": made.id}, store=False) as stream:
        second = stream.get_final_response()
    assert second.output_text == f"[<user>one</><user>two</><assistant>{first.output_text}</><user>three</><assistant>]"
    items: list[Any] = list(client.conversations.items.list(made.id, order="asc"))
    assert [item.content[0].text for item in items[:3]] == ["one", "two", first.output_text]
    assert [item.id for item in (items[2], items[4])] == [first.output[0].id, second.output[0].id]
    listed = [item.id for item in client.responses.input_items.list(first.id, order="asc")]
    assert listed == [item.id for item in items[:2]]


def test_what_is_wrong_is_named(url: str, client: OpenAI) -> None:
    made, http = client.conversations.create(), HttpClient(url)
    path = f"/v1/conversations/{made.id}"
    for where, body, param in (
        ("/v1/conversations", {"items": 3}, "items"),
        ("/v1/conversations", {"items": [{"role": "user", "content": 3}]}, "items[0].content"),
        ("/v1/conversations", {"metadata": {"a": 1}}, "metadata.a"),
        ("/v1/conversations", {"speed": 1}, "speed"),
        (path, {"items": []}, "items"),
        (f"{path}/items", {"items": [{"type": "item_reference", "id": "x"}]}, "items[0].id"),
        (f"{path}/items", {"items": [{"role": "user", "content": "a"}] * 21}, "items"),
        ("/v1/responses", {"input": "a", "conversation": 3}, "conversation"),
        ("/v1/responses", {"input": "a", "conversation": made.id, "previous_response_id": "r"}, "conversation"),
    ):
        answer = http.post(where, body)
        assert (answer.status, answer.json["error"]["param"]) == (400, param)
    answer = http.post("/v1/responses", {"input": "a", "conversation": "conv_unknown"})
    assert (answer.status, answer.json["error"]["code"]) == (404, "conversation_not_found")
    assert http.get(f"{path}/items?limit=0").json["error"]["param"] == "limit"
