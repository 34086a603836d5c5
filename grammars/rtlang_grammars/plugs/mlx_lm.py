"""A logits processor and the vocabulary of a model, for `mlx-lm`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np

from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary


def vocabulary_of(model: Any, tokenizer: Any) -> Vocabulary:
    """The vocabulary of what `mlx_lm.load` returns, with the end tokens at which `mlx-lm` stops.

    Raises:
        UnsupportedTokenizerError: the tokens do not spell texts byte for byte.
    """
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    found = Vocabulary.from_tokenizer(inner, vocab_size=model.args.vocab_size)
    ends = frozenset(getattr(tokenizer, "eos_token_ids", None) or found.eos_token_ids)
    return replace(found, eos_token_ids=ends)


class GrammarLogitsProcessor:
    """Constrains a generation to a grammar, as `logits_processors=[processor]`; also with a draft model.

    One object serves one generation after another. A prompt that continues the text of the generation before, token for token, counts as
    more of it; call `reset` before it. A place without an allowed token raises `EmptyMaskError` from `generate`. Value checks are left to
    the caller.
    """

    def __init__(self, grammar: CompiledGrammar, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        """Bind a grammar.

        Args:
            vocabulary: see `vocabulary_of`.
            max_tokens: the same as for the generation; the text is then complete by its end. None: it may be cut off.
        Raises:
            GrammarError: no completion of at most `max_tokens` tokens was found.
        """
        self._histories = TokenHistories([grammar], vocabulary, max_tokens)

    @property
    def report(self) -> Report | None:
        """The report of the grammar; None without a schema."""
        return self._histories.reports[0]

    def reset(self) -> None:
        """Begin a new text with the next call."""
        self._histories.reset()

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """The logits, [1, vocab_size], with minus infinity for tokens that may not follow `tokens`, [length]."""
        history = np.array(tokens.astype(mx.int32)).astype(np.int64)[None]
        allowed = self._histories.allowed(history, lambda _: np.array(logits.reshape(-1).astype(mx.float32)))[0]
        mask = np.zeros(logits.shape[-1], dtype=np.bool_)
        width = min(len(allowed), len(mask))
        mask[:width] = allowed[:width]
        return mx.where(mx.array(mask), logits, mx.array(-np.inf, dtype=logits.dtype))
