"""What loads, what is refused, and what the refusal says."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model import loader, system_resources
from rtlang.model.decoders.native_decoder import NativeDecoder, native_bytes
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.checkpoint_source import DummySource
from rtlang.model.loader import load_model, model_directory, pick_dtype, weight_bytes
from rtlang.model.loading.checkpoint_files import weight_files
from rtlang.model.loading.model_config import ModelConfig
from tests.support.models.model_steps import greedy_tokens
from tests.support.models.quantized_checkpoints import quantized_pair
from tests.support.models.tiny_models import make_checkpoint


def load(path: Path, **settings: Any) -> Any:
    return load_model(RuntimeConfig(**{"model": str(path), "dtype": "float32", **settings}))[0]


def shard(path: Path) -> dict[str, str]:
    """Split model.safetensors in three, with an index; returns the weight map."""
    tensors = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    names = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    weight_map = {name: names[index % 3] for index, name in enumerate(sorted(tensors))}
    for file_name in names:
        save_file({name: tensors[name] for name in tensors if weight_map[name] == file_name}, path / file_name)
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return weight_map


def edit_tensors(path: Path, **changes: torch.Tensor | None) -> None:
    tensors = load_file(path / "model.safetensors")
    for name, tensor in changes.items():
        full_name = name.replace("__", ".")
        if tensor is None:
            del tensors[full_name]
        else:
            tensors[full_name] = tensor
    save_file(tensors, path / "model.safetensors")


def test_auto_takes_native_where_it_is_exact_else_transformers(tmp_path: Path) -> None:
    assert isinstance(load(make_checkpoint(tmp_path / "llama", "llama")), NativeDecoder)
    assert isinstance(load(make_checkpoint(tmp_path / "gpt2", "gpt2")), TransformersDecoder)
    assert isinstance(load(tmp_path / "llama", decoder="transformers"), TransformersDecoder)
    with pytest.raises(ConfigError, match="has no layer table"):
        load(tmp_path / "gpt2", decoder="native")


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_shards_give_the_same_model_as_one_file(decoder: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    texts = []
    for _ in range(2):
        runner = HostRunner(RuntimeConfig(model=str(path), dtype="float32", decoder=decoder, num_pages=8))
        runner.load()
        texts.append(greedy_tokens(runner, [5, 6, 7], 12))
        if len(texts) == 1:
            shard(path)
    assert texts[0] == texts[1]


def test_missing_shards_are_named(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    shard(path)
    (path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelLoadError, match=r"1 of 3 shards are missing: model-00002-of-00003\.safetensors"):
        load(path)


def test_an_index_may_not_point_outside(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    index = {"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelLoadError, match="outside the directory"):
        weight_files(path)
    for damaged in ("{}", "[]", "[" * 200_000, '{"weight_map": 5}'):
        (path / "model.safetensors.index.json").write_text(damaged)
        with pytest.raises(ModelLoadError, match="cannot be read"):
            weight_files(path)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "x" * 300}}))
    with pytest.raises(ModelLoadError, match="1 of 1 shards are missing"):
        weight_files(path)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    for decoder in ("auto", "transformers"):
        with pytest.raises(ModelLoadError, match=r"pickled \(pytorch_model\.bin\)"):
            load(path, decoder=decoder)


def test_a_directory_without_weights_or_with_unclear_ones_is_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    source = path / "model.safetensors"
    source.rename(path / "a.safetensors")
    assert weight_files(path) == [path / "a.safetensors"]
    shutil.copy(path / "a.safetensors", path / "b.safetensors")
    with pytest.raises(ModelLoadError, match="2 safetensors files but no"):
        load(path)
    (path / "a.safetensors").unlink()
    (path / "b.safetensors").unlink()
    os.mkfifo(path / "model.safetensors")  # reading it would wait for ever
    with pytest.raises(ModelLoadError, match="no weights"):
        load(path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_missing_part_is_refused(name: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    (path / name).unlink()
    (path / "tokenizer_config.json").unlink()
    with pytest.raises(ModelLoadError, match=name.split(".")[0]):
        load(path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    (path / "model.safetensors").write_bytes(b"\x00" * 100)
    for decoder in ("auto", "transformers"):
        with pytest.raises(ModelLoadError, match="not a readable safetensors file"):
            load(path, decoder=decoder)


def test_tensors_that_are_missing_misshapen_or_unknown_are_named(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    name = "model__layers__1__mlp__up_proj__weight"
    edit_tensors(path, **{name: torch.zeros(3, 4)})
    with pytest.raises(ModelLoadError, match=r"layers\.1\.mlp\.up_proj\.weight has shape \[3, 4\].* \[96, 64\]"):
        load(path)
    edit_tensors(path, **{name: torch.zeros(96, 64, dtype=torch.int8)})
    with pytest.raises(ModelLoadError, match=r"up_proj\.weight is I8; only floats"):
        load(path)
    edit_tensors(path, **{name: None})
    with pytest.raises(ModelLoadError, match=r"do not contain tensor model\.layers\.1\.mlp\.up_proj\.weight"):
        load(path)
    edit_tensors(path, **{name: torch.zeros(96, 64), "model__layers__0__self_attn__q_proj__bias": torch.ones(64)})
    with pytest.raises(ModelLoadError, match=r"layers\.0\.self_attn\.q_proj\.bias is unexpected"):
        load(path)


def test_stock_models_without_all_their_tensors_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = make_checkpoint(tmp_path, "gpt2")
    weights = load_file(path / "model.safetensors")
    name = next(name for name in weights if name.endswith("1.mlp.c_fc.weight"))
    load(path)
    edit_tensors(path, extra__weight=torch.zeros(1))
    load(path)
    assert "1 tensors of" in caplog.text
    for dtype in (torch.int8, torch.bool, torch.complex64):
        edit_tensors(path, **{name: weights[name].to(dtype)})
        with pytest.raises(ModelLoadError, match=r"1\.mlp\.c_fc\.weight is [\w.]+; only floats are supported"):
            load(path)
    edit_tensors(path, **{name: None})
    with pytest.raises(
        ModelLoadError, match=r"lack 1 tensors that config.json implies, such as .*1\.mlp\.c_fc\.weight"
    ):
        load(path)
    save_file({f"other.{name}": tensor for name, tensor in weights.items()}, path / "model.safetensors")
    with pytest.raises(ModelLoadError, match=r"lack 2\d tensors that"):
        load(path)


@pytest.mark.parametrize("model", ["~nobody.of.that.name/x", "a" * 300 + "/b", "b" * 5000])
def test_a_name_that_no_directory_can_have_is_refused(model: str) -> None:
    with pytest.raises(ModelLoadError):
        weight_bytes(RuntimeConfig(model=model))


def test_unused_tensors_outside_the_layers_are_only_mentioned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = make_checkpoint(tmp_path, "llama")
    edit_tensors(path, extra__weight=torch.zeros(1), model__layers__0__self_attn__rotary_emb__inv_freq=torch.zeros(8))
    load(path)
    assert "1 tensors of" in caplog.text
    assert "extra.weight" in caplog.text


def test_code_of_the_checkpoint_is_never_run(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    config = json.loads((path / "config.json").read_text())
    config.update(
        model_type="homemade",
        architectures=["HomemadeForCausalLM"],
        auto_map={"AutoConfig": "code.HomemadeConfig", "AutoModelForCausalLM": "code.HomemadeForCausalLM"},
    )
    (path / "config.json").write_text(json.dumps(config))
    (path / "code.py").write_text(f"open({str(path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(ModelLoadError, match=r"homemade.*requires remote code, which is never run"):
        load(path)
    assert not (path / "ran").exists()


def test_a_model_that_does_not_fit_is_refused_with_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_resources, "free_bytes", lambda: 1000)
    path = make_checkpoint(tmp_path, "llama")
    for decoder in ("native", "transformers"):
        with pytest.raises(ModelLoadError, match=r"the weights need 3\d\d KiB of memory, but only 0.977 KiB is free"):
            load(path, decoder=decoder)


@pytest.mark.parametrize("weights", ["safetensors", "dummy"])
@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_the_bytes_needed_and_free_are_said_before_loading(
    decoder: str, weights: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_checkpoint(tmp_path, "llama")
    config = RuntimeConfig(model=str(path), dtype="bfloat16", decoder=decoder, weights=weights)
    size = sum(tensor.nbytes for tensor in load_file(path / "model.safetensors").values()) // 2
    assert weight_bytes(config) == pytest.approx(size, rel=0.01)
    monkeypatch.setattr(system_resources, "free_bytes", lambda: 3 << 30)
    with caplog.at_level("INFO"):
        load_model(config)
    first = caplog.messages[0]
    needed = system_resources.show_bytes(weight_bytes(config))
    assert f"{needed} of weights, 3 GiB of memory free" in first
    assert "only" not in first
    assert "loaded" in caplog.messages[-1]


@pytest.mark.parametrize("decoder", ["native", "transformers"])
@pytest.mark.parametrize("scheme", ["int4", "fp8", "gptq", "nf4"])
def test_the_bytes_needed_are_those_of_the_codes(scheme: str, decoder: str, tmp_path: Path) -> None:
    path, twin = quantized_pair(tmp_path, scheme)
    stored = sum(tensor.nbytes for tensor in load_file(path / "model.safetensors").values())
    whole = weight_bytes(RuntimeConfig(model=str(twin), dtype="float32", decoder=decoder))
    expected = whole if scheme == "nf4" else stored
    assert weight_bytes(RuntimeConfig(model=str(path), dtype="float32", decoder=decoder)) == pytest.approx(
        expected, rel=0.01
    )


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_long_loads_of_shards_say_how_far_they_are(
    decoder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_checkpoint(tmp_path, "llama")
    shard(path)
    load(path, decoder=decoder)
    with caplog.at_level("INFO"):
        load(path, decoder=decoder)
        assert not [record for record in caplog.records if hasattr(record, "fraction")]  # it is small
        monkeypatch.setattr(loader, "_LONG_BYTES", 0)
        load(path, decoder=decoder)
    fractions = [record.fraction for record in caplog.records if hasattr(record, "fraction")]
    assert len(fractions) >= 3
    assert fractions == sorted(set(fractions))
    assert fractions[-1] == pytest.approx(1.0, abs=0.06)


def test_bytes_of_a_native_model_are_those_of_its_tensors(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    tensors = load_file(path / "model.safetensors")
    matrices = sum(tensor.numel() for tensor in tensors.values() if tensor.ndim == 2)
    assert native_bytes(ModelConfig.from_pretrained(path), torch.float32) == 4 * matrices


def test_dummy_weights_need_no_weight_files_and_repeat_with_their_seed(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "qwen3")
    (path / "model.safetensors").unlink()
    for dtype in (torch.float32, torch.bfloat16):
        first, again, other = (DummySource(seed, dtype).tensor("x.weight", (64, 50)) for seed in (3, 3, 4))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert first.dtype == dtype
        assert float(first.float().std()) == pytest.approx(0.02, rel=0.05)
    assert bool((DummySource(0, torch.float32).tensor("a.norm.weight", (5,)) == 1).all())
    decoder = load(path, weights="dummy", dtype="bfloat16")
    assert isinstance(decoder, NativeDecoder)
    assert decoder.dtype is torch.bfloat16


def test_dummy_weights_have_the_format_of_the_configuration(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = make_checkpoint(tmp_path, "llama", num_hidden_layers=1)
    content = json.loads((path / "config.json").read_text())
    for config, is_noise in (({"quant_method": "fp8"}, True), ({"quant_method": "mxfp4"}, False)):
        (path / "config.json").write_text(json.dumps({**content, "quantization_config": config}))
        caplog.clear()
        decoder = load(path, weights="dummy")
        assert all(linear.is_low_bit == is_noise for linear in decoder._layers[0].linears)
        assert any("dummy weights of this format are floats" in message for message in caplog.messages) != is_noise
    needed = weight_bytes(RuntimeConfig(model=str(path), weights="dummy", dtype="float32"))
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": {"quant_method": "fp8"}}))
    assert weight_bytes(RuntimeConfig(model=str(path), weights="dummy", dtype="float32")) == needed // 4


def test_dtype_auto_follows_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_has_native_bfloat16", lambda: True)
    assert pick_dtype("auto") is torch.bfloat16
    monkeypatch.setattr(loader, "_has_native_bfloat16", lambda: False)
    assert pick_dtype("auto") is torch.float32
    assert pick_dtype("bfloat16") is torch.bfloat16


@pytest.mark.parametrize(
    ("family", "decoder", "dtype"),
    [
        ("llama", "native", "float32"),
        ("llama", "native", "bfloat16"),
        ("qwen3", "native", "bfloat16"),
        ("llama", "transformers", "float32"),
        ("mixtral", "transformers", "bfloat16"),
        ("deepseek_v3", "transformers", "bfloat16"),
    ],
)
def test_a_file_overwritten_in_place_changes_nothing(family: str, decoder: str, dtype: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, family)
    if dtype == "bfloat16":  # so that tensors need no conversion, which would copy them
        weights = path / "model.safetensors"
        tensors = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(weights).items()}
        save_file(tensors, weights, metadata={"format": "pt"})
    runner = HostRunner(RuntimeConfig(model=str(path), dtype=dtype, decoder=decoder, num_pages=16, page_size=4))
    runner.load()
    expected = greedy_tokens(runner, [5, 6, 7], 12)
    with (path / "model.safetensors").open("r+b") as file:
        file.truncate(16)  # a bus error for whoever still reads the mapped rest
    assert greedy_tokens(runner, [5, 6, 7], 12) == expected
    if Path("/proc/self/maps").is_file():
        gc.collect()
        assert str(path) not in Path("/proc/self/maps").read_text()


def test_the_default_model_is_the_embedded_one_and_native() -> None:
    directory = model_directory(EMBEDDED_MODEL)
    assert directory.parts[-2:] == ("rtlang", "tiny")
    decoder, config, tokenizer = load_model(RuntimeConfig())
    assert isinstance(decoder, NativeDecoder)
    assert decoder.dtype is pick_dtype("auto")
    assert config == ModelConfig.from_pretrained(directory)
    assert tokenizer.vocab_size <= config.vocab_size


def test_a_native_model_loads_without_transformers(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    code = (
        "import sys; from rtlang.contract.config import RuntimeConfig; from rtlang.model.host_runner import HostRunner;"
        f"HostRunner(RuntimeConfig(model={str(path)!r}, num_pages=4)).load();"
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path), "HOME": str(path)})
