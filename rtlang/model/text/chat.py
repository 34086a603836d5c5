"""What stands around the messages of a conversation: the model's chat template, taken apart.

A program writes and generates messages piece by piece, so a conversation is never rendered as a whole. Instead the template is rendered
with marks in place of the contents; what lies between the marks is the framing, and each piece of framing is encoded once, where it is
needed. So framing is the template's text to the letter (a default system prompt included), and only framing can hold special tokens.
Templates run in a sandbox, in bounds (see chat_template).
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import jinja2

from rtlang.contract.errors import ParameterError
from rtlang.model.text.chat_template import MAX_RENDERED_CHARS, TemplateEnvironment

_MAX_CACHED = 4096
_COMMON_ROLES = ("user", "assistant", "system", "tool")
_ATOM = re.compile(r"<[^<>\s]+>|\[/?\w+\]|\w+|.", re.DOTALL)
"""What a cut must not divide: a special-looking name, a word, any other single character."""
_MARK = "rtlangcontent{}mark"
_PLAIN_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class _Encoder(Protocol):
    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]: ...

    def start_ids(self) -> list[int]: ...


class ChatFraming:
    """Framing of messages as token ids.

    Without a template a plain form is used: `User: ...` and so on, one message a line.

    Args:
        encoder: the tokenizer.
        template: Jinja source of the chat template; None for the plain form.
        special_names: the names of special tokens that templates refer to: bos_token, eos_token, ...
        now: what the template sees as the present, fixed so that equal prompts have equal tokens; default: the first use.
    """

    def __init__(
        self,
        encoder: _Encoder,
        template: str | None,
        special_names: Mapping[str, str],
        now: datetime.datetime | None = None,
    ) -> None:
        self._encoder, self._source, self._special_names, self._now = encoder, template, dict(special_names), now
        self._environment: TemplateEnvironment | None = None
        self._template: jinja2.Template | None = None
        self._segments: dict[tuple[tuple[str, ...], bool], tuple[str, ...] | _Refusal] = {}
        self._closes: dict[tuple[str, ...], str] = {}

    @property
    def has_template(self) -> bool:
        """Whether the model came with a chat template."""
        return self._source is not None

    def open(self, roles: tuple[str, ...], role: str, *, is_start: bool = True) -> list[int]:
        """Token ids of what stands before the content of a new message.

        Args:
            roles: of the messages before it, all closed.
            is_start: with `roles` empty: the conversation begins the sequence, so a start token that belongs there is included. False: text
                stands before it, and the start token is left out.
        Raises:
            ParameterError: the template does not take this role, or not here; says why.
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
        """Token ids of what stands after the content of the last of `roles`.

        Raises:
            ParameterError: the template does not take these roles.
        """
        return self._encoder.encode(self.close_text(roles), is_start=False, allow_special=self._source is not None)

    def open_text(self, roles: tuple[str, ...], role: str) -> str:
        """The text that `open` encodes."""
        if self._source is None:
            return f"{_plain_name(role)}: "
        whole = (*roles, role)
        between = self._before_last(whole)
        if role == "assistant" and roles:
            # What the template says to put before a generation wins over how it would print a finished message: they differ where a
            # template prints an empty thinking part.
            plain, prompt = self._segments_of(roles, False), self._segments_of(roles, True)
            if isinstance(plain, tuple) and isinstance(prompt, tuple) and prompt[-1] != plain[-1]:
                between = prompt[-1]
        if not roles:
            return between
        closing = self.close_text(roles)
        if not between.startswith(closing):
            raise ParameterError("role", role, f"the model's chat template does not take it after {', '.join(roles)}")
        return between[len(closing) :]

    def close_text(self, roles: tuple[str, ...]) -> str:
        """The text that `close` encodes: what follows the last message whatever comes next."""
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
            self._before_last(roles)  # raises where the roles are refused
            raise ParameterError("role", roles[-1], "the model's chat template does not print such a message")
        if isinstance(alone, tuple) and all(tail.startswith(alone[-1]) for tail in tails):
            return alone[-1]
        if len(tails) == 1:
            return tails[0]
        # The template prints a last message differently. Keep what is common to all, cut at a token or a space.
        atoms = zip(*(_ATOM.findall(tail) for tail in tails), strict=False)
        return "".join(column[0] for column in itertools.takewhile(lambda column: len({*column}) == 1, atoms))

    def _before_last(self, roles: tuple[str, ...]) -> str:
        """What stands before the content of the last of `roles`, alone or where the template needs it, with more messages after it."""
        refusal: _Refusal | None = None
        for more in ((), ("user",), ("assistant",), ("user", "assistant")):
            segments = self._segments_of((*roles, *more), False)
            if isinstance(segments, tuple):
                return segments[len(roles) - 1]
            refusal = refusal or segments
        assert refusal is not None
        allowed = f"the model's chat template does not take it here: {refusal.reason}"
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

    def _render(self, roles: tuple[str, ...], adds_prompt: bool) -> tuple[str, ...] | _Refusal:
        """The framing around each content: len(roles) + 1 texts."""
        if self._environment is None:
            self._environment = TemplateEnvironment(self._now or datetime.datetime.now())
        marks = [_MARK.format(index) for index in range(len(roles))]
        messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        pieces: list[str] = []
        num_chars = 0
        try:
            if self._template is None:
                self._template = self._environment.compiled(self._source or "")
            self._environment.begin()
            for piece in self._template.generate(
                messages=messages, add_generation_prompt=adds_prompt, tools=None, documents=None, **self._special_names
            ):
                pieces.append(piece)
                num_chars += len(piece)
                if num_chars > MAX_RENDERED_CHARS:
                    return _Refusal(f"its output is over {MAX_RENDERED_CHARS} characters")
        except jinja2.TemplateError as error:
            return _Refusal(error.message or type(error).__name__)
        except Exception as error:  # a template is a program of its own and may fail in any way
            return _Refusal(f"{type(error).__name__}: {error}")
        rest = "".join(pieces)
        segments: list[str] = []
        for mark in marks:
            before, found, rest = rest.partition(mark)
            if not found or mark in rest:
                return _Refusal(f"it does not print the content of every message once ({', '.join(roles)})")
            segments.append(before)
        return (*segments, rest)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a template cannot be rendered for some roles."""

    reason: str


def _plain_name(role: str) -> str:
    if role not in _PLAIN_NAMES:
        raise ParameterError("role", role, f"without a chat template, {', '.join(_PLAIN_NAMES)} are allowed")
    return _PLAIN_NAMES[role]
