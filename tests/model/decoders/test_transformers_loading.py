"""What of a checkpoint is refused by its configuration, how many bytes it implies, and how far loading is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.decoders.transformers_loading import refuse_known, transformers_bytes
from rtlang.model.host_runner import HostRunner
from tests.support.models.tiny_models import make_checkpoint, make_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def load_runner(path: Path, max_model_len: int | None = None) -> HostRunner:
    runner = HostRunner(
        RuntimeConfig(
            model=str(path), dtype="float32", decoder="transformers", num_pages=64, max_model_len=max_model_len
        )
    )
    runner.load()
    return runner


def test_layers_of_unknown_kinds_are_refused_by_the_configuration() -> None:
    config = make_model("gemma3").config
    refuse_known(config, "somewhere", 64)
    config.layer_types = ["full_attention", "compressed_sparse_attention"]
    with pytest.raises(
        ModelLoadError, match=r"'gemma3_text'.*'compressed_sparse_attention' are neither recurrent nor full"
    ):
        refuse_known(config, "somewhere", 64)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_rotary_embeddings_that_depend_on_the_batch_are_refused_beyond_their_length(kind: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama", max_position_embeddings=256)
    config = json.loads((path / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": kind, "rope_theta": 1e4, "factor": 2.0}
    config["rope_parameters"]["original_max_position_embeddings"] = 64
    if kind == "longrope":
        config["rope_parameters"].update(long_factor=[2.0] * 8, short_factor=[1.0] * 8)
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelLoadError, match=f"{kind} rotary embedding.*max_model_len to 64"):
        load_runner(path)
    assert load_runner(path, max_model_len=64).max_model_len == 64


def test_quantized_weights_and_unknown_types_are_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    config = json.loads((path / "config.json").read_text())
    unknown = {**config, "model_type": "nosuchmodel", "architectures": ["NoSuchModelForCausalLM"]}
    (path / "config.json").write_text(json.dumps(unknown))
    with pytest.raises(ModelLoadError, match="nosuchmodel"):
        load_runner(path)
    quantized = {**config, "quantization_config": {"quant_method": "hqq", "bits": 4}}
    (path / "config.json").write_text(json.dumps(quantized))
    with pytest.raises(ModelLoadError, match="quantized"):
        load_runner(path)


def test_whatever_the_code_of_a_model_raises_becomes_a_refusal_by_name(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    config = json.loads((path / "config.json").read_text())
    reformer = {"model_type": "reformer", "architectures": ["ReformerModelWithLMHead"], "num_hidden_layers": 2}
    sizes = {name: config[name] for name in ("vocab_size", "hidden_size", "num_attention_heads")}
    (path / "config.json").write_text(
        json.dumps({**sizes, **reformer, "is_decoder": False})
    )  # an assertion of its code
    with pytest.raises(ModelLoadError, match=r"cannot load model type 'reformer'.*is_decoder"):
        load_runner(path)


@pytest.mark.parametrize("family", ["gemma2", "mixtral"])
def test_bytes_are_those_of_the_parameters(family: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, family)
    num_parameters = sum(parameter.numel() for parameter in make_model(family).parameters())
    assert transformers_bytes(path, torch.bfloat16) == 2 * num_parameters
    assert transformers_bytes(path, torch.float32) == 4 * num_parameters


def test_progress_rises_to_one(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "mixtral")
    seen: list[float] = []
    TransformersDecoder.load(path, torch.float32, dummy_seed=None, on_progress=seen.append)
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
