"""Recurrent modules of whole models over state slots."""

from __future__ import annotations

import dataclasses
import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.decoders.recurrent.mixers import Mixers, in_dtype, recurrent_modules
from rtlang.model.decoders.recurrent.primitives import RecurrentStep
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import StepAttention
from rtlang.model.layers.low_bit_modules import LowBitModule
from rtlang.model.layers.states import StateShape
from rtlang.model.loader import load_model
from rtlang.model.quantization.comparison import text_logits
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from tests.support.long_tests import sized
from tests.support.models.families import FAMILIES, Family, make_config
from tests.support.models.quantized_checkpoints import published_float8, quantize_checkpoint
from tests.support.models.state_check import state_errors
from tests.support.models.tiny_models import VOCAB_SIZE, make_model, random_model, save_checkpoint

BY_TYPE = {family.model_type: family for family in FAMILIES}
# a family for each way to compute a state
KINDS = "qwen3_next", "falcon_h1", "jamba", "lfm2", "minimax", "kimi_linear"
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


def checkpoint(model_type: str, path: Path) -> Path:
    return save_checkpoint(random_model(make_config(BY_TYPE[model_type])), path)


def load(path: Path, dtype: torch.dtype = torch.float32, **options: Any) -> TransformersDecoder:
    return TransformersDecoder.load(path, dtype, dummy_seed=None, **options)


@pytest.mark.parametrize("model_type", KINDS)
def test_any_schedule_of_chunks_marks_and_kept_states_gives_the_stock_models_logits(
    model_type: str, tmp_path: Path
) -> None:
    model = random_model(make_config(BY_TYPE[model_type]))
    decoder = load(save_checkpoint(model, tmp_path))
    for seed in range(1, 1 + sized(2, usual=1)):  # seed 0 is that of every family in tests/system/test_families.py
        assert max(state_errors(decoder, model, VOCAB_SIZE, seed=seed)) < 1e-4


@pytest.mark.parametrize("model_type", KINDS)
def test_recurrent_models_load_in_bfloat16(model_type: str, tmp_path: Path) -> None:
    decoder = load(checkpoint(model_type, tmp_path), torch.bfloat16)
    kinds = {shape.name.rstrip("0123456789"): shape.dtype for shape in decoder.state_shapes}
    assert kinds == {
        name: dtype for name, dtype in (("conv", torch.bfloat16), ("recurrent", torch.float32)) if name in kinds
    }


def _early_marks(plan: StatePlan) -> StatePlan:
    return _with_tensors(dataclasses.replace(plan, mark_ends=(plan.mark_ends - 1).clip(1)))


def _no_sources(plan: StatePlan) -> StatePlan:
    return _with_tensors(dataclasses.replace(plan, sources=np.full_like(plan.sources, NO_SLOT)))


def _with_tensors(plan: StatePlan) -> StatePlan:
    arrays = plan.cu_seqlens, plan.sources, plan.cu_marks, plan.mark_ends, plan.mark_slots
    return dataclasses.replace(plan, tensors=tuple(map(torch.from_numpy, arrays)))


@pytest.mark.parametrize("change", [_early_marks, _no_sources])
@pytest.mark.parametrize("model_type", ["qwen3_next", "mamba", "lfm2"])
def test_the_self_check_sees_states_that_are_wrong(
    model_type: str, change: Callable[[StatePlan], StatePlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint(model_type, tmp_path)
    begin = TransformersDecoder._begin

    def wrong(self: TransformersDecoder, attention: StepAttention) -> None:
        begin(self, attention)
        assert attention.states is not None
        self._mixers.step.states = dataclasses.replace(attention.states, plan=change(attention.states.plan))

    monkeypatch.setattr(TransformersDecoder, "_begin", wrong)
    with pytest.raises(ModelLoadError, match="differ from the stock model"):
        load(path)


def test_stock_models_of_the_same_process_stay_as_they_are(tmp_path: Path) -> None:
    model = random_model(make_config(BY_TYPE["qwen3_next"]))
    ids = torch.arange(5, 30)[None]
    with torch.no_grad():
        before = model(ids).logits
        decoder = load(save_checkpoint(model, tmp_path))
        assert torch.equal(model(ids).logits, before)
        again = load(save_checkpoint(model, tmp_path / "again"))
    assert decoder.state_shapes == again.state_shapes


def test_nothing_of_a_decoder_stays(tmp_path: Path) -> None:
    decoder = load(checkpoint("mamba", tmp_path))
    kept = weakref.ref(decoder._mixers.step)
    private = weakref.ref(type(recurrent_modules(decoder.model)[0]))
    del decoder
    gc.collect()
    assert kept() is None
    assert private() is None


def test_modules_without_an_equal_function_are_named() -> None:
    found = Mixers(random_model(make_config(BY_TYPE["zaya"]))).obstacle()
    assert found is not None
    assert "keeps inputs for something else than a short convolution" in found
    assert not Mixers(make_model("llama"))


def test_linear_layers_whose_weights_code_reads_are_not_packed() -> None:
    model = make_model("mamba")
    kept = Mixers(model).unpackable()
    assert [module for module in kept if module is model.backbone.layers[0].mixer.dt_proj]
    assert not [module for module in kept if module is model.backbone.layers[0].mixer.in_proj]


def test_quantized_models_give_the_logits_of_their_floats(tmp_path: Path) -> None:
    folder = save_checkpoint(make_model("mamba", time_step_rank=32), tmp_path / "codes")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "weight_block_size": [128, 128],
    }
    (folder / "config.json").write_text(json.dumps(config))
    rounded: list[str] = []

    def rounding(name: str, weight: torch.Tensor) -> Any:
        rounded.append(name)
        return published_float8(name, weight)

    twin = quantize_checkpoint(folder, tmp_path / "floats", rounding)
    assert any("dt_proj" in name for name in rounded)
    token_ids = [(7 * place * place + 3) % 250 for place in range(25)]
    found, expected = (text_logits(str(each), token_ids, dtype="float32") for each in (folder, twin))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    decoder = load_model(RuntimeConfig(model=str(folder), dtype="float32"))[0]
    assert isinstance(decoder, TransformersDecoder)
    mixer = decoder.model.backbone.layers[0].mixer
    assert isinstance(mixer.in_proj, LowBitModule)
    assert type(mixer.dt_proj) is torch.nn.Linear


def test_only_inputs_of_convolutions_change_their_dtype() -> None:
    shapes = StateShape(0, "conv0", (2, 3), torch.bfloat16), StateShape(0, "recurrent0", (2, 2), torch.float32)
    assert [shape.dtype for shape in in_dtype(shapes, torch.float16)] == [torch.float16, torch.float32]


def test_settings_that_recurrent_models_do_not_have_are_refused(tmp_path: Path) -> None:
    path = checkpoint("lfm2", tmp_path)
    settings = {"model": str(path), "dtype": "float32", "num_pages": 32}
    with pytest.raises(ConfigError, match=r"tensor_parallel.*'lfm2'.*recurrent"):
        HostRunner(RuntimeConfig(**settings, tensor_parallel=2)).load()
    with pytest.raises(ConfigError, match=r"cache_bytes.*a state takes .* bytes"):
        HostRunner(RuntimeConfig(**{**settings, "num_pages": None}, cache_bytes=600)).load()


def test_a_function_outside_of_its_module_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="outside of its module"):
        RecurrentStep().take("conv", (1,), torch.float32)


def test_every_recurrent_family_of_the_table_is_found() -> None:
    for family in FAMILIES:
        if family.has_states:
            with torch.device("meta"):
                model = _causal(family)
            assert recurrent_modules(model), family.model_type
            assert Mixers(model).obstacle() is None


def _causal(family: Family) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(make_config(family))
