"""The chat messages of a growing sequence, and the text of the chat template that was written for them.

A program adds messages one by one, and generates some of them. Whenever the sequence must be known, the template writes the whole
conversation, and what it writes after the last generated text is compared with what was written before: usually it only adds to it. Some
templates change earlier messages, such as a system text that stands in the last message of the user; then the text after the last generated
one is written anew. Tokens of generated texts always stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.model.text import tracked_text
from rtlang.model.text.chat import ChatTemplate, UnusableTemplateError
from rtlang.model.text.tracked_text import TextSource, TrackedText

MARK = "rtlangcontentmark"
"""Content in place of one that is not known yet, or that a template would leave out."""
CHARS_OF_MESSAGE = 50
"""Characters that take a template about as long as a message without content."""
_MORE = ((), ("user",), ("assistant",), ("user", "assistant"))
"""Roles of messages that a template may require after the last one."""

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a sequence. Immutable.

    Attributes:
        messages: role and content of each; an open message has its content so far.
        is_open: the last message is open.
        tools, template_options: see `RoleStart`.
        anchor: the last message whose content was generated, if it is closed; None if there is none.
        written: the text of the template that was written after the content of the anchor, or from the start.
        refusal: why the template does not write these messages; a further message may change that.
    """

    messages: tuple[tuple[str, str], ...] = ()
    is_open: bool = False
    tools: str | None = None
    template_options: str | None = None
    anchor: int | None = None
    written: str = ""
    refusal: ParameterError | None = None

    @property
    def num_chars(self) -> int:
        """The characters of all contents, and `CHARS_OF_MESSAGE` for each message: the work of writing the conversation."""
        return sum(len(content) + CHARS_OF_MESSAGE for _, content in self.messages)

    @property
    def plain_messages(self) -> list[dict[str, str]]:
        """The messages as templates take them."""
        return [{"role": role, "content": content} for role, content in self.messages]

    def with_settings(self, tools: str | None, template_options: str | None) -> Conversation:
        """With these settings."""
        return replace(self, tools=tools, template_options=template_options)

    def with_messages(self, messages: Sequence[tuple[str, str]]) -> Conversation:
        """With more messages whose texts are given."""
        return replace(self, messages=(*self.messages, *messages)) if messages else self

    def opened(self, role: str) -> Conversation:
        """With a new open message."""
        return replace(self, messages=(*self.messages, (role, "")), is_open=True)

    def grown(self, text: str) -> Conversation:
        """With more text in the open message."""
        *before, (role, content) = self.messages
        return replace(self, messages=(*before, (role, content + text)))

    def closed(self) -> Conversation:
        """With the open message closed; its tokens stay as they are."""
        return replace(self, is_open=False, anchor=len(self.messages) - 1, written="")

    def text(self, chat: ChatTemplate) -> TrackedText:
        """The text of the template after the anchor, or from the start; before the open message, if there is one.

        Raises:
            ParameterError: the template refuses the conversation.
        """
        messages = self.plain_messages
        if messages and chat.description_of_tools and not (self.is_open and len(messages) == 1):
            messages[0]["content"] += chat.description_of_tools
        if not self.is_open:
            return self._after_anchor(messages, lambda given: chat.render(given, adds_prompt=False))
        role = messages.pop()["role"]
        return self._after_anchor(messages, lambda given: text_before(chat, given, role))

    def _after_anchor(self, messages: list[dict[str, str]], render: Callable[[Messages], TrackedText]) -> TrackedText:
        text = render(messages)
        if self.anchor is None:
            return text
        end = end_of(text, TextSource(self.anchor, "content"))
        if end is None:  # an empty content, or one of which nothing is left
            messages[self.anchor] = {**messages[self.anchor], "content": MARK}
            text = render(messages)
            end = end_of(text, TextSource(self.anchor, "content"))
        if end is None:
            role = messages[self.anchor]["role"]
            raise ParameterError("role", role, "the model's chat template does not write the content of this message")
        return text[end:]


def text_before(chat: ChatTemplate, messages: Messages, role: str) -> TrackedText:
    """The text of the template up to the content of a new message that is to be generated.

    Raises:
        ParameterError: the template refuses the conversation, or a message of this role.
    """
    if role == "assistant" and messages:
        if chat.has_prompt:
            try:
                return chat.render(messages, adds_prompt=True)
            except UnusableTemplateError:
                raise
            except ParameterError:
                return _before_mark(chat, messages, role)
        closed = chat.render(messages, adds_prompt=True)
        try:
            finished = _before_mark(chat, messages, role)
        except UnusableTemplateError:
            raise
        except ParameterError:  # a template that writes no answers, such as one of a translator
            return closed
        header = finished[len(closed) :] if finished.startswith(closed) else ""
        return finished if header.strip() else closed  # a blank belongs to the answer, as in the forms with [INST]
    return _before_mark(chat, messages, role)


def framing(chat: ChatTemplate, roles: Sequence[str], role: str, *, is_begin: bool) -> str:
    """The text that a program gets before or after the content of a message.

    Args:
        roles: the roles of the messages before it, none of which is empty.
    Raises:
        ParameterError: the template refuses the messages.
    """
    before = Conversation()
    for each in roles:
        before = before.opened(each).grown(MARK).closed()
    closing = before.text(chat) if roles else ""
    opened = before.opened(role)
    if is_begin:
        return tracked_text.plain(opened.text(chat)).removeprefix(closing)
    return tracked_text.plain(opened.grown(MARK).closed().text(chat))


def _before_mark(chat: ChatTemplate, messages: Messages, role: str) -> TrackedText:
    """The text up to the content of a finished message of this role."""
    refusal: ParameterError | None = None
    for more in _MORE:
        marked = [*messages, {"role": role, "content": MARK}, *({"role": each, "content": MARK} for each in more)]
        try:
            text = chat.render(marked, adds_prompt=False)
        except UnusableTemplateError:
            raise
        except ParameterError as error:
            refusal = refusal or ParameterError("role", role, error.allowed)
            continue
        start = start_of(text, TextSource(len(messages), "content"))
        if start is not None:
            return text[:start]
    raise refusal or ParameterError("role", role, "the model's chat template does not write messages of this role")


def start_of(text: TrackedText, source: TextSource) -> int | None:
    """The place of the first character from a source; None if there is none."""
    at = 0
    for num_chars, each in text.runs:
        if each == source:
            return at
        at += num_chars
    return None


def end_of(text: TrackedText, source: TextSource) -> int | None:
    """The place after the last character from a source; None if there is none."""
    at, end = 0, None
    for num_chars, each in text.runs:
        at += num_chars
        if each == source:
            end = at
    return end


def common_prefix(first: str, second: str) -> int:
    """The length of the longest common beginning of two texts."""
    return next(
        (at for at, (a, b) in enumerate(zip(tracked_text.plain(first), second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
