"""A logits processor and the vocabulary of a model, for `llama-cpp-python`."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.errors import GrammarError, UnsupportedTokenizerError
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary

_UNREADABLE = {llama_cpp.LLAMA_VOCAB_TYPE_NONE: "none", llama_cpp.LLAMA_VOCAB_TYPE_WPM: "WordPiece"}
_SILENT = llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN | llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
_BUFFER_BYTES = 256


def vocabulary_of(llama: llama_cpp.Llama) -> Vocabulary:
    """The vocabulary of a loaded GGUF model: bytes, special tokens and end tokens as llama.cpp knows them.

    Raises:
        UnsupportedTokenizerError: the tokens do not spell texts byte for byte.
    """
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    kind = llama_cpp.llama_vocab_type(vocab)
    if kind in _UNREADABLE:
        raise UnsupportedTokenizerError(
            f"vocabulary type {_UNREADABLE[kind]} is not supported: its tokens do not encode whitespace"
        )
    num_tokens = llama_cpp.llama_vocab_n_tokens(vocab)
    token_bytes: list[bytes] = []
    special, ends = set(), set()
    for token_id in range(num_tokens):
        attributes = llama_cpp.llama_vocab_get_attr(vocab, token_id)
        is_end = llama_cpp.llama_vocab_is_eog(vocab, token_id)
        if is_end:
            ends.add(token_id)
        if is_end or attributes & _SILENT:
            special.add(token_id)
        is_unused = attributes & llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
        token_bytes.append(b"" if is_unused else _piece(vocab, token_id))
    return Vocabulary(tuple(token_bytes), frozenset(ends), frozenset(special), num_tokens)


def _piece(vocab: Any, token_id: int) -> bytes:
    """The bytes of one token; of a special token, its name."""
    size = _BUFFER_BYTES
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = llama_cpp.llama_token_to_piece(vocab, token_id, buffer, size, 0, True)
        if length >= 0:
            return buffer.raw[:length]
        size = -length  # the buffer was too small


class GrammarLogitsProcessor:
    """Constrains the completions of a `Llama` to a grammar, as `logits_processor=LogitsProcessorList([processor])`.

    One object serves one completion after another. A prompt that continues the completion before, token for token, counts as more of it;
    call `reset` before it.

    llama.cpp drops what its callbacks raise, so an error ends the text. Give the completion
    `stopping_criteria=StoppingCriteriaList([processor.raise_error])`, which raises it.

    Attributes:
        error: why a text was ended before it was complete: no token may follow (`EmptyMaskError`), or the grammar needs more states than
            its limits allow. Usually None.
    """

    def __init__(self, grammar: CompiledGrammar, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        """Bind a grammar.

        Args:
            vocabulary: see `vocabulary_of`.
            max_tokens: the same as for the completion; the text is then complete by its end. None: it may be cut off.
        Raises:
            GrammarError: no completion of at most `max_tokens` tokens was found.
        """
        self._histories = TokenHistories([grammar], vocabulary, max_tokens)
        self.error: GrammarError | None = None
        self._only_ends = np.isin(np.arange(vocabulary.vocab_size), list(vocabulary.eos_token_ids))

    @property
    def report(self) -> Report | None:
        """The report of the grammar; None without a schema."""
        return self._histories.reports[0]

    def reset(self) -> None:
        """Begin a new text with the next call."""
        self._histories.reset()
        self.error = None

    def raise_error(self, input_ids: NDArray[np.intc], logits: NDArray[np.single]) -> bool:
        """A stopping criterion that never stops, but raises `error` if there is one.

        Raises:
            GrammarError: see `error`.
        """
        if self.error is not None:
            raise self.error
        return False

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """The scores, [vocab_size], with minus infinity for tokens that may not follow `input_ids`, [length]."""
        history = np.ascontiguousarray(input_ids, dtype=np.int64)[None]
        try:
            allowed = self._histories.allowed(history, lambda _: scores)[0]
        except GrammarError as error:  # llama.cpp drops exceptions of its callbacks and would go on without a mask
            self.error = error
            allowed = self._only_ends
        return np.where(allowed, scores, np.float32(-np.inf))
