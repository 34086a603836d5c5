"""Which files hold the weights of a checkpoint; `test_loader.py` and `test_hub.py` load them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.checkpoint_files import INDEX, weight_files, weight_names


def names(*files: str, index: object = None) -> list[str]:
    return weight_names(files if index is None else [*files, INDEX], lambda name: json.dumps(index))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["model.safetensors"], ["model.safetensors"]),
        (["model.safetensors", "consolidated.safetensors", "tiny.gguf"], ["model.safetensors"]),
        (["pytorch_model.bin", "tiny.safetensors"], ["tiny.safetensors"]),
        (["tiny.safetensors", "adapter_model.safetensors"], ["tiny.safetensors"]),
        (["tiny.safetensors", "consolidated.safetensors", "params.json"], ["tiny.safetensors"]),
        (["consolidated.safetensors"], ["consolidated.safetensors"]),
        (["tiny.safetensors", "fp16/tiny.safetensors"], ["tiny.safetensors"]),
    ],
)
def test_one_file_without_an_index_is_found_beside_other_formats(files: list[str], expected: list[str]) -> None:
    assert names(*files) == expected


def test_the_index_names_the_files() -> None:
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"weight_map": {"a": shards[1], "b": shards[0], "c": shards[0]}}
    assert names("consolidated.safetensors", "model.safetensors", *shards, index=index) == shards
    with pytest.raises(ValueError, match=f"1 of 2 shards are missing: {shards[1]}"):
        names(shards[0], index=index)
    damaged: object
    for damaged in ([], {"weight_map": 1}, "text"):
        with pytest.raises(ValueError, match="cannot be read"):
            names("model.safetensors", index=damaged)
    with pytest.raises(ValueError, match="points outside the directory"):
        names("model.safetensors", index={"weight_map": {"a": "../model.safetensors"}})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.safetensors", "b.safetensors"], "2 safetensors files but no"),
        ([], "no weights found: model.safetensors is missing"),
        (["fp16/model.safetensors"], "no weights found: model.safetensors is missing"),
        (["tf_model.h5"], "the format of TensorFlow"),
        (["flax_model.msgpack"], "the format of Flax"),
        (["weights.npz"], "the format of MLX"),
        (["onnx/model.onnx"], "the format of ONNX"),
        (["openvino_model.xml", "openvino_model.bin"], "the format of OpenVINO"),
        (["tiny-Q4_K_M.GGUF"], "GGUF"),
        (["pytorch_model.bin", "training_args.bin"], r"pickled \(pytorch_model.bin\)"),
        (["training_args.bin", "optimizer.pt", "rng_state_0.pth"], "model.safetensors is missing"),
    ],
)
def test_other_formats_are_named(files: list[str], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        names(*files)


def test_a_pointer_of_git_lfs_is_no_file_of_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(ModelLoadError, match="a pointer of git-lfs and holds no weights; run git lfs pull"):
        weight_files(tmp_path)
