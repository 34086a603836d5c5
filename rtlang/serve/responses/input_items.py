"""Input items of the Responses API: as they are stored and listed, and as chat messages.

A conversation is a list of items. Items keep what the client sent, opaque texts included; ids are added, and short forms are written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.fields import check_inner, read_list, read_text
from rtlang.serve.openai.messages import content_text
from rtlang.serve.responses.client_tools import ClientTools, model_name
from rtlang.serve.responses.custom_input import INPUT

Item = dict[str, Any]
Message = dict[str, Any]
Opener = Callable[[str, str], Any]
"""Opens a sealed text, given its purpose and the text; None if it cannot."""
THOUGHT, COMPACTED = "reasoning", "compaction"
"""The purposes of sealed texts: the text of a thought, and the list of items that a compaction stands for."""
TRIGGER = "compaction_trigger"
"""The type of an item that asks for a compaction in place of an answer; the last item of an input."""
MAX_ITEMS = 20_000
_HINTS = (
    "id",
    "status",
    "phase",
    "created_by",
    "caller",
    "async",
    "approval_request_id",
    "metadata",
    "internal_chat_message_metadata_passthrough",
    "captures",
)
"""Fields of items that do not change the prompt."""
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "compaction": "cmp",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "tool_search_call": "ts",
}
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments", "namespace"),
    "function_call_output": ("call_id", "output", "name", "namespace"),
    "custom_tool_call": ("call_id", "name", "input", "namespace"),
    "custom_tool_call_output": ("call_id", "output", "name", "namespace"),
    "local_shell_call": ("call_id", "action"),
    "local_shell_call_output": ("call_id", "output"),
    "shell_call": ("call_id", "action", "environment"),
    "shell_call_output": ("call_id", "output", "max_output_length"),
    "apply_patch_call": ("call_id", "operation"),
    "apply_patch_call_output": ("call_id", "output"),
    "tool_search_call": ("call_id", "arguments", "execution"),
    "tool_search_output": ("call_id", "tools", "execution"),
    "additional_tools": ("role", "tools"),
    "mcp_call": ("server_label", "name", "arguments", "output", "error"),
    "mcp_list_tools": ("server_label", "tools", "error"),
    "reasoning": ("summary", "content", "encrypted_content"),
    "compaction": ("encrypted_content",),
    TRIGGER: (),
    "compaction_summary": ("encrypted_content",),
}
"""The fields of each kind of item that are read."""
_UNCALLED = ("function_call_output", "custom_tool_call_output")
"""Outputs that may come without a call: clients send unrequested facts in them, as Codex does with the goal of a thread."""


def item_id(kind: str, new_id: Callable[[str], str]) -> str:
    """A new id for an item of a kind."""
    return new_id(_PREFIXES.get(kind, "item"))


def read_items(
    value: Any,
    new_id: Callable[[str], str],
    find: Callable[[str], Item | None] = lambda item: None,
    where: str = "input",
) -> list[Item]:
    """The items of a request in the form in which they are stored. References are replaced by the items that they name.

    Args:
        value: text, or a list of items.
        find: finds a stored item by its id.
    Raises:
        ParameterError: it is neither, an item is no object or has no known type, or a reference names no stored item; names it.
    """
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise ParameterError(where, value, "expected text or a list of items")
    if len(value) > MAX_ITEMS:
        raise ParameterError(where, len(value), f"expected at most {MAX_ITEMS} items")
    found = []
    for i, plain in enumerate(value):
        at = f"{where}[{i}]"
        kind = plain.get("type") if isinstance(plain, Mapping) else None
        if isinstance(plain, Mapping) and kind is None:
            kind = "message" if "role" in plain else "item_reference"
        if kind == "item_reference":
            name = read_text(check_inner(at, plain, ("type", "id")), "id", f"{at}.")
            item = find(name)
            if item is None:
                raise ParameterError(f"{at}.id", name, "no stored item has this id")
            found.append(item)
            continue
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise ParameterError(f"{at}.type", kind, f"expected item_reference or one of {', '.join(_FIELDS)}")
        found.append(_written_out(plain, kind, new_id))
    return found


def _written_out(plain: Mapping[str, Any], kind: str, new_id: Callable[[str], str]) -> Item:
    item = {**plain, "type": kind}
    if not isinstance(item.get("id"), str):
        item["id"] = item_id(kind, new_id)
    if kind == "message":
        if isinstance(item.get("content"), str):
            is_own = item.get("role") == "assistant"
            part = {"type": "output_text" if is_own else "input_text", "text": item["content"]}
            item["content"] = [part | {"annotations": []} if is_own else part]
        item["status"] = item.get("status") or "completed"
    elif kind in ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"):
        item["status"] = item.get("status") or "completed"
    return item


class ChatHistory:
    """Turns items into chat messages. Calls join the assistant's message before them, a thought the message after it.

    Args:
        tools: the tools of the request; tools that items bring are added.
        opened: opens sealed texts.

    Attributes:
        messages: the messages so far.
        origins: for each message, the path of the item that began it.
    """

    def __init__(self, tools: ClientTools, opened: Opener) -> None:
        self._tools, self._opened = tools, opened
        self.messages: list[Message] = []
        self.origins: list[str] = []
        self._thought = ""  # of the assistant's message that follows

    def add(self, items: Iterable[Mapping[str, Any]], where: str) -> None:
        """Add items.

        Args:
            where: path of the list.
        Raises:
            ParameterError: an item is malformed; names the field by its path.
        """
        for i, item in enumerate(items):
            self._add(item, f"{where}[{i}]")

    def _add(self, item: Mapping[str, Any], where: str) -> None:
        kind = item["type"]
        given = check_inner(where, item, ("type", *_FIELDS[kind]), _HINTS)
        at = f"{where}."
        match kind:
            case "message":
                self._message(given, where)
            case "function_call":
                self._call(given, where, _name(given, at), read_text(given, "arguments", at), item.get("status"))
            case "custom_tool_call":
                arguments = json_text({INPUT: read_text(given, "input", at)})
                self._call(given, where, _name(given, at), arguments, item.get("status"))
            case "local_shell_call" | "shell_call":
                action = given.get("action")
                if not isinstance(action, Mapping):
                    raise ParameterError(f"{at}action", action, "expected an object")
                values = {name: value for name, value in action.items() if name != "type" and value is not None}
                own_id = item.get("id") if kind == "local_shell_call" else None
                self._call(given, where, kind.removesuffix("_call"), json_text(values), item.get("status"), own_id)
            case "apply_patch_call":
                self._call(given, where, "apply_patch", json_text({"operation": given.get("operation")}), None)
            case "tool_search_call":
                arguments = given.get("arguments", {})
                text = arguments if isinstance(arguments, str) else json_text(arguments)
                self._call(given, where, "tool_search", text, item.get("status"), item.get("id"))
            case "tool_search_output":
                tools = read_list(given, "tools", at)
                self._tools.add(tools, f"{at}tools", again=True)
                names = [tool.get("name") for tool in tools if isinstance(tool, Mapping)]
                self._output(given, where, json_text({"tools": names}), item.get("id"))
            case "additional_tools":
                self._tools.add(read_list(given, "tools", at), f"{at}tools", again=True)
            case "mcp_call":
                self._mcp_call(given, where, item)
            case "mcp_list_tools":  # the tools of a request are listed by the request
                return
            case "reasoning":
                self._thought = self._thought_of(given, where)
            case "compaction" | "compaction_summary":
                self._compacted(given, where)
            case "compaction_trigger":
                raise ParameterError(f"{at}type", kind, "allowed only as the last item of the input of a response")
            case "apply_patch_call_output":
                text = json_text({"status": item.get("status", "completed"), "output": given.get("output", "")})
                self._output(given, where, text)
            case _:
                output = given.get("output", "")
                is_plain = isinstance(output, str) or kind != "shell_call_output"
                text = _content(output, f"{at}output", of_tool=True) if is_plain else json_text(output)
                if "call_id" not in given and kind in _UNCALLED and "name" in given:
                    self._put({"role": "developer", "content": f"{_name(given, at)}: {text}"}, where)
                    return
                self._output(given, where, text, item.get("id") if kind == "local_shell_call_output" else None)

    def _message(self, given: Mapping[str, Any], where: str) -> None:
        role = given.get("role")
        message = {"role": role, "content": _content(given.get("content", ""), f"{where}.content")}
        if self._thought and role == "assistant":
            message["reasoning_content"] = self._thought
        self._put(message, where)

    def _put(self, message: Message, where: str) -> None:
        self._thought = ""
        self.messages.append(message)
        self.origins.append(where)

    def _call(
        self,
        given: Mapping[str, Any],
        where: str,
        name: str,
        arguments: str,
        status: Any,
        other_id: Any = None,
    ) -> None:
        """`other_id`: stands for a `call_id` that is missing."""
        if status == "incomplete" and not _is_object(arguments):
            return  # it was cut: no result of it follows
        call_id = given.get("call_id", other_id)
        if not isinstance(call_id, str):
            raise ParameterError(f"{where}.call_id", call_id, "expected a string")
        if not _is_object(arguments):
            raise ParameterError(f"{where}.arguments", arguments, "expected the JSON text of an object")
        last = self.messages[-1] if self.messages else {}
        if last.get("role") != "assistant" or self._thought:
            message: Message = {"role": "assistant", "content": None}
            if self._thought:
                message["reasoning_content"] = self._thought
            self._put(message, where)
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self.messages[-1].setdefault("tool_calls", []).append(call)

    def _mcp_call(self, given: Mapping[str, Any], where: str, item: Mapping[str, Any]) -> None:
        """A call that a server made, with its result."""
        at = f"{where}."
        name = model_name(read_text(given, "name", at), read_text(given, "server_label", at))
        error, call_id = given.get("error"), item.get("id")
        output = read_text(given, "output", at) if "output" in given else ""
        text = output if error is None else f"Error: {error if isinstance(error, str) else _error_text(error)}"
        self._call(given, where, name, read_text(given, "arguments", at), None, call_id)
        self._output(given, where, text, call_id)

    def _output(self, given: Mapping[str, Any], where: str, text: str, other_id: Any = None) -> None:
        call_id = given.get("call_id", other_id)
        if not isinstance(call_id, str):
            raise ParameterError(f"{where}.call_id", call_id, "expected a string")
        self._put({"role": "tool", "tool_call_id": call_id, "content": text}, where)

    def _thought_of(self, given: Mapping[str, Any], where: str) -> str:
        """The text of a reasoning item; empty if another server sealed it."""
        sealed = given.get("encrypted_content")
        if sealed is not None:
            opened = self._opened(THOUGHT, read_text(given, "encrypted_content", f"{where}."))
            if isinstance(opened, str):
                return opened
        name = "content" if given.get("content") else "summary"
        parts = given.get(name) or []
        if not isinstance(parts, list):
            raise ParameterError(f"{where}.{name}", parts, "expected a list")
        return "\n".join(
            read_text(check_inner(f"{where}.{name}[{i}]", part, ("type", "text")), "text", f"{where}.{name}[{i}].")
            for i, part in enumerate(parts)
        )

    def _compacted(self, given: Mapping[str, Any], where: str) -> None:
        sealed = read_text(given, "encrypted_content", f"{where}.")
        items = self._opened(COMPACTED, sealed)
        if not isinstance(items, list):
            allowed = "expected a compaction that this server made for this client since its start"
            raise ParameterError(f"{where}.encrypted_content", sealed, allowed)
        for item in items:
            self._add(item, where)


def _name(given: Mapping[str, Any], where: str) -> str:
    namespace = read_text(given, "namespace", where) if "namespace" in given else None
    return model_name(read_text(given, "name", where), namespace)


def _error_text(error: Any) -> str:
    """The text of the error of a call, which has a message or text parts."""
    if not isinstance(error, Mapping):
        return str(error)
    parts = error.get("content")
    if not isinstance(parts, list):
        return str(error.get("message", ""))
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _is_object(text: str) -> bool:
    try:
        return not text.strip() or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _content(content: Any, where: str, *, of_tool: bool = False) -> str:
    if isinstance(content, list):  # a refusal is the assistant's own text
        content = [
            {"type": "output_text", "text": check_inner(f"{where}[{i}]", part, ("type", "refusal")).get("refusal", "")}
            if isinstance(part, Mapping) and part.get("type") == "refusal"
            else part
            for i, part in enumerate(content)
        ]
    return content_text(content, where, of_tool=of_tool)


def without_old_thoughts(messages: Sequence[Message]) -> list[Message]:
    """Messages without the thoughts before the last message of the user."""
    last = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=0)
    return [
        {name: value for name, value in message.items() if name != "reasoning_content"} if i < last else message
        for i, message in enumerate(messages)
    ]
