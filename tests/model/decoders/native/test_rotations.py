"""Rotation tables against the rotary embeddings of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rtlang.model.decoders.native.rotations import Rotations, rope_tables
from rtlang.model.loading.layer_table import RopeConfig

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


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


SHORT = tuple(1.0 + 0.1 * pair for pair in range(6))


@pytest.mark.parametrize(
    ("own", "entries"),
    [
        (
            RopeConfig(1e4, "yarn", 4.0, original_max_position_embeddings=64, attention_factor=1.1),
            {"attention_factor": 1.1},
        ),
        (
            RopeConfig(
                1e4, "yarn", 4.0, original_max_position_embeddings=64, rotary_dim=12, beta_fast=16.0, beta_slow=2.0
            ),
            {"attention_factor": 1.0, "partial_rotary_factor": 0.75, "beta_fast": 16.0, "beta_slow": 2.0},
        ),
        (
            RopeConfig(1e4, "yarn", 4.0, original_max_position_embeddings=64, truncates=False),
            {"attention_factor": 1.0, "truncate": False},
        ),
        (
            RopeConfig(1e4, "longrope", rotary_dim=12, attention_factor=1.2, short_factors=SHORT),
            {
                "attention_factor": 1.2,
                "partial_rotary_factor": 0.75,
                "short_factor": list(SHORT),
                "long_factor": [9.0] * 6,
            },
        ),
    ],
    ids=["yarn", "yarn of a part", "yarn without rounding", "longrope"],
)
def test_stretched_frequencies_equal_those_of_transformers(own: RopeConfig, entries: dict[str, Any]) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kind = {"rope_type": own.kind, "rope_theta": own.theta, "factor": 4.0, "original_max_position_embeddings": 64}
    config = LlamaConfig(
        hidden_size=64, num_attention_heads=4, max_position_embeddings=256, rope_parameters=kind | entries
    )
    frequencies, factor = ROPE_INIT_FUNCTIONS[own.kind](config, torch.device("cpu"))
    angles = torch.arange(64, dtype=torch.float32)[:, None] * frequencies
    cos, sin = rope_tables(own, 16, 64)
    torch.testing.assert_close(cos, angles.cos() * factor, rtol=0, atol=1e-5)
    torch.testing.assert_close(sin, angles.sin() * factor, rtol=0, atol=1e-5)


def test_tables_grow_and_keep_the_angles_that_they_had() -> None:
    local, far = RopeConfig(100.0), RopeConfig(1e6, "linear", 8.0)
    rotations = Rotations([local, far, None, local], 16, torch.device("cpu"), 8)
    tables = rotations.up_to(8)
    assert rotations.up_to(3) is tables
    assert tables[0] is tables[3]
    before = [cos.clone() for cos, _ in tables]
    after = rotations.up_to(9)
    assert after is not tables
    assert rotations.num_positions >= 9
    for old, (cos, sin) in zip(before, after, strict=True):
        assert len(cos) == len(sin) == rotations.num_positions
        assert torch.equal(cos[:8], old)
    assert not torch.equal(after[0][0], after[1][0])
    assert bool((after[2][0] == 1).all())  # no rotation
    assert bool((after[2][1] == 0).all())
