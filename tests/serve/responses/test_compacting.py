"""A compacted conversation keeps instructions, the client's last messages and the summary."""

from __future__ import annotations

from typing import Any

from rtlang.serve.responses.compacting import compacted_items, summary_of, summary_request
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


def test_the_summary_is_the_text_of_the_response() -> None:
    part = {"type": "output_text", "text": "a", "annotations": []}
    output = [{"type": "reasoning"}, {"type": "message", "content": [part, part]}]
    assert summary_of({"output": output}) == "aa"
    assert texts_of([summary_request() | {"id": "m"}])[0][0] == "user"
