"""A matcher: follows one sequence through a grammar and keeps the place after each of its tokens.

Places never change, so a fork shares them and a rollback just drops the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.completion_path import UNREACHABLE, CompletionPath, TokenTable
from rtlang_grammars.completion.forced_text import ForcedText
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.work_limit import WorkLimit

_MAX_KNOWN_BYTES = 256
"""Bytes of a text whose step is remembered."""
_UNKNOWN: Any = object()


class MatcherState(Protocol):
    """A place in a text, which never changes."""

    @property
    def configuration(self) -> Any:
        """What the grammar needs to go on from there."""

    @property
    def is_complete(self) -> bool:
        """Whether the text may end there."""

    @property
    def steps(self) -> dict[int | bytes, Any] | None:
        """Places reached from here before, by token or text, to which matchers add; for a text also None, where it cannot follow.

        None if nothing is remembered here.
        """


class MatcherGrammar(Protocol):
    """A compiled grammar bound to a vocabulary."""

    @property
    def index(self) -> VocabularyIndex:
        """The vocabulary."""

    @property
    def start_place(self) -> MatcherState:
        """The place at the start of the text."""

    def advance(self, configuration: Any, data: NDArray[np.uint8], start: int, end: int) -> MatcherState | None:
        """The place after data[start:end]; None where these bytes cannot follow."""

    def after(self, configuration: Any, token_id: int) -> MatcherState | None:
        """The place after a token; None where it cannot follow."""

    @property
    def is_busy(self) -> bool:
        """Whether another thread holds its lock now, so that a call may wait."""

    def mask(self, configuration: Any) -> Mask:
        """The tokens that may follow, end tokens among them."""

    def only_ends(self, configuration: Any) -> bool:
        """Whether nothing but an end token may follow."""

    def temperature(self, configuration: Any) -> float | None:
        """See `GrammarMatcher.temperature`."""

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """See `GrammarMatcher.captures`, of a text that was accepted."""

    def forced(self, configuration: Any) -> bytes:
        """The bytes that must come next."""


class Completion(Protocol):
    """Finds short completions in one grammar."""

    def find(self, configuration: Any, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """A short text that completes the one so far; without one, whether all that were found are too long (`text_limit`).

        Raises:
            WorkLimitError: the search needs more than `work`, or another thread is searching.
        """


class MachineMatcher:
    """See `GrammarMatcher`. Used by one thread at a time."""

    __slots__ = (
        "_completion",
        "_forcing",
        "_going_on",
        "_grammar",
        "_has_ended",
        "_ids",
        "_path",
        "_reads_ids",
        "_table",
    )

    def __init__(
        self,
        grammar: MatcherGrammar,
        completion: Completion,
        forcing: ForcedText,
        table: TokenTable,
        path: list[MatcherState] | None = None,
        *,
        has_ended: bool = False,
        reads_ids: bool = False,
        ids: list[int] | None = None,
    ) -> None:
        """Begin or go on with a text.

        Args:
            path: the places so far.
            ids: the tokens between them.
            reads_ids: tokens are more than their text, so that each is read for itself.
        """
        self._ids = [] if ids is None else ids
        self._reads_ids = reads_ids
        self._grammar, self._completion, self._forcing, self._table = grammar, completion, forcing, table
        self._path = [grammar.start_place] if path is None else path
        self._has_ended = has_ended
        self._going_on: MatcherState | None = None  # a complete place from which the text may go on, asked last

    @property
    def _place(self) -> MatcherState:
        return self._path[-1]

    @property
    def configuration(self) -> Any:
        """See `MatcherState.configuration`, of the text so far."""
        return self._path[-1].configuration

    @property
    def is_busy(self) -> bool:
        """Whether another thread holds the lock of the grammar now, so that a call may wait."""
        return self._grammar.is_busy

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return not self._has_ended and self._path[-1].is_complete

    @property
    def is_terminated(self) -> bool:
        """Whether the text is complete and nothing but its end can follow."""
        if self._has_ended:
            return True
        place = self._path[-1]
        if not place.is_complete or place is self._going_on:
            return False
        if not self._grammar.only_ends(place.configuration) or any(
            map(self.takes, self._grammar.index.vocabulary.eos_token_ids)
        ):
            self._going_on = place
            return False
        return True

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token. Returns False, and changes nothing, if the token is not allowed.

        An end token that the constraint names as a part is that part; any other ends the text.
        """
        if self._has_ended:
            return False
        place = self._path[-1]
        steps = place.steps
        following = None if steps is None else steps.get(token_id)
        if following is None:
            following = self._grammar.after(place.configuration, token_id)
            if following is not None and steps is not None:
                steps[token_id] = following
        if following is not None:
            self._path.append(following)
            self._ids.append(token_id)
            return True
        if token_id in self._grammar.index.vocabulary.eos_token_ids:
            self._has_ended = self.is_accepting
        return self._has_ended

    def accept_known(self, token_id: int, completion: bytes) -> bool:
        """Advance by one token if it is remembered that it may follow, and that `completion` completes the text after it.

        Returns:
            False: nothing has changed, and nothing was found out.
        """
        steps = self._path[-1].steps
        following = None if steps is None or self._has_ended else steps.get(token_id)
        if following is None:
            return False
        completed = following
        if completion:
            steps = following.steps
            completed = None if steps is None else steps.get(completion)
        if completed is None or not completed.is_complete:
            return False
        self._path.append(following)
        self._ids.append(token_id)
        return True

    def rollback(self, num_tokens: int) -> None:
        """Take back the last `num_tokens` accepted tokens (an end token counts as one).

        Raises:
            ValueError: fewer were accepted.
        """
        if num_tokens < 0:
            raise ValueError(f"num_tokens = {num_tokens}: expected a non-negative integer")
        if num_tokens > len(self._path) - 1 + self._has_ended:
            raise ValueError(
                f"num_tokens = {num_tokens}: only {len(self._path) - 1 + self._has_ended} tokens were accepted"
            )
        if num_tokens and self._has_ended:
            self._has_ended = False
            num_tokens -= 1
        if num_tokens:
            del self._path[-num_tokens:], self._ids[-num_tokens:]

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens into `row`, [ceil(vocab_size / 32)] int32, contiguous: exactly those that `accept_token` accepts.

        Raises:
            ValueError: `row` has another shape, type or layout.
            EmptyMaskError: no token may follow, and the text is not complete.
        """
        mask = self.find_mask(row)
        if mask is not None:
            mask.write(row)

    def find_mask(self, row: NDArray[np.int32]) -> Mask | None:
        """The mask that `fill_bitmask` writes into `row`; None: the text has ended, and `row` was cleared.

        Raises:
            ValueError, EmptyMaskError: as `fill_bitmask`.
        """
        grammar = self._grammar
        if row.shape != (grammar.index.num_words,) or row.dtype != np.int32 or not row.flags.c_contiguous:
            raise ValueError(f"row must be contiguous int32 of shape ({grammar.index.num_words},)")
        if not self._has_ended:
            mask = grammar.mask(self._path[-1].configuration)
            if mask.is_empty and not self.is_accepting:
                raise self._dead_end()
            return mask
        row.fill(0)
        return None

    def _dead_end(self) -> EmptyMaskError:
        """Why no token may follow."""
        configuration = self._place.configuration
        data = np.arange(256, dtype=np.uint8)
        bytes_left = bytes(
            byte for byte in range(256) if self._grammar.advance(configuration, data, byte, byte + 1) is not None
        )
        if not bytes_left:
            return EmptyMaskError("the constraint allows no further byte")
        named = f"{bytes_left[:8]!r}{' and others' if len(bytes_left) > 8 else ''}"
        return EmptyMaskError(
            f"the constraint asks for one of the bytes {named}, with which no allowed token of the vocabulary begins"
        )

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, spelled as the model's tokenizer does; empty if there is a choice."""
        return self._forcing.tokens(self.forced_bytes())

    def forced_bytes(self) -> bytes:
        """Bytes that must come next, whatever tokens spell them."""
        return b"" if self._has_ended else self._grammar.forced(self._place.configuration)

    def fork(self) -> MachineMatcher:
        """An independent matcher in the same state."""
        return MachineMatcher(
            self._grammar,
            self._completion,
            self._forcing,
            self._table,
            self._path.copy(),
            has_ended=self._has_ended,
            reads_ids=self._reads_ids,
            ids=self._ids.copy(),
        )

    def closing_bytes(self, work: WorkLimit | None = None) -> bytes | None:
        """See `GrammarMatcher.closing_bytes`."""
        return self.closing(work)[0]

    def closing(self, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """A short text that completes this one; if there is none, whether all that were found are too long (`text_limit`)."""
        return (b"", False) if self._has_ended else self._completion.find(self._place.configuration, work)

    def shortest_completion(self, limit: int) -> list[int] | None:
        """See `GrammarMatcher.shortest_completion`."""
        data = self.closing_bytes()
        if data is None:
            return None
        path = CompletionPath(data, self._table)
        return path.token_ids() if path.cost() <= min(limit, UNREACHABLE - 1) else None

    def accepts(self, token_ids: list[int]) -> bool:
        """Whether `token_ids` may follow in this order; the last may be an end token if the text is complete before it."""
        if not token_ids:
            return True
        if self._has_ended:
            return False
        if self._follow(token_ids) is not None:
            return True
        return token_ids[-1] in self._grammar.index.vocabulary.eos_token_ids and self.completes(token_ids[:-1])

    def takes(self, token_id: int) -> bool:
        """Whether a token may come next as a part of the text, and not as its end. Does not change the matcher."""
        return not self._has_ended and self._after(token_id) is not None

    def completes(self, token_ids: Sequence[int]) -> bool:
        """Whether the text is complete after `token_ids`. Does not change the matcher."""
        if self._has_ended:
            return False
        reached = self._follow(token_ids)
        return reached is not None and reached.is_complete

    def completes_bytes(self, data: bytes) -> bool:
        """Whether the text is complete after some bytes, however tokens spell them. Does not change the matcher."""
        if self._has_ended:
            return False
        place = self._path[-1]
        if not data:
            return place.is_complete
        steps = place.steps
        following = _UNKNOWN if steps is None else steps.get(data, _UNKNOWN)
        if following is _UNKNOWN:
            following = self._after_bytes(data)
            if steps is not None and len(data) <= _MAX_KNOWN_BYTES:
                steps[data] = following
        return following is not None and following.is_complete

    @property
    def temperature(self) -> float | None:
        """See `GrammarMatcher.temperature`."""
        return None if self._has_ended else self._grammar.temperature(self._place.configuration)

    def captures(self) -> dict[str, list[bytes]]:
        """See `GrammarMatcher.captures`."""
        return self._grammar.captures(self._ids)

    def allowed(self, token_ids: Sequence[int]) -> list[bool]:
        """For each of `token_ids` whether it may come next."""
        if self._has_ended:
            return [False] * len(token_ids)
        row = np.empty(self._grammar.index.num_words, dtype=np.int32)
        self._grammar.mask(self._place.configuration).write(row)
        return [bool(row[i >> 5] >> (i & 31) & 1) for i in token_ids]

    def _after(self, token_id: int) -> MatcherState | None:
        return self._grammar.after(self._place.configuration, token_id)

    def _follow(self, token_ids: Sequence[int]) -> MatcherState | None:
        """The place after some tokens, each as a part of the text."""
        if self._reads_ids:
            reached: MatcherState | None = self._place
            for token_id in token_ids:
                reached = None if reached is None else self._grammar.after(reached.configuration, token_id)
            return reached
        trie = self._grammar.index.trie
        offsets, num_tokens = trie.offsets, len(trie.offsets) - 1
        texts = []
        for token_id in token_ids:
            if not 0 <= token_id < num_tokens or offsets[token_id] == offsets[token_id + 1]:
                return None
            texts.append(trie.data[offsets[token_id] : offsets[token_id + 1]].tobytes())
        return self._after_bytes(b"".join(texts))

    def _after_bytes(self, data: bytes) -> MatcherState | None:
        if not data:
            return self._place
        return self._grammar.advance(self._place.configuration, np.frombuffer(data, dtype=np.uint8), 0, len(data))
