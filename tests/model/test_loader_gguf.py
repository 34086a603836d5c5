"""GGUF files through the loader: both decoders, tokenizers, memory, and refusals."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.identity import model_identity
from rtlang.model.layers.attention import PagedKV
from rtlang.model.loader import load_model, load_tokenizer, model_directory, weight_bytes
from rtlang.model.loading.gguf.container import GgufFile
from tests.support.long_tests import sized
from tests.support.models.gguf_models import CASES, make_model, write_model
from tests.support.models.model_steps import Pages, StepRunner, TrackedSequence, all_logits, next_row

_IDS = [1, 300, 290, 40, 77, 280, 299, 310, 12, 45, 260, 261, 262, 330, 331, 5, 6, 7]
_NATIVE = ("llama", "llama, tied", "llama, biases", "llama 3", "qwen2", "qwen3")
_OTHERS = ("mixtral", "gemma3", "deepseek2, sigmoid", "gpt-oss", "phi3", "stablelm")
_ALL_OTHERS = (*_OTHERS, *(name for name in CASES if name not in (*_NATIVE, *_OTHERS)))


def _config(path: Path, **options: Any) -> RuntimeConfig:
    return RuntimeConfig(model=str(path), dtype="float32", max_model_len=128, num_threads=1, **options)


def _logits(path: Path, **options: Any) -> torch.Tensor:
    decoder = load_model(_config(path, **options))[0]
    runner = StepRunner(decoder, PagedKV(decoder.geometries, 8, 4, decoder.dtype))
    return all_logits(runner, [next_row(TrackedSequence(_IDS), len(_IDS), Pages(8), 4)])[0]


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Of the token in the middle: one whose expert or whose neighbor was chosen by a hair has a large one."""
    return float(((found - expected).norm(dim=1) / expected.norm(dim=1)).median())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "F32") for name in ("llama", "mixtral", "gpt-oss")),
        *((name, "Q8_0") for name in (*_NATIVE, *_ALL_OTHERS[: sized(len(_ALL_OTHERS), usual=len(_OTHERS))])),
    ],
)
def test_logits_are_those_of_the_model_that_was_written(name: str, kind: str, tmp_path: Path) -> None:
    model = make_model(CASES[name])
    path = write_model(tmp_path / "model.gguf", CASES[name], model, kind)
    with torch.inference_mode():
        expected = model(torch.tensor([_IDS])).logits[0]
    # Q8_0 rounds weights by .5 % of the largest of 32, and kernels round inputs as much; with rows or experts in another order it is 1
    assert _error(_logits(path), expected) < (1e-4 if kind == "F32" else 0.15)


@pytest.mark.parametrize("kind", ["Q4_0", "BF16"])
def test_both_decoders_compute_with_the_same_weights(kind: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", CASES["llama"], make_model(CASES["llama"]), kind)
    assert _error(_logits(path, decoder="transformers"), _logits(path, decoder="native")) < 0.03


def test_a_directory_with_one_file_is_the_file(tmp_path: Path) -> None:
    case = CASES["llama"]
    path = write_model(tmp_path / "model.gguf", case, make_model(case))
    assert model_directory(str(tmp_path)) == path
    assert model_directory(str(path)) == path
    assert isinstance(load_model(_config(tmp_path))[0], NativeDecoder)
    shutil.copy(path, tmp_path / "other.gguf")
    with pytest.raises(ModelLoadError, match=r"it has 2 GGUF models; pass one of the files: model\.gguf, other\.gguf"):
        model_directory(str(tmp_path))


def test_memory_is_that_of_the_stored_weights(tmp_path: Path) -> None:
    for name in ("llama", "mixtral"):
        path = write_model(tmp_path / "model.gguf", CASES[name], make_model(CASES[name]), "Q8_0")
        with GgufFile.open(path) as file:
            assert 0.95 < weight_bytes(_config(path)) / file.num_bytes < 1.05


def test_a_tokenizer_beside_the_file_wins(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", CASES["llama"], make_model(CASES["llama"]))
    own = load_tokenizer(path)
    shutil.copy(model_directory("rtlang:tiny") / "tokenizer.json", tmp_path)
    beside = load_tokenizer(path)
    text = "The cat sat."
    assert own.decode(own.encode(text, is_start=False)) == beside.decode(beside.encode(text, is_start=False)) == text
    assert own.encode(text, is_start=False) != beside.encode(text, is_start=False)
    assert own.eos_token_ids == {2} <= beside.eos_token_ids
    assert own.num_ids == 372 <= beside.num_ids


def test_the_identity_is_that_of_all_that_is_read(tmp_path: Path) -> None:
    case = CASES["llama"]
    path = write_model(tmp_path / "model.gguf", case, make_model(case))
    first = model_identity(_config(path))
    assert first.startswith("model.gguf@")
    (tmp_path / "notes.txt").write_text("not read")
    assert model_identity(_config(path)) == first
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    second = model_identity(_config(path))
    write_model(path, case, make_model(case, initializer_range=0.02), "Q8_0")
    assert len({first, second, model_identity(_config(path))}) == 3


def test_noise_of_the_shapes_of_a_file_loads(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", CASES["qwen3"], make_model(CASES["qwen3"]), "Q8_0")
    assert load_model(_config(path, weights="dummy"))[1].num_layers == 2


def test_the_native_decoder_is_refused_for_other_models(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", CASES["stablelm"], make_model(CASES["stablelm"]))
    with pytest.raises(ConfigError, match="model_type 'stablelm' has no layer table"):
        load_model(_config(path, decoder="native"))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    case = CASES["llama"]
    path = write_model(tmp_path / "model.gguf", case, make_model(case))
    data = path.read_bytes()
    for name, content in (("empty", b""), ("text", b"hello"), ("cut", data[: len(data) // 2])):
        (tmp_path / f"{name}.gguf").write_bytes(content)
        with pytest.raises(ModelLoadError):
            load_model(_config(tmp_path / f"{name}.gguf"))
    with pytest.raises(ModelLoadError, match="no such directory or file"):
        load_model(_config(tmp_path / "missing.gguf"))


def test_progress_counts_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rtlang.model.loader._LONG_BYTES", 0)
    path = write_model(tmp_path / "model.gguf", CASES["llama"], make_model(CASES["llama"]), "Q8_0")
    with caplog.at_level(logging.INFO):
        load_model(_config(path))
    fractions = [each.fraction for each in caplog.records if hasattr(each, "fraction")]
    assert fractions == sorted(fractions)
    assert fractions[-1] > 0.9
