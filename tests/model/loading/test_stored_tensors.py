"""Tensors as they lie in safetensors files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.stored_tensors import StoredTensors


def test_tensors_of_all_files_have_their_dtypes_and_sizes(tmp_path: Path) -> None:
    first = {"a": torch.arange(6).view(2, 3), "b": torch.ones(3).bfloat16()}
    save_file(first, tmp_path / "1.safetensors")
    save_file({"c": torch.zeros(2, 2, dtype=torch.float8_e4m3fn)}, tmp_path / "2.safetensors")
    stored = StoredTensors(tmp_path, [tmp_path / "1.safetensors", tmp_path / "2.safetensors"])
    assert sorted(stored.names()) == ["a", "b", "c"]
    assert [(stored.dtype(name), stored.shape(name), stored.num_bytes(name)) for name in "abc"] == [
        ("I64", (2, 3), 48),
        ("BF16", (3,), 6),
        ("F8_E4M3", (2, 2), 4),
    ]
    assert torch.equal(stored.tensor("a"), first["a"])
    assert "d" not in stored
    with pytest.raises(ValueError, match="lacks d"):
        stored.tensor("d")


def test_only_the_text_of_a_multimodal_model_is_kept(tmp_path: Path) -> None:
    names = ["model.language_model.norm.weight", "model.vision_tower.norm.weight", "lm_head.weight_scale"]
    save_file({name: torch.ones(2) for name in names}, tmp_path / "model.safetensors")
    stored = StoredTensors(tmp_path, [tmp_path / "model.safetensors"], is_multimodal=True)
    assert sorted(stored.names()) == ["lm_head.weight_scale", "model.norm.weight"]
    assert stored.shape("model.norm.weight") == (2,)


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"PK")
    with pytest.raises(ModelLoadError, match=r"model\.safetensors is not a readable safetensors file"):
        StoredTensors(tmp_path, [tmp_path / "model.safetensors"])
