"""The responses route through the official client: create, stream, continue, read and delete; errors keep the names of the route."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from rtlang.contract.errors import BudgetError, ConstraintError, DeadEndError, NumericsError
from tests.support.programs.fake_target import FakeTarget
from tests.support.programs.fake_text_service import FakeTextService
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


def test_failures_of_a_constraint_name_the_fields_of_this_route(url: str, target: FakeTarget) -> None:
    form = {"type": "json_schema", "name": "p", "schema": {"type": "object"}}
    script = target.script
    for error, param in (
        (ConstraintError("no"), "text.format"),
        (DeadEndError("say "), "text.format"),
        (BudgetError(2, 5), "max_output_tokens"),
    ):
        target.script = lambda call, error=error: error  # type: ignore[misc]
        for more in ({}, {"stream": True}):
            answer = HttpClient(url).post("/v1/responses", {"input": "a", "text": {"format": form}} | more)
            assert (answer.status, answer.json["error"]["param"]) == (400, param)
            assert "max_tokens" not in answer.json["error"]["message"]
    target.script = script


def test_items_are_listed_and_named_again(client: OpenAI) -> None:
    first = client.responses.create(model="default", input="1")
    second = client.responses.create(model="default", input="2", previous_response_id=first.id)
    items: Any = list(client.responses.input_items.list(second.id, order="asc", limit=2))  # follows the pages
    assert [item.content[0].text for item in items] == ["1", first.output_text, "2"]
    named: Any = [{"type": "item_reference", "id": items[0].id}, {"type": "item_reference", "id": first.output[0].id}]
    third = client.responses.create(model="default", input=named, store=False)
    assert third.output_text == f"[<user>1</><assistant>{first.output_text}</><assistant>]"


def test_a_conversation_is_compacted_to_an_opaque_item(client: OpenAI, target: FakeTarget) -> None:
    script, target.script = target.script, lambda call: "SUMMARY" if "replaced by a summary" in call.prompt else "ok"
    try:
        first = client.responses.create(model="default", input="remember 7")
        made = client.responses.compact(model="default", previous_response_id=first.id)
    finally:
        target.script = script
    (item,) = made.output
    assert item.type == "compaction"
    assert "SUMMARY" not in item.encrypted_content
    plain: Any = [item.to_dict(), {"role": "user", "content": "and now?"}]
    again = client.responses.create(model="default", input=plain)
    assert again.output_text.startswith("[<user>remember 7</><user>Summary of")
    assert again.output_text.endswith("SUMMARY</><user>and now?</><assistant>]")
    listed: Any = list(client.responses.input_items.list(again.id, order="asc"))
    assert listed[0].encrypted_content == item.encrypted_content  # as it came


def test_a_trigger_at_the_end_of_the_input_asks_for_a_compaction(client: OpenAI, url: str, target: FakeTarget) -> None:
    """As Codex does (remote compaction): one item, sent as a stream, then `response.completed`."""
    plain: Any = [{"role": "user", "content": "remember 7"}, {"type": "compaction_trigger"}]
    script, target.script = target.script, lambda call: "SUMMARY"
    try:
        with client.responses.create(model="default", input=plain, stream=True, tool_choice="auto") as stream:
            events = list(stream)
        assert [event.type for event in events] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.compaction.compacting",
            "response.output_item.done",
            "response.completed",
        ]
        assert [event.sequence_number for event in events] == list(range(6))
        whole = HttpClient(url).post("/v1/responses", {"input": plain}).json
    finally:
        target.script = script
    Response.model_validate(whole)
    assert [item["type"] for item in whole["output"]] == ["compaction"]
    again = client.responses.create(model="default", input="now", previous_response_id=whole["id"])
    assert again.output_text.startswith("[<user>remember 7</><user>Summary of")
    assert again.output_text.endswith("SUMMARY</><user>now</><assistant>]")
    for wrong, param in (
        ({"input": [plain[1]]}, "input"),
        ({"input": [plain[1], plain[0]]}, "input[0].type"),
        ({"input": plain, "text": True}, "text"),
        ({"input": plain, "tool_choice": {}}, "tool_choice.type"),
        ({"input": plain, "include": 3}, "include"),
    ):
        answer = HttpClient(url).post("/v1/responses", wrong)
        assert (answer.status, answer.json["error"]["param"]) == (400, param)


def test_responses_to_every_kind_of_tool_are_read_by_the_models_of_the_client(url: str) -> None:
    function = {"name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
    tools: list[Any] = [
        {"type": "function", **function},
        {"type": "function", "function": function | {"name": "see"}},
        {"type": "custom", "name": "say", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "get"}]},
        {"type": "local_shell"},
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "apply_patch"},
        {"type": "tool_search", "execution": "client"},
        {"type": "web_search"},
    ]
    for choice in (
        "auto",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "say"}]},
        {"type": "custom", "name": "say"},
        {"type": "apply_patch"},
    ):
        body = {"model": "default", "input": "a", "tools": tools, "tool_choice": choice, "service_tier": "flex"}
        body |= {"text": {"verbosity": "low"}, "reasoning": {"summary": "auto"}, "truncation": "auto"}
        answer = HttpClient(url).post("/v1/responses", body)
        assert answer.status == 200, answer.json
        found = Response.model_validate(answer.json)
        assert [tool.type for tool in found.tools] == [tool["type"] for tool in tools]
        assert (found.service_tier, found.truncation) == ("flex", "auto")


class TextTarget(FakeTarget):
    """Counts a token for every character; a prompt has at most 64."""

    text_service = FakeTextService()


def test_prompts_are_counted_and_cut_to_the_context() -> None:
    with TextTarget(lambda call: call.prompt) as target, serving(target) as server:  # type: ignore[arg-type]
        http = HttpClient(server.url)
        answer = http.post("/v1/responses/input_tokens", {"input": "hello", "instructions": "be"})
        num_tokens = len("<system>be</><user>hello</><assistant>")
        assert answer.json == {"object": "response.input_tokens", "input_tokens": num_tokens}
        assert http.post("/v1/responses/input_tokens", {"input": "a", "top_p": 1}).json["error"]["param"] == "top_p"
        items: list[dict[str, Any]] = [
            {"role": "user", "content": "old"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
            {"role": "user", "content": ""},
        ]
        texts = ["<user>old</>", "<assistant></>", "<tool>r</>"]
        # Room for 62 tokens; a result of a call never stays without the call.
        for num_chars, num_dropped in ((6, 0), (7, 1), (18, 1), (19, 3), (42, 3), (43, 0)):
            items[-1]["content"] = "n" * num_chars
            for truncation in ("auto", "disabled"):
                body = {"input": items, "truncation": truncation, "max_output_tokens": 2}
                made = http.post("/v1/responses", body).json
                kept = "".join(texts[num_dropped if truncation == "auto" else 0 :])
                expected = f"{kept}<user>{'n' * num_chars}</><assistant>"
                assert (made["output"][0]["content"][0]["text"], made["truncation"]) == (expected, truncation)


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
