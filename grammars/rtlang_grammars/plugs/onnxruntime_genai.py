"""Masks for the generators of `onnxruntime-genai`.

Its own `set_guidance` takes grammars of llguidance only, so the masks of this library are written into the logits between two steps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary


def vocabulary_of(model_dir: str | Path) -> Vocabulary:
    """The vocabulary of a model's directory: `tokenizer.json`, and the width and the end tokens of `genai_config.json`.

    Raises:
        UnsupportedTokenizerError: the tokens do not spell texts byte for byte.
        OSError, ValueError, KeyError: a file is missing or malformed.
    """
    from tokenizers import Tokenizer

    folder = Path(model_dir)
    config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))["model"]
    tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    ends = config["eos_token_id"]
    listed = ends if isinstance(ends, list) else [ends]
    return Vocabulary.from_tokenizer(tokenizer, eos_token_ids=listed, vocab_size=config["vocab_size"])


class GrammarGuide:
    """Constrains the rows of a generator to a grammar. One guide serves one generator.

    A place without an allowed token raises `EmptyMaskError`. Value checks are left to the caller.
    """

    def __init__(self, grammar: CompiledGrammar, vocabulary: Vocabulary, *, max_new_tokens: int | None = None) -> None:
        """Bind a grammar.

        Args:
            vocabulary: see `vocabulary_of`.
            max_new_tokens: tokens that follow the prompt at most; every row is then complete by their end. None: rows may be cut off.
        Raises:
            GrammarError: no completion of at most `max_new_tokens` tokens was found.
        """
        self._histories = TokenHistories([grammar], vocabulary, max_new_tokens)

    @property
    def report(self) -> Report | None:
        """The report of the grammar; None without a schema."""
        return self._histories.reports[0]

    def generate_next_token(self, generator: Any) -> None:
        """As `generator.generate_next_token()`, with a token that may follow, in every row."""
        logits = generator.get_logits()  # [num_rows, 1, vocab_size] float32
        scores = logits.reshape(-1, logits.shape[-1])
        history = np.array([generator.get_sequence(row) for row in range(len(scores))], dtype=np.int64)
        allowed = self._histories.allowed(history, lambda row: scores[row])
        mask = np.zeros(scores.shape, dtype=np.bool_)
        width = min(mask.shape[1], allowed.shape[1])
        mask[:, :width] = allowed[:, :width]
        generator.set_logits(np.where(mask, scores, np.float32(-np.inf)).reshape(logits.shape).astype(np.float32))
        generator.generate_next_token()
