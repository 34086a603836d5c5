"""The comparison of ranks, on a small model and without other ranks."""

from __future__ import annotations

import pytest

from rtlang.bench.comparison import ranks


def test_both_sides_compute_the_same_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ranks, "SHAPE", {**ranks.SHAPE, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 1}
    )
    monkeypatch.setattr(ranks, "NUM_BLOCKS", 2)
    one, other = ranks.compare(1, "native", 2, "float32")
    assert one.length == other.length == ranks.NUM_PROMPT_TOKENS + 2 * ranks.STEPS_PER_BLOCK
    assert len(one.wall_ms) == len(other.cpu_ms) == 2
