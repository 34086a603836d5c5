"""Whole conversations as a chat template writes them, calls of tools and their results included.

The template is rendered with marks in place of contents and arguments. Text between the marks is framing, which may contain special tokens;
contents and arguments stay plain. Calls are thus framed as the model's own template frames them, which differs from other messages in many
formats: in harmony the recipient stands where the channel of a content would be.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.nodes import Part, TokenIds
from rtlang.contract.text_service import HistoryEnd
from rtlang.model.text.chat import ChatFraming
from rtlang_grammars.formats.catalogue import detect_format
from rtlang_grammars.formats.description import ToolFormat

# The quote shows whether the template writes the content into a JSON string.
_CONTENT, _ARGUMENTS = 'rtlang"content{}mark', "rtlang{}arguments{}mark"
_MARK = re.compile(r'rtlang(\\?)"content([0-9]+)mark|\{\s*"rtlang([0-9]+)arguments([0-9]+)mark":\s*0\s*\}')
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,256}")
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def history_parts(chat: ChatFraming, messages: Sequence[Mapping[str, Any]], end: HistoryEnd) -> list[Part] | None:
    """The parts of a text node with a whole conversation, which is the beginning of a sequence.

    Args:
        messages: maps with `role` and `content` (text). Messages of the assistant may have `tool_calls`: maps with `id`, `name` and
            `arguments` (JSON text); messages of a tool have `tool_call_id`.
    Returns:
        Framing as `TokenIds`, contents and arguments as text. None if the template does not write each of them once, or refuses the
            messages.
    """
    if not chat.has_template or not all(_SAFE_NAME.fullmatch(call["name"]) for call in _calls(messages)):
        return None
    found = detect_format(chat.template)
    if found is not None and found.between is None:
        messages = _with_one_call_each(messages)
    for empty, are_short in itertools.product((None, ""), (False, True)):
        text = _rendered(chat, _prepared(messages, found, empty, are_short), end)
        parts = None if text is None else _parts(chat, text, messages, end)
        if parts is not None:
            return parts
    return None


def _calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        yield from message.get("tool_calls") or ()


def _with_one_call_each(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages with each call in one of its own, before its result: for formats in which a message has one call."""
    found: list[Mapping[str, Any]] = []
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        calls = message.get("tool_calls") or ()
        if len(calls) < 2:
            found.append(message)
            continue
        results: list[Mapping[str, Any]] = []
        while rest and rest[0]["role"] == "tool":
            results.append(rest.pop(0))
        for number, call in enumerate(calls):
            found.append({**message, "content": "" if number else message["content"], "tool_calls": [call]})
            own = [each for each in results if each.get("tool_call_id") == call.get("id")]
            found += own
            results = [each for each in results if each not in own]
        found += results
    return found


def _prepared(
    messages: Sequence[Mapping[str, Any]], found: ToolFormat | None, empty: str | None, are_short: bool
) -> list[dict[str, Any]]:
    """The messages for the template, with marks.

    Args:
        empty: the content of calls without content; templates differ in what they take.
        are_short: ids have nine letters and digits, as some templates demand.
    """
    ids: dict[str, str] = {}
    names: dict[str, str] = {}
    prepared = []
    number = 0
    for i, message in enumerate(messages):
        content = _CONTENT.format(i) if message["content"] else ""
        plain: dict[str, Any] = {"role": message["role"], "content": content}
        calls = message.get("tool_calls") or ()
        if calls:
            plain["content"] = content or empty
            plain["tool_calls"] = []
        for k, call in enumerate(calls):
            given = str(call.get("id") or f"call{number}")
            listed = found.listed_id.format(name=call["name"], number=number) if found is not None else ""
            ids[given] = listed or _safe_id(given, number, are_short)
            names[given] = call["name"]
            number += 1
            function = {"name": call["name"], "arguments": {_ARGUMENTS.format(i, k): 0}}
            plain["tool_calls"].append({"id": ids[given], "type": "function", "function": function})
        if message["role"] == "tool":
            given = str(message.get("tool_call_id"))
            plain["tool_call_id"] = ids.get(given) or _safe_id(given, number, are_short)
            if given in names:
                plain["name"] = names[given]
        prepared.append(plain)
    return prepared


def _safe_id(given: str, number: int, is_short: bool) -> str:
    if is_short:
        return f"{re.sub('[^A-Za-z0-9]', '', given)[-9:]:0>9}"
    return given if _SAFE_ID.fullmatch(given) else f"call{number}"


def _rendered(chat: ChatFraming, prepared: list[dict[str, Any]], end: HistoryEnd) -> str | None:
    try:
        return chat.render(prepared, adds_prompt=end == "prompt")
    except ParameterError:
        return None


def _parts(chat: ChatFraming, text: str, messages: Sequence[Mapping[str, Any]], end: HistoryEnd) -> list[Part] | None:
    """The parts of a rendered text; None if a content or the arguments of a call are not in it once."""
    parts: list[Part] = []
    texts: dict[tuple[int, int | None], str] = {}
    at = 0
    for mark in _MARK.finditer(text):
        escape, content, i, k = mark.groups()
        place = (int(content), None) if content is not None else (int(i), int(k))
        if place in texts:
            return None
        message = messages[place[0]]
        texts[place] = message["content"] if place[1] is None else message["tool_calls"][place[1]]["arguments"]
        framing = chat.framing_ids(text[at : mark.start()], is_start=not parts)
        parts += [TokenIds(tuple(framing)), _in_json(texts[place]) if escape else texts[place]]
        at = mark.end()
    contents = {(i, None) for i, message in enumerate(messages) if message["content"]}
    calls = {(i, k) for i, message in enumerate(messages) for k in range(len(message.get("tool_calls") or ()))}
    if texts.keys() != contents | calls:
        return None
    if end != "open":
        return [*parts, TokenIds(tuple(chat.framing_ids(text[at:], is_start=not parts)))]
    is_last = bool(texts) and [*texts][-1] == (len(messages) - 1, None)
    return parts if is_last else None


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
