"""Compaction: a conversation becomes one opaque item, which holds a summary that the model wrote and the client's last messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rtlang.serve.openai.messages import content_text
from rtlang.serve.responses.input_items import TRIGGER, Item

MAX_SUMMARY_TOKENS = 4096
_MAX_CHARS = 40_000
"""Of the messages of the client that are kept as they are, the newest first."""
_REQUEST = (
    "The conversation is about to be replaced by a summary. Write this summary for the assistant that continues the work. State the user's "
    "goals and constraints, the decisions taken and why, what was done with exact names, paths, values and results, and what remains to be "
    "done next. Do not call tools, and do not address the user."
)
_HEADING = "Summary of the conversation before this message, written by the assistant:\n\n"


def asks_for_compaction(items: Sequence[Item]) -> bool:
    """Whether the input of a request ends with a trigger."""
    return bool(items) and items[-1]["type"] == TRIGGER


def summary_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the request for the summary: the fields that shape an answer are left out."""
    rest = {
        name: value for name, value in body.items() if name not in ("text", "tool_choice", "top_logprobs", "include")
    }
    return {"max_output_tokens": MAX_SUMMARY_TOKENS, **rest, "tool_choice": "none", "truncation": "auto"}


def summary_request() -> Item:
    """The message that asks the model for the summary."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": _REQUEST}]}


def compacted_items(items: Sequence[Item], summary: str) -> list[Item]:
    """The items that stand for a conversation: instructions within it, the client's last messages, and the summary."""
    kept: list[Item] = []
    room = _MAX_CHARS
    for item in reversed(items):
        if item["type"] != "message" or item.get("role") == "assistant":
            continue
        size = len(_text_of(item))
        if item.get("role") == "user":
            if size > room:
                room = 0  # older ones are not kept, either
                continue
            room -= size
        kept.append({name: item[name] for name in ("type", "role", "content") if name in item})
    kept.reverse()
    text = {"type": "input_text", "text": _HEADING + summary}
    return [*kept, {"type": "message", "role": "user", "content": [text]}]


def _text_of(item: Mapping[str, Any]) -> str:
    content: Iterable[Any] | str = item.get("content") or ""
    return content_text(content, "content")
