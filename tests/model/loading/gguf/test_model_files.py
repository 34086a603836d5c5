"""Which GGUF file a path means, and what is read of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.model_files import (
    first_files,
    gguf_config,
    gguf_in,
    gguf_tokenizer,
    gguf_weights,
    is_gguf,
    shards_of,
)
from tests.support.models.foreign_models import gguf_pieces
from tests.support.models.gguf_models import CASES, make_model, write_model

_SHARDS = ["big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf"]


def test_a_model_is_named_by_its_first_file() -> None:
    names = [*_SHARDS, "small.GGUF", "mmproj-small.gguf", "notes.txt", "old.gguf.part"]
    assert first_files(names) == ["big-00001-of-00003.gguf", "small.GGUF"]
    assert shards_of(_SHARDS[1]) == _SHARDS
    assert shards_of("folder/" + _SHARDS[1]) == ["folder/" + each for each in _SHARDS]
    assert shards_of("small.gguf") == ["small.gguf"]


def test_a_directory_means_its_only_model() -> None:
    folder = Path("folder")
    assert gguf_in(folder, ["a.gguf", "mmproj-a.gguf", "tokenizer.json"]) == folder / "a.gguf"
    assert gguf_in(folder, list(reversed(_SHARDS))) == folder / _SHARDS[0]
    assert gguf_in(folder, ["a.gguf", "model.safetensors"]) is None
    assert gguf_in(folder, ["config.json"]) is None
    with pytest.raises(ModelLoadError, match=r"it has 2 GGUF models; pass one of the files: a\.gguf, b\.gguf"):
        gguf_in(folder, ["a.gguf", "b.gguf"])
    with pytest.raises(ModelLoadError, match=r"m5\.gguf and 3 more"):
        gguf_in(folder, [f"m{number}.gguf" for number in range(9)])


def test_only_files_are_models(tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    (tmp_path / "a.GGUF").touch()
    assert is_gguf(tmp_path / "a.GGUF")
    assert not is_gguf(tmp_path / "folder.gguf")
    assert not is_gguf(tmp_path / "missing.gguf")


def test_config_tokenizer_and_weights_come_from_one_file(tmp_path: Path) -> None:
    case = CASES["llama"]
    path = write_model(tmp_path / "model.gguf", case, make_model(case))
    found = gguf_config(path)
    assert (found["model_type"], found["eos_token_id"], found["vocab_size"]) == ("llama", 2, len(gguf_pieces()))
    found["model_type"] = "changed"
    assert gguf_config(path)["model_type"] == "llama"
    weights, paths = gguf_weights(path)
    assert paths == [path]
    assert weights.shape("model.norm.weight") == (64,)
    assert len(gguf_tokenizer(path).content["model"]["vocab"]) == len(gguf_pieces())


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for number, name in enumerate(("llama", "qwen3")):
        write_model(path, CASES[name], make_model(CASES[name]))
        os.utime(path, (number, number))
        assert gguf_config(path)["model_type"] == name


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="the file cannot be read"):
        gguf_config(tmp_path / "model.gguf")
