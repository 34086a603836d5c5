"""Checkpoints of AWQ, version gemm: integers of 4 bits with zero points, packed along outputs.

A matrix X has `X.qweight` (int32 [in, out / 8]), `X.qzeros` (int32 [in / group, out / 8]) and `X.scales` ([in / group, out]). A word has
8 consecutive outputs, in the order of `_PLACES`. Modules that config.json excludes have float weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.gptq import zero_fields
from rtlang.model.loading.quantized.matrix import SCALE_TYPES, CodedMatrix, Codes, Matrix
from rtlang.model.loading.stored_tensors import StoredTensors

_PER_WORD = 8
_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
"""The place in a word, from the lowest bits, of each of 8 outputs."""


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    version = str(config.get("version") or config.get("format") or "gemm").lower()
    if version != "gemm":
        return f"the weights are quantized (awq, {version}); the supported version of awq is gemm"
    bits = config.get("bits", config.get("w_bit", 4))
    if isinstance(bits, bool) or bits != 4:
        return f"quantization_config.bits = {bits!r}: expected 4 for awq"
    group = _group_size(config)
    if group is not None and (type(group) is not int or (group < 1 and group != -1)):
        return f"quantization_config.group_size = {group!r}: expected a positive integer or -1"
    return None


def _group_size(config: Mapping[str, Any]) -> Any:
    return config.get("group_size", config.get("q_group_size"))


class Awq:
    """The scheme of a supported config; implements `Scheme`."""

    bits = 4

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._group: int | None = _group_size(config)

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for name in stored.names():
            if name.endswith(".qweight"):
                module = name.removesuffix(".qweight")
                try:
                    found[f"{module}.weight"] = _matrix(stored, module, self._group)
                except ValueError as error:
                    raise ValueError(f"{module}.weight {error}") from None
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return False


def _matrix(stored: StoredTensors, module: str, group: int | None) -> Matrix:
    words, zeros, scales = parts = [f"{module}{suffix}" for suffix in (".qweight", ".qzeros", ".scales")]
    for name in parts:
        if name not in stored:
            raise ValueError(f"lacks {name}")
    shapes = [stored.shape(name) for name in parts]
    if any(len(each) != 2 or min(each) < 1 for each in shapes) or {stored.dtype(words), stored.dtype(zeros)} != {"I32"}:
        raise ValueError(
            f"has tensors of shapes {list(map(list, shapes))}; expected matrices, of I32 for codes and zero points"
        )
    (num_inputs, num_words), zero_shape, (num_groups, num_outputs) = shapes
    if num_outputs != num_words * _PER_WORD or zero_shape != (num_groups, num_words) or num_inputs % num_groups:
        raise ValueError(f"has tensors of shapes {list(map(list, shapes))}, which do not fit together")
    if group is not None and num_groups != (1 if group == -1 else -(-num_inputs // group)):
        raise ValueError(f"has {num_groups} groups for {num_inputs} inputs, but group_size is {group}")
    if stored.dtype(scales) not in SCALE_TYPES:
        raise ValueError(f"has scales of type {stored.dtype(scales)}; only floats of 16 and 32 bits are supported")

    def read() -> Codes:
        packed, factors = stored.tensor(words), stored.tensor(scales)

        def codes(first: int, last: int) -> Tensor:
            start, stop = first // _PER_WORD, -(-last // _PER_WORD)
            inside = slice(first - start * _PER_WORD, last - start * _PER_WORD)
            return _outputs(packed[:, start:stop])[inside]

        return Codes(
            (num_outputs, num_inputs),
            4,
            codes,
            scale_type=SCALE_TYPES[stored.dtype(scales)],
            scales=lambda first, last: factors[:, first:last].t(),
            group=num_inputs // num_groups,
            **zero_fields(_outputs(stored.tensor(zeros))),
        )

    return CodedMatrix(stored, parts, (num_outputs, num_inputs), read)


def _outputs(words: Tensor) -> Tensor:
    """The codes of words [n, out / 8]: uint8 [out, n]."""
    num_rows, num_words = words.shape
    data = words.t().contiguous().reshape(-1).view(torch.uint8).view(num_words, num_rows, 4)
    codes = torch.empty(num_words, _PER_WORD, num_rows, dtype=torch.uint8)
    for output, place in enumerate(_PLACES):
        pairs = data[:, :, place // 2]
        codes[:, output] = pairs >> 4 if place % 2 else pairs & 15
    return codes.view(-1, num_rows)
