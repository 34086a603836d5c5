"""Properties of a chat that only its door knows, for an engine that infers sessions from the prefixes of prompts.

An engine finds a session by tokens alone: a prompt that begins with an earlier prompt and its output continues that chat. These options
add the door's knowledge of the client and of the model's format. They never change a text, and no key decides that two chats are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rtlang.contract.errors import ParameterError

MAX_MARKS, MAX_MARK_LENGTH = 64, 256
MAX_KEY_LENGTH = 256
MAX_KEEP_S = 86_400.0


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The session that a run belongs to, as far as its door knows it.

    Attributes:
        call_marks: texts that begin tool calls in the model's format. An output with one of them ends in calls, whose results the client
            will send; any other output is a final answer. At most `MAX_MARKS` texts of at most `MAX_MARK_LENGTH` characters.
        key: the client's own name for the conversation, such as `prompt_cache_key`; confirms a session in reports, never decides. At most
            `MAX_KEY_LENGTH` characters.
        keep_s: seconds for which the client asked to keep the prompt cached, such as by `cache_control`; None if it did not ask.
    Raises:
        ParameterError: a value is invalid; names it.
    """

    call_marks: tuple[str, ...] = ()
    key: str | None = None
    keep_s: float | None = None

    def __post_init__(self) -> None:
        marks = self.call_marks
        if (
            not isinstance(marks, tuple)
            or len(marks) > MAX_MARKS
            or not all(_is_text(m, MAX_MARK_LENGTH) for m in marks)
        ):
            allowed = f"expected at most {MAX_MARKS} texts of 1 to {MAX_MARK_LENGTH} characters"
            raise ParameterError("session.call_marks", marks, allowed)
        if self.key is not None and not _is_text(self.key, MAX_KEY_LENGTH):
            raise ParameterError("session.key", self.key, f"expected text of 1 to {MAX_KEY_LENGTH} characters")
        keep = self.keep_s
        if keep is not None and (
            isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= MAX_KEEP_S
        ):
            raise ParameterError("session.keep_s", keep, f"expected seconds above 0 and at most {MAX_KEEP_S:g}")

    def to_plain(self) -> dict[str, Any]:
        """The options as a map of plain values, without those that are not given."""
        plain = {"call_marks": list(self.call_marks), "key": self.key, "keep_s": self.keep_s}
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The options of a map made by `to_plain`.

        Raises:
            ParameterError: a value is invalid; names it.
        """
        return cls(tuple(plain.get("call_marks", ())), plain.get("key"), plain.get("keep_s"))


def _is_text(value: object, max_length: int) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= max_length
