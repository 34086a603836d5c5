"""The tools of a response: functions, and the other kinds of tools that a client carries out, which the model sees as functions.

A custom tool becomes a function with one text, `input`, held to the tool's grammar or regular expression. The tools of a namespace get
its name in front of theirs. `local_shell`, `shell`, `apply_patch` and `tool_search` (with `execution: client`) get the parameters of the
items in which their calls are sent. A web search is accepted and never called: the model may always answer without one. Other tools that
a server would have to carry out are refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import check_inner, read_list, read_text
from rtlang.serve.responses.custom_input import INPUT
from rtlang_grammars import GrammarError
from rtlang_grammars.lowering.grammar_arguments import grammar_fault
from rtlang_grammars.schema.value_checks import pattern_language

_HINTS = ("allowed_callers", "async", "defer_loading", "output_schema")
"""Fields of tools that say how a client or a hosted tool uses them."""
UNCALLED = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
"""Hosted tools that are accepted and never called."""
_SEPARATOR = "__"
MAX_GRAMMAR_CHARS = 100_000
_STRINGS = {"type": "array", "items": {"type": "string"}}
_COUNT = {"type": "integer", "minimum": 0}


class ToolKind(StrEnum):
    """The kinds of tools that a client carries out, by the `type` of the tool."""

    FUNCTION = "function"
    CUSTOM = "custom"
    LOCAL_SHELL = "local_shell"
    SHELL = "shell"
    APPLY_PATCH = "apply_patch"
    TOOL_SEARCH = "tool_search"


_LOCAL_SHELL = {
    "type": "object",
    "properties": {
        "command": _STRINGS,
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "timeout_ms": _COUNT,
        "user": {"type": "string"},
        "working_directory": {"type": "string"},
    },
    "required": ["command"],
    "additionalProperties": False,
}
_SHELL = {
    "type": "object",
    "properties": {"commands": _STRINGS, "timeout_ms": _COUNT, "max_output_length": _COUNT},
    "required": ["commands"],
    "additionalProperties": False,
}
_APPLY_PATCH = {
    "type": "object",
    "properties": {
        "operation": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": kind}} | {name: {"type": "string"} for name in names},
                    "required": ["type", *names],
                    "additionalProperties": False,
                }
                for kind, names in (
                    ("create_file", ("path", "diff")),
                    ("update_file", ("path", "diff")),
                    ("delete_file", ("path",)),
                )
            ]
        }
    },
    "required": ["operation"],
    "additionalProperties": False,
}
_SEARCH = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_OWN_TEXT = {
    ToolKind.LOCAL_SHELL: "Runs a command in a shell of the user's machine and returns its output.",
    ToolKind.SHELL: "Runs shell commands on the user's machine and returns their output.",
    ToolKind.APPLY_PATCH: "Creates, updates or deletes a file of the user. `diff` is a V4A diff.",
    ToolKind.TOOL_SEARCH: "Searches for further tools, which can be called afterwards.",
}
_OWN_PARAMETERS: Mapping[ToolKind, Mapping[str, Any]] = {
    ToolKind.LOCAL_SHELL: _LOCAL_SHELL,
    ToolKind.SHELL: _SHELL,
    ToolKind.APPLY_PATCH: _APPLY_PATCH,
    ToolKind.TOOL_SEARCH: _SEARCH,
}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool as the client knows it.

    Attributes:
        name: the client's name; for kinds without one, the kind.
        where: path of the tool in the body, for errors.
        function: the tool as a function of the chat route.
    """

    kind: ToolKind
    name: str
    namespace: str | None
    where: str
    function: Mapping[str, Any]

    @property
    def model_name(self) -> str:
        """The name that the model calls."""
        return str(self.function["name"])


def model_name(name: str, namespace: str | None) -> str:
    """The name that the model calls for a tool of a namespace."""
    if not namespace:
        return name
    return namespace + ("" if namespace.endswith(_SEPARATOR) else _SEPARATOR) + name


class ClientTools:
    """The tools of one request.

    Attributes:
        listed: the tools in their order.
    """

    def __init__(self) -> None:
        self.listed: list[ClientTool] = []
        self._by_model_name: dict[str, ClientTool] = {}

    @property
    def chat_tools(self) -> list[dict[str, Any]]:
        """The tools in the form of the chat route."""
        return [{"type": "function", "function": dict(tool.function)} for tool in self.listed]

    def called(self, name: str) -> ClientTool | None:
        """The tool that a call by the model means; None if there is none of this name."""
        return self._by_model_name.get(name)

    def add(self, tools: Iterable[Any], where: str, *, again: bool = False) -> None:
        """Read a list of tools.

        Args:
            where: path of the list in the body.
            again: a tool that is known by its name is replaced, as tools that a search found may come again.
        Raises:
            ParameterError: a tool is malformed, or of a kind that this server cannot carry out; names it.
        """
        for i, plain in enumerate(tools):
            for tool in _read(plain, f"{where}[{i}]"):
                self._put(tool, again)

    def _put(self, tool: ClientTool, again: bool) -> None:
        known = self._by_model_name.get(tool.model_name)
        if known is None:
            self.listed.append(tool)
        elif again:
            self.listed[self.listed.index(known)] = tool
        else:
            raise ParameterError(f"{tool.where}.name", tool.model_name, "expected names that differ")
        self._by_model_name[tool.model_name] = tool

    def chat_choice(self, choice: Any, where: str = "tool_choice") -> Any:
        """A `tool_choice` in the form of the chat route.

        Raises:
            ParameterError: it names no tool of the request, or a tool that this server cannot carry out.
        """
        if not isinstance(choice, Mapping):
            return choice
        if choice.get("type") != "allowed_tools":
            return {"type": "function", "function": {"name": self._chosen(choice, where)[0]}}
        inner = choice.get("allowed_tools")
        at = where if inner is None else f"{where}.allowed_tools"
        given = check_inner(at, choice if inner is None else inner, ("type", "mode", "tools"))
        names: list[str] = []
        for i, each in enumerate(read_list(given, "tools", f"{at}.")):
            names += self._chosen(each, f"{at}.tools[{i}]", may_be_uncalled=True)
        if not names:
            raise ParameterError(f"{at}.tools", given["tools"], "expected a tool that can be called")
        functions = [{"type": "function", "function": {"name": name}} for name in names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": given.get("mode", "auto"), "tools": functions}}

    def _chosen(self, choice: Any, where: str, *, may_be_uncalled: bool = False) -> list[str]:
        """The names, as the model calls them, of the tools that an entry means."""
        kind = choice.get("type") if isinstance(choice, Mapping) else None
        if kind in UNCALLED and may_be_uncalled:
            return []
        found: list[ClientTool]
        match kind:
            case "function" | "custom":
                inner = choice.get("function") if kind == "function" else choice.get("custom")
                at = where if inner is None else f"{where}.{kind}"
                given = check_inner(at, choice if inner is None else inner, ("type", "name", "namespace"))
                namespace = read_text(given, "namespace", f"{at}.") if "namespace" in given else None
                name = model_name(read_text(given, "name", f"{at}."), namespace)
                found = [tool for tool in self.listed if tool.kind == kind and name in (tool.model_name, tool.name)]
                if not found:
                    names = ", ".join(tool.name for tool in self.listed if tool.kind == kind)
                    raise ParameterError(f"{at}.name", name, f"expected one of {names or 'the tools; there are none'}")
                return [found[0].model_name]
            case "namespace":
                name = read_text(check_inner(where, choice, ("type", "name")), "name", f"{where}.")
                found = [tool for tool in self.listed if tool.namespace == name]
            case "local_shell" | "shell" | "apply_patch" | "tool_search":
                found = [tool for tool in self.listed if tool.kind == kind]
            case _:
                allowed = "auto, none, required, or a function, custom, shell, local_shell or apply_patch tool"
                raise ParameterError(f"{where}.type", kind, f"expected {allowed}")
        if not found:
            raise ParameterError(where, choice, "expected one of the tools")
        return [tool.model_name for tool in found]


def _read(plain: Any, where: str, namespace: str | None = None) -> list[ClientTool]:
    """The tools of one entry: a single tool, all tools of a namespace, or none for a tool that is never called."""
    kind = plain.get("type") if isinstance(plain, Mapping) else None
    if kind == "namespace" and namespace is None:
        return _namespace(plain, where)
    if kind == "function":
        return [_function(plain, where, namespace)]
    if kind == "custom":
        return [_custom(plain, where, namespace)]
    if namespace is not None:
        raise ParameterError(f"{where}.type", kind, "expected function or custom")
    if kind in UNCALLED:
        return []
    if isinstance(kind, str) and kind in _OWN_PARAMETERS:
        return _own(ToolKind(kind), plain, where)
    allowed = ", ".join((*ToolKind, "namespace", *UNCALLED[:1]))
    raise ParameterError(f"{where}.type", kind, f"this server has no such tool; expected {allowed}")


def _namespace(plain: Mapping[str, Any], where: str) -> list[ClientTool]:
    given = check_inner(where, plain, ("type", "name", "description", "tools"))
    name = read_text(given, "name", f"{where}.")
    found: list[ClientTool] = []
    for i, tool in enumerate(read_list(given, "tools", f"{where}.")):
        found += _read(tool, f"{where}.tools[{i}]", name)
    if found and "description" in given:
        first, text = found[0], read_text(given, "description", f"{where}.")
        described = f"{text}\n\n{first.function.get('description', '')}".strip()
        found[0] = ClientTool(first.kind, first.name, name, first.where, {**first.function, "description": described})
    return found


def _function(plain: Mapping[str, Any], where: str, namespace: str | None) -> ClientTool:
    inner = plain.get("function")  # the shape of the chat route
    at = where if inner is None else f"{where}.function"
    names = ("type", "name", "description", "parameters", "strict")
    given = check_inner(at, plain if inner is None else inner, names, _HINTS)
    name = read_text(given, "name", f"{at}.")
    function = {key: value for key, value in given.items() if key != "type"}
    return ClientTool(ToolKind.FUNCTION, name, namespace, at, function | {"name": model_name(name, namespace)})


def _custom(plain: Mapping[str, Any], where: str, namespace: str | None) -> ClientTool:
    inner = plain.get("custom")
    at = where if inner is None else f"{where}.custom"
    given = check_inner(at, plain if inner is None else inner, ("type", "name", "description", "format"), _HINTS)
    name = read_text(given, "name", f"{at}.")
    function: dict[str, Any] = {"name": model_name(name, namespace)}
    if "description" in given:
        function["description"] = read_text(given, "description", f"{at}.")
    properties = {INPUT: _input_schema(given.get("format", {"type": "text"}), f"{at}.format")}
    parameters = {"type": "object", "properties": properties, "required": [INPUT], "additionalProperties": False}
    return ClientTool(ToolKind.CUSTOM, name, namespace, at, function | {"parameters": parameters})


def _input_schema(plain: Any, where: str) -> dict[str, Any]:
    """The schema of the input of a custom tool."""
    kind = plain.get("type") if isinstance(plain, Mapping) else None
    if kind == "text":
        check_inner(where, plain, ("type",))
        return {"type": "string"}
    if kind != "grammar":
        raise ParameterError(f"{where}.type", kind, "expected text or grammar")
    inner = plain.get("grammar")  # the shape of the chat route
    at = where if inner is None else f"{where}.grammar"
    given = check_inner(at, plain if inner is None else inner, ("type", "syntax", "definition"))
    source, syntax = read_text(given, "definition", f"{at}."), given.get("syntax")
    if len(source) > MAX_GRAMMAR_CHARS:
        raise ParameterError(f"{at}.definition", source, f"expected at most {MAX_GRAMMAR_CHARS} characters")
    if syntax == "regex":
        _check(source, "rust", f"{at}.definition")
        pattern, dialect, name = f"^(?:{source})$", "rust", "the regular expression"
    elif syntax == "lark":
        _check(source, "lark", f"{at}.definition")
        pattern, dialect, name = source, "lark", "the Lark grammar"
    else:
        raise ParameterError(f"{at}.syntax", syntax, "expected lark or regex")
    return {
        "type": "string",
        "description": f"The text of the call. The whole text matches {name} in `pattern`.",
        "pattern": pattern,
        "x-pattern-dialect": dialect,
    }


def _check(source: str, dialect: str, where: str) -> None:
    try:
        pattern_language(source, dialect)
    except GrammarError as error:
        reason = error.reason if dialect != "lark" else grammar_fault(source)
        if reason is not None:
            raise ParameterError(where, source, reason) from None


def _own(kind: ToolKind, plain: Mapping[str, Any], where: str) -> list[ClientTool]:
    more = {ToolKind.SHELL: ("environment",), ToolKind.TOOL_SEARCH: ("execution", "description", "parameters")}
    given = check_inner(where, plain, ("type", *more.get(kind, ())), _HINTS)
    function: dict[str, Any] = {
        "name": str(kind),
        "description": _OWN_TEXT[kind],
        "parameters": _OWN_PARAMETERS[kind],
    }
    if kind is ToolKind.SHELL and "environment" in given:
        environment = check_inner(f"{where}.environment", given["environment"], ("type",))
        if environment.get("type") != "local":
            allowed = "only 'local' is supported: the client runs the commands"
            raise ParameterError(f"{where}.environment.type", environment.get("type"), allowed)
    if kind is ToolKind.TOOL_SEARCH:
        execution = given.get("execution", "server")
        if execution not in ("server", "client"):
            raise ParameterError(f"{where}.execution", execution, "expected server or client")
        if execution == "server":  # all tools are listed from the beginning, so there is nothing to find
            return []
        function |= {name: given[name] for name in ("description", "parameters") if name in given}
    return [ClientTool(kind, str(kind), None, where, function)]


def call_item(tool: ClientTool | None, name: str, call_id: str, arguments: str) -> dict[str, Any]:
    """The item of a complete call, without id and status.

    Args:
        tool: None for a call of an unknown function.
        name: as the model called it.
        arguments: JSON text; for a custom tool, its input.
    """
    kind = ToolKind.FUNCTION if tool is None else tool.kind
    found: dict[str, Any] = {"call_id": call_id}
    if tool is not None and tool.namespace is not None:
        found["namespace"] = tool.namespace
    if kind is ToolKind.FUNCTION:
        return {"type": "function_call", "name": name if tool is None else tool.name, "arguments": arguments} | found
    if kind is ToolKind.CUSTOM:
        assert tool is not None
        return {"type": "custom_tool_call", "name": tool.name, "input": arguments} | found
    values = _object(arguments)
    match kind:
        case ToolKind.LOCAL_SHELL:
            return {"type": "local_shell_call", "action": {"type": "exec", "command": [], "env": {}} | values} | found
        case ToolKind.SHELL:
            return {"type": "shell_call", "action": {"commands": []} | values} | found
        case ToolKind.APPLY_PATCH:
            return {"type": "apply_patch_call", "operation": values.get("operation", {})} | found
        case _:
            return {"type": "tool_search_call", "execution": "client", "arguments": values} | found


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
