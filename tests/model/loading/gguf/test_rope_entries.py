"""Rotary embeddings of metadata and factors, against the functions of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.fields import Fields
from rtlang.model.loading.gguf.rope_entries import rope_entries

_DIM = 64


def _found(metadata: dict[str, Any], tensors: dict[str, NDArray[np.float32]] | None = None, dim: int = _DIM) -> Any:
    given = {
        "general.architecture": "a",
        "a.context_length": 4096,
        **{f"a.{key}": each for key, each in metadata.items()},
    }
    values = tensors or {}
    fields = Fields("m.gguf", given, {name: each.shape for name, each in values.items()})
    return rope_entries(fields, "llama", dim, values.__getitem__)


def _llama3(factor: float, low: float, high: float, original: int, theta: float = 500000.0, dim: int = _DIM) -> Any:
    """Frequencies, and by how much they are divided."""
    rope = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high}
    config = LlamaConfig(
        head_dim=dim,
        max_position_embeddings=1 << 20,
        rope_parameters={**rope, "rope_theta": theta, "original_max_position_embeddings": original},
    )
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = theta ** (-torch.arange(0, dim, 2).double() / dim)
    return frequencies, (plain / frequencies.double()).float().numpy()


@pytest.mark.parametrize("dim", [8, 16, 64, 128])
@pytest.mark.parametrize(
    "rule", [(8.0, 1.0, 4.0, 8192), (32.0, 1.0, 4.0, 8192), (4.0, 2.0, 3.0, 100), (16.0, 1.0, 8.0, 1 << 16)]
)
def test_parameters_of_llama_3_are_found_again(rule: Any, dim: int) -> None:
    frequencies, factors = _llama3(*rule, dim=dim)
    found = _found({"rope.freq_base": 500000.0}, {"rope_freqs.weight": factors}, dim)
    scaling = found["rope_scaling"]
    if scaling["rope_type"] == "linear":  # all of the few frequencies are divided
        assert np.allclose(factors, scaling["factor"])
        return
    arguments = (scaling[name] for name in ("factor", "low_freq_factor", "high_freq_factor"))
    again, _ = _llama3(*arguments, scaling["original_max_position_embeddings"], dim=dim)
    assert torch.allclose(again, frequencies, rtol=2e-4, atol=0)
    if rule[1:] == (1.0, 4.0, 8192):
        assert scaling["low_freq_factor"], scaling["high_freq_factor"] == (1.0, 4.0)


def test_factors_of_ones_change_nothing() -> None:
    assert "rope_scaling" not in _found({}, {"rope_freqs.weight": np.ones(32, np.float32)})


@pytest.mark.parametrize(
    "factors",
    [
        np.ones(31),
        np.zeros(32),
        np.full(32, np.nan),
        np.r_[np.ones(16), np.linspace(1, 9, 16) ** 2][::-1],
        np.arange(1, 33),
    ],
)
def test_other_factors_are_refused(factors: Any) -> None:
    with pytest.raises(ModelLoadError, match=r"tensor rope_freqs\.weight"):
        _found({}, {"rope_freqs.weight": factors.astype(np.float32)})


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, None),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 1.0}, None),
        ({"rope.scale_linear": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 1024,
                "rope.scaling.yarn_beta_fast": 16.0,
                "rope.scaling.yarn_log_multiplier": 0.0707,
            },
            {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 1024,
                "beta_fast": 16.0,
                "mscale": 0.707,
                "mscale_all_dim": 0.707,
            },
        ),
    ],
)
def test_scaling_of_metadata(metadata: dict[str, Any], expected: object) -> None:
    assert _found(metadata).get("rope_scaling") == expected


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"rope.freq_base": 0.0}, r"a\.rope\.freq_base = 0\.0: expected a number above 1"),
        ({"rope.freq_base": -1.0}, r"a\.rope\.freq_base = -1\.0: expected a number above 1"),
        ({"rope.scale_linear": -1.0}, r"a\.rope\.scale_linear = -1\.0: expected a number from 0"),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": -2.0}, r"factor = -2\.0: expected a number from 0"),
        (
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 0.0, "rope.scaling.attn_factor": 1.0},
            r"a\.rope\.scaling\.factor = 0\.0: expected a number from 1 for yarn",
        ),
        (
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.yarn_beta_fast": -1.0},
            r"a\.rope\.scaling\.yarn_beta_fast = -1\.0: expected a number from",
        ),
    ],
)
def test_numbers_that_give_no_angles_are_refused(metadata: dict[str, Any], reason: str) -> None:
    for tensors in ({}, {"rope_freqs.weight": _llama3(8.0, 1.0, 4.0, 8192)[1]}):
        with pytest.raises(ModelLoadError, match=reason):
            _found(metadata, tensors)


def test_longrope_has_both_sets_of_factors() -> None:
    long, short = (np.linspace(1, top, 32).astype(np.float32) for top in (8, 2))
    tensors = {"rope_factors_long.weight": long, "rope_factors_short.weight": short}
    found = _found({"rope.scaling.original_context_length": 1024, "rope.scaling.attn_factor": 1.25}, tensors)[
        "rope_scaling"
    ]
    assert np.array_equal(np.float32(found["long_factor"]), long)
    assert np.array_equal(np.float32(found["short_factor"]), short)
    assert (found["original_max_position_embeddings"], found["factor"], found["attention_factor"]) == (1024, 4.0, 1.25)
