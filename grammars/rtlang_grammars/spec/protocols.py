"""What a compiled constraint and its matchers offer: a constraint is compiled once per vocabulary, a matcher follows one sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # clients that only describe constraints need no numpy
    import numpy as np
    from numpy.typing import NDArray

    from rtlang_grammars.spec.work_limit import WorkLimit


class GrammarMatcher(Protocol):
    """Follows one sequence through a grammar. Owned by one request; not thread-safe, but different matchers need no lock."""

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed here."""

    @property
    def is_terminated(self) -> bool:
        """Whether the text is complete and nothing but an end token can follow."""

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token. Returns False, and changes nothing, if the token is not allowed."""

    def rollback(self, num_tokens: int) -> None:
        """Take back the last `num_tokens` accepted tokens."""

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens: bit j % 32 of row[j // 32] set means token j is allowed.

        `row` has ceil(vocab_size / 32) words and is completely overwritten. End tokens are set if `is_accepting`, and where the constraint
        names them.
        """

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, in order; empty if there is a choice."""

    def closing_bytes(self, work: WorkLimit | None = None) -> bytes | None:
        """A short text that completes this one; None if none was found. Does not change the matcher.

        Raises:
            WorkLimitError: the search needs more than `work`.
        """

    def completes_bytes(self, data: bytes) -> bool:
        """Whether the text is complete after some bytes, however tokens spell them. Does not change the matcher."""

    def fork(self) -> GrammarMatcher:
        """An independent matcher in the same state."""

    def shortest_completion(self, limit: int) -> list[int] | None:
        """Token ids of a short, not necessarily the shortest, completion, without the end token. Does not change the matcher.

        None if no completion of at most `limit` tokens was found within the search budget.
        """

    def accepts(self, token_ids: list[int]) -> bool:
        """Whether `token_ids` may follow in this order. Does not change the matcher."""

    @property
    def temperature(self) -> float | None:
        """The sampling temperature of the innermost rule that sets one at this place; None: that of the request.

        Where several rules may come here, the highest of their temperatures.
        """

    def captures(self) -> dict[str, list[bytes]]:
        """The texts of the rules with the option `capture` so far: name to the bytes of each, in the order in which they ended."""


class TextCheck(Protocol):
    """Checks finished texts for what masks cannot enforce. Safe to use from several threads."""

    def error_in(self, text: str) -> str | None:
        """The first violation in a text; None if the text is valid.

        Raises:
            GrammarError: the check takes too long, or a schema is malformed or not supported.
        """

    def may_begin(self, text: str, num_new: int) -> bool:
        """Whether a value that is checked may begin in the last `num_new` characters of a text, or right after it."""


class CompiledGrammar(Protocol):
    """A constraint bound to one vocabulary. Immutable and shared between requests and threads."""

    @property
    def size_bytes(self) -> int:
        """Estimated memory in bytes, for caches bounded in bytes."""

    def matcher(self) -> GrammarMatcher:
        """A new matcher at the start of the text."""
