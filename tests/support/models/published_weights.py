"""Tiny checkpoints whose weights are stored as those of well-known published models: number formats, sizes of groups, names, config.json.

    TRITON_INTERPRET=1 RTLANG_KERNELS=triton python -m tests.support.models.published_weights

loads each of them on a device (triton's interpreter; natively with RTLANG_TEST_DEVICE=cuda and without the other two), and prints how far
its logits are from those of `transformers` with the same weights as floats, and the bytes on the device per byte of the file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.decoders.native.rotations import Rotations
from rtlang.model.device_runner import DeviceRunner
from tests.support.models import quantized_layouts
from tests.support.models.families import Family, make_config
from tests.support.models.quantized_checkpoints import (
    Rounding,
    of_layers,
    packed_int4,
    published_float8,
    published_mxfp4,
    quantize_checkpoint,
)
from tests.support.models.quantized_layouts import multiplied_out
from tests.support.models.tiny_models import random_model, save_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
_GROUP = 128
_PROMPTS = [(7 * i) % 250 for i in range(9)], [5, 77, 30]
_NEXT = 9


def _float8(weight: Tensor, scales: Tensor, **others: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    codes = (weight / scales).clamp(-448, 448).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale": scales, **others}, codes.double() * scales.double()


def _of_channels(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """bfloat16 scales [out, 1]; those of inputs are found at run time."""
    return _float8(weight, (weight.abs().amax(1, keepdim=True) / 448).bfloat16())


def _of_tensors(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """One scale for the weights, and one for inputs."""
    return _float8(weight, weight.abs().amax()[None] / 448, input_scale=torch.tensor([0.02]))


def _zero_points(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Codes uint8 [out, in], float16 scales and zero points uint8 [out, groups]."""
    grouped = weight.view(len(weight), -1, _GROUP)
    low, high = grouped.amin(2).clamp(max=0), grouped.amax(2).clamp(min=0)
    scales = ((high - low) / 15).half()
    zeros = (-low / scales.float()).round().clamp(1, 15)
    codes = ((grouped / scales.float()[..., None]).round() + zeros[..., None]).clamp(0, 15)
    return codes.to(torch.uint8).view(weight.shape), scales, zeros.to(torch.uint8)


def _awq(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    codes, scales, zeros = _zero_points(weight)
    return quantized_layouts.awq(codes, scales, zeros), multiplied_out(codes, scales, zeros)


def _gptq(weight: Tensor, *, is_ordered: bool) -> tuple[dict[str, Tensor], Tensor]:
    """Symmetric; `is_ordered`: by activations, so that the groups of inputs are mixed, in the same way for layers of the same inputs."""
    count = weight.shape[1]
    order = torch.randperm(count, generator=torch.Generator().manual_seed(count)) if is_ordered else torch.arange(count)
    grouped = weight[:, order].view(len(weight), -1, _GROUP)
    scales = (grouped.abs().amax(2) / 7).half()
    sorted_codes = ((grouped / scales.float()[..., None]).round().clamp(-8, 7) + 8).to(torch.uint8).view(weight.shape)
    codes, groups = torch.empty_like(sorted_codes), torch.empty_like(order)
    codes[:, order], groups[order] = sorted_codes, torch.arange(count) // _GROUP
    zeros = torch.full(scales.shape, 8, dtype=torch.uint8)
    return quantized_layouts.gptq(codes, scales, zeros, 4, groups), multiplied_out(codes, scales, zeros, groups)


def _compressed(layout: str, weights: dict[str, Any], inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    """A config as compressed-tensors writes it, with all entries."""
    common = {"symmetric": True, "dynamic": False, "observer": "minmax", "observer_kwargs": {}, "actorder": None}
    group = {
        "targets": ["Linear"],
        "weights": {"block_structure": None, "group_size": None, **common, **weights},
        "input_activations": inputs and {"num_bits": 8, "type": "float", **common, **inputs},
        "output_activations": None,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "quantization_status": "compressed",
        "global_compression_ratio": 1.5,
    }


def _channels_config(strategy: str, *, is_dynamic: bool) -> dict[str, Any]:
    inputs = {"dynamic": is_dynamic, "strategy": "token" if is_dynamic else "tensor"}
    return _compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": strategy}, inputs)


_INT4 = _compressed(
    "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": _GROUP, "actorder": "static"}
)
_BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
_AWQ = {
    "quant_method": "awq",
    "bits": 4,
    "group_size": _GROUP,
    "version": "gemm",
    "zero_point": True,
    "modules_to_not_convert": None,
}
_GPTQ = {
    "quant_method": "gptq",
    "bits": 4,
    "group_size": _GROUP,
    "sym": True,
    "true_sequential": True,
    "damp_percent": 0.01,
    "static_groups": False,
}
_KEPT = ("model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head")
_MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": list(_KEPT)}
_EXPERTS = {"norm_topk_prob": True, "decoder_sparse_step": 1, "head_dim": 32}
_SHORT = {"num_hidden_layers": 1, "max_position_embeddings": 64}


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """How a published model stores its weights.

    Attributes:
        model_type: of transformers.
        config: its quantization_config.
        write: see `quantize_checkpoint`.
        sizes: entries of config.json besides those of other tiny models; not all multiples of 128 where the format allows that.
    """

    model_type: str
    config: dict[str, Any]
    write: Rounding
    sizes: dict[str, Any] = field(default_factory=dict)


_DENSE = {"hidden_size": 128, "intermediate_size": 256}
PUBLISHED = {
    "Llama-3.1-8B-Instruct-FP8-dynamic": PublishedWeights(
        "llama", _channels_config("channel", is_dynamic=True), of_layers(_of_channels), {"intermediate_size": 224}
    ),
    "Meta-Llama-3-8B-Instruct-FP8": PublishedWeights(
        "llama", _channels_config("tensor", is_dynamic=False), of_layers(_of_tensors), {"intermediate_size": 224}
    ),
    "Qwen3-8B-FP8": PublishedWeights(
        "qwen3",
        _BLOCKS,
        published_float8,
        {"hidden_size": 256, "intermediate_size": 352, "head_dim": 32, "tie_word_embeddings": True},
    ),
    "Llama-3.1-8B-Instruct-quantized.w4a16": PublishedWeights(
        "llama", _INT4, of_layers(lambda weight: packed_int4(weight, _GROUP)), _DENSE
    ),
    "Qwen3-8B-AWQ": PublishedWeights("qwen3", _AWQ, of_layers(_awq), {**_DENSE, "head_dim": 32}),
    "Qwen2.5-7B-Instruct-GPTQ-Int4": PublishedWeights(
        "qwen2", {**_GPTQ, "desc_act": False}, of_layers(lambda weight: _gptq(weight, is_ordered=False)), _DENSE
    ),
    "Llama-2-7B-Chat-GPTQ (desc_act)": PublishedWeights(
        "llama", {**_GPTQ, "desc_act": True}, of_layers(lambda weight: _gptq(weight, is_ordered=True)), _DENSE
    ),
    "gpt-oss-20b": PublishedWeights(
        "gpt_oss", _MXFP4, published_mxfp4, {"head_dim": 32, "hidden_size": 192, "intermediate_size": 64}
    ),
    "DeepSeek-V3": PublishedWeights(
        "deepseek_v3",
        _BLOCKS,
        published_float8,
        {
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "n_shared_experts": 1,
            "hidden_size": 128,
            "moe_intermediate_size": 128,
            "q_lora_rank": 128,
            "kv_lora_rank": 32,
            "first_k_dense_replace": 0,
        },
    ),
    "Qwen3-30B-A3B-FP8": PublishedWeights(
        "qwen3_moe", _BLOCKS, published_float8, {"hidden_size": 128, "moe_intermediate_size": 160, **_EXPERTS}
    ),
}
"""By the name of a published model."""


def published_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """A tiny checkpoint that stores its weights as a published model does, and one of the same values as floats."""
    published = PUBLISHED[name]
    config = make_config(Family(name, published.model_type, {**_SHORT, **published.sizes}))
    path = save_checkpoint(random_model(config), folder / "codes")
    twin = quantize_checkpoint(path, folder / "floats", published.write)
    content = json.loads((path / "config.json").read_text(encoding="utf-8"))
    (path / "config.json").write_text(
        json.dumps({**content, "quantization_config": published.config}), encoding="utf-8"
    )
    return path, twin


@dataclass(frozen=True, slots=True)
class Comparison:
    """A checkpoint on a device beside the same weights as floats.

    Attributes:
        error: largest difference of a logit.
        bytes_per_byte: bytes of the weights on the device per byte of the file.
    """

    error: float
    bytes_per_byte: float


def compare_published(folder: Path, name: str) -> Comparison:
    """Make the checkpoint of a published model, load it on the device, and run prompts and a decoding step of two rows in float32."""
    path, twin = published_pair(folder, name)
    runner = DeviceRunner(
        RuntimeConfig(
            model=str(path), device=DEVICE, dtype="float32", num_pages=4, page_size=16, num_threads=1, max_rows=2
        )
    )
    runner.load()
    error = float((_device_logits(runner) - _stock_logits(twin)).abs().max())
    file_bytes = sum(tensor.nbytes for tensor in load_file(path / "model.safetensors").values())
    held = {tensor.data_ptr(): tensor.nbytes for tensor in _tensors_of(runner.decoder)}
    return Comparison(error, sum(held.values()) / file_bytes)


def _device_logits(runner: DeviceRunner) -> Tensor:
    """Logits [4, vocab_size] after each prompt, then after one more token of each."""
    found = []
    rows = [Row(row, ids, 0, (row,), 0, True, SamplingParams()) for row, ids in enumerate(_PROMPTS)]
    for step in (
        Step(0, tuple(rows)),
        Step(1, tuple(row._replace(token_ids=[_NEXT], num_computed_tokens=len(row.token_ids)) for row in rows)),
    ):
        flight = runner.launch(step)
        assert flight.logits is not None
        found.append(flight.logits.float().cpu().clone())
        runner.sample(flight, step.rows, None)
        runner.collect(flight)
    return torch.cat(found)


def _stock_logits(path: Path) -> Tensor:
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        every = [model(torch.tensor([[*ids, _NEXT]]), use_cache=False).logits[0] for ids in _PROMPTS]
    return torch.stack([logits[place] for place in (-2, -1) for logits in every])


def _tensors_of(decoder: Any) -> Iterator[Tensor]:
    """All storages that a decoder refers to as tensors of bytes, but those of rotations, which files do not have."""
    seen, left = {id(decoder)}, [decoder]
    while left:
        each = left.pop()
        if isinstance(each, Tensor):
            yield torch.empty(0, dtype=torch.uint8, device=each.device).set_(each.untyped_storage())
        for one in gc.get_referents(each):
            if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType | Rotations):
                seen.add(id(one))
                left.append(one)


def main() -> None:
    """Compare the checkpoints that the arguments name, or all, and print a table."""
    warnings.simplefilter("ignore")
    print(f"{'stored as':<44} {'error':>9} {'bytes/byte':>11}")
    for name in sys.argv[1:] or PUBLISHED:
        with tempfile.TemporaryDirectory() as scratch:
            found = compare_published(Path(scratch), name)
        print(f"{name:<44} {found.error:9.2g} {found.bytes_per_byte:11.3f}", flush=True)


if __name__ == "__main__":
    main()
