"""Rounded checkpoints on disk: read by compressed-tensors, shards, what stays as it is, errors that are reported."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from rtlang.model.quantization import checkpoint
from rtlang.model.quantization.checkpoint import copy_other_files, packed_words, write_config, write_rounded
from rtlang.model.quantization.rounding import Rounding, rounded
from rtlang_kernels.contract.low_bit import LowBitWeight
from rtlang_kernels.reference.low_bit import exact_weight


@dataclass
class HeldWeights:
    """Float weights in memory as `CheckpointWeights`."""

    tensors: dict[str, Tensor]

    def names(self) -> Collection[str]:
        return self.tensors.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def num_bytes(self, name: str) -> int:
        return self.tensors[name].nbytes

    def low_bit(self, name: str) -> LowBitWeight | None:
        return None

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        return self.tensors[name].to(dtype)


def some_weights() -> HeldWeights:
    generator = torch.Generator().manual_seed(5)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator) * 0.05

    return HeldWeights(
        {
            "lm_head.weight": noise(40, 64),
            "model.embed_tokens.weight": noise(40, 64),
            "model.norm.weight": noise(64),
            "model.layers.0.self_attn.q_proj.weight": noise(24, 64),
            "model.layers.0.self_attn.q_proj.bias": noise(24),
            "model.layers.0.mlp.gate.weight": noise(4, 64),
            "model.layers.0.mlp.experts.3.down_proj.weight": noise(64, 96),
            "model.layers.10.mlp.down_proj.weight": noise(64, 80),
            "model.layers.9.mlp.down_proj.weight": noise(13, 128),
        }
    )


ROUNDED = [
    "model.layers.0.mlp.experts.3.down_proj.weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.9.mlp.down_proj.weight",
]


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zero_points", [False, True])
def test_compressed_tensors_reads_what_is_written(bits: int, has_zero_points: bool, tmp_path: Path) -> None:
    compressors = pytest.importorskip("compressed_tensors.compressors")
    from compressed_tensors.quantization import QuantizationConfig

    rounding, source = Rounding(bits, 32, has_zero_points), some_weights()
    reports = write_rounded(source, tmp_path, rounding, dtype=torch.float32)
    write_config({"model_type": "llama"}, tmp_path, rounding, source)
    stored = load_file(tmp_path / "model.safetensors")
    described = json.loads((tmp_path / "config.json").read_text())["quantization_config"]
    scheme = QuantizationConfig.model_validate(described).config_groups["group_0"]
    assert [report.name for report in reports] == ROUNDED
    for report in reports:
        module = report.name.removesuffix(".weight")
        parts = {name.removeprefix(f"{module}."): value for name, value in stored.items() if name.startswith(module)}
        reader: Any = compressors.BaseCompressor.get_value_from_registry("pack-quantized")
        found = reader.decompress({name: value for name, value in parts.items() if name != "bias"}, scheme)["weight"]
        expected = exact_weight(rounded(source.tensors[report.name], rounding))
        assert torch.allclose(found.double(), expected, rtol=0.01, atol=1e-6)  # it multiplies in bfloat16
        error = float((expected - source.tensors[report.name].double()).norm() / source.tensors[report.name].norm())
        assert report.error == pytest.approx(error, rel=1e-6)
        assert report.num_bytes == sum(value.nbytes for name, value in parts.items() if name != "bias")


def test_the_rest_stays_and_is_listed(tmp_path: Path) -> None:
    source = some_weights()
    write_rounded(source, tmp_path, Rounding(4, 32))
    write_config({"model_type": "x", "dtype": "float32"}, tmp_path, Rounding(4, 32), source)
    stored = load_file(tmp_path / "model.safetensors")
    for name, tensor in source.tensors.items():
        assert (name in stored) == (name not in ROUNDED)
        if name in stored:
            assert torch.equal(stored[name], tensor.bfloat16())
    config = json.loads((tmp_path / "config.json").read_text())
    left = ["lm_head", "model.layers.0.mlp.gate", "model.layers.10.mlp.down_proj"]
    assert config["quantization_config"]["ignore"] == left
    assert config["model_type"] == "x"


def test_shards_have_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SHARD_BYTES", 4000)
    write_rounded(some_weights(), tmp_path, Rounding(4, 32))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    found = {path.name: load_file(path) for path in tmp_path.glob("*.safetensors")}
    assert len(found) > 3
    assert {name: file for file, tensors in found.items() for name in tensors} == index["weight_map"]
    assert (
        sum(each.nbytes for tensors in found.values() for each in tensors.values()) == index["metadata"]["total_size"]
    )


def test_words_hold_codes_from_the_lowest_bits_on() -> None:
    codes = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 15, 9]], dtype=torch.uint8)
    assert packed_words(codes, 4).tolist() == [[0xF7654321 - (1 << 32), 9]]
    assert packed_words(torch.tensor([[255, 1, 0, 128]], dtype=torch.uint8), 8).tolist() == [[0x800001FF - (1 << 32)]]


def test_weights_are_adjusted_before_they_are_rounded(tmp_path: Path) -> None:
    source = some_weights()
    name = "model.layers.0.self_attn.q_proj.weight"
    importance = torch.rand(64) + 0.1
    reports = write_rounded(
        source,
        tmp_path,
        Rounding(4, 32),
        importance={name: importance},
        adjust=lambda each, weight: weight * 2 if each == name else weight,
    )
    stored = load_file(tmp_path / "model.safetensors")
    expected = rounded(source.tensors[name] * 2, Rounding(4, 32), importance)
    assert torch.equal(stored[f"{name}_packed"], packed_words(expected.held.codes, 4))
    difference = (exact_weight(expected) - 2 * source.tensors[name].double()).square() * importance
    size = (2 * source.tensors[name].double()).square() * importance
    assert reports[1].error == pytest.approx(float((difference.sum() / size.sum()).sqrt()), rel=1e-6)


def test_a_file_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"part-0\.safetensors cannot be written"):
        write_rounded(some_weights(), tmp_path / "none", Rounding(4, 32))


def test_other_files_come_along_and_no_other_description_of_weights(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    kept = ("LICENSE", "tokenizer.json", "generation_config.json")
    for name in (*kept, "config.json", "hf_quant_config.json", "model.safetensors", "model.safetensors.index.json"):
        (source / name).write_text(name)
    copy_other_files(source, out)
    assert sorted(path.name for path in out.iterdir()) == sorted(kept)
