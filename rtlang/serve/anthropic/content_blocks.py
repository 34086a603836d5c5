"""Messages of content blocks as messages of the chat route.

A message there has one text, one thought and a list of calls; results of calls are messages of their own. So text blocks of a message are
joined as they are, consecutive messages of one role become one message with a blank line between their texts, and a result of a call ends
the user's text before it. Blocks that only a model with other inputs can read, such as images, are refused by name; in results of
calls, and beside them, a note stands for them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import check_inner, read_bool, read_list, read_text
from rtlang.serve.openai.messages import unread_note

Message = dict[str, Any]
MAX_BLOCKS = 100_000
"""Blocks of one message."""
_BILLING = "x-anthropic-billing-header:"
"""Begins a line in which Claude Code describes itself for the biller; it differs between requests, so their prompts would share nothing."""
_SIGNED = "rtlang-1."
_TTL_S = {"5m": 300.0, "1h": 3600.0}
_NO_IMAGES = "not supported: the served model reads text only"
_REFUSED = {
    "image": _NO_IMAGES,
    "server_tool_use": "not supported: this server runs no tools of its own",
    "container_upload": "not supported: there are no containers",
    "tool_reference": "not supported: there is no tool search; list the tools in tools",
    "compaction": "not supported; send the summary as text",
}
_TEXT_NOTES = ("citations", "cache_control")
"""Fields of text blocks that do not change the text, such as the citations of a reply that is sent again."""


class CacheHints:
    """Collects the `cache_control` of a request.

    Attributes:
        keep_s: the longest time to live of all; None without any.
    """

    def __init__(self) -> None:
        self.keep_s: float | None = None

    def read(self, given: Any, where: str) -> None:
        """Note the `cache_control` of a map, if it is a map that has one.

        Raises:
            ParameterError: it is malformed; names it.
        """
        control = given.get("cache_control") if isinstance(given, Mapping) else None
        if control is None:
            return
        where = f"{where}cache_control"
        if not isinstance(control, Mapping) or control.get("type") != "ephemeral":
            raise ParameterError(where, control, 'expected {"type": "ephemeral"} with an optional ttl')
        ttl = control.get("ttl", "5m")
        if not isinstance(ttl, str) or ttl not in _TTL_S:
            raise ParameterError(f"{where}.ttl", ttl, f"expected {' or '.join(_TTL_S)}")
        self.keep_s = max(self.keep_s or 0.0, _TTL_S[ttl])


def signature_of(thought: str, *, is_shown: bool) -> str:
    """The signature of a thought: an opaque text that comes back with it. It holds a thought that the response leaves out."""
    return _SIGNED if is_shown else _SIGNED + base64.b64encode(thought.encode(errors="replace")).decode()


def signed_thought(signature: str) -> str:
    """The thought inside a signature; empty for a signature without one, for example from another server."""
    if not signature.startswith(_SIGNED):
        return ""
    try:
        return base64.b64decode(signature[len(_SIGNED) :], validate=True).decode()
    except ValueError:
        return ""


def system_text(value: Any, where: str, hints: CacheHints) -> str:
    """The text of a system prompt, given as text or as text blocks, without lines for the biller.

    Raises:
        ParameterError: it is something else; names it.
    """
    if isinstance(value, str):
        return _without_billing(value)
    if not isinstance(value, list):
        raise ParameterError(where, value, "expected text or a list of text blocks")
    texts = [_text_block(block, f"{where}[{i}]", hints) for i, block in enumerate(value)]
    return "".join(map(_without_billing, texts))


def _without_billing(text: str) -> str:
    if not text.startswith(_BILLING):
        return text
    return text.partition("\n")[2]


def chat_messages(given: Mapping[str, Any], hints: CacheHints) -> list[Message]:
    """The messages of a body, with its system prompt as the first one.

    Raises:
        ParameterError: a message or block is malformed or not supported; names it by its path.
    """
    plain = read_list(given, "messages")
    if not plain:
        raise ParameterError("messages", plain, "expected at least one message")
    found: list[Message] = []
    if "system" in given and (text := system_text(given["system"], "system", hints)):
        found.append({"role": "system", "content": [text]})
    for i, message in enumerate(plain):
        where = f"messages[{i}]"
        inner = check_inner(where, message, ("role", "content"), ("id", "type", "model"))
        content = inner.get("content")
        match inner.get("role"):
            case "user":
                _add_user(found, content, f"{where}.content", hints)
            case "assistant":
                _add_assistant(found, content, f"{where}.content", hints)
            case "system":
                _add_text(found, "system", system_text(content, f"{where}.content", hints))
            case role:
                raise ParameterError(f"{where}.role", role, "expected user, assistant or system")
    return [_joined(message) for message in found]


def _joined(message: Message) -> Message:
    """The message with its texts as one."""
    content = message["content"]
    return message | {"content": "\n\n".join(filter(None, content))} if isinstance(content, list) else message


def _blocks(content: Any, where: str) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or len(content) > MAX_BLOCKS:
        raise ParameterError(where, content, f"expected text or a list of at most {MAX_BLOCKS} content blocks")
    return content


def _add_text(found: list[Message], role: str, text: str) -> None:
    """Add a message, or its text to the texts of a message of the same role before it."""
    last = found[-1] if found else None
    if last is not None and last["role"] == role and "tool_calls" not in last:
        last["content"].append(text)
    else:
        found.append({"role": role, "content": [text]})


def _add_user(found: list[Message], content: Any, where: str, hints: CacheHints) -> None:
    texts: list[str] = []
    blocks = _blocks(content, where)
    # Claude Code puts the file that its tool has read beside the result, so what stands there is not the user's.
    has_results = any(isinstance(block, Mapping) and block.get("type") == "tool_result" for block in blocks)
    text_of = _text_of_result if has_results else _text_of
    for i, block in enumerate(blocks):
        at = f"{where}[{i}]"
        if _kind(block, at) != "tool_result":
            texts.append(text_of(block, at, hints))
            continue
        if texts:
            _add_text(found, "user", "".join(texts))
            texts = []
        found.append(_result(block, at, hints))
    if texts or not blocks:
        _add_text(found, "user", "".join(texts))


def _result(block: Mapping[str, Any], where: str, hints: CacheHints) -> Message:
    """The message of a `tool_result` block. The text of an error says so, as templates know no errors."""
    hints.read(block, f"{where}.")
    given = check_inner(where, block, ("type", "tool_use_id", "content", "is_error"), ("cache_control",))
    content = given.get("content", "")
    inner = f"{where}.content"
    text = "".join(_text_of_result(each, f"{inner}[{i}]", hints) for i, each in enumerate(_blocks(content, inner)))
    if read_bool(given, "is_error", where=f"{where}."):
        text = f"Error: {text}" if text else "Error"
    return {"role": "tool", "tool_call_id": read_text(given, "tool_use_id", f"{where}."), "content": text}


def _text_of_result(block: Any, where: str, hints: CacheHints) -> str:
    kind = _kind(block, where)
    source = block.get("source")
    is_text = kind == "document" and isinstance(source, Mapping) and source.get("type") in ("text", "content")
    note = None if is_text else unread_note(kind)
    return _text_of(block, where, hints) if note is None else note


def _add_assistant(found: list[Message], content: Any, where: str, hints: CacheHints) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for i, block in enumerate(_blocks(content, where)):
        at = f"{where}[{i}]"
        match _kind(block, at):
            case "thinking":
                given = check_inner(at, block, ("type", "thinking", "signature"), ("cache_control",))
                signature = read_text(given, "signature", f"{at}.") if "signature" in given else ""
                thoughts.append(read_text(given, "thinking", f"{at}.") or signed_thought(signature))
            case "redacted_thinking":  # what another server encrypted cannot be read here
                read_text(check_inner(at, block, ("type", "data"), ("cache_control",)), "data", f"{at}.")
            case "tool_use":
                calls.append(_call(block, at, hints))
            case _:
                texts.append(_text_of(block, at, hints))
    text, thought = "".join(texts), "\n".join(filter(None, thoughts))
    if not (thought or calls):
        _add_text(found, "assistant", text)
        return
    last = found[-1] if found else {}
    if last.get("role") == "assistant" and "tool_calls" not in last and not thought:
        _add_text(found, "assistant", text)
    else:
        found.append({"role": "assistant", "content": [text]})
        if thought:
            found[-1]["reasoning_content"] = thought
    if calls:
        found[-1]["tool_calls"] = calls


def _call(block: Mapping[str, Any], where: str, hints: CacheHints) -> dict[str, Any]:
    hints.read(block, f"{where}.")
    given = check_inner(where, block, ("type", "id", "name", "input", "caller"), ("cache_control",))
    arguments = given.get("input", {})
    if not isinstance(arguments, Mapping):
        raise ParameterError(f"{where}.input", arguments, "expected an object")
    caller = given.get("caller", {"type": "direct"})
    if not isinstance(caller, Mapping) or caller.get("type") != "direct":
        raise ParameterError(f"{where}.caller", caller, 'only {"type": "direct"} is supported')
    function = {"name": read_text(given, "name", f"{where}."), "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": read_text(given, "id", f"{where}."), "type": "function", "function": function}


def _kind(block: Any, where: str) -> str:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str):
        raise ParameterError(where, block, "expected a content block, an object with a type")
    return kind


def _text_of(block: Mapping[str, Any], where: str, hints: CacheHints) -> str:
    """The text of a block that is text, or can be written as text."""
    match kind := block["type"]:
        case "text":
            return _text_block(block, where, hints)
        case "document":
            return _document(block, where, hints)
        case "search_result":
            return _search_result(block, where, hints)
    if kind.endswith("_tool_result"):
        raise ParameterError(f"{where}.type", kind, _REFUSED["server_tool_use"])
    allowed = (
        "expected text, document, search_result, thinking, redacted_thinking, tool_use or tool_result in its place"
    )
    raise ParameterError(f"{where}.type", kind, _REFUSED.get(kind, allowed))


def _text_block(block: Any, where: str, hints: CacheHints) -> str:
    if _kind(block, where) != "text":
        raise ParameterError(f"{where}.type", block["type"], _REFUSED.get(block["type"], "expected text"))
    hints.read(block, f"{where}.")
    return read_text(check_inner(where, block, ("type", "text"), _TEXT_NOTES), "text", f"{where}.")


def _document(block: Mapping[str, Any], where: str, hints: CacheHints) -> str:
    hints.read(block, f"{where}.")
    given = check_inner(where, block, ("type", "source", "title", "context", "citations"), ("cache_control",))
    _check_citations(given, where)
    at = f"{where}.source"
    source = given.get("source")
    match kind := source.get("type") if isinstance(source, Mapping) else None:
        case "text":
            inner = check_inner(at, source, ("type", "media_type", "data"))
            if inner.get("media_type", "text/plain") != "text/plain":
                raise ParameterError(f"{at}.media_type", inner["media_type"], "expected text/plain")
            text = read_text(inner, "data", f"{at}.")
        case "content":
            content = check_inner(at, source, ("type", "content")).get("content")
            parts = _blocks(content, f"{at}.content")
            text = "".join(_text_block(each, f"{at}.content[{i}]", hints) for i, each in enumerate(parts))
        case _:
            allowed = "expected text or content: the served model reads no files, such as PDF"
            raise ParameterError(f"{at}.type", kind, allowed)
    head = [read_text(given, name, f"{where}.") for name in ("title", "context") if name in given]
    return "\n".join(("<document>", *head, text, "</document>\n"))


def _search_result(block: Mapping[str, Any], where: str, hints: CacheHints) -> str:
    hints.read(block, f"{where}.")
    given = check_inner(where, block, ("type", "source", "title", "content", "citations"), ("cache_control",))
    _check_citations(given, where)
    parts = read_list(given, "content", f"{where}.")
    text = "".join(_text_block(each, f"{where}.content[{i}]", hints) for i, each in enumerate(parts))
    head = (read_text(given, "title", f"{where}."), read_text(given, "source", f"{where}."))
    return "\n".join(("<search_result>", *head, text, "</search_result>\n"))


def _check_citations(given: Mapping[str, Any], where: str) -> None:
    if "citations" in given:
        inner = check_inner(f"{where}.citations", given["citations"], ("enabled",))
        if read_bool(inner, "enabled", where=f"{where}.citations."):
            raise ParameterError(f"{where}.citations.enabled", True, "only false is supported")
