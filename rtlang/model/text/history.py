"""Whole conversations of clients as prompts.

The chat template gets the messages as the client sent them. Templates differ in the forms that they accept, so a conversation that a
template refuses, or of which it loses something, is tried in other forms: text for a list of parts, `system` for `developer`, arguments as
JSON text, ids of nine letters, one call in a message, later messages of the system as the user's. What the template writes is the prompt in
any case.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rtlang.contract.errors import ParameterError
from rtlang.contract.service.text_service import HistoryEnd
from rtlang.model.text.chat import ChatTemplate, UnusableTemplateError
from rtlang.model.text.conversation import MARK, end_of, start_of, text_before
from rtlang.model.text.token_history import OwnedHistory
from rtlang.model.text.tracked_text import TextSource, TrackedText
from rtlang_grammars.formats.catalogue import detect_format
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT
from rtlang_grammars.formats.rendering import rendered_calls

_MAX_FORMS = 64
_PARTS_AS_TEXT = re.compile(r"""\{\\?['"]type\\?['"]:\s*\\?['"]text\\?['"]""")
_REASONING = ("reasoning_content", "thinking", "reasoning")
_LETTERS = re.compile("[^A-Za-z0-9]")

Message: TypeAlias = Mapping[str, Any]
Messages: TypeAlias = list[dict[str, Any]]


def chat_prompt(
    chat: ChatTemplate,
    messages: Sequence[Message],
    end: HistoryEnd,
    check_length: Callable[[int], None],
    known: OwnedHistory | None = None,
) -> list[int]:
    """The tokens of the prompt of a conversation.

    Args:
        messages: maps with `role`, `content` (text, a list of text parts, or None), and any other field that templates read. Messages
            of the assistant may have `tool_calls`, whose arguments are maps.
        check_length: called with the number of characters before they are encoded; what it raises is raised.
        known: the texts whose tokens are known; None for none.
    Raises:
        ParameterError: the template refuses the conversation.
    """
    given = [_without_nulls(message) for message in messages]
    if chat.description_of_tools:
        given[0]["content"] = _with_text(given[0].get("content"), chat.description_of_tools)
    if chat.soft_switch:
        _add_soft_switch(given, chat.soft_switch)
    text, used = _rendered(chat, given, end)
    if end == "open":
        last = TextSource(len(used) - 1, "content")
        stop = end_of(text, last)
        is_begun = used[-1]["role"] == "assistant" and not used[-1].get("tool_calls")
        if (
            stop is None and is_begun and not _has_text(used[-1].get("content"))
        ):  # it ends where its content would begin
            text = chat.render([*used[:-1], {**used[-1], "content": MARK}], adds_prompt=False)
            stop = start_of(text, last)
        if stop is None:
            raise ParameterError(
                "continue_final_message",
                True,
                "the model's chat template does not write the content of the last message",
            )
        text = text[:stop]
    check_length(len(text))
    cuts = chat.cuts(text, used, ends_with_prompt=end == "prompt")
    return chat.encode(text, is_start=True, cuts=cuts) if known is None else known.encode(chat, text, cuts)


def _add_soft_switch(messages: Messages, switch: str) -> None:
    last = next((each for each in reversed(messages) if each["role"] == "user"), None)
    if last is not None:
        last["content"] = _with_text(last.get("content"), f" {switch}")


def best_form(chat: ChatTemplate, messages: Sequence[Message], end: HistoryEnd) -> tuple[TrackedText, Messages]:
    """The text of a conversation, and the form of its messages: the first of which nothing is lost, else the first that is taken.

    Raises:
        ParameterError: the template refuses every form.
    """
    return _best_form(chat, [_without_nulls(message) for message in messages], end)


def _rendered(chat: ChatTemplate, messages: Messages, end: HistoryEnd) -> tuple[TrackedText, Messages]:
    """The text, and the form of the messages in which the template takes them.

    Where the tools are described for the template, it writes no calls either: they become text, in the form that the description asks for.
    """
    text, form = _best_form(chat, messages, end)
    if chat.description_of_tools and any(_calls(messages)) and not _is_whole(text, form):
        other = _best_form(chat, _calls_as_text(chat, messages), end)
        if _is_whole(*other):
            return other
    return text, form


def _best_form(chat: ChatTemplate, messages: Messages, end: HistoryEnd) -> tuple[TrackedText, Messages]:
    """The first form of which nothing is lost; otherwise the first that the template takes."""
    first: tuple[TrackedText, Messages] | None = None
    refusal: ParameterError | None = None
    for form in _forms(messages):
        try:
            text = text_before(chat, form, "assistant") if end == "prompt" else chat.render(form, adds_prompt=False)
        except UnusableTemplateError as error:
            raise ParameterError("messages", [message["role"] for message in messages], error.allowed) from None
        except ParameterError as error:
            refusal = refusal or error
            continue
        if _is_whole(text, form):
            return text, form
        first = first or (text, form)
    if first is None:
        assert refusal is not None
        raise ParameterError("messages", [message["role"] for message in messages], refusal.allowed)
    return first


def _is_whole(text: TrackedText, messages: Messages) -> bool:
    """Whether something of each message is in the text, and no list of parts is written as data."""
    if any(isinstance(each.get("content"), list) for each in messages) and _PARTS_AS_TEXT.search(text):
        return False
    written = {source for _, source in text.runs}
    return all(
        TextSource(index, field) in written
        for index, message in enumerate(messages)
        for field in ("content", "tool_calls")
        if _has_text(message.get(field))
    )


def _has_text(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_text(each.get("text", "x")) for each in value)
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _forms(messages: Messages) -> Iterator[Messages]:
    """The messages as they are, then with one change of form, then with several."""
    changes = [change for change in _CHANGES if change(messages) != messages]
    subsets = itertools.chain.from_iterable(itertools.combinations(changes, count) for count in range(len(changes) + 1))
    for subset in itertools.islice(subsets, _MAX_FORMS):
        form = messages
        for change in subset:
            form = change(form)
        yield form


def _without_nulls(message: Message) -> dict[str, Any]:
    """The message without fields that are None, and with its reasoning by each name that templates know, as transformers does."""
    found = {name: value for name, value in message.items() if value is not None}
    reasoning = next((found[name] for name in _REASONING if name in found), None)
    return found if reasoning is None else {_REASONING[1]: reasoning, **found, _REASONING[0]: reasoning}


def _with_text(content: Any, text: str) -> Any:
    return [*content, {"type": "text", "text": text}] if isinstance(content, list) else (content or "") + text


def _system_for_developer(messages: Messages) -> Messages:
    return [{**each, "role": "system"} if each["role"] == "developer" else each for each in messages]


def _user_for_later_system(messages: Messages) -> Messages:
    """With later system messages as user messages that say so: many templates take `system` at the start only."""

    def changed(message: dict[str, Any]) -> dict[str, Any]:
        text = f"<system-reminder>\n{_plain_text(message.get('content'))}\n</system-reminder>"
        return {**message, "role": "user", "content": text}

    if not any(each["role"] == "system" for each in messages[1:]):
        return messages
    return _joined_users(
        [changed(each) if index and each["role"] == "system" else each for index, each in enumerate(messages)]
    )


def _joined_users(messages: Messages) -> Messages:
    """With consecutive messages of the user as one: some templates demand that roles alternate."""
    found: Messages = []
    for role, group in itertools.groupby(messages, lambda each: each["role"]):
        run = list(group)
        if role == "user" and len(run) > 1:
            texts = [_plain_text(each.get("content")) for each in run]
            run = [{**run[0], "content": "\n\n".join(filter(None, texts))}]
        found += run
    return found


def _plain_text(content: Any) -> str:
    return "".join(part["text"] for part in content) if isinstance(content, list) else content or ""


def _text_for_parts(messages: Messages) -> Messages:
    return _with_contents(
        messages, lambda content: "".join(part["text"] for part in content) if isinstance(content, list) else content
    )


def _parts_for_text(messages: Messages) -> Messages:
    return _with_contents(
        messages, lambda content: [{"type": "text", "text": content}] if isinstance(content, str) else content
    )


def _text_for_none(messages: Messages) -> Messages:
    return [{**each, "content": each.get("content", "")} for each in messages]


def _with_contents(messages: Messages, change: Callable[[Any], Any]) -> Messages:
    return [{**each, "content": change(each["content"])} if "content" in each else each for each in messages]


def _arguments_as_text(messages: Messages) -> Messages:
    def as_text(call: dict[str, Any]) -> dict[str, Any]:
        arguments = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        return {**call, "function": {**call["function"], "arguments": arguments}}

    return [
        {**each, "tool_calls": [as_text(call) for call in each["tool_calls"]]} if each.get("tool_calls") else each
        for each in messages
    ]


def _short_ids(messages: Messages) -> Messages:
    """With ids of nine letters and digits, as some templates demand; a call without an id gets one."""
    given = [str(call.get("id") or f"call{index}") for index, call in enumerate(_calls(messages))]
    results = [str(each.get("tool_call_id")) for each in messages if each["role"] == "tool"]
    short = {each: f"{_LETTERS.sub('', each)[-9:]:0>9}" for each in (*given, *results)}
    numbers = iter(given)
    changed = []
    for each in messages:
        message = dict(each)
        if each.get("tool_calls"):
            message["tool_calls"] = [{**call, "id": short[next(numbers)]} for call in each["tool_calls"]]
        if each["role"] == "tool":
            message["tool_call_id"] = short[str(each.get("tool_call_id"))]
        changed.append(message)
    return changed


def _names_of_results(messages: Messages) -> Messages:
    """With the name of the called function in each result."""
    names = {call.get("id"): call["function"]["name"] for call in _calls(messages)}
    return [
        {**each, "name": names[each.get("tool_call_id")]}
        if each["role"] == "tool" and "name" not in each and each.get("tool_call_id") in names
        else each
        for each in messages
    ]


def _calls(messages: Messages) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        yield from message.get("tool_calls") or ()


def _calls_as_text(chat: ChatTemplate, messages: Messages) -> Messages:
    tool_format = detect_format(chat.template) or PLAIN_FORMAT
    found: Messages = []
    for message in messages:
        calls = [
            ToolCall(call["function"]["name"], call["function"]["arguments"], call.get("id"))
            for call in message.get("tool_calls") or ()
        ]
        if calls:
            text = "".join(piece for piece, _ in rendered_calls(tool_format, calls))
            content = message.get("content")
            message = {name: value for name, value in message.items() if name != "tool_calls"}
            message["content"] = _with_text(content, ("\n" if _has_text(content) else "") + text)
        found.append(message)
    return found


def _one_call_each(messages: Messages) -> Messages:
    """With each call in a message of its own, before its result: for formats in which a message has one call."""
    found: Messages = []
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        calls = message.get("tool_calls") or ()
        if len(calls) < 2:
            found.append(message)
            continue
        results: Messages = []
        while rest and rest[0]["role"] == "tool":
            results.append(rest.pop(0))
        for number, call in enumerate(calls):
            found.append({**message, **({"content": ""} if number else {}), "tool_calls": [call]})
            own = [each for each in results if each.get("tool_call_id") == call.get("id")]
            found += own
            results = [each for each in results if each not in own]
        found += results
    return found


_CHANGES = (
    _system_for_developer,
    _user_for_later_system,
    _text_for_parts,
    _text_for_none,
    _arguments_as_text,
    _names_of_results,
    _short_ids,
    _one_call_each,
    _joined_users,
    _parts_for_text,
)
"""The changes of form, the more likely ones first."""
