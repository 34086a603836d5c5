"""Texts are those of the embedded model; every forward pass computes the other one too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtlang.bench import heavy_model, speculation
from rtlang.bench.checkpoint import SHAPE
from rtlang.bench.heavy_model import HeavyRuntime, load_heavy
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.model.layers.attention import StepAttention

SMALL = SHAPE | {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}


def test_both_models_compute_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy_model, "SHAPES", {"small": ("llama", SMALL)})
    config = RuntimeConfig(dtype="float32", num_threads=1, num_pages=64, speculation="off")
    heavy = load_heavy(config, "small", tmp_path)
    assert heavy.model_config.num_layers == 2
    tokens: list[int] = []
    forward = heavy.decoder.forward

    def counted(attention: StepAttention) -> Any:
        tokens.append(attention.batch.num_tokens)
        return forward(attention)

    monkeypatch.setattr(heavy.decoder, "forward", counted)
    texts: list[Any] = []
    for runtime in (HeavyRuntime(config, heavy), speculation._runtime(config)):
        with runtime:
            tokens.clear()
            texts.append(
                runtime.generate("Once upon a time", params=SamplingParams(max_tokens=12))
                .result()
                .completions[0]
                .token_ids
            )
            if isinstance(runtime, HeavyRuntime):
                assert len(tokens) == 12
    assert texts[0] == texts[1]
    assert texts[0]
