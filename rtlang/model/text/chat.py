"""Chat templates: the text that a model's template writes for a conversation, and which of it comes from messages.

A template gets whole conversations with their real contents, so it may trim or split them, test them, or move them into another message.
The text keeps the sources of its characters (tracked_text.py), so that names of special tokens are these tokens only where the template
writes them. Templates run in a bounded sandbox (chat_template.py).
"""

from __future__ import annotations

import bisect
import contextlib
import datetime
import functools
import hashlib
import itertools
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import jinja2

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.model.text import tracked_text
from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang.model.text.template_bounds import MAX_RENDERED_CHARS, LimitExceeded
from rtlang.model.text.template_controls import control_variables, read_template, soft_switch
from rtlang.model.text.tracked_text import TextSource, TrackedText, tracked
from rtlang_grammars.formats.catalogue import detect_format

_MAX_SETTINGS = 256
_MAX_PREFIXES = 512
_ROLES = ("system", "user", "assistant", "tool")
_KNOWN_ROLES = (*_ROLES, "developer")
_PLAIN_TEMPLATE = (
    "{%- for message in messages %}{% if message.role not in names %}"
    "{{ raise_exception('the model has no chat template; expected one of ' + names | join(', ')) }}{% endif %}"
    "{{ message.role | capitalize + ': ' + message.content + '\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
)
"""The form of models without a template."""
OF_CONVERSATION = -1
"""The message of a `TextSource` for tools and options."""


class Encoder(Protocol):
    """A tokenizer."""

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]: ...

    def start_ids(self) -> list[int]: ...

    def special_names(self, text: str) -> Iterator[tuple[int, int]]: ...


class EncodeText(Protocol):
    """Encodes text; see `Tokenizer.encode`."""

    def __call__(self, text: str, *, is_start: bool, allow_special: bool = False) -> Sequence[int]: ...


class UnusableTemplateError(ParameterError):
    """A chat template that is invalid, or that exceeds a limit: another form of the messages is not worth a try."""

    def __init__(self, role: str, reason: str) -> None:
        super().__init__("role", role, f"the model's chat template cannot be used: {reason}")


class ChatTemplate:
    """The chat template of a model, for conversations with certain tools and options.

    Without a template a plain form is used: `User: ...`, `Assistant: ...`, one message per line.

    Args:
        encoder: the tokenizer.
        template: Jinja source of the chat template; None for the plain form.
        special_names: special tokens by the names that templates use: bos_token, eos_token, ...
        now: the time seen by the template, fixed so that equal prompts have equal tokens; default: the time of `prepare`.
        tools: the tools of the conversation, as the template takes them.
        variables: further variables of the template.
    """

    def __init__(
        self,
        encoder: Encoder,
        template: str | None,
        special_names: Mapping[str, str],
        now: datetime.datetime | None = None,
        tools: list[dict[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self._encoder, self._source, self._special_names, self._now = encoder, template, dict(special_names), now
        self._tools, self._variables = tools, dict(variables or {})
        self._others: dict[tuple[str | None, str | None], ChatTemplate] = {}
        self._environment: TemplateEnvironment | None = None
        self._template: jinja2.Template | None = None
        self._fault: str | None = None
        self._prefixes: OrderedDict[bytes, str] = OrderedDict()
        self.soft_switch = ""
        """Text that the last message of the user needs so that the template turns the thought off, as the options ask."""

    @property
    def template(self) -> str | None:
        """Jinja source of the model's chat template; None for the plain form."""
        return self._source

    def prepare(self) -> None:
        """Compile the template, which takes milliseconds; otherwise the first use does it. An invalid one fails when it is used."""
        with contextlib.suppress(Exception):
            self._ready_template()

    def with_tools(self, tools: list[dict[str, Any]]) -> ChatTemplate:
        """The template for conversations with these tools, as templates take them."""
        return self.with_settings(json.dumps(tools, ensure_ascii=False))

    def with_settings(self, tools: str | None, template_options: str | None = None) -> ChatTemplate:
        """The template for conversations with these tools and options, given as JSON text (see `RoleStart`)."""
        if tools is None and template_options is None:
            return self
        key = (tools, template_options)
        found = self._others.get(key)
        if found is None:
            given = TemplateOptions() if template_options is None else TemplateOptions.from_text(template_options)
            found = ChatTemplate(
                self._encoder,
                self._source if given.chat_template is None else given.chat_template,
                self._special_names,
                self._now,
                None if tools is None else json.loads(tools),
                self._variables,
            )
            found._environment = self._ready_environment()
            if given.controls and found._source is not None:
                reading = read_template(found._environment, found._source)
                found._variables |= control_variables(reading, given.controls)
                found.soft_switch = soft_switch(reading, given.controls)
            found._variables |= given.variables
            if given.chat_template is None:
                self.prepare()
                found._template = self._template
            if len(self._others) >= _MAX_SETTINGS:
                self._others.clear()
            self._others[key] = found
        return found

    @functools.cached_property
    def description_of_tools(self) -> str:
        """Text with the tools for the end of the first message, if the template does not write them; else empty."""
        if not self._tools or self._writes_tools():
            return ""
        lines = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in self._tools]
        text = "\n\nTools:\n" + "\n".join(lines)
        if detect_format(self._source) is None:
            text += '\nTo call a tool, write {"name": ..., "arguments": {...}} on a line.'
        return text

    @functools.cached_property
    def has_prompt(self) -> bool:
        """Whether the template itself begins an answer: when it is asked to, or after each message of the user."""
        if "add_generation_prompt" in (_PLAIN_TEMPLATE if self._source is None else self._source):
            return True
        user = {"role": "user", "content": "Hello"}
        try:
            asked, followed = (self.render(messages, adds_prompt=True) for messages in ([user], [user, user]))
        except ParameterError:
            return False
        return not followed.startswith(asked)

    def render(self, messages: Sequence[Mapping[str, Any]], *, adds_prompt: bool) -> TrackedText:
        """The text of a conversation, as `apply_chat_template` of transformers writes it.

        Args:
            messages: maps with `role`, `content` and whatever else the template reads.
            adds_prompt: ends with the beginning of an answer of the assistant.
        Raises:
            ParameterError: the template refuses the messages.
            UnusableTemplateError: the template is invalid, or exceeds a limit.
        """
        environment = self._ready_environment()
        pieces: list[str] = []
        num_chars = 0
        template = self._usable_template(messages)
        try:
            environment.begin()
            variables = self._conversation_variables | {
                "messages": [_tracked_message(message, index) for index, message in enumerate(messages)],
                "add_generation_prompt": adds_prompt,
            }
            for piece in template.generate(variables):
                pieces.append(piece)
                num_chars += len(piece)
                if num_chars > MAX_RENDERED_CHARS:
                    raise LimitExceeded(f"its output exceeds {MAX_RENDERED_CHARS} characters")
        except LimitExceeded as error:
            raise UnusableTemplateError(_role(messages), str(error)) from None
        except jinja2.TemplateError as error:
            raise _refusal(messages, error.message or type(error).__name__) from None
        except Exception as error:  # a template is a program and may raise anything
            raise _refusal(messages, f"{type(error).__name__}: {error}") from None
        return tracked_text.joined(pieces)

    def encode(
        self,
        text: TrackedText,
        *,
        is_start: bool,
        cuts: Sequence[int] = (),
        encode: EncodeText | None = None,
        begin: int = 0,
    ) -> list[int]:
        """The tokens of rendered text, or of a part of it.

        Args:
            is_start: the text is at the start of the sequence.
            cuts: places in ascending order; no token crosses them.
            encode: encodes the pieces; default: the tokenizer.
            begin: the place up to which the tokens are known; only those of the rest are returned.
        """
        encode = encode or self._encoder.encode
        token_ids = self._encoder.start_ids() if is_start and self._source is None and not begin else []
        at, whole = begin, tracked_text.plain(text)
        for end, allows_special in self._pieces(text, [*cuts, begin]):
            if end <= begin:
                continue
            piece = whole[at:end]
            token_ids += encode(piece, is_start=is_start and not at, allow_special=allows_special)
            at = end
        return token_ids

    def cuts(self, text: TrackedText, messages: Sequence[Mapping[str, Any]], *, ends_with_prompt: bool) -> list[int]:
        """The places in the text of a conversation where answers begin; `ends_with_prompt`: one is to be generated.

        An answer was generated after the tokens of its prompt. A conversation that continues it begins with these tokens if its text
        begins with that prompt, which is therefore encoded apart.
        """
        ends: set[int] = set()
        framings = self._answer_framings(messages) if _has_answers(text, messages) else {}
        if ends_with_prompt and messages:
            framings.setdefault(messages[-1]["role"], _last_framing(text))
        for framing in set(filter(None, framings.values())):
            at = text.find(framing)
            while at >= 0:
                at += len(framing)
                ends.add(at)
                at = text.find(framing, at)
        return sorted(ends)

    def _answer_framings(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """The text of the template between a message and the answer to it, for each role before an answer."""
        found: dict[str, str] = {}
        for index, message in enumerate(messages):
            before = messages[index - 1]["role"] if index else ""
            if message["role"] == "assistant" and index and before not in found:
                found[before] = self._framing_of_answer(messages[:index])
        return found

    def _framing_of_answer(self, messages: Sequence[Mapping[str, Any]]) -> str:
        key = hashlib.sha256(json.dumps(messages, default=str).encode("utf-8", "surrogatepass")).digest()
        framing = self._prefixes.get(key)
        if framing is None:
            try:
                framing = _last_framing(self.render(messages, adds_prompt=True))
            except ParameterError:
                return ""
            self._prefixes[key] = framing
            if len(self._prefixes) > _MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        return framing

    def token_names(self, text: TrackedText) -> list[tuple[int, int]]:
        """The places where names of special tokens begin and end that are encoded as these tokens."""
        return self._names(text)[0]

    def _pieces(self, text: TrackedText, cuts: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """The ends of the pieces that are encoded one by one, and whether names of special tokens in them are these tokens."""
        genuine, spelled = self._names(text)
        begins, ends = [begin for begin, _ in genuine], [end for _, end in genuine]
        # What lies between two special tokens of the template is encoded as plain text if a message spells a name there.
        spans = {
            (
                ends[at - 1] if (at := bisect.bisect_right(ends, begin)) else 0,
                begins[at] if at < len(begins) else len(text),
            )
            for begin in spelled
        }
        start = 0
        for end in sorted({len(text), *cuts, *itertools.chain.from_iterable(spans)}):
            if end > start:
                yield end, not any(low <= start and end <= high for low, high in spans)
                start = end

    def _names(self, text: TrackedText) -> tuple[list[tuple[int, int]], list[int]]:
        """Where names of special tokens are that the template wrote, and where those begin that a message spells at least in part."""
        foreign: list[tuple[int, int]] = []
        at = 0
        for num_chars, source in text.runs:
            if source is not None:
                foreign.append((at, at + num_chars))
            at += num_chars
        ends = [end for _, end in foreign]
        genuine, spelled = [], []
        for begin, end in self._encoder.special_names(text):
            following = bisect.bisect_right(ends, begin)
            if following < len(foreign) and foreign[following][0] < end:
                spelled.append(begin)
            else:
                genuine.append((begin, end))
        return genuine, spelled

    @functools.cached_property
    def _conversation_variables(self) -> dict[str, Any]:
        """The variables that all renderings share: the sandbox lets no template change them."""
        found = tracked(self._variables, TextSource(OF_CONVERSATION, "variables"))
        if self._source is None:
            found["names"] = _ROLES
        given = {tracked_text.plain(name): value for name, value in found.items()}
        tools = tracked(self._tools, TextSource(OF_CONVERSATION, "tools"))
        return self._special_names | given | {"tools": tools, "documents": None}

    def _writes_tools(self) -> bool:
        """Whether the template writes the names of all tools."""
        user = {"role": "user", "content": "Hello"}
        for messages in ([user], [{"role": "system", "content": "Hello"}, user]):
            with contextlib.suppress(ParameterError):
                text = self.render(messages, adds_prompt=True)
                if all(str(tool.get("function", tool)["name"]) in text for tool in self._tools or ()):
                    return True
        return False

    def _ready_environment(self) -> TemplateEnvironment:
        if self._environment is None:
            self._environment = TemplateEnvironment(self._now or datetime.datetime.now())
        return self._environment

    def _usable_template(self, messages: Sequence[Mapping[str, Any]]) -> jinja2.Template:
        """The compiled template. An invalid one is compiled once: that may take seconds."""
        if self._fault is None:
            try:
                return self._ready_template()
            except Exception as error:
                self._fault = str(error) or type(error).__name__
        raise UnusableTemplateError(_role(messages), f"it is invalid: {self._fault}")

    def _ready_template(self) -> jinja2.Template:
        if self._template is None:
            self._template = self._ready_environment().compiled(
                _PLAIN_TEMPLATE if self._source is None else self._source
            )
        return self._template


def _has_answers(text: TrackedText, messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether text of the assistant's messages is in the text."""
    return any(
        source is not None and source.message >= 0 and messages[source.message]["role"] == "assistant"
        for _, source in text.runs
    )


def _last_framing(text: TrackedText) -> str:
    """The text of the template after the last text of a message."""
    num_chars, source = text.runs[-1] if text.runs else (0, None)
    return tracked_text.plain(text)[len(text) - num_chars :] if source is None else ""


def _tracked_message(message: Mapping[str, Any], index: int) -> dict[str, Any]:
    """A message for the template. Names of roles are the template's own text: it makes names of special tokens of them."""
    role = message["role"]
    found = {name: tracked(value, TextSource(index, name)) for name, value in message.items()}
    return found | {"role": role if role in _KNOWN_ROLES else found["role"]}


def _refusal(messages: Sequence[Mapping[str, Any]], reason: str) -> ParameterError:
    return ParameterError("role", _role(messages), f"the model's chat template refuses the conversation: {reason}")


def _role(messages: Sequence[Mapping[str, Any]]) -> str:
    return str(messages[-1]["role"]) if messages else ""
