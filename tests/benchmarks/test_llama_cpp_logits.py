"""The comparison of predictions: logits come in the order of the text, and the goals decide the exit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtlang.bench.baselines.llama_cpp_library import MAX_STEP_TOKENS, LlamaCppError
from rtlang.model.quantization.comparison import Difference
from rtlang_bench.llama_cpp_logits import Agreement, llama_cpp_logits


class Context:
    """Its logits are the number of tokens so far, in a buffer that the next step overwrites."""

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.buffer = np.zeros((MAX_STEP_TOKENS, 2), dtype=np.float32)
        self.is_clear = False

    def clear(self) -> None:
        self.is_clear = True

    def step(self, ids: list[int], positions: list[int], sequences: list[int], wanted: list[bool]) -> bool:
        assert self.is_clear
        assert all(wanted)
        assert not any(sequences)
        self.buffer[: len(ids), 0], self.buffer[: len(ids), 1] = positions, ids
        return positions[-1] < self.num_tokens

    def logits(self, index: int) -> Any:
        return self.buffer[index]


def test_logits_are_in_the_order_of_the_text() -> None:
    context: Any = Context(5_000)
    ids = [index * 3 % 11 for index in range(2 * MAX_STEP_TOKENS + 7)]
    found = llama_cpp_logits(context, ids)
    assert found.tolist() == [[index, token] for index, token in enumerate(ids)]


def test_a_text_that_is_too_long_is_refused() -> None:
    context: Any = Context(600)
    with pytest.raises(LlamaCppError, match="no room for 1000 tokens"):
        llama_cpp_logits(context, [1] * 1_000)


@pytest.mark.parametrize(
    ("divergence", "perplexity", "is_met"), [(1e-2, 10.01, True), (1.1e-2, 10.0, False), (1e-4, 10.03, False)]
)
def test_both_goals_count(divergence: float, perplexity: float, is_met: bool) -> None:
    found = Agreement(Difference(divergence, 0.97, perplexity, 10.0, 300))
    assert found.is_met == is_met
    assert f"{divergence:.2e}" in str(found)
    assert "300 tokens" in str(found)
