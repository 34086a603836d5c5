"""Layers with experts on the native decoder: routing in float64, bits that depend on no other token, one expert in memory at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.native.layer_loading import LayerLoader
from rtlang.model.decoders.native_decoder import NativeDecoder, native_bytes
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.gpu.accelerator import InterpretedAccelerator
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.checkpoint_source import DummySource
from rtlang.model.layers.linear import Linear
from rtlang.model.loader import load_model
from rtlang.model.loading.layer_table import ExpertsConfig
from rtlang.model.loading.model_config import ModelConfig
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.model_steps import Pages, TrackedSequence, all_logits, next_row, ragged_logits
from tests.support.models.quantized_checkpoints import gpt_oss_pair, quantized_pair
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint, random_model, save_checkpoint

PAGE_SIZE = 4
LONG_SCHEMES = ("int4", "awq", "fp8", "mxfp4", "nvfp4")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def stock(model_type: str) -> Any:
    (family,) = (each for each in FAMILIES if each.model_type == model_type)
    return random_model(make_config(family))


def checkpoint(path: Path, model_type: str) -> Path:
    return save_checkpoint(stock(model_type), path)


def settings(path: Path, **changes: Any) -> RuntimeConfig:
    given = {"dtype": "float32", "num_pages": 64, "page_size": PAGE_SIZE, "num_threads": 1}
    return RuntimeConfig(model=str(path), **given | changes)


def load(path: Path, **changes: Any) -> HostRunner:
    runner = HostRunner(settings(path, **changes))
    runner.load()
    return runner


@pytest.mark.parametrize(
    ("model_type", "dtype"), [("mixtral", "float32"), ("qwen2_moe", "bfloat16"), ("gpt_oss", "bfloat16")]
)
def test_a_token_has_the_same_bits_in_every_step(model_type: str, dtype: str, tmp_path: Path) -> None:
    runner = load(checkpoint(tmp_path, model_type), dtype=dtype)
    assert isinstance(runner.decoder, NativeDecoder)
    assert runner.is_row_invariant
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        alone = next_row(TrackedSequence(token_ids), len(token_ids), Pages(64, seed=9), PAGE_SIZE)
        (whole,) = all_logits(runner, [alone])
        assert torch.equal(whole[-len(logits) :], logits)


@pytest.mark.parametrize("model_type", ["mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss"])
def test_bfloat16_is_as_near_to_float32_as_the_transformers_decoder(model_type: str, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, model_type)
    exact = ragged_logits(load(path), VOCAB_SIZE)
    errors = [
        torch.stack([(a - b).norm() / b.norm() for (_, a), (_, b) in zip(found, exact, strict=True)]).median()
        for found in (
            ragged_logits(load(path, dtype="bfloat16", decoder=decoder), VOCAB_SIZE)
            for decoder in ("native", "transformers")
        )
    ]
    assert errors[0] <= 1.5 * errors[1]


def test_an_expert_is_packed_before_the_next_one_is_read(tmp_path: Path) -> None:
    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path, "mixtral"))
    events: list[str] = []

    class Source(DummySource):
        def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
            events.append(name)
            return super().tensor(name, shape)

    def make(parts: Any, bias: Any = None, **options: Any) -> Linear:
        events.append(f"packed {len(parts)}")
        return Linear(parts, bias, **options)

    own = config.native.layers[0].feed_forward  # type: ignore[union-attr]
    assert isinstance(own, ExpertsConfig)
    LayerLoader(config, Source(0, torch.float32), make).experts("m.", own)
    expected = []
    for expert in range(own.num_experts):
        names = [f"m.experts.{expert}.{name}.weight" for name in ("w1", "w3", "w2")]
        expected += [*names[:2], "packed 2", names[2], "packed 1"]
    assert events == [*expected, "m.gate.weight", "packed 1"]


@pytest.mark.parametrize("model_type", ["mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss"])
def test_bytes_are_the_matrices_of_the_stock_model(model_type: str, tmp_path: Path) -> None:
    model = stock(model_type)
    config = ModelConfig.from_pretrained(save_checkpoint(model, tmp_path))
    matrices = [each for name, each in model.named_parameters() if each.ndim > 1 and not name.endswith("_bias")]
    assert native_bytes(config, torch.float32) == sum(each.nbytes for each in matrices)


def test_several_processes_are_left_to_the_transformers_decoder(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "mixtral")
    with pytest.raises(ConfigError, match=r"decoder = 'native': .*for one process"):
        load_model(settings(path, decoder="native", tensor_parallel=2))
    decoder, *_ = load_model(settings(path, decoder="transformers"))
    assert isinstance(decoder, TransformersDecoder)


@pytest.mark.parametrize(
    "scheme", ["gpt_oss", "gptq in order", *(pytest.param(each, marks=pytest.mark.long) for each in LONG_SCHEMES)]
)
def test_a_device_computes_experts_from_the_codes_of_published_layouts(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    pytest.importorskip("triton")
    from rtlang_kernels.triton.experts.experts import GpuExperts

    path, twin = gpt_oss_pair(tmp_path) if scheme == "gpt_oss" else quantized_pair(tmp_path, scheme, "mixtral")
    stock = transformers.AutoModelForCausalLM.from_pretrained(twin, dtype=torch.float32)
    token_ids = [5, 9, 17, 3, 21, 8]
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    accelerator = InterpretedAccelerator()
    with torch.inference_mode():
        decoder, *_ = load_model(settings(path, device="interpreter", num_pages=None), accelerator)
        assert isinstance(decoder, NativeDecoder)
        assert all(isinstance(each.feed_forward._experts, GpuExperts) for each in decoder._layers)  # type: ignore[union-attr]
        kv = PagedKV(decoder.geometries, 4, 16, decoder.dtype, accelerator.device, decoder.dtype)
        row = Row(0, token_ids, 0, (0,), 0, True, SamplingParams())
        found = decoder.project(decoder.forward(StepAttention(Batch.from_step(Step(0, (row,)), 16), kv)))
        expected = stock(torch.tensor([token_ids])).logits[0, -1:]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
