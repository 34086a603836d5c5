"""Adapter for llguidance.

Every source is bounded and checked before the library sees it. Messages become `GrammarError`s with a location, special tokens are never
text, end tokens are handled here (allowed exactly where the text is complete), and persistent errors of a matcher are raised instead of
being taken for "not allowed".
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.adapters.deep_stack import on_deep_stack
from rtlang_grammars.adapters.llguidance_sources import library_source, read_error
from rtlang_grammars.completion.samples import samples
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

_LIMITS = {"max_lexer_states": 50_000, "step_lexer_fuel": 2_000_000, "verbose_errors": False}
"""Lexer states of a grammar; each takes 1-2 kB, so a grammar stays below 100 MB. A lexer without fuel (2,000,000 last about 140 ms) stays
broken for all matchers of its grammar; real schemas with patterns over many members need more than the default of 200,000.
"""

_BASE_BYTES = 64 << 10
_BYTES_PER_SOURCE_BYTE = 64


class LLGuidanceBackend:
    """Compiles constraints with llguidance. Immutable after `create`; safe to use from several threads."""

    def __init__(self, vocabulary: Vocabulary, tokenizer: Any, search: CompletionSearch) -> None:
        self._vocabulary, self._tokenizer, self._search = vocabulary, tokenizer, search
        library = _library()
        self._matcher_class = library.LLMatcher
        self._limits = library.LLParserLimits(**_LIMITS)

    @classmethod
    def create(cls, vocabulary: Vocabulary, search: CompletionSearch | None = None) -> LLGuidanceBackend:
        """Index the vocabulary; 0.4 s for 152,000 tokens."""
        source = _TokenSource(vocabulary)
        tokenizer = _library().LLTokenizer(source, eos_token=source.eos_token_ids)
        return cls(vocabulary, tokenizer, search or CompletionSearch(vocabulary))

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> LLGuidanceGrammar:
        """See `GrammarBackend.compile`. Releases the interpreter lock while the library works, which cannot be stopped."""
        return on_deep_stack(lambda: self._compile(constraint))

    def _compile(self, constraint: Constraint) -> LLGuidanceGrammar:
        grammar = library_source(constraint, self._matcher_class)
        matcher = self._matcher_class(self._tokenizer, grammar, log_level=0, limits=self._limits)
        error = matcher.get_error()
        if error:
            raise read_error(constraint, error)
        start = LLGuidanceMatcher(matcher, self._vocabulary, self._search, samples(constraint))
        if not start.is_accepting and not start.has_next_token():
            raise GrammarError("no text of this vocabulary matches the constraint")
        return LLGuidanceGrammar(start, _BASE_BYTES + _BYTES_PER_SOURCE_BYTE * len(constraint.source))


class LLGuidanceGrammar:
    """A compiled constraint; see `CompiledGrammar`."""

    def __init__(self, start: LLGuidanceMatcher, size_bytes: int) -> None:
        self._start, self._size_bytes = start, size_bytes

    @property
    def size_bytes(self) -> int:
        """An estimate from the length of the source."""
        return self._size_bytes

    def matcher(self) -> LLGuidanceMatcher:
        """A new matcher at the start of the text (a copy: 2 us)."""
        return self._start.fork()


class LLGuidanceMatcher:
    """See `GrammarMatcher`.

    Attributes:
        hints: texts that match patterns of the grammar, for `CompletionSearch`.
    Raises:
        GrammarError: from any method, where the library gave up (a bound on its work was reached). The matcher stays unusable.
    """

    __slots__ = (
        "_end_token_id",
        "_has_ended",
        "_matcher",
        "_num_tokens",
        "_scratch",
        "_search",
        "_silent_ids",
        "_vocabulary",
        "hints",
    )

    def __init__(
        self,
        matcher: Any,
        vocabulary: Vocabulary,
        search: CompletionSearch,
        hints: tuple[bytes, ...],
        *,
        has_ended: bool = False,
    ) -> None:
        self._matcher, self._vocabulary, self._search = matcher, vocabulary, search
        self.hints, self._has_ended = hints, has_ended
        self._silent_ids = vocabulary.silent_ids
        self._num_tokens = len(vocabulary.token_bytes)
        self._end_token_id = min(vocabulary.eos_token_ids, default=vocabulary.vocab_size)
        self._scratch: NDArray[np.int32] | None = None

    @property
    def is_accepting(self) -> bool:
        """The text so far is complete."""
        return not self._has_ended and bool(self._matcher.is_accepting())

    @property
    def is_terminated(self) -> bool:
        """Complete, and nothing but an end token can follow."""
        if self._has_ended:
            return True
        return bool(self._matcher.is_stopped()) and bool(self._matcher.is_accepting())

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token. Returns False, and changes nothing, where the token is not allowed."""
        if self._has_ended:
            return False
        if token_id in self._vocabulary.eos_token_ids:
            self._has_ended = self.is_accepting
            return self._has_ended
        if not self._is_text(token_id):
            return False
        if self._matcher.try_consume_tokens([token_id]) == 1:
            return True
        self._raise_if_broken()
        return False

    def rollback(self, num_tokens: int) -> None:
        """Take back the last `num_tokens` accepted tokens (an end token counts as one).

        Raises:
            ValueError: fewer were accepted.
        """
        if num_tokens < 0:
            raise ValueError(f"num_tokens = {num_tokens}: expected at least 0")
        if num_tokens and self._has_ended:
            self._has_ended = False
            num_tokens -= 1
        if num_tokens and not self._matcher.rollback(num_tokens):
            raise ValueError(f"num_tokens = {num_tokens}: {self._matcher.get_error().splitlines()[0]}")

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens into `row`, [ceil(vocab_size / 32)] int32, contiguous.

        Where text is forced, only the first of `forced_tokens` is set, although `accept_token` takes other spellings of the same bytes.
        Elsewhere exactly the tokens that `accept_token` takes are set.

        Raises:
            ValueError: `row` has another shape, type or layout.
        """
        vocabulary = self._vocabulary
        if row.shape != (vocabulary.num_mask_words,) or row.dtype != np.int32 or not row.flags.c_contiguous:
            raise ValueError(f"row must be contiguous int32 of shape ({vocabulary.num_mask_words},)")
        if self._has_ended:
            row.fill(0)
            return
        if vocabulary.eos_token_ids:
            self._matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        else:
            # The library needs an end token: it has one after the vocabulary, which is cut off here.
            if self._scratch is None:
                self._scratch = np.zeros((vocabulary.vocab_size + 32) // 32, dtype=np.int32)
            self._matcher.unsafe_compute_mask_ptr(self._scratch.ctypes.data, self._scratch.nbytes)
            row[:] = self._scratch[: row.size]
            if row.size == self._scratch.size:
                row[-1] &= np.int32((1 << vocabulary.vocab_size % 32) - 1)
        self._raise_if_broken()

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, spelled as the model's tokenizer does; empty where there is a choice."""
        if self._has_ended:
            return []
        forced = self._matcher.compute_ff_tokens()
        self._raise_if_broken()
        return [token_id for token_id in forced if self._is_text(token_id)]

    def forced_bytes(self) -> bytes:
        """Bytes that must come next, however tokens spell them."""
        forced = b"" if self._has_ended else self._matcher.compute_ff_bytes()
        self._raise_if_broken()
        return bytes(forced)

    def fork(self) -> LLGuidanceMatcher:
        """An independent matcher in the same state (2 us)."""
        return LLGuidanceMatcher(
            self._matcher.deep_copy(), self._vocabulary, self._search, self.hints, has_ended=self._has_ended
        )

    def shortest_completion(self, limit: int) -> list[int] | None:
        """See `GrammarMatcher.shortest_completion`."""
        if self._has_ended:
            return []
        path = self._search.find(self, limit)
        return None if path is None else path.token_ids()

    def accepts(self, token_ids: list[int]) -> bool:
        """Whether `token_ids` may follow in this order; an end token only as the last, where the text is complete."""
        if not token_ids:
            return True
        eos_token_ids = self._vocabulary.eos_token_ids
        if token_ids[-1] in eos_token_ids:
            return self.completes(token_ids[:-1])
        if self._has_ended or not self._are_text(token_ids):
            return False
        count = self._matcher.validate_tokens(token_ids)
        if count != len(token_ids):
            self._raise_if_broken()
        return bool(count == len(token_ids))

    def allowed(self, token_ids: Sequence[int]) -> list[bool]:
        """For each of `token_ids`, none of them special, whether it may come next. About 0.3 us a token."""
        if self._has_ended:
            return [False] * len(token_ids)
        validate = self._matcher.validate_tokens
        found = [validate([token_id]) == 1 for token_id in token_ids]
        self._raise_if_broken()
        return found

    def completes(self, token_ids: list[int]) -> bool:
        """Whether the text is complete after `token_ids`. Does not change the matcher. About 0.2 us a token."""
        if self._has_ended:
            return False
        if not token_ids:
            return self.is_accepting
        if not self._are_text(token_ids):
            return False
        count = self._matcher.validate_tokens([*token_ids, self._end_token_id])
        if count <= len(token_ids):
            self._raise_if_broken()
            return False
        return True

    def has_next_token(self) -> bool:
        """Whether any token is allowed."""
        row = np.zeros(self._vocabulary.num_mask_words, dtype=np.int32)
        self.fill_bitmask(row)
        return bool(row.any())

    def _is_text(self, token_id: int) -> bool:
        return 0 <= token_id < self._num_tokens and token_id not in self._silent_ids

    def _are_text(self, token_ids: list[int]) -> bool:
        return (
            self._silent_ids.isdisjoint(token_ids) and min(token_ids) >= 0 and max(token_ids) < self._num_tokens
        )  # fast: most calls of a search return here

    def _raise_if_broken(self) -> None:
        if not self._matcher.is_error():
            return
        reason = self._matcher.get_error().splitlines()[0]
        if (
            reason == "NoExtensionBias"
        ):  # the library's term for a place where nothing can follow and the text is not complete
            raise GrammarError(
                "no text can match: the constraint cannot be met, or a rule refers to itself without end"
            )
        raise GrammarError(f"the grammar library gave up: {reason}")


class _TokenSource:
    """The vocabulary in the form that the library reads: all tokens as bytes, and a function that encodes text."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        padding = vocabulary.vocab_size - len(vocabulary.token_bytes)
        silent = vocabulary.silent_ids
        self.tokens = [b"" if token_id in silent else text for token_id, text in enumerate(vocabulary.token_bytes)] + [
            b""
        ] * padding
        self.special_token_ids = sorted(silent)
        self.eos_token_ids = sorted(vocabulary.eos_token_ids)
        if not self.eos_token_ids:
            self.eos_token_ids = [len(self.tokens)]
            self.tokens.append(b"")
            self.special_token_ids.append(self.eos_token_ids[0])
        self.eos_token_id = self.eos_token_ids[0]
        self._vocab_size = vocabulary.vocab_size
        self._ids_by_bytes = vocabulary.ids_by_bytes()
        self._max_length = max(map(len, self._ids_by_bytes), default=0)
        self._encoder: Any = None
        if vocabulary.tokenizer_json is not None:
            import tokenizers

            self._encoder = tokenizers.Tokenizer.from_str(vocabulary.tokenizer_json)
            self._encoder.encode_special_tokens = True

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else bytes(text)
        if self._encoder is not None:
            ids: list[int] = self._encoder.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
            if max(ids, default=0) < self._vocab_size and b"".join(self.tokens[i] for i in ids) == data:
                return ids
        return self._longest_tokens(data)

    def _longest_tokens(self, data: bytes) -> list[int]:
        """Greedy longest tokens; ends early where none fits."""
        ids: list[int] = []
        at = 0
        while at < len(data):
            for length in range(min(self._max_length, len(data) - at), 0, -1):
                token_id = self._ids_by_bytes.get(data[at : at + length])
                if token_id is not None:
                    ids.append(token_id)
                    at += length
                    break
            else:
                break
        return ids


def _library() -> Any:
    import llguidance

    return llguidance
