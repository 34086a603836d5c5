"""GGUF files are read as the `gguf` package wrote them; damaged and incomplete ones end in errors that name the fault."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.container import GgufFile
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.gguf_files import NUMBERS, QUANTIZED, StoredTensor, random_blocks, stored, write_gguf

VALUES = {
    "a.string": "text",
    "a.int": -5,
    "a.count": 7,
    "a.large": 1 << 40,
    "a.float": 0.5,
    "a.bool": True,
    "a.tokens": ["a", "", "Ġé", "日本"],
    "a.scores": [0.5, -1.0],
    "a.types": [1, 2, 6],
    "a.flags": [True, False],
}


def numbers(kind: str, *shape: int) -> StoredTensor:
    found = np.random.default_rng(1).normal(0, 40, shape)
    if kind == "BF16":
        return stored(kind, found.astype(np.float32))
    dtype = {"F": "float", "I": "int"}[kind[0]] + kind[1:]
    if kind == "I8":
        dtype = "int8"
    return StoredTensor(kind, found.astype(dtype))


def test_metadata_and_tensors_are_what_was_written(tmp_path: Path) -> None:
    tensors = {kind: numbers(kind, 3, 8) for kind in NUMBERS} | {
        kind: random_blocks(kind, (3, 512)) for kind in QUANTIZED
    }
    write_gguf(tmp_path / "m.gguf", tensors, VALUES)
    with GgufFile.open(tmp_path / "m.gguf") as file:
        assert dict(file.metadata) == {"general.architecture": "llama", **VALUES}
        assert list(file.tensors) == list(tensors)
        assert file.num_bytes == sum(each.data.nbytes for each in tensors.values())
        for kind, tensor in tensors.items():
            assert file.tensors[kind].kind.name == kind
            assert file.tensors[kind].num_bytes == tensor.data.nbytes
            found = file.tensor(kind)
            if kind in NUMBERS and kind != "BF16":
                assert str(found.dtype) == f"torch.{tensor.data.dtype}"
                assert np.array_equal(found.numpy(), tensor.data)
            else:
                assert found.dtype is (torch.bfloat16 if kind == "BF16" else torch.float32)
                assert torch.equal(found.float(), torch.from_numpy(tensor.values))


def test_rows_can_be_reordered_and_experts_chosen(tmp_path: Path) -> None:
    tensors = {"q": random_blocks("Q4_0", (8, 64)), "experts": random_blocks("Q4_K", (3, 4, 256))}
    write_gguf(tmp_path / "m.gguf", tensors)
    file = GgufFile.open(tmp_path / "m.gguf")
    order = np.array([3, 1, 7, 0, 2, 6, 4, 5])
    found = file.weight("q", rows=order)
    assert torch.equal(exact_weight(found), torch.from_numpy(tensors["q"].values[order]).double())
    assert torch.equal(exact_weight(found, 2, 5), torch.from_numpy(tensors["q"].values[order[2:5]]).double())
    for expert in range(3):
        found = file.weight("experts", expert=expert)
        assert found.shape == (4, 256)
        assert torch.equal(exact_weight(found).float(), torch.from_numpy(tensors["experts"].values[expert]))
    assert torch.equal(file.tensor("experts"), torch.from_numpy(tensors["experts"].values))


def test_a_split_model_opens_from_any_file(tmp_path: Path) -> None:
    tensors = {f"t{number}": np.full((2, 3), number, np.float32) for number in range(5)}
    paths = write_gguf(tmp_path / "m.gguf", tensors, VALUES, tensors_per_file=2)
    assert len(paths) == 3
    for path in paths:
        file = GgufFile.open(path)
        assert file.paths == paths
        assert file.metadata["a.string"] == "text"
        assert {name: file.tensor(name).tolist() for name in file.tensors} == {
            name: each.tolist() for name, each in tensors.items()
        }
    os.remove(paths[1])
    with pytest.raises(ModelLoadError, match=r"1 of 3 files are missing: m-00002-of-00003\.gguf"):
        GgufFile.open(paths[2])


def test_weights_outlive_the_file_object(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", {"w": random_blocks("Q8_0", (2, 32)), "n": np.ones(4, np.float32)})
    with GgufFile.open(tmp_path / "m.gguf") as file:
        weight, norm = file.weight("w"), file.tensor("n")
        norm.mul_(2)  # a private mapping: the file keeps its content
        file.release("w")
        before = exact_weight(weight)
    assert torch.equal(exact_weight(weight), before)
    assert GgufFile.open(tmp_path / "m.gguf").tensor("n").tolist() == [1, 1, 1, 1]
    with pytest.raises(ModelLoadError, match="the file was closed before tensor 'w' was read"):
        file.weight("w")
