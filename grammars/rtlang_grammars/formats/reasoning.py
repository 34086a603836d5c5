"""Reasoning of a model: the marks that its chat template shows, and the state in which the end of a prompt leaves it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rtlang_grammars.formats.catalogue import MARKS, detect_format, format_named
from rtlang_grammars.formats.description import ToolFormat

PLAIN_FORMAT = "json"
"""The format of models whose template shows none."""


class PromptEnd(StrEnum):
    """The state of the reasoning of a reply at the end of its prompt."""

    UNDECIDED = "undecided"  # the model may begin its reasoning
    OPEN = "open"  # the prompt has begun it; the reply goes on inside
    CLOSED = "closed"  # it is over, or there is none; content or calls follow
    CONTENT = "content"  # the reply goes on inside the content


def detect_reply_format(chat_template: str | None, special_tokens: Iterable[str] = ()) -> ToolFormat | None:
    """The format of a model's replies: its format of tool calls, with the marks of reasoning that its chat template shows.

    Args:
        special_tokens: names of special tokens; looked at only if the template shows nothing.
    Returns:
        None if neither shows calls or reasoning.
    """
    names = tuple(special_tokens)
    shown, named = detect_format(chat_template), detect_format(None, names)
    calls = shown or named
    for text in (chat_template or "", "\n".join(names)):
        if calls is not None and (calls is shown or text is not chat_template) and calls.content is not None:
            return calls  # sections and reasoning are one family
        if calls is not None and shows_reasoning(calls, text):
            return calls
        for name, span in MARKS.items():
            if span.begin.strip() in text or span.end in text:
                is_family = calls is not None and calls.content is not None
                return format_named(f"{PLAIN_FORMAT if calls is None or is_family else calls.name}+{name}")
    return calls


def shows_reasoning(tool_format: ToolFormat, text: str) -> bool:
    """Whether a text, such as a chat template, contains a mark of the format's reasoning."""
    span = tool_format.reasoning
    return span is not None and (span.begin.strip() in text or span.end in text)


def prompt_end(tool_format: ToolFormat, prompt: str) -> PromptEnd:
    """The state of the reasoning of a reply at the end of its prompt.

    Args:
        prompt: the prompt with its generation prompt, or the end of it; special tokens under their names.
    """
    text = prompt.rstrip()
    if tool_format.content is not None:
        begins = (tool_format.content.begin, *tool_format.content_begins)
        if any(text.endswith(begin) for begin in begins):
            return PromptEnd.CONTENT
    span = tool_format.reasoning
    if span is None or text.endswith(span.end):
        return PromptEnd.CLOSED
    return PromptEnd.OPEN if text.endswith(span.begin.strip()) else PromptEnd.UNDECIDED


def continued_end(tool_format: ToolFormat, content: str) -> PromptEnd:
    """As `prompt_end`, for a prompt that ends with the beginning of a reply, which goes on.

    Args:
        content: that beginning, without the framing of the chat template.
    """
    span = tool_format.reasoning
    if span is None:
        return PromptEnd.CONTENT
    begun, ended = content.rfind(span.begin.strip()), content.rfind(span.end)
    return PromptEnd.OPEN if begun > ended else PromptEnd.CONTENT
