"""GGUF files are read as the `gguf` package wrote them; damaged and incomplete ones end in errors that name the fault."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
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


def test_outer_dimensions_of_one_may_be_left_out(tmp_path: Path) -> None:
    tensors = {"row": random_blocks("Q8_0", (64,)), "expert": random_blocks("Q8_0", (2, 64))}
    write_gguf(tmp_path / "m.gguf", tensors)
    file = GgufFile.open(tmp_path / "m.gguf")
    assert file.tensor("row").shape == (64,)
    assert torch.equal(exact_weight(file.weight("row")).float(), torch.from_numpy(tensors["row"].values[None]))
    found = exact_weight(file.weight("expert", expert=0)).float()
    assert torch.equal(found, torch.from_numpy(tensors["expert"].values))


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


def test_scales_beside_weights_multiply_them(tmp_path: Path) -> None:
    """As llama.cpp names those of NVFP4: one of a matrix, one of each expert."""
    matrix, experts = random_blocks("NVFP4", (4, 128)), random_blocks("NVFP4", (2, 3, 64))
    scales = np.array([0.5, 3], np.float32)
    tensors = {"q.weight": matrix, "q.scale": scales[1:], "e.weight": experts, "e.scale": scales, "bare.weight": matrix}
    write_gguf(tmp_path / "m.gguf", tensors)
    file = GgufFile.open(tmp_path / "m.gguf")
    assert torch.equal(exact_weight(file.weight("q.weight")), torch.from_numpy(matrix.values).double() * 3)
    assert torch.equal(exact_weight(file.weight("bare.weight")), torch.from_numpy(matrix.values).double())
    expected = torch.from_numpy(experts.values * scales[:, None, None])
    for expert in range(2):
        assert torch.equal(exact_weight(file.weight("e.weight", expert=expert)).float(), expected[expert])
    assert torch.equal(file.tensor("e.weight"), expected)
    assert torch.equal(file.tensor("q.weight"), torch.from_numpy(matrix.values * 3))
    order = np.array([2, 0])
    found = file.weight("q.weight", rows=order)
    assert torch.equal(exact_weight(found, 1, 2), torch.from_numpy(matrix.values[:1]).double() * 3)


@pytest.mark.parametrize("scale", [np.ones(3, np.float32), np.ones(1, np.float16)])
def test_a_scale_of_another_shape_or_type_is_refused(scale: np.ndarray, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", {"q.weight": random_blocks("NVFP4", (4, 128)), "q.scale": scale})
    file = GgufFile.open(tmp_path / "m.gguf")
    with pytest.raises(ModelLoadError, match=r"tensor 'q\.scale' is F.*: expected F32 \[1\], for tensor 'q\.weight'"):
        file.weight("q.weight")


def test_an_alignment_smaller_than_an_element_is_served(tmp_path: Path) -> None:
    tensors = {"a": np.array([3], np.int8), "b": np.array([1, 2], np.float64), "c": random_blocks("Q4_0", (1, 32))}
    write_gguf(tmp_path / "m.gguf", tensors, alignment=1)
    file = GgufFile.open(tmp_path / "m.gguf")
    assert file.tensors["b"].first_byte == file.tensors["a"].first_byte + 1
    assert file.tensor("b").tolist() == [1, 2]
    assert torch.equal(file.tensor("c"), torch.from_numpy(random_blocks("Q4_0", (1, 32)).values))


def test_tokens_keep_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    tokens = [b"ok", b"\xff\xfe", "é".encode()[:1]]
    write_gguf(tmp_path / "m.gguf", {}, {"tokens": tokens})
    found = GgufFile.open(tmp_path / "m.gguf").metadata["tokens"]
    assert isinstance(found, list)
    assert [str(each).encode("utf-8", "surrogateescape") for each in found] == tokens


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda file: file.weight("x"), "the file does not contain tensor 'x'"),
        (lambda file: file.tensor("x"), "the file does not contain tensor 'x'"),
        (lambda file: file.weight("n"), "tensor 'n' is F32: expected quantized weights"),
        (lambda file: file.weight("e"), r"tensor 'e' has shape \[2, 3, 64\]: expected \[out, in\]"),
        (lambda file: file.weight("s", expert=0), r"tensor 's' .*: expected \[experts, out, in\]"),
        (lambda file: file.weight("q", expert=1), "tensor 'q', expert = 1: expected 0 to 0"),
        (lambda file: file.weight("e", expert=2), "tensor 'e', expert = 2: expected 0 to 1"),
    ],
)
def test_tensors_that_cannot_be_read_are_named(ask: Callable[[GgufFile], object], message: str, tmp_path: Path) -> None:
    tensors = {"q": random_blocks("Q4_0", (4, 32)), "e": random_blocks("Q4_0", (2, 3, 64)), "n": np.ones(4, np.float32)}
    tensors |= {"s": random_blocks("Q4_0", (1, 2, 3, 32))}
    write_gguf(tmp_path / "m.gguf", tensors)
    with pytest.raises(ModelLoadError, match=message):
        ask(GgufFile.open(tmp_path / "m.gguf"))


def test_what_is_no_file_of_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    for name, message in {
        "": "it is no regular file",
        "empty.gguf": "the file is empty",
        "missing.gguf": "the file cannot be read: .*No such file",
        "a\0b": "the file cannot be read: embedded null",
    }.items():
        with pytest.raises(ModelLoadError, match=message):
            GgufFile.open(f"{tmp_path}/{name}")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.gguf")
        with pytest.raises(ModelLoadError, match="it is no regular file"):
            GgufFile.open(tmp_path / "pipe.gguf")


def test_files_that_are_no_parts_of_one_model_are_refused(tmp_path: Path) -> None:
    tensors = {f"t{number}": np.ones(2, np.float32) for number in range(4)}
    first, second = write_gguf(tmp_path / "m.gguf", tensors, tensors_per_file=2)
    whole, last = first.read_bytes(), second.read_bytes()
    with pytest.raises(
        ModelLoadError, match=r"split\.count = 2, but the file is named x\.gguf: expected \.\.\.-00001-of-00002"
    ):
        GgufFile.open(first.rename(tmp_path / "x.gguf"))
    first.write_bytes(last)
    with pytest.raises(ModelLoadError, match=r"00001-of-00002\.gguf': split\.no = 1: expected 0"):
        GgufFile.open(second)
    first.write_bytes(whole)
    second.write_bytes(last.replace(b"t2", b"t0"))
    with pytest.raises(ModelLoadError, match=r"tensor 't0' is also in m-00001-of-00002\.gguf: expected it in one file"):
        GgufFile.open(first)
    count = b"split.tensors.count" + struct.pack("<Ii", 5, 4)
    first.write_bytes(whole.replace(count, count[:-4] + struct.pack("<i", 9)))
    second.write_bytes(last)
    with pytest.raises(ModelLoadError, match=r"split\.tensors\.count = 9: expected 4, as many as the files have"):
        GgufFile.open(first)


@pytest.mark.skipif(sys.platform != "linux", reason="files with holes may be small on Linux only")
def test_a_file_larger_than_memory_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path, {"t": np.ones(2, np.float32)})
    os.truncate(path, 1 << 42)
    assert GgufFile.open(path).tensor("t").tolist() == [1, 1]
