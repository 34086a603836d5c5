"""Which part of a reply a token belongs to: the thought, or content and calls.

A reader of replies tells the sections in characters of the text; tokens are counted in bytes, since a token may be a part of a character.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtlang.contract.events import TokenLogprob
from rtlang.serve.openai.logprobs import TokenBytes


@dataclass(slots=True)
class Sections:
    """Where in the text of a reply its parts stand, in characters.

    Attributes:
        text: the text so far.
        num_read: the length of the beginning whose sections are known; None: the whole text.
        start: where content or the first call begins; None as long as neither has.
        thought: where the thought begins and ends, without its marks; None without a thought.
    """

    text: str = ""
    num_read: int | None = None
    start: int | None = None
    thought: tuple[int, int] | None = None

    def num_bytes(self, num_chars: int) -> int:
        """The length in bytes of the beginning of the text."""
        return len(self.text[:num_chars].encode(errors="replace"))


class SectionedTokens:
    """Divides the log-probabilities of a reply into those before its content or calls, and the others.

    Args:
        token_bytes: the bytes of tokens.
    """

    def __init__(self, token_bytes: TokenBytes) -> None:
        self._token_bytes = token_bytes
        self._end = 0  # of the tokens so far, in bytes
        self._waiting: list[tuple[int, TokenLogprob]] = []

    def push(
        self, tokens: Iterable[TokenLogprob], sections: Sections, *, is_last: bool = False
    ) -> tuple[list[TokenLogprob], list[TokenLogprob]]:
        """Add the tokens of the next text; returns the tokens whose section is known by now: before the content, and the others.

        Args:
            sections: of the text with these tokens.
            is_last: no text follows.
        """
        for token in tokens:
            self._end += len(self._token_bytes((token.token_id,))[0])
            self._waiting.append((self._end, token))
        if not self._waiting:
            return [], []
        start = None if sections.start is None else sections.num_bytes(sections.start)
        known = self._end if is_last or sections.num_read is None else sections.num_bytes(sections.num_read)
        before: list[TokenLogprob] = []
        after: list[TokenLogprob] = []
        while self._waiting and self._waiting[0][0] <= known:
            end, token = self._waiting.pop(0)
            (before if start is None or end <= start else after).append(token)
        return before, after


def num_thought_tokens(
    token_ids: Sequence[int], num_tokens: int, sections: Sections, token_bytes: TokenBytes | None
) -> int:
    """The number of tokens of the thought, without its marks.

    Args:
        token_ids: the tokens of the text; may be missing.
        num_tokens: their number.
        token_bytes: the bytes of tokens. Without them the number is estimated from the length of the text.
    """
    if sections.thought is None:
        return 0
    begin, end = map(sections.num_bytes, sections.thought)
    sizes = [] if token_bytes is None else [len(data) for data in token_bytes(token_ids)]
    if not any(sizes):
        return round(num_tokens * (end - begin) / max(1, sections.num_bytes(len(sections.text))))
    found = at = 0
    for size in sizes:
        found += at < end and at + size > begin
        at += size
    return found
