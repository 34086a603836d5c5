"""Limits the thought with which a text may begin: counts its tokens until the mark that ends it.

When the thought has used up its tokens, `ConstraintSession` follows the completion path of the text, whose next part is the mark. A text
without a constraint gets one for as long as its thought goes on; after that it is free.
"""

from __future__ import annotations

from enum import Enum, auto

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams, reserved_tokens
from rtlang_grammars import Constraint, ConstraintKind
from rtlang_grammars.spec.structures import any_of, raw_text, sequence


class _Where(Enum):
    BEFORE = auto()  # the text may go on to be the mark that begins a thought
    INSIDE = auto()
    AFTER = auto()  # the thought has ended, or there is none


class ThoughtLimit:
    """Follows the thought of one text. Owned by its session.

    Args:
        begin, end: the marks around the thought; `begin` is empty if the prompt has begun it.
        max_tokens: maximum number of tokens between the marks.
    """

    __slots__ = ("_begin", "_end", "_max_tokens", "_num_tokens", "_text", "_where")

    def __init__(self, begin: str, end: str, max_tokens: int) -> None:
        self._begin, self._end, self._max_tokens = begin.strip("\n").encode(), end.encode(), max_tokens
        self._where = _Where.BEFORE if begin else _Where.INSIDE
        self._num_tokens, self._text = 0, b""

    @property
    def is_open(self) -> bool:
        """Whether the text is within its thought, or may still begin one."""
        return self._where is not _Where.AFTER

    @property
    def is_spent(self) -> bool:
        """Whether the text is within its thought and the thought must end."""
        return self._where is _Where.INSIDE and self._num_tokens + _num_missing(self._text) >= self._max_tokens

    def allows(self, text: bytes) -> bool:
        """Whether the thought can end in time after a token of this text, with the character that the token may begin."""
        if self._where is not _Where.INSIDE:
            return True
        return self._num_tokens + 1 + _num_missing(self._text + text) <= self._max_tokens

    def note(self, text: bytes) -> None:
        """Add the text of the next token."""
        match self._where:
            case _Where.BEFORE:
                self._text = (self._text + text).lstrip(b"\n")
                if self._text.startswith(self._begin):
                    self._where, self._text = _Where.INSIDE, self._text[len(self._begin) :]
                    self._num_tokens = int(bool(self._text.strip()))
                elif not self._begin.startswith(self._text):
                    self._where = _Where.AFTER
            case _Where.INSIDE:
                self._text += text
                self._num_tokens += 1
            case _Where.AFTER:
                return
        if self._where is _Where.INSIDE:
            if self._end in self._text:
                self._where = _Where.AFTER
            self._text = self._text[-max(len(self._end), 4) :]


def _num_missing(text: bytes) -> int:
    """Number of bytes that the character at the end of a text lacks."""
    for back, byte in enumerate(reversed(text[-3:]), 1):
        if byte >= 0xC0:
            return max(0, (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) - back)
        if byte < 0x80:
            return 0
    return 0


def limit_of(params: SamplingParams, max_tokens: int, *, is_constrained: bool) -> ThoughtLimit | None:
    """The limit of the thought of a text; None for none.

    Args:
        max_tokens: maximum number of tokens of the text.
        is_constrained: a constraint binds the text after the thought, which keeps its part of `max_tokens`.
    """
    limits = [] if params.max_thought_tokens is None else [params.max_thought_tokens]
    if is_constrained:
        limits.append(max_tokens - reserved_tokens(max_tokens))
    if not params.thought_marks or not limits:
        return None
    begin, end = params.thought_marks
    return ThoughtLimit(begin, end, min(limits))


def limited_text(params: SamplingParams) -> Constraint | None:
    """The constraint of a text without one of its own while its thought is limited; None if it is not.

    Raises:
        ParameterError: such a text has stop patterns, too.
    """
    if params.max_thought_tokens is None or not params.thought_marks:
        return None
    if params.stop_regex:
        raise ParameterError("stop_regex", params.stop_regex, "not together with max_thought_tokens")
    begin, end = params.thought_marks
    if not begin:
        return sequence(raw_text(excludes=[end]), end, raw_text())
    thought = sequence(Constraint(ConstraintKind.REGEX, "\n{0,4}"), begin, raw_text(excludes=[begin, end]), end)
    return any_of(sequence(thought, raw_text()), raw_text(excludes=[begin]))
