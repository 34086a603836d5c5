"""A logits processor for `generate` of `transformers`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import LogitsProcessor

from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary


class GrammarLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Constrains the rows of a generation to a grammar: greedy, sampled, by beams, or with drafts.

    One object serves one generation after another. A prompt that continues the text of the generation before, token for token, counts as
    more of that generation; call `reset` before it.
    """

    def __init__(
        self,
        grammar: CompiledGrammar | Sequence[CompiledGrammar],
        vocabulary: Vocabulary,
        *,
        max_new_tokens: int | None = None,
    ) -> None:
        """Bind one grammar, or one for each prompt of a batch.

        Args:
            vocabulary: the vocabulary that the grammar was compiled for.
            max_new_tokens: the same as for `generate`; every row is then complete by its end. None: rows may be cut off.
        Raises:
            GrammarError: no completion of at most `max_new_tokens` tokens was found.
        """
        grammars = grammar if isinstance(grammar, Sequence) else [grammar]
        self._histories = TokenHistories(grammars, vocabulary, max_new_tokens)

    @property
    def reports(self) -> list[Report | None]:
        """The report of each grammar; None for those without schemas."""
        return self._histories.reports

    def reset(self) -> None:
        """Begin a new generation with the next call."""
        self._histories.reset()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Set the scores of tokens that may not follow to minus infinity.

        Args:
            input_ids: [num_rows, length], prompts padded on the left.
            scores: [num_rows, vocab_size], at least as wide as the vocabulary.
        """
        allowed = self._histories.allowed(
            np.ascontiguousarray(input_ids.cpu().numpy(), dtype=np.int64), lambda row: scores[row].float().cpu().numpy()
        )
        mask = torch.zeros(scores.shape, dtype=torch.bool)
        width = min(allowed.shape[1], scores.shape[1])
        mask[:, :width] = torch.from_numpy(allowed[:, :width])
        return scores.masked_fill(~mask.to(scores.device), -torch.inf)  # type: ignore[return-value]
