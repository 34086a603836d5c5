"""Responses in rounds: a scripted model calls the tools of a listed MCP server, read by the types of the `openai` package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.http import mcp_rounds
from rtlang.serve.responses import mcp_servers
from rtlang.serve.server import TokenizerInfo, running_server

SERVER = '''
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("shop")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def price(item: str) -> str:
    """The price of an item."""
    if item == "car":
        raise ToolError("no such item")
    return f"{len(item)} euros"

@server.tool()
def buy(item: str) -> str:
    return f"bought {item}"

server.run()
'''
SCRIPT = """
format: hermes
max_model_len: 4096
rules:
  - when: {user: price, tools: [shop__price]}
    replies:
      - thought: I ask.
        content: Let me see.
        calls: [{name: shop__price, arguments: {item: mug}}, {name: shop__price, arguments: {item: car}}]
      - calls: [{name: shop__price, arguments: {item: lamp}}]
      - A mug costs 3 euros.
  - when: {user: both, tools: [shop__price, pay]}
    replies:
      - calls: [{name: shop__price, arguments: {item: mug}}, {name: pay, arguments: {euros: 3}}]
  - when: {user: again, tools: [shop__price]}
    replies: [As I said.]
  - when: {user: long, tools: [shop__buy]}
    repeats: true
    replies: [{calls: [{name: shop__buy, arguments: {item: mug}}]}]
"""
SHOP: dict[str, Any] = {"type": "mcp", "server_label": "shop", "require_approval": "never"}
PAY = {
    "type": "function",
    "name": "pay",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"euros": {"type": "integer"}},
        "required": ["euros"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = tmp_path_factory.mktemp("rounds")
    (folder / "script.yaml").write_text(SCRIPT)
    (folder / "server.py").write_text(SERVER)
    listed = (f"shop={sys.executable} {folder / 'server.py'}", "gone=/no/such/program")
    with rt.Runtime(model=f"script:{folder / 'script.yaml'}") as runtime:
        info = TokenizerInfo("m", runtime.text_service.info.vocab_size, 4096, runtime.tool_format)
        with (
            running_server(runtime, ServeConfig(port=0, mcp_servers=listed), info) as url,
            OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="-", max_retries=0) as client,
        ):
            yield client


def created(client: OpenAI, text: str, *tools: Any, **more: Any) -> Any:
    return client.responses.create(model="m", input=text, tools=list(tools or [SHOP]), **more)


def test_calls_are_made_until_the_model_answers(client: OpenAI) -> None:
    response = created(client, "The price?")
    kinds = [item.type for item in response.output]
    assert kinds == ["mcp_list_tools", "reasoning", "message", "mcp_call", "mcp_call", "mcp_call", "message"]
    listed, mug, car, lamp = (response.output[i] for i in (0, 3, 4, 5))
    assert [tool.name for tool in listed.tools] == ["price", "buy"]
    assert (mug.output, mug.error, mug.status) == ("3 euros", None, "completed")
    assert (car.output, car.status) == (None, "failed")
    assert "no such item" in car.error.content[0]["text"]
    assert (lamp.name, lamp.server_label, lamp.output) == ("price", "shop", "4 euros")
    assert (response.status, response.output_text) == ("completed", "Let me see.A mug costs 3 euros.")
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.tools[0].type == "mcp"
    again = created(client, "And again?", previous_response_id=response.id)
    assert (again.output_text, [item.type for item in again.output]) == ("As I said.", ["message"])


def test_a_stream_is_one_response(client: OpenAI) -> None:
    events = list(created(client, "The price?", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    final = events[-1].response
    assert events[-1].type == "response.completed"
    assert {event.response.id for event in events if hasattr(event, "response")} == {final.id}
    done = [event for event in events if event.type == "response.output_item.done"]
    assert sorted((event.output_index, event.item.id) for event in done) == [
        (i, item.id) for i, item in enumerate(final.output)
    ]
    assert [event.item.to_dict() for event in sorted(done, key=lambda event: event.output_index)] == [
        item.to_dict() for item in final.output
    ]
    kinds = [event.type.removeprefix("response.") for event in events if "mcp" in event.type]
    assert [kind for kind in kinds if "arguments" not in kind] == [
        *("mcp_list_tools.in_progress", "mcp_list_tools.completed"),
        *("mcp_call.in_progress", "mcp_call.in_progress", "mcp_call.completed", "mcp_call.failed"),
        *("mcp_call.in_progress", "mcp_call.completed"),
    ]
    arguments = [event.arguments for event in events if event.type == "response.mcp_call_arguments.done"]
    assert arguments == ['{"item": "mug"}', '{"item": "car"}', '{"item": "lamp"}']


def test_a_response_repeats_the_choice_of_the_request(client: OpenAI) -> None:
    choice = {"type": "mcp", "server_label": "shop", "name": "buy"}
    response = created(client, "A long walk.", tool_choice=choice, max_tool_calls=1)
    assert [item.type for item in response.output][:2] == ["mcp_list_tools", "mcp_call"]
    assert response.tool_choice.to_dict() == choice
    assert created(client, "The price?").tool_choice == "auto"


def test_a_call_that_only_the_client_can_make_ends_the_rounds(client: OpenAI) -> None:
    response = created(client, "Do both.", SHOP, PAY)
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "function_call"]
    assert (response.output[1].output, response.output[2].arguments) == ("3 euros", '{"euros": 3}')


def test_calls_and_tools_are_limited(client: OpenAI) -> None:
    only = {**SHOP, "allowed_tools": {"read_only": True}}
    listed = created(client, "The price?", only).output[0]
    assert [tool.name for tool in listed.tools] == ["price"]
    cut = created(client, "A long walk.", max_tool_calls=2)  # the script wants a third one: its text is no call then
    assert [item.type for item in cut.output] == ["mcp_list_tools", "mcp_call", "mcp_call", "message"]
    one = created(client, "The price?", max_tool_calls=1)  # the model makes two calls at once
    calls = [item for item in one.output if item.type == "mcp_call"]
    assert [call.output for call in calls] == ["3 euros", None]
    assert "max_tool_calls" in calls[1].error.content[0]["text"]
    for limit in (0, 1, 2):
        called = created(client, "A long walk.", max_tool_calls=limit).output
        assert sum(item.type == "mcp_call" and item.error is None for item in called) == limit


def test_rounds_and_results_are_limited(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_rounds, "MAX_ROUNDS", 3)
    monkeypatch.setattr(mcp_servers, "MAX_OUTPUT_CHARS", 6)
    response = created(client, "A long walk.")
    calls = [item for item in response.output if item.type == "mcp_call"]
    assert [call.output for call in calls] == ["bought"] * 3


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ({"server_label": "bank"}, "tools[0].server_label"),
        ({"require_approval": "always"}, "tools[0].require_approval"),
        ({"require_approval": None}, "tools[0].require_approval"),
        ({"server_url": "http://127.0.0.1/"}, "tools[0].server_url"),
        ({"authorization": "secret"}, "tools[0].authorization"),
        ({"allowed_tools": ["sell"]}, "tools[0].allowed_tools"),
        ({"allowed_tools": 3}, "tools[0].allowed_tools"),
    ],
)
def test_what_is_not_listed_is_refused_by_name(client: OpenAI, tool: dict[str, Any], field: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        created(client, "The price?", {**SHOP, **tool})
    assert refused.value.param == field


def test_a_server_that_cannot_be_reached_is_an_item(client: OpenAI) -> None:
    response = created(client, "The price?", SHOP, {**SHOP, "server_label": "gone"})
    listed = [item for item in response.output if item.type == "mcp_list_tools"]
    assert [item.error is None for item in listed] == [True, False]
