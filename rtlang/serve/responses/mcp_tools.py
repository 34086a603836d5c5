"""Tools of type `mcp` in a request: the listed servers whose tools the server itself calls, as namespaces of functions.

Only servers that the operator lists are called: a client that could name any URL would make this server call it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import check_inner, read_bool, read_text

KIND = "mcp"
_HINTS = ("server_description", "allowed_callers", "defer_loading")


@dataclass(frozen=True, slots=True)
class McpRequest:
    """The tools of one server that a request allows.

    Attributes:
        names: the names of the tools, each once; None for all.
        read_only: only tools that are marked as read-only, or only others; None for both.
    """

    label: str
    where: str
    names: Mapping[str, None] | None
    read_only: bool | None

    def allowed(self, tools: Sequence[Any]) -> list[Any]:
        """The tools of the server that the request allows.

        Raises:
            ParameterError: a name is unknown.
        """
        known = {tool.name for tool in tools}
        for name in self.names or ():
            if name not in known:
                raise ParameterError(
                    f"{self.where}.allowed_tools", name, f"expected names among {', '.join(sorted(known))}"
                )
        return [
            tool
            for tool in tools
            if (self.names is None or tool.name in self.names)
            and (self.read_only is None or self.read_only is _is_read_only(tool))
        ]


def _is_read_only(tool: Any) -> bool:
    return tool.annotations is not None and bool(tool.annotations.read_only_hint)


def has_mcp_tools(body: Mapping[str, Any]) -> bool:
    """Whether a request names tools of type `mcp`."""
    tools = body.get("tools")
    return isinstance(tools, list) and any(isinstance(each, Mapping) and each.get("type") == KIND for each in tools)


def read_mcp_tools(tools: Sequence[Any], labels: Sequence[str]) -> list[McpRequest]:
    """The entries of type `mcp` in a list of tools.

    Args:
        labels: of the listed servers.
    Raises:
        ParameterError: an entry is malformed, or names a server that is not listed; names the field.
    """
    found: list[McpRequest] = []
    for i, plain in enumerate(tools):
        if not isinstance(plain, Mapping) or plain.get("type") != KIND:
            continue
        where = f"tools[{i}]"
        for name in ("server_url", "connector_id", "tunnel_id", "authorization", "headers"):
            if plain.get(name) is not None:
                raise ParameterError(
                    f"{where}.{name}",
                    plain[name],
                    "not supported: give the server_label of a server that the operator lists",
                )
        given = check_inner(where, plain, ("type", "server_label", "allowed_tools", "require_approval"), _HINTS)
        label = read_text(given, "server_label", f"{where}.")
        if label not in labels:
            known = (
                f"expected one of {', '.join(labels)}" if labels else "this server lists no MCP servers (--mcp-servers)"
            )
            raise ParameterError(f"{where}.server_label", label, known)
        if any(each.label == label for each in found):
            raise ParameterError(f"{where}.server_label", label, "expected labels that differ")
        if given.get("require_approval") != "never":
            allowed = "expected 'never': calls are made without asking"
            raise ParameterError(f"{where}.require_approval", given.get("require_approval"), allowed)
        found.append(McpRequest(label, where, *_allowed(given.get("allowed_tools"), f"{where}.allowed_tools")))
    return found


def _allowed(given: Any, where: str) -> tuple[Mapping[str, None] | None, bool | None]:
    if given is None:
        return None, None
    read_only = None
    if isinstance(given, Mapping):
        inner = check_inner(where, given, ("tool_names", "read_only"))
        read_only = read_bool(inner, "read_only", where=f"{where}.") if "read_only" in inner else None
        given = inner.get("tool_names")
        if given is None:
            return None, read_only
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ParameterError(where, given, "expected a list of names, or an object with tool_names or read_only")
    return dict.fromkeys(given), read_only


def as_namespace(label: str, tools: Sequence[Any]) -> dict[str, Any]:
    """The tools of a server as an entry of the kind `namespace`."""
    functions = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.input_schema,
        }
        for tool in tools
    ]
    return {"type": "namespace", "name": label, "tools": functions}


def chosen(choice: Any) -> Any:
    """A `tool_choice` of type `mcp` as one of the namespace; others as they are."""
    if not isinstance(choice, Mapping) or choice.get("type") != KIND:
        return choice
    given = check_inner("tool_choice", choice, ("type", "server_label", "name"))
    label = read_text(given, "server_label", "tool_choice.")
    if given.get("name") is None:
        return {"type": "allowed_tools", "mode": "required", "tools": [{"type": "namespace", "name": label}]}
    return {"type": "function", "namespace": label, "name": read_text(given, "name", "tool_choice.")}


def listed_item(item_id: str, label: str, tools: Sequence[Any], error: str | None) -> dict[str, Any]:
    """The item with the tools of a server."""
    described = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "annotations": None if tool.annotations is None else tool.annotations.model_dump(exclude_none=True),
        }
        for tool in tools
    ]
    return {"id": item_id, "type": "mcp_list_tools", "server_label": label, "tools": described, "error": error}


def call_item(item_id: str, call: Mapping[str, Any], status: str) -> dict[str, Any]:
    """The item of an MCP call, made from the item of the function call."""
    return {
        "id": item_id,
        "type": "mcp_call",
        "status": status,
        "server_label": call["namespace"],
        "name": call["name"],
        "arguments": call["arguments"],
        "approval_request_id": None,
        "output": None,
        "error": None,
    }
