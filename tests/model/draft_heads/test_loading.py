"""`draft_model` names a head or a model; what cannot be a head of the model is refused with the tensor or the setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.engine.drafts.defaults import draft_runner_for, load_draft_model
from rtlang.model.draft_heads.loading import load_draft_head
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import load_model
from rtlang.model.scripted.scripted_runner import ScriptedRunner
from tests.support.models.draft_heads import EAGLE, EAGLE_3, write_head
from tests.support.models.tiny_models import make_checkpoint, make_model

LAYERS = {"num_hidden_layers": 8}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("target"), **LAYERS)


def load(target: Path, head: Path | str, **settings: Any) -> Any:
    config = RuntimeConfig(model=str(target), draft_model=str(head), dtype="float32", num_threads=1, **settings)
    with torch.inference_mode():
        decoder, model_config, _ = load_model(config)
        return load_draft_head(config, decoder, model_config)


def test_a_model_is_left_to_the_draft_runner(target: Path) -> None:
    assert load(target, target) is None
    assert load(target, "rtlang:tiny") is None


def test_an_embedding_that_is_a_copy_takes_no_memory(target: Path, tmp_path: Path) -> None:
    path = write_head(tmp_path, EAGLE, make_model(**LAYERS))
    head = load(target, path)
    assert head._embed == head._decoder.embed
    tensors = load_file(path / "model.safetensors")
    tensors["embed_tokens.weight"] += 1
    save_file(tensors, path / "model.safetensors")
    own = load(target, path)
    assert own._embed != own._decoder.embed
    assert torch.equal(own._embed(torch.tensor([3])), tensors["embed_tokens.weight"][3:4])


@pytest.mark.parametrize(
    ("layout", "change", "message"),
    [
        (EAGLE, {"fc.weight": None}, "do not contain tensor"),
        (EAGLE, {"fc.weight": torch.zeros(64, 192)}, r"tensor fc.weight has shape \[64, 192\], .*\[64, 128\]"),
        (EAGLE_3, {"lm_head.weight": None}, "no lm_head.weight for its 200 tokens"),
        (EAGLE_3, {"d2t": torch.zeros(100, dtype=torch.int64)}, "tensor d2t: expected 200 different tokens of 259"),
        (EAGLE_3, {"d2t": torch.full((200,), 100)}, "tensor d2t: expected 200 different tokens of 259"),
        (EAGLE_3, {"d2t": torch.zeros(200, 1, dtype=torch.int64)}, "tensor d2t: expected 200 different tokens of 259"),
        (EAGLE_3, {"d2t": torch.tensor(5)}, "tensor d2t: expected 200 different tokens of 259"),
        (EAGLE_3, {"d2t": torch.full((200,), 0.5)}, "tensor d2t: expected 200 different tokens of 259"),
    ],
)
def test_refusals_name_the_tensor(
    layout: str, change: dict[str, Any], message: str, target: Path, tmp_path: Path
) -> None:
    path = write_head(tmp_path, layout, make_model(**LAYERS))
    tensors = load_file(path / "model.safetensors") | change
    save_file({name: each for name, each in tensors.items() if each is not None}, path / "model.safetensors")
    entries = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**entries, "architectures": ["LlamaForCausalLMEagle"]}))
    with pytest.raises(ModelLoadError, match=message):
        load(target, path)


def test_refusals_name_the_setting(target: Path, tmp_path: Path) -> None:
    path = write_head(tmp_path, EAGLE, make_model(**LAYERS))
    with pytest.raises(
        ConfigError, match=r"draft_model.*require a model of the native decoder: decoder is transformers"
    ):
        load(target, path, decoder="transformers")
    with pytest.raises(ModelLoadError, match="has no multi-token prediction layer"):
        load(target, "mtp")
    assert load(target, path, speculation="on") is not None


def test_a_head_that_cannot_be_used_is_refused_or_reported(
    target: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = str(write_head(tmp_path / "head", EAGLE, make_model(**LAYERS)))
    divided = RuntimeConfig(model=str(target), draft_model=head, tensor_parallel=2)
    with pytest.raises(ConfigError, match=r"draft_model = .*head.*: draft heads require tensor_parallel 1"):
        draft_runner_for(divided, HostRunner(divided))
    script = RuntimeConfig(model="script:replies.json", draft_model=head)
    with pytest.raises(ConfigError, match=r"draft_model = .*head.*: draft heads require a model with weights"):
        draft_runner_for(script, ScriptedRunner(script))
    config = RuntimeConfig(
        model=str(target), draft_model=head, decoder="transformers", dtype="float32", num_threads=1, num_pages=8
    )
    runner = HostRunner(config)
    assert draft_runner_for(config, runner) is None
    runner.load()  # its texts could change by rounding, so it has no drafts
    assert load_draft_model(config, runner, None) is None
    assert "draft_model is not used" in caplog.text
    runner.close()
