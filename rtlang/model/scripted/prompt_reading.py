"""Reads the conversation back from the tokens of a prompt, as a model sees it: messages stand between control tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rtlang.model.scripted.reply_text import BEGIN, END, TOOLS_ROLE
from rtlang.model.scripted.script import PromptConversation, PromptMessage
from rtlang.model.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PromptReading:
    """A prompt as a conversation. `begun`: the text of the reply that the prompt begins; empty for none."""

    conversation: PromptConversation
    begun: str


class PromptReader:
    """Reads prompts of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        (self._begin,) = tokenizer.encode(BEGIN, is_start=False, allow_special=True)
        (self._end,) = tokenizer.encode(END, is_start=False, allow_special=True)

    def read(self, token_ids: Sequence[int]) -> PromptReading:
        """The conversation in a prompt. A prompt without messages, as of a plain completion, is one message of the user."""
        messages: list[PromptMessage] = []
        tools: tuple[str, ...] = ()
        ids = list(token_ids)
        begins = [index for index, token_id in enumerate(ids) if token_id == self._begin]
        if not begins:
            text = self._tokenizer.decode(ids)
            return PromptReading(PromptConversation((PromptMessage("user", text),) if text else ()), "")
        begun = ""
        for start, stop in zip(begins, [*begins[1:], len(ids)], strict=True):
            part = ids[start + 1 : stop]
            is_closed = self._end in part
            role, _, text = self._tokenizer.decode(part[: part.index(self._end)] if is_closed else part).partition("\n")
            if not is_closed and stop == len(ids):
                begun = text
            elif role == TOOLS_ROLE and not messages:
                tools = _names(text)
            else:
                messages.append(PromptMessage(role, text))
        return PromptReading(PromptConversation(tuple(messages), tools), begun)


def _names(text: str) -> tuple[str, ...]:
    """The names of the tools that are described, one in a line."""
    found = []
    for line in text.splitlines():
        tool = json.loads(line)
        found.append(str(tool.get("function", tool).get("name", "")))
    return tuple(found)
