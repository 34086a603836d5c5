"""Encodes long texts beside the engine thread.

A text node of some thousand characters, with a long conversation before it or with tools, takes longer to encode than the engine thread may
be held. It is encoded by the same function on another thread, so its tokens are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rtlang.contract.graph import Arg, Part, Ref, RoleStart
from rtlang.runtime.token_sequence import TokenSequence

SHORT_CHARS = 4_000
"""Longest text in characters that the engine thread encodes: about 2 ms."""
_SHORT_ROLES = 16  # the chat template renders all messages again for each one

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
    roles = [part for part in parts if isinstance(part, RoleStart)]
    return (
        num_chars(parts) > SHORT_CHARS
        or (bool(roles) and len(before.roles) + len(roles) > _SHORT_ROLES)
        or any(role.tools is not None for role in roles)
    )


def sequence_of(encoded: Encoded) -> TokenSequence:
    """The sequence that was encoded; raises the exception that was raised instead."""
    if isinstance(encoded, Exception):
        raise encoded
    return encoded
