"""Models with gated delta layers on the native decoder, against transformers."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.native.delta_part import state_shapes
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.states import StateMemory, StepStates
from rtlang.model.loader import load_model
from rtlang.model.quantization.comparison import text_logits
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.quantized_checkpoints import published_float8, quantize_checkpoint
from tests.support.models.state_check import state_errors
from tests.support.models.tiny_models import VOCAB_SIZE, random_model, save_checkpoint

BY_TYPE = {family.model_type: family for family in FAMILIES}
KINDS = "qwen3_5_text", "qwen3_next", "qwen3_5_moe_text"
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


def model_of(model_type: str, **changes: Any) -> Any:
    config = make_config(BY_TYPE[model_type])
    for name, value in changes.items():
        setattr(config, name, value)
    return random_model(config)


def load(path: Path, dtype: str = "float32") -> NativeDecoder:
    decoder = load_model(RuntimeConfig(model=str(path), dtype=dtype))[0]
    assert isinstance(decoder, NativeDecoder)
    return decoder


@pytest.mark.parametrize("model_type", KINDS)
def test_any_schedule_of_chunks_marks_and_kept_states_gives_the_stock_models_logits(
    model_type: str, tmp_path: Path
) -> None:
    model = model_of(model_type)
    decoder = load(save_checkpoint(model, tmp_path))
    assert max(state_errors(decoder, model, VOCAB_SIZE, seed=1)) < 1e-4
    stock = TransformersDecoder.load(tmp_path, torch.float32, dummy_seed=None)
    assert decoder.state_shapes == stock.state_shapes
    assert decoder.geometries == stock.geometries


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_bias": True},
        {"layer_types": ["full_attention", "linear_attention"], "tie_word_embeddings": True},
        {"linear_num_key_heads": 4, "linear_conv_kernel_dim": 3, "rms_norm_eps": 0.1},
    ],
)
def test_entries_that_change_results(changes: dict[str, Any], tmp_path: Path) -> None:
    model = model_of("qwen3_5_text", **changes)
    decoder = load(save_checkpoint(model, tmp_path))
    assert max(state_errors(decoder, model, VOCAB_SIZE, seed=2)) < 1e-4


def logits_in_steps(decoder: NativeDecoder, token_ids: list[int], cuts: tuple[int, ...]) -> Tensor:
    """The logits of a sequence whose rows begin at `cuts`, each beside a row of another sequence."""
    page_size, pages = 4, range(-(-len(token_ids) // 4))
    kv = PagedKV(decoder.geometries, 2 * len(pages), page_size, decoder.dtype)
    memory = StateMemory(decoder.state_shapes, 2)
    found = []
    for start, stop in pairwise(cuts):
        states = [
            RowStates(None, ((3, 1),)),
            RowStates(0 if start else None, ((stop - start, 0),)),
        ]
        parts = [(list(range(3)), 0), (token_ids[start:stop], start)]
        rows = [
            Row(
                i,
                tokens,
                first,
                tuple(page + (1 - i) * len(pages) for page in pages),
                0,
                False,
                SamplingParams(),
                score_token_ids=tokens,
                states=states[i],
            )
            for i, (tokens, first) in enumerate(parts)
        ]
        batch = Batch.from_step(Step(0, tuple(rows)), page_size)
        assert batch.states is not None
        step = StepAttention(batch, kv, states=StepStates(memory, batch.states))
        with torch.inference_mode():
            found.append(decoder.project(decoder.forward(step))[3:])
    return torch.cat(found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", KINDS[:2])
def test_chunks_change_no_bit(model_type: str, dtype: str, tmp_path: Path) -> None:
    decoder = load(save_checkpoint(model_of(model_type), tmp_path), dtype)
    assert decoder.is_row_invariant
    tokens = [(7 * place * place + 3) % VOCAB_SIZE for place in range(29)]
    whole = logits_in_steps(decoder, tokens, (0, 29))
    assert torch.equal(logits_in_steps(decoder, tokens, (0, 1, 2, 11, 28, 29)), whole)
    assert bool(whole.isfinite().all())


@pytest.mark.parametrize(("dtype", "threads"), [("float32", 1), ("bfloat16", 3)])
def test_a_fused_step_has_the_bits_of_separate_layers(
    dtype: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
    model = model_of("qwen3_5_text", num_hidden_layers=4, layer_types=kinds, linear_num_key_heads=4)
    decoder = load(save_checkpoint(model, tmp_path), dtype)
    assert decoder._fused is not None
    monkeypatch.setattr(type(decoder._fused), "_num_threads", lambda *_: threads)
    tokens, cuts = [(5 * place * place + 1) % VOCAB_SIZE for place in range(90)], (0, 1, 2, 75, 90)
    fused = logits_in_steps(decoder, tokens, cuts), logits_in_steps(decoder, tokens, cuts)
    decoder._fused = None
    separate = logits_in_steps(decoder, tokens, cuts)
    assert bool(separate.isfinite().all())
    assert all(torch.equal(each, separate) for each in fused)


def test_experts_in_two_tensors_are_those_of_one_each(tmp_path: Path) -> None:
    model = model_of("qwen3_5_moe_text")
    path = save_checkpoint(model, tmp_path)
    tensors = load_file(path / "model.safetensors")
    joined: dict[str, Tensor] = {}
    for layer in range(2):
        prefix = f"model.layers.{layer}.mlp.experts."
        kept = {name: tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
        assert len(kept) == 12
        ups = [
            torch.cat([kept[f"{prefix}{i}.gate_proj.weight"], kept[f"{prefix}{i}.up_proj.weight"]]) for i in range(4)
        ]
        joined[f"{prefix}gate_up_proj"] = torch.stack(ups)
        joined[f"{prefix}down_proj"] = torch.stack([kept[f"{prefix}{i}.down_proj.weight"] for i in range(4)])
    save_file({**tensors, **joined}, path / "model.safetensors", {"format": "pt"})
    assert max(state_errors(load(path), model, VOCAB_SIZE, seed=3)) < 1e-4


@pytest.mark.parametrize("model_type", KINDS[:2])
def test_quantized_models_give_the_logits_of_their_floats(model_type: str, tmp_path: Path) -> None:
    folder = save_checkpoint(model_of(model_type, num_experts=2), tmp_path / "codes")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "weight_block_size": [128, 128],
    }
    (folder / "config.json").write_text(json.dumps(config))
    rounded: list[str] = []

    def rounding(name: str, weight: Tensor) -> Any:
        if not re.search(r"(self_attn|linear_attn)\.\w+_proj\w*\.weight$", name) or "in_proj_b" in name:
            return None
        rounded.append(name)
        return published_float8(name, weight)

    twin = quantize_checkpoint(folder, tmp_path / "floats", rounding)
    assert any("in_proj_qkv" in name for name in rounded)
    assert any("q_proj" in name for name in rounded)
    assert isinstance(load_model(RuntimeConfig(model=str(folder), dtype="float32"))[0], NativeDecoder)
    token_ids = [(7 * place * place + 3) % 250 for place in range(25)]
    found, expected = (text_logits(str(each), token_ids, dtype="float32") for each in (folder, twin))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_states_are_numbered_among_the_recurrent_layers(tmp_path: Path) -> None:
    kinds = ["linear_attention", "full_attention", "linear_attention"]
    decoder = load(
        save_checkpoint(model_of("qwen3_5_text", num_hidden_layers=3, layer_types=kinds), tmp_path), "bfloat16"
    )
    deltas = decoder.native.deltas
    assert decoder.state_shapes == state_shapes(deltas, torch.bfloat16)
    assert [(shape.layer, shape.name, shape.dtype) for shape in decoder.state_shapes] == [
        (layer, name, dtype)
        for layer in range(2)
        for name, dtype in (("conv0", torch.bfloat16), ("recurrent0", torch.float32))
    ]
