"""A compacted conversation keeps instructions, the client's last messages and the summary."""

from __future__ import annotations

from typing import Any

from rtlang.serve.responses.compacting import (
    MAX_SUMMARY_TOKENS,
    asks_for_compaction,
    compacted_items,
    summary_body,
    summary_request,
)
from rtlang.serve.responses.input_items import ChatHistory, read_items
from rtlang.serve.responses.request_body import ClientTools


def texts_of(items: Any) -> list[tuple[str, str]]:
    history = ChatHistory(ClientTools(), lambda purpose, text: None)
    history.add(items, "input")
    return [(message["role"], message["content"]) for message in history.messages]


def test_messages_of_the_client_are_kept_before_the_summary() -> None:
    plain = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "old" * 20_000},
        {"role": "user", "content": "first"},
        {"role": "user"},
        {"role": "assistant", "content": "yes"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"role": "user", "content": "second"},
    ]
    found = texts_of(compacted_items(read_items(plain, str), "SUMMARY"))
    assert found[:-1] == [("developer", "be brief"), ("user", "first"), ("user", ""), ("user", "second")]
    assert found[-1][0] == "user"
    assert found[-1][1].endswith("SUMMARY")


def test_the_request_for_the_summary_has_no_shape_of_an_answer() -> None:
    body = {"model": "m", "text": {"format": {}}, "tool_choice": "required", "instructions": "be", "tools": []}
    assert summary_body(body) == {
        "model": "m",
        "instructions": "be",
        "tools": [],
        "tool_choice": "none",
        "truncation": "auto",
        "max_output_tokens": MAX_SUMMARY_TOKENS,
    }
    assert summary_body(body | {"max_output_tokens": 7})["max_output_tokens"] == 7
    assert texts_of([summary_request() | {"id": "m"}])[0][0] == "user"
    items = read_items([{"role": "user", "content": "a"}, {"type": "compaction_trigger"}], str)
    assert [asks_for_compaction(each) for each in (items, items[:1], [])] == [True, False, False]
