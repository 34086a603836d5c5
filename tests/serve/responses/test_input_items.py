"""Input items become stored items and chat messages; opaque texts are opened, or kept as they came."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from rtlang.contract.errors import ParameterError
from rtlang.serve.responses.client_tools import ClientTools
from rtlang.serve.responses.input_items import (
    COMPACTED,
    MAX_ITEMS,
    THOUGHT,
    ChatHistory,
    Message,
    read_items,
    without_old_thoughts,
)
from rtlang.serve.responses.sealing import Sealer

ITEM: TypeAdapter[Any] = TypeAdapter(ResponseItem)
SEALER = Sealer()


def items_of(value: Any) -> list[dict[str, Any]]:
    numbers = count()
    return read_items(value, lambda prefix: f"{prefix}_{next(numbers)}")


def messages_of(value: Any, tools: ClientTools | None = None) -> list[Message]:
    history = ChatHistory(tools or ClientTools(), lambda purpose, text: SEALER.open("ann", purpose, text))
    history.add(items_of(value), "input")
    assert len(history.origins) == len(history.messages)
    return history.messages


def test_items_become_messages_with_calls_and_their_results() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs", "summary": []},
        {
            "type": "message",
            "id": "m",
            "status": "completed",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "wait", "annotations": []}],
        },
        {"type": "function_call", "id": "f", "call_id": "1", "name": "look", "arguments": "{}", "status": "completed"},
        {"type": "function_call", "call_id": "2", "name": "look", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "y"}]},
    ]
    assert messages_of(items) == [
        {"role": "user", "content": "ab"},
        {
            "role": "assistant",
            "content": "wait",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "2", "content": "y"},
    ]
    alone = messages_of(items[3:4])
    assert (alone[0]["role"], alone[0]["content"]) == ("assistant", None)


CALLS = [
    ({"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": 'a"b'}, "patch", '{"input":"a\\"b"}'),
    (
        {"type": "custom_tool_call", "call_id": "1", "namespace": "crm", "name": "say", "input": ""},
        "crm__say",
        '{"input":""}',
    ),
    (
        {"type": "function_call", "call_id": "1", "namespace": "crm", "name": "get", "arguments": '{"a":1}'},
        "crm__get",
        '{"a":1}',
    ),
    (
        {"type": "local_shell_call", "id": "1", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        "local_shell",
        '{"command":["ls"],"env":{}}',
    ),
    ({"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}}, "shell", '{"commands":["ls"]}'),
    (
        {"type": "apply_patch_call", "call_id": "1", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        '{"operation":{"type":"delete_file","path":"a"}}',
    ),
    (
        {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {"query": "x"}},
        "tool_search",
        '{"query":"x"}',
    ),
]
OUTPUTS = [
    ({"type": "custom_tool_call_output", "call_id": "1", "output": "done"}, "done"),
    ({"type": "custom_tool_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "p"}]}, "p"),
    ({"type": "local_shell_call_output", "id": "1", "output": "out"}, "out"),
    (
        {
            "type": "shell_call_output",
            "call_id": "1",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]',
    ),
    (
        {"type": "apply_patch_call_output", "call_id": "1", "status": "failed", "output": "no file"},
        '{"status":"failed","output":"no file"}',
    ),
]


def test_calls_of_every_kind_of_tool_are_calls_of_functions() -> None:
    for item, name, arguments in CALLS:
        (message,) = messages_of([item])
        (call,) = message["tool_calls"]
        assert (call["id"], call["function"]) == ("1", {"name": name, "arguments": arguments})
    for item, text in OUTPUTS:
        assert messages_of([item]) == [{"role": "tool", "tool_call_id": "1", "content": text}]


def test_an_output_that_no_call_asked_for_is_told_by_its_name() -> None:
    given = {"type": "function_call_output", "name": "goal_objective", "namespace": "agent", "output": "do it"}
    assert messages_of([given]) == [{"role": "developer", "content": "agent__goal_objective: do it"}]
    for missing in ({"type": "function_call_output", "output": "x"}, {"type": "shell_call_output", "output": "x"}):
        with pytest.raises(ParameterError, match=r"input\[0\]\.call_id"):
            messages_of([missing])


def test_tools_that_a_search_found_can_be_called() -> None:
    tools = ClientTools()
    found = {"type": "function", "name": "late", "parameters": {"type": "object", "properties": {}}}
    items: list[Any] = [
        {"type": "additional_tools", "role": "developer", "tools": [found]},
        {"type": "tool_search_output", "call_id": "1", "execution": "client", "tools": [found]},
    ]
    (message,) = messages_of(items, tools)
    assert message == {"role": "tool", "tool_call_id": "1", "content": '{"tools":["late"]}'}
    assert [tool.name for tool in tools.listed] == ["late"]


def test_a_thought_goes_with_the_message_after_it() -> None:
    shown = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": SEALER.seal("ann", THOUGHT, "hidden")}
    foreign = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAfromElsewhere"}
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    answer = {"role": "assistant", "content": "yes"}
    assert messages_of([shown, answer])[0]["reasoning_content"] == "hm"
    assert messages_of([sealed, call])[0]["reasoning_content"] == "hidden"
    assert "reasoning_content" not in messages_of([foreign, answer])[0]
    second = messages_of([call, sealed, call])
    assert [each.get("reasoning_content") for each in second] == [None, "hidden"]
    kept = items_of([foreign])[0]
    assert kept == foreign | {"id": "rs_0"}
    turns = messages_of([shown, answer, {"role": "user", "content": "more"}, sealed, call])
    assert [each.get("reasoning_content") for each in without_old_thoughts(turns)] == [None, None, "hidden"]


def test_a_compaction_is_the_items_that_it_stands_for() -> None:
    inner = items_of("before")
    compaction = {"type": "compaction", "encrypted_content": SEALER.seal("ann", COMPACTED, inner)}
    assert messages_of([compaction, {"role": "user", "content": "now"}]) == [
        {"role": "user", "content": "before"},
        {"role": "user", "content": "now"},
    ]
    for text in (SEALER.seal("bob", COMPACTED, inner), SEALER.seal("ann", THOUGHT, "x"), "gAAAA"):
        with pytest.raises(ParameterError, match=r"input\[0\]\.encrypted_content"):
            messages_of([compaction | {"encrypted_content": text}])


def test_stored_items_are_those_that_the_client_lists() -> None:
    listed = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    listed += [item for item, *_ in (*CALLS[:3], *CALLS[4:5])]
    listed += [OUTPUTS[0][0], {"type": "function_call_output", "call_id": "1", "output": "x"}]
    for item in items_of(listed):
        found = ITEM.validate_python({"status": "completed"} | item)
        assert found.id == item["id"]


def test_nulls_are_as_missing_fields() -> None:
    nulls = {"type": None, "id": None, "status": None, "phase": None}
    (item,) = items_of([nulls | {"role": "user", "content": "a"}])
    assert (item["type"], item["id"], item["status"]) == ("message", "msg_0", "completed")
    for call, name, _ in CALLS:
        (message,) = messages_of([call | {"status": None, "caller": None}])
        assert message["tool_calls"][0]["function"]["name"] == name


def test_references_are_replaced() -> None:
    item = items_of("a")[0]
    known = {"msg_0": item}
    for reference in ({"type": "item_reference", "id": "msg_0"}, {"id": "msg_0"}):
        assert read_items([reference], str, known.get) == [item]
    with pytest.raises(ParameterError, match=r"input\[0\]\.id"):
        read_items([{"id": "msg_1"}], str, known.get)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (3, "input"),
        (["a"], "input[0].type"),
        ([{"type": "web_search_call", "id": "x"}], "input[0].type"),
        ([{"type": ["message"]}], "input[0].type"),
        ([{"role": "user", "content": "a"}] * (MAX_ITEMS + 1), "input"),
        ([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], "input[0].content[0].type"),
        ([{"type": "function_call", "call_id": "1", "name": "f"}], "input[0].arguments"),
        ([{"type": "function_call", "call_id": "1", "name": "f", "arguments": "[]"}], "input[0].arguments"),
        ([{"type": "function_call", "name": "f", "arguments": "{}"}], "input[0].call_id"),
        ([{"type": "function_call_output", "output": "x"}], "input[0].call_id"),
        ([{"type": "custom_tool_call", "call_id": "1", "name": "f", "input": 3}], "input[0].input"),
        ([{"type": "shell_call", "call_id": "1"}], "input[0].action"),
        ([{"type": "reasoning", "summary": 3}], "input[0].summary"),
        ([{"role": "user", "content": "a", "speed": 1}], "input[0].speed"),
        (
            [{"type": "tool_search_output", "call_id": "1", "tools": [{"type": "computer"}]}],
            "input[0].tools[0].type",
        ),
    ],
)
def test_a_wrong_item_is_named(value: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        messages_of(value)
    assert caught.value.field == field


def test_notes_stand_for_images_and_files_in_outputs_of_tools() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"}
    parts = [{"type": "input_text", "text": "a"}, image, {"type": "input_file", "file_id": "file_1"}]
    text = "a[image left out: the model reads text only][file left out: the model reads text only]"
    for call, _, _ in CALLS:
        kind = f"{call['type']}_output"
        if kind in ("function_call_output", "custom_tool_call_output"):
            output = {"type": kind, "call_id": call["call_id"], "output": parts}
            assert messages_of([call, output])[-1] == {"role": "tool", "tool_call_id": call["call_id"], "content": text}
    with pytest.raises(ParameterError) as caught:
        messages_of([{"type": "function_call_output", "call_id": "1", "output": [{"type": "hologram"}]}])
    assert caught.value.field == "input[0].output[0].type"


def test_a_call_that_was_cut_is_left_out() -> None:
    cut = {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a', "status": "incomplete"}
    assert messages_of([{"role": "user", "content": "a"}, cut]) == [{"role": "user", "content": "a"}]
