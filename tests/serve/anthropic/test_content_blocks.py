"""Content blocks as chat messages: what each block becomes, what is refused under which name, and hints for the cache."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.anthropic.content_blocks import (
    CacheHints,
    chat_messages,
    signature_of,
    signed_thought,
    system_text,
)

USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "door"}}
CALL = {"id": "toolu_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "door"}'}}
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def tool(content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "toolu_1", "content": content}


def document(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, **more}


PLAIN = {"type": "text", "media_type": "text/plain", "data": "leaf"}
CASES: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
    ([user("hi")], [user("hi")]),
    ([user([])], [user("")]),
    ([user([text("a"), text("b", cache_control={"type": "ephemeral"}, citations=None)])], [user("ab")]),
    ([user("a"), user([text("b")])], [user("a\n\nb")]),
    (
        [user("a"), {"role": "system", "content": "s"}, user("b")],
        [user("a"), {"role": "system", "content": "s"}, user("b")],
    ),
    ([user("a"), assistant("b"), assistant("c"), user("d")], [user("a"), assistant("b\n\nc"), user("d")]),
    (
        [user("a"), assistant([text("b"), USE]), user([result("open"), text("go on")])],
        [user("a"), {**assistant("b"), "tool_calls": [CALL]}, tool("open"), user("go on")],
    ),
    (
        [user("a"), assistant("b"), assistant([USE]), user([result("c")])],
        [user("a"), {**assistant("b"), "tool_calls": [CALL]}, tool("c")],
    ),
    (
        [user("a"), assistant([USE]), assistant([text("later")]), user("d")],
        [user("a"), {**assistant(""), "tool_calls": [CALL]}, assistant("later"), user("d")],
    ),
    ([user([result([text("x"), text("y")])])], [tool("xy")]),
    ([user([{"type": "tool_result", "tool_use_id": "toolu_1"}])], [tool("")]),
    ([user([result("no such file", is_error=True)])], [tool("Error: no such file")]),
    ([user([result([], is_error=True)])], [tool("Error")]),
    (
        [user("a"), assistant([{"type": "thinking", "thinking": "so", "signature": "s"}, TEXT])],
        [user("a"), {**assistant("hi"), "reasoning_content": "so"}],
    ),
    (
        [
            user("a"),
            assistant([{"type": "thinking", "thinking": "", "signature": signature_of("só", is_shown=False)}, USE]),
        ],
        [user("a"), {**assistant(""), "reasoning_content": "só", "tool_calls": [CALL]}],
    ),
    ([assistant([{"type": "redacted_thinking", "data": "x"}, TEXT])], [assistant("hi")]),
    ([user([document(PLAIN), text("?")])], [user("<document>\nleaf\n</document>\n?")]),
    (
        [
            user(
                [
                    result(
                        [
                            document(
                                {"type": "content", "content": [TEXT]},
                                title="T",
                                context="C",
                                citations={"enabled": False},
                            )
                        ]
                    )
                ]
            )
        ],
        [tool("<document>\nT\nC\nhi\n</document>\n")],
    ),
    (
        [user([{"type": "search_result", "source": "u", "title": "T", "content": [TEXT]}])],
        [user("<search_result>\nT\nu\nhi\n</search_result>\n")],
    ),
]


def test_blocks_become_chat_messages() -> None:
    for given, expected in CASES:
        assert chat_messages({"messages": given}, CacheHints()) == expected
        system = chat_messages({"messages": given, "system": [text("be"), text(" good")]}, CacheHints())
        assert system == [{"role": "system", "content": "be good"}, *expected]


REFUSED: list[tuple[Any, str]] = [
    ([], "messages"),
    ("hi", "messages"),
    ([3], "messages[0]"),
    ([{"role": "tool", "content": ""}], "messages[0].role"),
    ([{"role": "user", "content": 3}], "messages[0].content"),
    ([{"role": "user", "content": "", "name": "bob"}], "messages[0].name"),
    ([user("a"), user(["hi"])], "messages[1].content[0]"),
    ([user([{"type": 3}])], "messages[0].content[0]"),
    ([user([{"type": "text"}])], "messages[0].content[0].text"),
    ([user([{**TEXT, "font": "bold"}])], "messages[0].content[0].font"),
    ([user([TEXT, IMAGE])], "messages[0].content[1].type"),
    ([user([{"type": "thinking", "thinking": "", "signature": ""}])], "messages[0].content[0].type"),
    ([user([USE])], "messages[0].content[0].type"),
    ([assistant([result("a")])], "messages[0].content[0].type"),
    (
        [assistant([{"type": "web_search_tool_result", "tool_use_id": "a", "content": []}])],
        "messages[0].content[0].type",
    ),
    (
        [assistant([{"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}}])],
        "messages[0].content[0].type",
    ),
    ([assistant([{**USE, "input": "door"}])], "messages[0].content[0].input"),
    ([assistant([{**USE, "caller": {"type": "code_execution_20250825"}}])], "messages[0].content[0].caller"),
    ([assistant([{**USE, "id": None}])], "messages[0].content[0].id"),
    ([user([result([USE])])], "messages[0].content[0].content[0].type"),
    ([user([result([TEXT, {"image": 1}])])], "messages[0].content[0].content[1]"),
    ([user([result("a", is_error="yes")])], "messages[0].content[0].is_error"),
    ([user([{"type": "tool_result", "content": "a"}])], "messages[0].content[0].tool_use_id"),
    (
        [user([document({"type": "base64", "media_type": "application/pdf", "data": ""})])],
        "messages[0].content[0].source.type",
    ),
    ([user([document({**PLAIN, "media_type": "text/html"})])], "messages[0].content[0].source.media_type"),
    ([user([document(PLAIN, citations={"enabled": True})])], "messages[0].content[0].citations.enabled"),
    ([user([document({"type": "content", "content": [IMAGE]})])], "messages[0].content[0].source.content[0].type"),
    ([user([text("a", cache_control={"type": "forever"})])], "messages[0].content[0].cache_control"),
    ([user([text("a", cache_control={"type": "ephemeral", "ttl": "2h"})])], "messages[0].content[0].cache_control.ttl"),
]


def test_what_is_not_supported_is_refused_by_its_path() -> None:
    for given, field in REFUSED:
        with pytest.raises(ParameterError) as caught:
            chat_messages({"messages": given}, CacheHints())
        assert caught.value.field == field, given
    with pytest.raises(ParameterError, match=r"system\[0\]\.type"):
        system_text([IMAGE], "system", CacheHints())


def test_the_longest_cache_control_of_all_blocks_counts() -> None:
    hints = CacheHints()
    chat_messages({"messages": [user("a")]}, hints)
    assert hints.keep_s is None
    for places, expected in (
        ({"messages": [user([text("a", cache_control={"type": "ephemeral", "scope": "global"})])]}, 300.0),
        ({"messages": [assistant([{**USE, "cache_control": {"type": "ephemeral", "ttl": "1h"}}])]}, 3600.0),
        ({"messages": [user([result("b", cache_control={"type": "ephemeral", "ttl": "5m"})])]}, 3600.0),
    ):
        chat_messages(places, hints)
        assert hints.keep_s == expected


def test_lines_for_the_biller_are_no_part_of_the_prompt() -> None:
    line = "x-anthropic-billing-header: cc_version=2.1.7c8; cch=0f3;"
    for system in (f"{line}\nbe", [text(line), text("be")], [text("be"), text(line)]):
        assert system_text(system, "system", CacheHints()) == "be"
    assert system_text(f"be\n{line}", "system", CacheHints()) == f"be\n{line}"
    only = {"messages": [user(line)], "system": [text(line)]}
    assert chat_messages(only, CacheHints()) == [user(line)]


def test_only_a_signature_of_this_server_holds_a_thought() -> None:
    for thought in ("", "so", "sö\n\U0001f642" * 50):
        assert signed_thought(signature_of(thought, is_shown=False)) == thought
        assert signed_thought(signature_of(thought, is_shown=True)) == ""
    for foreign in ("", "EqQBCgIYAhIM", "rtlang-1.%%%", "rtlang-1.gA==", "rtlang-1.abc", "rtlang-1.é"):
        assert signed_thought(foreign) == ""


def test_many_short_messages_are_joined_once() -> None:
    given = [user("word"), user([text("x")])] * 50_000
    (message,) = chat_messages({"messages": given}, CacheHints())
    assert message["content"] == "\n\n".join(["word", "x"] * 50_000)


def test_notes_stand_for_what_the_model_cannot_read_in_results_of_calls() -> None:
    pdf = document({"type": "base64", "media_type": "application/pdf", "data": "AA=="})
    given = [user("a"), assistant([USE]), user([result([TEXT, IMAGE, pdf, document(PLAIN)], is_error=True)])]
    last = chat_messages({"messages": given}, CacheHints())[-1]
    notes = "[image left out: the model reads text only][file left out: the model reads text only]"
    assert last == tool(f"Error: hi{notes}<document>\nleaf\n</document>\n")
    file = "[file left out: the model reads text only]"
    beside = chat_messages({"messages": [*given[:2], user([result("read"), pdf, text("go on")])]}, CacheHints())
    assert beside[-2:] == [tool("read"), user(f"{file}go on")]
