"""Encodes long texts beside the engine thread.

A text node of some thousand characters, with a long conversation before it or with tools, takes longer to encode than the engine thread may
be held. It is encoded by the same function on another thread, so its tokens are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rtlang.contract.graph import Arg, Part, Ref, RoleEnd, RoleStart
from rtlang.model.text.conversation import CHARS_OF_MESSAGE
from rtlang.runtime.token_sequence import TokenSequence

SHORT_CHARS = 4_000
"""Longest text in characters that the engine thread encodes, or conversation that a chat template writes there: about 2 ms."""

Encoded = TokenSequence | Exception


class Offload(Protocol):
    """Runs a function on another thread, and then another one with its result or its exception on the engine thread."""

    def __call__(self, size: int, work: Callable[[], TokenSequence], then: Callable[[Encoded], None]) -> None: ...


def with_texts(parts: Sequence[Part], text_of: Callable[[Ref | Arg], str]) -> tuple[Part, ...]:
    """The parts with the texts of references and inputs in their place."""
    return tuple(text_of(part) if isinstance(part, Ref | Arg) else part for part in parts)


def num_chars(parts: Sequence[Part]) -> int:
    """The characters of parts without references."""
    return sum(len(part) for part in parts if isinstance(part, str))


def is_long(parts: Sequence[Part], before: TokenSequence) -> bool:
    """Whether parts without references are encoded beside the engine thread."""
    starts = [part for part in parts if isinstance(part, RoleStart)]
    size = num_chars(parts) + len(starts) * CHARS_OF_MESSAGE
    if starts or any(isinstance(part, RoleEnd) for part in parts):
        size += before.conversation.num_chars  # the template writes all messages again
    return size > SHORT_CHARS or any(part.tools is not None or part.template_options is not None for part in starts)


def sequence_of(encoded: Encoded) -> TokenSequence:
    """The sequence that was encoded; raises the exception that was raised instead."""
    if isinstance(encoded, Exception):
        raise encoded
    return encoded
