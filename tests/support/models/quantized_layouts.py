"""Writes matrices of codes in the layouts of published checkpoints, one bit at a time, from descriptions of the formats.

Codes are uint8 [out, in]; scales and zero points are [out, groups].
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334),
    *(-0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
_AWQ_OUTPUTS = (0, 2, 4, 6, 1, 3, 5, 7)  # the output of each nibble of a word, from the lowest bits


def multiplied_out(values: Tensor, scales: Tensor, zeros: Tensor | None = None, groups: Tensor | None = None) -> Tensor:
    """(values - zeros) * scales in float64; `groups` [in] is the group of each input, default: equal and in order."""
    if groups is None:
        groups = torch.arange(values.shape[1]) // (values.shape[1] // scales.shape[1])
    shift = 0 if zeros is None else zeros.double()[:, groups.long()]
    return (values.double() - shift) * scales.double()[:, groups.long()]


def gptq(
    codes: Tensor, scales: Tensor, zeros: Tensor, bits: int, groups: Tensor | None = None, *, is_v2: bool = False
) -> dict[str, Tensor]:
    """The tensors of GPTQ."""
    stored = zeros if is_v2 else (zeros.int() - 1) % (1 << bits)
    tensors = {"qweight": _words(codes, bits).t(), "qzeros": _words(stored.t(), bits), "scales": scales.t()}
    return tensors if groups is None else {**tensors, "g_idx": groups.int()}


def awq(codes: Tensor, scales: Tensor, zeros: Tensor) -> dict[str, Tensor]:
    """The tensors of AWQ, version gemm."""
    order = [8 * word + place for word in range(codes.shape[0] // 8) for place in _AWQ_OUTPUTS]
    return {"qweight": _words(codes.t()[:, order], 4), "qzeros": _words(zeros.t()[:, order], 4), "scales": scales.t()}


def nibbles(codes: Tensor) -> Tensor:
    """uint8 [out, in / 2], the even input in the low bits."""
    return codes[:, ::2] | codes[:, 1::2] << 4


def bitsandbytes(
    codes: Tensor, kind: str, table: Tensor, block: int, *, is_nested: bool
) -> tuple[dict[str, Tensor], Tensor]:
    """The tensors of bitsandbytes with random factors, and the matrix in the dtype of the library: bfloat16."""
    count = codes.numel()
    flat, num_blocks = codes.reshape(-1), -(-count // block)
    state: dict[str, Any] = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(codes.shape)}
    tensors = {"weight": (flat[::2] << 4 | flat[1::2])[:, None], "weight.quant_map": table}
    if is_nested:
        small, values = torch.randint(0, 256, (num_blocks,), dtype=torch.uint8), torch.rand(256)
        outer = torch.rand(-(-num_blocks // 256))
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.05}
        factors = values[small.long()] * outer.repeat_interleave(256)[:num_blocks] + torch.tensor(0.05)
        tensors |= {"weight.absmax": small, "weight.nested_quant_map": values, "weight.nested_absmax": outer}
    else:
        factors = tensors["weight.absmax"] = torch.rand(num_blocks)
    tensors[f"weight.quant_state.bitsandbytes__{kind}"] = torch.tensor(
        list(json.dumps(state).encode()), dtype=torch.uint8
    )
    matrix = (table[flat.long()] * factors.repeat_interleave(block)[:count]).bfloat16().view(codes.shape)
    return tensors, matrix


def _words(codes: Tensor, bits: int) -> Tensor:
    """int32 words of each row, the first code in the lowest bits."""
    rows = []
    for row in codes.tolist():
        number = sum(code << place * bits for place, code in enumerate(row))
        num_words = -(-len(row) * bits // 32)
        rows.append(np.frombuffer(number.to_bytes(4 * num_words, "little"), dtype="<i4"))
    return torch.from_numpy(np.array(rows))
