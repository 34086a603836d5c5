"""The lean decoder against transformers: tiny random models of each family, ragged, chunked, over shared pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.config import RuntimeConfig
from rtlang.model.config import RopeConfig
from rtlang.model.decoder import LeanDecoder, rope_tables
from rtlang.model.runner import ModelRunner
from tests.support.model_steps import greedy_tokens, ragged_logits
from tests.support.tiny_models import VOCAB_SIZE, make_checkpoint, make_model

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-tied": ("llama", {"tie_word_embeddings": True}),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-one-kv-head": ("llama", {"num_key_value_heads": 1}),
    "llama-all-kv-heads": ("llama", {"num_key_value_heads": 4}),
    "llama-head-dim": ("llama", {"head_dim": 32}),
    "llama3-rope": ("llama", {"rope_parameters": LLAMA3_ROPE}),
    "linear-rope": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}),
    "mistral-window": ("mistral", {"sliding_window": 10}),
    "mistral-full": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {}),
    "qwen2-window": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 10, "max_window_layers": 1, "num_hidden_layers": 3},
    ),
    "qwen3": ("qwen3", {}),
    "qwen3-bias": ("qwen3", {"attention_bias": True}),
}


def load_runner(path: Path, dtype: str = "float32") -> ModelRunner:
    runner = ModelRunner(
        RuntimeConfig(model=str(path), dtype=dtype, decoder="lean", num_pages=64, page_size=4, num_threads=1)
    )
    runner.load()
    assert isinstance(runner.decoder, LeanDecoder)
    return runner


@pytest.mark.parametrize("case", CASES)
def test_ragged_chunked_and_shared_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    family, overrides = CASES[case]
    runner = load_runner(make_checkpoint(tmp_path, family, **overrides))
    model = make_model(family, **overrides)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)
        assert logits.argmax(-1).tolist() == expected.argmax(-1).tolist()


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_greedy_text_equals_transformers_generate(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family))
    prompt = list(range(40, 60))
    with torch.no_grad():
        expected = make_model(family).generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=40,
            do_sample=False,
            eos_token_id=None,
        )
    assert greedy_tokens(runner, prompt, 40) == expected[0, len(prompt) :].tolist()


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_bfloat16_logits_stay_near_float32_transformers(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family), dtype="bfloat16")
    model = make_model(family)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        relative = (logits - expected).norm() / expected.norm()
        assert relative < 0.05


def test_rotation_tables_grow_with_the_longest_sequence(tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "llama", max_position_embeddings=16384))
    decoder = runner.decoder
    assert isinstance(decoder, LeanDecoder)
    decoder._cos, decoder._sin = decoder._cos[:8], decoder._sin[:8]
    model = make_model("llama", max_position_embeddings=16384)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "rope", [{"rope_type": "default", "rope_theta": 1e6}, LLAMA3_ROPE, {**LLAMA3_ROPE, "factor": 32.0}], ids=str
)
def test_rotation_tables_equal_those_of_transformers(rope: dict[str, Any]) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=64, num_attention_heads=2, rope_parameters=dict(rope), max_position_embeddings=4096
    )
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1, dtype=torch.float32), torch.arange(3000)[None])
    own = RopeConfig(
        theta=rope["rope_theta"],
        kind=rope["rope_type"],
        factor=rope.get("factor", 1.0),
        low_freq_factor=rope.get("low_freq_factor", 1.0),
        high_freq_factor=rope.get("high_freq_factor", 4.0),
        original_max_position_embeddings=rope.get("original_max_position_embeddings", 8192),
    )
    own_cos, own_sin = rope_tables(own, 32, 3000)
    # float32 angles of up to 3000 rad may differ by their last bit
    torch.testing.assert_close(own_cos, cos[0, :, :16], rtol=0, atol=5e-4)
    torch.testing.assert_close(own_sin, sin[0, :, :16], rtol=0, atol=5e-4)
