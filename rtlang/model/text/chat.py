"""Chat framing: the text that a model's chat template puts around the contents of messages.

A program writes and generates messages incrementally, so a conversation is never rendered as a whole. Instead the template is rendered
with markers in place of the contents, and the text between the markers is the framing. Each part of the framing is encoded once, where it
is needed. So framing is exactly the template's text (including a default system prompt), and only framing can contain special tokens.
Templates run in a bounded sandbox (chat_template.py).
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jinja2

from rtlang.contract.errors import ParameterError
from rtlang.model.text.chat_template import MAX_RENDERED_CHARS, TemplateEnvironment
from rtlang_grammars.formats.catalogue import detect_format

_MAX_CACHED = 4096
_MAX_TOOL_LISTS = 256
_COMMON_ROLES = ("user", "assistant", "system", "tool")
_ATOM = re.compile(r"<[^<>\s]+>|\[/?\w+\]|\w+|.", re.DOTALL)
"""Units that framing is not split within: names of special tokens, words, other single characters."""
_MARK = "rtlangcontent{}mark"
_PLAIN_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class _Encoder(Protocol):
    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]: ...

    def start_ids(self) -> list[int]: ...


class ChatFraming:
    """Framing of messages as token ids.

    Without a template a plain form is used: `User: ...`, `Assistant: ...`, one message per line.

    Args:
        encoder: the tokenizer.
        template: Jinja source of the chat template; None for the plain form.
        special_names: special tokens by the names that templates use: bos_token, eos_token, ...
        now: the time seen by the template, fixed so that equal prompts have equal tokens; default: the time of `prepare`.
        tools: the tools of the conversation, as the template takes them.
    """

    def __init__(
        self,
        encoder: _Encoder,
        template: str | None,
        special_names: Mapping[str, str],
        now: datetime.datetime | None = None,
        tools: list[dict[str, Any]] | None = None,
    ) -> None:
        self._encoder, self._source, self._special_names, self._now = encoder, template, dict(special_names), now
        self._tools = tools
        self._with_tools: dict[str, ChatFraming] = {}
        self._environment: TemplateEnvironment | None = None
        self._template: jinja2.Template | None = None
        self._segments: dict[tuple[tuple[str, ...], bool], tuple[str, ...] | _Refusal] = {}
        self._closes: dict[tuple[str, ...], str] = {}

    @property
    def template(self) -> str | None:
        """Jinja source of the model's chat template; None for the plain form."""
        return self._source

    @property
    def has_template(self) -> bool:
        """Whether the model has a chat template."""
        return self._source is not None

    def prepare(self) -> None:
        """Compile the template, which takes milliseconds; otherwise the first use does it. An invalid one fails when it is used."""
        if self._source is not None:
            with contextlib.suppress(Exception):
                self._ready_template()

    def with_tools(self, tools: str | None) -> ChatFraming:
        """The framing of conversations with these tools, given as JSON text; without tools, this framing."""
        if tools is None:
            return self
        found = self._with_tools.get(tools)
        if found is None:
            self.prepare()
            found = ChatFraming(self._encoder, self._source, self._special_names, self._now, json.loads(tools))
            found._environment, found._template = self._ready_environment(), self._template
            if len(self._with_tools) >= _MAX_TOOL_LISTS:
                self._with_tools.clear()
            self._with_tools[tools] = found
        return found

    @functools.cached_property
    def description_of_tools(self) -> str:
        """Text with the tools for the end of the first message, if the template does not render them; else empty."""
        if not self._tools or (self._source is not None and self._renders_tools(self._tools)):
            return ""
        lines = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in self._tools]
        text = "\n\nTools:\n" + "\n".join(lines)
        if detect_format(self._source) is None:
            text += '\nTo call a tool, write {"name": ..., "arguments": {...}} on a line.'
        return text

    def render(self, messages: list[dict[str, Any]], *, adds_prompt: bool) -> str:
        """The text of whole messages.

        Raises:
            ParameterError: the model has no template, or it refuses the messages.
        """
        found = self._generated(messages, adds_prompt) if self.has_template else _Refusal("there is none")
        if isinstance(found, _Refusal):
            raise ParameterError("messages", messages, f"the model's chat template refuses them: {found.reason}")
        return found

    def framing_ids(self, text: str, *, is_start: bool) -> list[int]:
        """Token ids of text of the template, in which names of special tokens are these tokens."""
        return self._encoder.encode(text, is_start=is_start, allow_special=True)

    def _renders_tools(self, tools: list[dict[str, Any]]) -> bool:
        """Whether the names of the tools are in the framing of a conversation."""
        for roles in (("user",), ("system", "user")):
            segments = self._segments_of(roles, True)
            if isinstance(segments, tuple) and all(_name_of(tool) in "".join(segments) for tool in tools):
                return True
        return False

    def open(self, roles: tuple[str, ...], role: str, *, is_start: bool = True) -> list[int]:
        """Token ids of the framing before the content of a new message.

        Args:
            roles: roles of the previous messages, all closed.
            is_start: if `roles` is empty: whether the conversation starts the sequence, and so includes the start token.
        Raises:
            ParameterError: the template does not accept this role here.
        """
        text = self.open_text(roles, role)
        if self._source is None:
            start = self._encoder.start_ids() if not roles and is_start else []
            return start + self._encoder.encode(text, is_start=not roles and is_start)
        bos = self._special_names.get("bos_token")
        if not roles and not is_start and bos:
            text = text.removeprefix(bos)
        return self._encoder.encode(text, is_start=not roles and is_start, allow_special=True)

    def close(self, roles: tuple[str, ...]) -> list[int]:
        """Token ids of the framing after the content of the last message.

        Raises:
            ParameterError: the template does not accept these roles.
        """
        return self._encoder.encode(self.close_text(roles), is_start=False, allow_special=self._source is not None)

    def open_text(self, roles: tuple[str, ...], role: str) -> str:
        """The text that `open` encodes."""
        if self._source is None:
            return f"{_plain_name(role)}: "
        whole = (*roles, role)
        between = self._before_last(whole)
        if role == "assistant" and roles:
            # Prefer the generation prompt over the form of a finished message: they differ if a template prints an empty thinking
            # section.
            plain, prompt = self._segments_of(roles, False), self._segments_of(roles, True)
            if isinstance(plain, tuple) and isinstance(prompt, tuple) and prompt[-1] != plain[-1]:
                between = prompt[-1]
        if not roles:
            return between
        closing = self.close_text(roles)
        if not between.startswith(closing):
            raise ParameterError(
                "role", role, f"the model's chat template does not accept this role after {', '.join(roles)}"
            )
        return between[len(closing) :]

    def close_text(self, roles: tuple[str, ...]) -> str:
        """The text that `close` encodes: the framing after the last message that does not depend on what follows."""
        if self._source is None:
            return "\n"
        found = self._closes.get(roles)
        if found is None:
            found = self._find_close(roles)
            if len(self._closes) >= _MAX_CACHED:
                self._closes.clear()
            self._closes[roles] = found
        return found

    def _find_close(self, roles: tuple[str, ...]) -> str:
        alone = self._segments_of(roles, False)
        tails = [alone[-1]] if isinstance(alone, tuple) else []
        prompt = self._segments_of(roles, True)
        if isinstance(prompt, tuple):
            tails.append(prompt[-1])
        for role in _COMMON_ROLES:
            following = self._segments_of((*roles, role), False)
            if isinstance(following, tuple):
                tails.append(following[len(roles)])
        if not tails:
            self._before_last(roles)  # raises if the roles are refused
            raise ParameterError("role", roles[-1], "the model's chat template does not render messages of this role")
        if isinstance(alone, tuple) and all(tail.startswith(alone[-1]) for tail in tails):
            return alone[-1]
        if len(tails) == 1:
            return tails[0]
        # The template renders a last message differently. Keep the common part, cut at a token or word boundary.
        atoms = zip(*(_ATOM.findall(tail) for tail in tails), strict=False)
        return "".join(column[0] for column in itertools.takewhile(lambda column: len({*column}) == 1, atoms))

    def _before_last(self, roles: tuple[str, ...]) -> str:
        """The framing before the content of the last message; more messages are appended if the template requires them."""
        refusal: _Refusal | None = None
        for more in ((), ("user",), ("assistant",), ("user", "assistant")):
            segments = self._segments_of((*roles, *more), False)
            if isinstance(segments, tuple):
                return segments[len(roles) - 1]
            refusal = refusal or segments
        assert refusal is not None
        allowed = f"the model's chat template refuses this role here: {refusal.reason}"
        raise ParameterError("role", roles[-1], allowed)

    def _segments_of(self, roles: tuple[str, ...], adds_prompt: bool) -> tuple[str, ...] | _Refusal:
        key = (roles, adds_prompt)
        found = self._segments.get(key)
        if found is None:
            found = self._render(roles, adds_prompt)
            if len(self._segments) >= _MAX_CACHED:
                self._segments.clear()
            self._segments[key] = found
        return found

    def _ready_environment(self) -> TemplateEnvironment:
        if self._environment is None:
            self._environment = TemplateEnvironment(self._now or datetime.datetime.now())
        return self._environment

    def _ready_template(self) -> jinja2.Template:
        if self._template is None:
            self._template = self._ready_environment().compiled(self._source or "")
        return self._template

    def _render(self, roles: tuple[str, ...], adds_prompt: bool) -> tuple[str, ...] | _Refusal:
        """The framing around each content: len(roles) + 1 strings."""
        marks = [_MARK.format(index) for index in range(len(roles))]
        messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        rest = self._generated(messages, adds_prompt)
        if isinstance(rest, _Refusal):
            return rest
        segments: list[str] = []
        for mark in marks:
            before, found, rest = rest.partition(mark)
            if not found or mark in rest:
                return _Refusal(f"it does not render the content of every message exactly once ({', '.join(roles)})")
            segments.append(before)
        return (*segments, rest)

    def _generated(self, messages: list[dict[str, Any]], adds_prompt: bool) -> str | _Refusal:
        environment = self._ready_environment()
        pieces: list[str] = []
        num_chars = 0
        try:
            template = self._ready_template()
            environment.begin()
            for piece in template.generate(
                messages=messages,
                add_generation_prompt=adds_prompt,
                tools=self._tools,
                documents=None,
                **self._special_names,
            ):
                pieces.append(piece)
                num_chars += len(piece)
                if num_chars > MAX_RENDERED_CHARS:
                    return _Refusal(f"its output exceeds {MAX_RENDERED_CHARS} characters")
        except jinja2.TemplateError as error:
            return _Refusal(error.message or type(error).__name__)
        except Exception as error:  # a template is a program and may raise anything
            return _Refusal(f"{type(error).__name__}: {error}")
        return "".join(pieces)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a template cannot be rendered for some roles."""

    reason: str


def _name_of(tool: dict[str, Any]) -> str:
    return str(tool.get("function", tool)["name"])


def _plain_name(role: str) -> str:
    if role not in _PLAIN_NAMES:
        raise ParameterError("role", role, f"the model has no chat template; expected one of {', '.join(_PLAIN_NAMES)}")
    return _PLAIN_NAMES[role]
