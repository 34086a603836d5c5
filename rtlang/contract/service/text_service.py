"""Texts as tokens and back, for clients that count, cut or send tokens themselves.

A target that knows its tokenizer offers a `TextService` as its `text_service`. All arguments and results are plain data or parts of text
nodes, so that they can cross a process boundary.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal

_KEY_BYTES = 20

HistoryEnd: TypeAlias = Literal["prompt", "open", "closed"]
"""How a conversation ends: with the prompt of an answer, after the content of the last message, or with that message."""


@dataclass(frozen=True, slots=True)
class TextServiceInfo:
    """The tokenizer of a model.

    Attributes:
        vocab_size: highest token id plus one.
        max_model_len: longest sequence in tokens; None if unknown.
        eos_token_ids: tokens that end a generation, in ascending order.
        special_token_ids: control tokens, in ascending order.
        chat_template: Jinja source of the chat template; None if messages are framed in a plain form.
    """

    vocab_size: int
    max_model_len: int | None = None
    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    special_token_ids: tuple[int, ...] = ()
    chat_template: str | None = None


class TextService(Protocol):
    """The tokenizer of a target. Thread-safe; calls may block for as long as encoding takes, so call it on a thread of its own."""

    @property
    def info(self) -> TextServiceInfo:
        """The tokenizer's constants."""

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        """The tokens of a text at the start of a sequence.

        Args:
            adds_start: put the model's start tokens, if it has any, before the text.
            allow_special: encode the names of special tokens as these tokens.
        """

    def encode_parts(self, parts: Sequence[Part]) -> list[int]:
        """The tokens of a sequence that begins with these parts of a text node, without references and inputs.

        Raises:
            RequestError, ParameterError: as the graph with this text node would fail.
        """

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: str | None,
        end: HistoryEnd,
        template_options: str | None = None,
        max_tokens: int | None = None,
    ) -> list[int]:
        """The tokens of the prompt that the model's chat template writes for a whole conversation.

        A service for a principal takes the tokens of its earlier prompts and of their answers (`remember`) for the text that they spell.

        Args:
            messages: maps with `role`, `content` (text, a list of maps with `type` "text" and `text`, or None), and other fields that
                templates read. Messages of the assistant may have `tool_calls` as the OpenAI API has them, with maps as arguments.
            tools, template_options: see `RoleStart`.
            max_tokens: a text that must have more tokens is refused before they are computed.
        Raises:
            ParameterError: the template refuses the conversation; names the field `messages`.
            ContextLengthError: there are more than `max_tokens` tokens. One with fewer may still be too long.
        """

    def remember(self, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """Store the tokens of answers for later conversations of the principal that begin with their text.

        Args:
            prompt: the `prompt_key` of tokens that `chat_prompt` returned; others are ignored, and so are those of prompts long ago.
            outputs: the tokens of each answer to it.
        """

    def decode(self, token_ids: Sequence[int], *, shows_special: bool = False) -> str:
        """The text of tokens: invalid bytes give U+FFFD; special tokens give their names with `shows_special`, else nothing.

        Raises:
            ParameterError: an id is not in the vocabulary.
        """

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        """The tokenizer's own spelling of each token; "" for an id that is not in use."""

    def token_bytes(self, token_ids: Sequence[int]) -> list[bytes]:
        """The bytes of each token, which may be a part of a character; for a special token those of its name."""


def prompt_key(token_ids: Sequence[int]) -> bytes:
    """A digest of the tokens of a prompt, for `TextService.remember`."""
    return hashlib.blake2b(array("I", token_ids).tobytes(), digest_size=_KEY_BYTES).digest()


def text_service_of(target: object, principal: Principal | None = None) -> TextService | None:
    """The text service that a target offers as `text_service`; None if it has none. Loads the model if needed.

    Args:
        principal: whose work the calls are. A service offers `for_principal` if it takes turns between principals, or knows their earlier
            conversations; these are of one namespace (see `Principal.salted`).
    """
    found: TextService | None = getattr(target, "text_service", None)
    for_principal: Callable[[Principal], TextService] | None = getattr(found, "for_principal", None)
    return found if principal is None or for_principal is None else for_principal(principal)


def count_tokens(target: object, parts: Sequence[Part]) -> int:
    """The number of tokens of a sequence that begins with these parts of a text node, without references and inputs.

    A target may have a `count_tokens` of its own; otherwise its text service counts. May block for as long as encoding takes.

    Raises:
        ParameterError: the target has no tokenizer. RtlangError: the sequence is not possible, as the chat template refuses it.
    """
    own: Callable[[Sequence[Part]], int] | None = getattr(target, "count_tokens", None)
    if own is not None:
        return own(parts)
    service = text_service_of(target)
    if service is None:
        raise ParameterError(
            "runtime", target, "expected a runtime that can count tokens, as rt.Runtime and rt.connect do"
        )
    return len(service.encode_parts(parts))
