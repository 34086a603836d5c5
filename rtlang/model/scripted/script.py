"""The rules of a script: which reply the scripted model gives to a conversation.

The choice is a pure function of the conversation, so retries, forks and different doors to one conversation get the same reply. A rule
applies from the user message that it matches; the number of replies of the assistant after that message is the number of the next reply.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import ContextLengthError, InternalError, OverloadError, RtlangError, ScriptError
from rtlang_grammars.formats.parsing import ToolCall

FAILURES = ("overloaded", "context_length", "internal", "refused")
"""Kinds of failures that a reply may end with."""
SYSTEM_ROLES = ("system", "developer")
_NAME = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}")
_MAX_SHOWN = 120
DEFAULT_FORMAT, DEFAULT_MODEL_LEN = "hermes", 1 << 18


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of a conversation, as the prompt has it."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptConversation:
    """A conversation up to the reply that is asked for. `tools`: the names of the offered tools."""

    messages: tuple[PromptMessage, ...]
    tools: tuple[str, ...] = ()

    def texts(self, roles: Sequence[str]) -> list[str]:
        """The texts of the messages of these roles, in order."""
        return [each.text for each in self.messages if each.role in roles]


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a rule on a conversation. Patterns are searched for; None matches everything.

    Attributes:
        user: in a message of the user; the last one that matches counts.
        system: in the system messages.
        tools: names that must all be offered; empty if none may be.
    """

    user: re.Pattern[str] | None = None
    system: re.Pattern[str] | None = None
    tools: tuple[str, ...] | None = None

    def holds_around(self, conversation: PromptConversation) -> bool:
        """Whether the conversation matches, apart from the messages of the user."""
        if self.system is not None and not self.system.search("\n".join(conversation.texts(SYSTEM_ROLES))):
            return False
        if self.tools is None:
            return True
        return set(self.tools) <= set(conversation.tools) if self.tools else not conversation.tools


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure at the end of a reply: one of `FAILURES`, and its message."""

    kind: str
    message: str

    def error(self) -> RtlangError:
        """The error of the request."""
        match self.kind:
            case "overloaded":
                return OverloadError(self.message, 1.0)
            case "context_length":
                return ContextLengthError(1 << 20, 1, 1 << 20)
            case "internal":
                return InternalError.made(self.message)
        return ScriptError(self.message)


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply of the model.

    Attributes:
        thought, content: text; empty for none.
        calls: of tools, in order.
        failure: with which the request fails after this text.
        delay_s: seconds before the first token; None for the delay of the script.
        place: where the reply stands, for errors.
    """

    thought: str = ""
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    failure: Failure | None = None
    delay_s: float | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class ScriptRule:
    """Replies to the conversations that match.

    Attributes:
        captures: patterns by name, whose first group, or whole match, in the newest message that has one replaces `{{name}}` in replies.
        repeats: the last reply is given again when there are no more; else that is an error.
    """

    when: Condition
    replies: tuple[ScriptedReply, ...]
    captures: Mapping[str, re.Pattern[str]]
    repeats: bool
    place: str


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script.

    Attributes:
        format: the name of the format in which the model writes thoughts and calls.
        max_model_len: the longest sequence in tokens.
        first_token_s: seconds before the first token of a reply.
        tokens_per_s: tokens of a reply in a second; None for as many as possible.
    """

    name: str
    rules: tuple[ScriptRule, ...]
    format: str = DEFAULT_FORMAT
    max_model_len: int = DEFAULT_MODEL_LEN
    first_token_s: float = 0.0
    tokens_per_s: float | None = None

    def reply_to(self, conversation: PromptConversation) -> ScriptedReply:
        """The reply to a conversation, with the captured texts in place.

        Raises:
            ScriptError: no rule matches, the rule has no reply for this turn, or nothing was captured for a name.
        """
        if not conversation.messages:  # also the steps that measure the runner, which must not wait
            raise ScriptError(f"{self.name}: there is no reply to an empty prompt")
        found = self._matching(conversation)
        if found is None:
            last = (conversation.texts(("user",)) or [""])[-1]
            tools = ", ".join(conversation.tools) or "no tools"
            raise ScriptError(
                f"{self.name}: no rule matches a conversation with {tools} and the last user message {_shown(last)}"
            )
        rule, begin = found
        turn = _num_replies(conversation.messages[begin:])
        if turn >= len(rule.replies) and not rule.repeats:
            raise ScriptError(
                f"{rule.place}: has {len(rule.replies)} replies, but the conversation asks for reply {turn + 1} "
                f"(after {_shown(conversation.messages[-1].text)}); add a reply, or repeats: true"
            )
        reply = _filled(rule.replies[min(turn, len(rule.replies) - 1)], rule, conversation)
        calls = tuple(
            each if each.id is not None else replace(each, id=f"call{turn % 1000:03}{number % 100:02}")
            for number, each in enumerate(reply.calls)
        )
        return replace(reply, calls=calls)

    def _matching(self, conversation: PromptConversation) -> tuple[ScriptRule, int] | None:
        """The rule, and the message after which its replies are counted: rules that match a later message of the user go first."""
        rules = [rule for rule in self.rules if rule.when.holds_around(conversation)]
        for index in range(len(conversation.messages) - 1, -1, -1):
            message = conversation.messages[index]
            if message.role == "user":
                for rule in rules:
                    if rule.when.user is not None and rule.when.user.search(message.text):
                        return rule, index
        return next(((rule, 0) for rule in rules if rule.when.user is None), None)


def _num_replies(messages: Sequence[PromptMessage]) -> int:
    """Replies of the assistant; messages in a row are one reply."""
    roles = ["", *(each.role for each in messages)]
    return sum(role == "assistant" != before for before, role in itertools.pairwise(roles))


def _filled(reply: ScriptedReply, rule: ScriptRule, conversation: PromptConversation) -> ScriptedReply:
    """The reply with the captured texts filled in."""

    def text_of(found: re.Match[str]) -> str:
        pattern = rule.captures.get(found[1])
        if pattern is None:
            return found[0]
        for message in reversed(conversation.messages):
            if (match := pattern.search(message.text)) is not None:
                return match[1] if match.re.groups else match[0]
        raise ScriptError(f"{reply.place}: no message has a match of captures.{found[1]} = {pattern.pattern!r}")

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return _NAME.sub(text_of, value)
        if isinstance(value, list):
            return [fill(each) for each in value]
        return {name: fill(each) for name, each in value.items()} if isinstance(value, dict) else value

    if not rule.captures:
        return reply
    calls = tuple(ToolCall(each.name, fill(each.arguments), each.id) for each in reply.calls)
    return replace(reply, thought=fill(reply.thought), content=fill(reply.content), calls=calls)


def captured_names(value: Any) -> Iterator[str]:
    """The names in `{{...}}` in the texts of plain data."""
    if isinstance(value, str):
        yield from _NAME.findall(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from captured_names(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from captured_names(each)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN // 2]}...{text[-_MAX_SHOWN // 2 :]}")
