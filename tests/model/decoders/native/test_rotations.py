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


def test_tables_grow_and_keep_the_angles_that_they_had() -> None:
    local, far = RopeConfig(100.0), RopeConfig(1e6, "linear", 8.0)
    rotations = Rotations([local, far, local], 16, torch.device("cpu"), 8)
    before = {rope: cos.clone() for rope, (cos, _) in rotations.up_to(8).items()}
    assert rotations.num_positions == 8
    after = rotations.up_to(9)
    assert rotations.num_positions >= 9
    assert set(after) == {local, far}
    for rope, (cos, sin) in after.items():
        assert len(cos) == len(sin) == rotations.num_positions
        assert torch.equal(cos[:8], before[rope])
    assert not torch.equal(after[local][0], after[far][0])
