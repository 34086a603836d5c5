"""Tiny checkpoints whose linear layers are rounded to the codes of each published format, and their float twins."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.support.models import quantized_layouts
from tests.support.models.quantized_layouts import multiplied_out
from tests.support.models.tiny_models import make_checkpoint

_GROUP = 32
_LAYER = re.compile(r"(_proj(_with_mqa)?|\.w[123])\.weight$")
Written = tuple[dict[str, Tensor], Tensor]
"""The tensors of a module, and its matrix multiplied out."""
Rounding = Callable[[str, Tensor], Written | None]
"""See `quantize_checkpoint`."""


def _grouped(weight: Tensor, group: int = _GROUP) -> Tensor:
    return weight.view(weight.shape[0], -1, group)


def _int4(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Codes, float16 scales and zero points of groups."""
    low, high = _grouped(weight).amin(2).clamp(max=0), _grouped(weight).amax(2).clamp(min=0)
    scales = ((high - low) / 15).clamp(min=1e-4).half()
    zeros = (-low / scales.float()).round().clamp(1, 15)
    codes = (_grouped(weight) / scales.float()[..., None]).round() + zeros[..., None]
    return codes.clamp(0, 15).to(torch.uint8).view(weight.shape), scales, zeros.to(torch.uint8)


def _float4(weight: Tensor, group: int, scales: Tensor) -> Tensor:
    """The codes nearest to the weights."""
    table = torch.tensor(quantized_layouts.FLOAT4)
    scaled = _grouped(weight, group) / scales.float()[..., None].clamp(min=1e-9)
    return (scaled[..., None] - table).abs().argmin(-1).to(torch.uint8).view(weight.shape)


def _float4_values(codes: Tensor) -> Tensor:
    return torch.tensor(quantized_layouts.FLOAT4, dtype=torch.float64)[codes.long()]


def _packed_int4(weight: Tensor) -> Written:
    codes, scales, zeros = _int4(weight)
    tensors = {
        "weight_packed": pack_to_int32((codes.int() - 8).to(torch.int8), 4),
        "weight_shape": torch.tensor(weight.shape),
        "weight_scale": scales,
        "weight_zero_point": pack_to_int32((zeros.int() - 8).to(torch.int8), 4, packed_dim=0),
    }
    return tensors, multiplied_out(codes, scales, zeros)


def packed_int4(weight: Tensor, group: int = _GROUP) -> Written:
    """Symmetric int4 of compressed-tensors, packed, with bfloat16 scales."""
    scales = (_grouped(weight, group).abs().amax(2) / 7).clamp(min=1e-4).bfloat16()
    codes = (_grouped(weight, group) / scales.float()[..., None]).round().clamp(-8, 7).to(torch.int8).view(weight.shape)
    tensors = {
        "weight_packed": pack_to_int32(codes, 4),
        "weight_shape": torch.tensor(weight.shape),
        "weight_scale": scales,
    }
    return tensors, multiplied_out(codes, scales)


def _int8_groups(weight: Tensor) -> Written:
    scales = _grouped(weight).abs().amax(2) / 127
    codes = (_grouped(weight) / scales[..., None]).round().to(torch.int8).view(weight.shape)
    return {"weight": codes, "weight_scale": scales}, multiplied_out(codes, scales)


def _float8_rows(weight: Tensor) -> Written:
    scales = weight.abs().amax(1, keepdim=True) / 448
    codes = (weight / scales).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale": scales}, codes.double() * scales.double()


def _float8_blocks(weight: Tensor) -> Written:
    tiles = weight.view(weight.shape[0] // 32, 32, weight.shape[1] // 32, 32)
    scales = tiles.abs().amax((1, 3)) / 448
    codes = (tiles / scales[:, None, :, None]).to(torch.float8_e4m3fn)
    matrix = (codes.double() * scales.double()[:, None, :, None]).view(weight.shape)
    return {"weight": codes.view(weight.shape), "weight_scale_inv": scales}, matrix


def _mxfp4(weight: Tensor) -> Written:
    exponents = (_grouped(weight).abs().amax(2) / 6).log2().ceil()
    codes = _float4(weight, _GROUP, exponents.exp2())
    tensors = {"weight_packed": quantized_layouts.nibbles(codes), "weight_scale": (exponents + 127).to(torch.uint8)}
    return tensors, multiplied_out(_float4_values(codes), exponents.exp2())


def _nvfp4(weight: Tensor, *, divides: bool) -> Written:
    whole = torch.tensor(2.0**-12)  # has an exact inverse
    scales = (_grouped(weight, 16).abs().amax(2) / 6 / whole).to(torch.float8_e4m3fn)
    codes = _float4(weight, 16, scales.float() * whole)
    matrix = multiplied_out(_float4_values(codes), scales.double() * whole)
    packed = quantized_layouts.nibbles(codes)
    if divides:
        return {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": 1 / whole[None]}, matrix
    return {"weight": packed, "weight_scale": scales, "weight_scale_2": whole}, matrix


def _gptq(weight: Tensor) -> Written:
    codes, scales, zeros = _int4(weight)
    return quantized_layouts.gptq(codes, scales, zeros, 4), multiplied_out(codes, scales, zeros)


def _gptq_in_order(weight: Tensor) -> Written:
    order = torch.randperm(weight.shape[1], generator=torch.Generator().manual_seed(weight.shape[1]))
    codes, scales, zeros = _int4(weight[:, order])
    groups = torch.empty_like(order)
    groups[order] = torch.arange(len(order)) // _GROUP
    own = torch.empty_like(codes)
    own[:, order] = codes
    return quantized_layouts.gptq(own, scales, zeros, 4, groups, is_v2=True), multiplied_out(own, scales, zeros, groups)


def _awq(weight: Tensor) -> Written:
    codes, scales, zeros = _int4(weight)
    return quantized_layouts.awq(codes, scales, zeros), multiplied_out(codes, scales, zeros)


def _nf4(weight: Tensor) -> Written:
    table = torch.tensor(quantized_layouts.NF4)
    scaled = weight / weight.abs().max()
    codes = (scaled[..., None] - table).abs().argmin(-1).to(torch.uint8)
    tensors, matrix = quantized_layouts.bitsandbytes(codes, "nf4", table, 32, is_nested=True)
    return tensors, matrix.double()


def _int8_rows(weight: Tensor) -> Written:
    factors = weight.abs().amax(1)
    codes = (weight * 127 / factors[:, None]).round().to(torch.int8)
    return {"weight": codes, "SCB": factors}, codes.double() * (factors / 127).double()[:, None]


def _groups_of(layout: str, **weights: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": {"symmetric": True, **weights}}
    return {"quant_method": "compressed-tensors", "format": layout, "config_groups": {"group_0": group}}


_GROUPS = {"strategy": "group", "group_size": _GROUP}
_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": _GROUP, "sym": False}
SCHEMES: dict[str, tuple[dict[str, Any], Callable[[Tensor], Written]]] = {
    "int4": (_groups_of("pack-quantized", num_bits=4, type="int", **{**_GROUPS, "symmetric": False}), _packed_int4),
    "int8 groups": (_groups_of("int-quantized", num_bits=8, type="int", **_GROUPS), _int8_groups),
    "float8 rows": (_groups_of("float-quantized", num_bits=8, type="float", strategy="channel"), _float8_rows),
    "mxfp4": (_groups_of("mxfp4-pack-quantized", num_bits=4, type="float", **_GROUPS), _mxfp4),
    "nvfp4": (
        _groups_of("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16),
        lambda weight: _nvfp4(weight, divides=True),
    ),
    "gptq": (_GPTQ, _gptq),
    "gptq in order": ({**_GPTQ, "checkpoint_format": "gptq_v2", "desc_act": True}, _gptq_in_order),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": _GROUP, "version": "gemm"}, _awq),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [32, 32]}, _float8_blocks),
    "fbgemm": ({"quant_method": "fbgemm_fp8"}, _float8_rows),
    "modelopt fp8": ({"quant_method": "modelopt", "quant_algo": "FP8"}, _float8_rows),
    "modelopt nvfp4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        lambda weight: _nvfp4(weight, divides=False),
    ),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, _nf4),
    "llm.int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, _int8_rows),
}
"""quantization_config and the writer of a matrix, by a name."""


def quantized_pair(folder: Path, scheme: str, family: str = "llama") -> tuple[Path, Path]:
    """A checkpoint of a scheme, and one of the same values as floats."""
    config, write = SCHEMES[scheme]
    path = make_checkpoint(folder / "codes", family)
    content = json.loads((path / "config.json").read_text())
    twin = quantize_checkpoint(path, folder / "floats", of_layers(write))
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": config}))
    return path, twin


def gpt_oss_pair(folder: Path) -> tuple[Path, Path]:
    """A checkpoint of GPT-OSS as it is published, and one of the same values as floats."""
    path = make_checkpoint(folder / "codes", "gpt_oss")
    twin = quantize_checkpoint(path, folder / "floats", published_mxfp4)
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "quantization_config": {"quant_method": "mxfp4"}}))
    return path, twin


def quantize_checkpoint(path: Path, twin: Path, write: Rounding) -> Path:
    """Round the weights of a checkpoint in place, and write a twin with the same values as floats, which is returned.

    Args:
        write: returns the tensors of a weight by their names, and what it becomes; None for one that stays as it is.
    """
    shutil.copytree(path, twin)
    codes: dict[str, Tensor] = {}
    floats: dict[str, Tensor] = {}
    for name, tensor in load_file(path / "model.safetensors").items():
        found = write(name, tensor)
        if found is None:
            codes[name] = floats[name] = tensor
        else:
            codes |= {part: each.clone(memory_format=torch.contiguous_format) for part, each in found[0].items()}
            floats[name] = found[1].float()
    for each, tensors in ((path, codes), (twin, floats)):
        save_file(tensors, each / "model.safetensors", metadata={"format": "pt"})
    content = json.loads((twin / "config.json").read_text())
    for entries in (content, content.get("text_config", {})):
        entries.pop("quantization_config", None)
    (twin / "config.json").write_text(json.dumps(content))
    return twin


def _of_layer(name: str, tensor: Tensor, write: Callable[[Tensor], Written]) -> Written | None:
    if tensor.ndim != 2 or not _LAYER.search(name) or any(part in name for part in ("vision", "projector")):
        return None
    tensors, matrix = write(tensor.float())
    return {name.removesuffix("weight") + part: each for part, each in tensors.items()}, matrix


def of_layers(write: Callable[[Tensor], Written]) -> Rounding:
    """Writes the matrices of linear layers, and leaves other weights as they are."""
    return lambda name, tensor: _of_layer(name, tensor, write)


def published_float8(name: str, tensor: Tensor) -> Written | None:
    """float8 with a scale for each block of 128 x 128, the last of which may be smaller."""

    def write(weight: Tensor) -> Written:
        sizes = [-(-size // 128) for size in weight.shape]
        padded = torch.zeros(sizes[0] * 128, sizes[1] * 128)
        padded[: weight.shape[0], : weight.shape[1]] = weight
        scales = padded.view(sizes[0], 128, sizes[1], 128).abs().amax((1, 3)) / 448
        whole = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)[: weight.shape[0], : weight.shape[1]]
        codes = (weight / whole).to(torch.float8_e4m3fn)
        return {"weight": codes, "weight_scale_inv": scales}, codes.double() * whole.double()

    return _of_layer(name, tensor, write)


def published_int4(name: str, tensor: Tensor) -> Written | None:
    """int4 in groups of 32 inputs, of experts only."""
    return _of_layer(name, tensor, packed_int4) if ".experts." in name else None


def published_mxfp4(name: str, tensor: Tensor) -> Written | None:
    """float4 with exponents, of the experts of GPT-OSS: [experts, in, out]."""
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return None
    _, num_inputs, num_outputs = tensor.shape
    packed, exponents, matrices = [], [], []
    for expert in tensor.float():
        tensors, matrix = _mxfp4(expert.t())
        packed.append(tensors["weight_packed"].view(num_outputs, num_inputs // 32, 16))
        exponents.append(tensors["weight_scale"])
        matrices.append(matrix.t())
    return {f"{name}_blocks": torch.stack(packed), f"{name}_scales": torch.stack(exponents)}, torch.stack(matrices)
