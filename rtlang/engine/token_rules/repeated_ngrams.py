"""Keeps every sequence of n tokens from occurring twice in prompt and output together.

Source: Paulus et al. 2017, section 2.5, as `no_repeat_ngram_size` of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rtlang.engine.token_rules.bad_words import BAN


class RepeatedNgrams:
    """The rule `no_repeat_ngram_size`; see `rtlang.contract.step.TokenRule`.

    Args:
        size: n, at least 1.
    """

    def __init__(self, size: int, prompt_token_ids: Sequence[int]) -> None:
        self._size, self._prompt = size, np.asarray(prompt_token_ids, dtype=np.int64)

    def biases(self, output_token_ids: Sequence[int]) -> Mapping[int, float]:
        """See `TokenRule`."""
        history = np.concatenate((self._prompt, np.asarray(output_token_ids, dtype=np.int64)))
        num_before = self._size - 1
        if len(history) <= num_before:
            return {}
        # ends[i] is the end of an n-gram without its last token, where that token follows
        ends = np.arange(num_before, len(history))
        for back in range(1, num_before + 1):
            ends = ends[history[ends - back] == history[-back]]
        return dict.fromkeys(np.unique(history[ends]).tolist(), BAN)
