"""Tools of every kind become functions, and calls of them become the items that clients expect."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from lark import Lark
from lark.exceptions import LarkError
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCallItem,
    ResponseFunctionShellToolCall,
    ResponseFunctionToolCallItem,
    ResponseToolSearchCall,
)
from openai.types.responses.response_item import LocalShellCall

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.tools import read_tool_request
from rtlang.serve.responses.client_tools import UNCALLED, ClientTools, call_item, model_name
from rtlang_grammars.schema.value_checks import pattern_language

PATCH = """start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: add_hunk | delete_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
filename: /(.+)/
add_line: "+" /(.+)/? LF -> line
%import common.LF
"""
FUNCTION = {"type": "function", "name": "get", "parameters": {"type": "object", "properties": {}}}
CUSTOM = {"type": "custom", "name": "say", "description": "Says."}


def tools_of(*plain: Any) -> ClientTools:
    tools = ClientTools()
    tools.add(plain, "tools")
    read_tool_request({"tools": tools.chat_tools})  # the chat route takes them
    return tools


def test_the_tools_of_a_namespace_have_its_name() -> None:
    group = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [FUNCTION, CUSTOM]}
    tools = tools_of(FUNCTION, group)
    assert [tool.model_name for tool in tools.listed] == ["get", "crm__get", "crm__say"]
    assert tools.chat_tools[1]["function"]["description"] == "Customers."
    item = call_item(tools.called("crm__get"), "crm__get", "1", "{}")
    assert (item["name"], item["namespace"]) == ("get", "crm")
    assert model_name("get", "mcp__docs__") == "mcp__docs__get"


def test_calls_are_items_of_the_client() -> None:
    found = tools_of({"type": "local_shell"}, {"type": "shell"}, {"type": "apply_patch"}, CUSTOM, FUNCTION)
    found.add([{"type": "tool_search", "execution": "client"}], "tools")
    cases: list[tuple[str, str, Any]] = [
        ("local_shell", '{"command": ["ls", "-l"], "timeout_ms": 5}', LocalShellCall),
        ("shell", '{"commands": ["ls"]}', ResponseFunctionShellToolCall),
        (
            "apply_patch",
            '{"operation": {"type": "update_file", "path": "a", "diff": "@@"}}',
            ResponseApplyPatchToolCall,
        ),
        ("tool_search", '{"query": "mail"}', ResponseToolSearchCall),
        ("say", "hello", ResponseCustomToolCallItem),
        ("get", '{"a": 1}', ResponseFunctionToolCallItem),
        ("unknown", "{}", ResponseFunctionToolCallItem),
    ]
    for name, arguments, model in cases:
        item = call_item(found.called(name), name, "call_1", arguments) | {"id": "x", "status": "completed"}
        parsed = model.model_validate(item)
        assert (parsed.call_id, parsed.type) == ("call_1", item["type"])


def test_choices_of_every_kind() -> None:
    group = {"type": "namespace", "name": "crm", "tools": [FUNCTION]}
    tools = tools_of(CUSTOM, {"type": "shell"}, group)
    assert [tools.chat_choice(each) for each in ("auto", "none", "required")] == ["auto", "none", "required"]
    for choice, name in (
        ({"type": "custom", "name": "say"}, "say"),
        ({"type": "shell"}, "shell"),
        ({"type": "function", "name": "get", "namespace": "crm"}, "crm__get"),
    ):
        assert tools.chat_choice(choice) == {"type": "function", "function": {"name": name}}
    listed = [{"type": "custom", "name": "say"}, {"type": "namespace", "name": "crm"}, {"type": "web_search"}]
    allowed = tools.chat_choice({"type": "allowed_tools", "mode": "required", "tools": listed})
    read = read_tool_request({"tools": tools.chat_tools, "tool_choice": allowed})
    assert (read.choice, [tool.name for tool in read.allowed]) == ("required", ["say", "crm__get"])


def test_a_web_search_is_accepted_and_never_called() -> None:
    for kind in UNCALLED:
        assert tools_of(FUNCTION, {"type": kind, "external_web_access": False}).listed == tools_of(FUNCTION).listed
    assert tools_of(FUNCTION, {"type": "tool_search"}).called("tool_search") is None


def test_the_input_of_a_custom_tool_is_held_to_its_grammar() -> None:
    """Against lark: texts of the grammar, and texts that differ from one in one place."""
    form = {"type": "grammar", "syntax": "lark", "definition": PATCH}
    (tool,) = tools_of({"type": "custom", "name": "apply", "format": form}).listed
    schema = tool.function["parameters"]["properties"]["input"]
    language = pattern_language(schema["pattern"], schema["x-pattern-dialect"])
    parser, random = Lark(PATCH, parser="earley", lexer="dynamic_complete"), Random(3)
    hunks = [
        '*** Add File: a.txt\n+say "hi"\\\n',
        "*** Add File: b\n+\n+x\n",
        "*** Delete File: c\n",
        "*** Delete File: \n",
    ]
    num_accepted = 0
    for _ in range(150):
        body = f"*** Begin Patch\n{''.join(random.choices(hunks, (3, 3, 3, 1), k=random.randrange(4)))}*** End Patch"
        at = random.randrange(len(body) + 1)
        text = random.choice([body, body + "\n", body[:at] + random.choice("+*\n a") + body[at:], body[:at]])
        try:
            parser.parse(text)
            is_text = True
        except LarkError:
            is_text = False
        assert language.accepts(text) is is_text, text
        num_accepted += is_text
    assert 20 < num_accepted < 140


def test_a_grammar_may_contain_itself() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": 'start: "(" start ")" | "x"'}
    (tool,) = tools_of({"type": "custom", "name": "apply", "format": form}).listed
    assert tool.function["parameters"]["properties"]["input"]["pattern"] == form["definition"]


def test_a_regular_expression_is_of_the_whole_input() -> None:
    form = {"type": "grammar", "syntax": "regex", "definition": "a|b(?i)c"}
    (tool,) = tools_of({"type": "custom", "name": "apply", "format": form}).listed
    schema = tool.function["parameters"]["properties"]["input"]
    language = pattern_language(schema["pattern"], schema["x-pattern-dialect"])
    assert [language.accepts(text) for text in ("a", "bC", "ab", "xa", "a\n")] == [True, True, False, False, False]
    json.dumps(tool.function)


@pytest.mark.parametrize(
    ("plain", "field"),
    [
        ("look", "tools[0].type"),
        ({"type": "computer"}, "tools[0].type"),
        ({"type": "mcp", "server_label": "a"}, "tools[0].type"),
        ({"type": "function"}, "tools[0].name"),
        ({"type": "function", "name": "a", "speed": 1}, "tools[0].speed"),
        ({"type": "namespace", "name": "a", "tools": [{"type": "shell"}]}, "tools[0].tools[0].type"),
        ({"type": "namespace", "name": "a"}, "tools[0].tools"),
        ({"type": "shell", "environment": {"type": "container_auto"}}, "tools[0].environment.type"),
        ({"type": "tool_search", "execution": "both"}, "tools[0].execution"),
        ({"type": "custom", "name": "a", "format": {"type": "json"}}, "tools[0].format.type"),
        (
            {"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "ebnf", "definition": ""}},
            "tools[0].format.syntax",
        ),
        *(
            (
                {"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": syntax, "definition": text}},
                "tools[0].format.definition",
            )
            for syntax, text in (
                ("lark", "start: ("),
                ("lark", "start: start"),
                ("regex", "("),
                ("regex", "a" * 200_000),
            )
        ),
    ],
)
def test_a_wrong_tool_is_named(plain: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        ClientTools().add([plain], "tools")
    assert caught.value.field == field


def test_a_wrong_choice_is_named() -> None:
    tools = tools_of(FUNCTION)
    with pytest.raises(ParameterError, match=r"tools\[0\]\.name"):
        tools.add([FUNCTION], "tools")
    for choice, field in (
        ({"type": "function", "name": "other"}, "tool_choice.name"),
        ({"type": "custom", "name": "get"}, "tool_choice.name"),
        ({"type": "shell"}, "tool_choice"),
        ({"type": "file_search"}, "tool_choice.type"),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, "tool_choice.tools"),
        ({"type": "allowed_tools", "mode": "auto"}, "tool_choice.tools"),
    ):
        with pytest.raises(ParameterError) as caught:
            tools.chat_choice(choice)
        assert caught.value.field == field
