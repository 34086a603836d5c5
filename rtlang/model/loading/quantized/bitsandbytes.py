"""Checkpoints of bitsandbytes: NF4 and FP4, which are multiplied out, and int8.

A matrix X of 4 bits has `X.weight` (bytes of two codes, the first in the high bits), `X.weight.absmax` (the factor of each block of
consecutive weights; uint8 codes themselves with double quantization), `X.weight.quant_map` (the values of the 16 codes),
`X.weight.nested_absmax` and `X.weight.nested_quant_map` for the codes of factors, and JSON in `X.weight.quant_state.bitsandbytes__nf4`.
The values are floats in a table, so layers get the products, as the library computes them. A matrix of int8 has `X.weight` and `X.SCB`,
127 times the scale of each row.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.matrix import CodedMatrix, Codes, Matrix, matrix_shape, unpacked_int8
from rtlang.model.loading.stored_tensors import StoredTensors
from rtlang_kernels.contract.low_bit import LowBitWeight

logger = logging.getLogger(__name__)

_STATE = ".quant_state.bitsandbytes__"
_STATES = (f"{_STATE}nf4", f"{_STATE}fp4")
_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
_MAX_STATE = 1 << 16  # bytes of JSON
_MAX_BLOCK = 1 << 20
_STEP = 1 << 22  # elements that are multiplied out at a time


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    if not config.get("load_in_4bit") and not config.get("load_in_8bit"):
        return "quantization_config of bitsandbytes: expected load_in_4bit or load_in_8bit"
    return None


class BitsAndBytes:
    """The scheme of a supported config; implements `Scheme`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.bits = 4 if config.get("load_in_4bit") else 8

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        num_floats = 0
        for name in stored.names():
            weight = name.partition(_STATE)[0] if name.endswith(_STATES) else f"{name.removesuffix('.SCB')}.weight"
            if weight not in stored or not name.endswith((*_STATES, ".SCB")):
                continue
            try:
                if name.endswith(".SCB"):
                    found[weight] = _int8(stored, weight, name)
                else:
                    found[weight] = _FourBits(stored, weight, name)
                    num_floats += 1
            except ValueError as error:
                raise ValueError(f"{weight} {error}") from None
        if num_floats:
            logger.info(
                "%d matrices of bitsandbytes have 4 bits in the files and are multiplied out in memory", num_floats
            )
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return name.endswith(".weight_format")


def _int8(stored: StoredTensors, name: str, scales: str) -> Matrix:
    shape = matrix_shape(stored.shape(name))
    if stored.dtype(name) != "I8" or stored.dtype(scales) != "F32" or stored.shape(scales) != shape[:1]:
        raise ValueError(
            f"is {stored.dtype(name)} with {stored.dtype(scales)} scales of shape {list(stored.shape(scales))}; expected I8 with F32, "
            "one a row"
        )

    def read() -> Codes:
        values, factors = stored.tensor(name), stored.tensor(scales)
        codes = lambda first, last: unpacked_int8(values[first:last])  # noqa: E731
        return Codes(shape, 8, codes, row_scales=lambda first, last: factors[first:last] / 127, zero=128)

    return CodedMatrix(stored, (name, scales), shape, read)


class _FourBits:
    """A matrix of NF4 or FP4; implements `Matrix`."""

    def __init__(self, stored: StoredTensors, name: str, state: str) -> None:
        self._stored, self._name = stored, name
        entries = _json_of(stored.tensor(state))
        sizes = entries.get("shape")
        self.shape = matrix_shape(
            tuple(sizes) if isinstance(sizes, list) and all(type(each) is int for each in sizes) else ()
        )
        self._block = _block_size(entries, "blocksize")
        self._dtype = _DTYPES.get(str(entries.get("dtype")))
        count = math.prod(self.shape)
        if self._dtype is None:
            raise ValueError(f"has dtype {entries.get('dtype')!r} in {state}; expected one of {', '.join(_DTYPES)}")
        names = {each: f"{name}.{each}" for each in ("absmax", "quant_map", "nested_absmax", "nested_quant_map")}
        self._is_nested = names["nested_absmax"] in stored
        needed = list(names.values()) if self._is_nested else list(names.values())[:2]
        self.parts = (name, state, *needed)
        num_blocks = -(-count // self._block)
        expected = {name: -(-count // 2), names["absmax"]: num_blocks, names["quant_map"]: 16}
        if self._is_nested:
            self._nested_block = _block_size(entries, "nested_blocksize")
            offset = entries.get("nested_offset")
            if isinstance(offset, bool) or not isinstance(offset, (int, float)):
                raise ValueError(f"has nested_offset {offset!r} in {state}; expected a number")
            self._offset = torch.tensor(float(offset))
            expected |= {names["nested_absmax"]: -(-num_blocks // self._nested_block), names["nested_quant_map"]: 256}
        for part, size in expected.items():
            if part not in stored:
                raise ValueError(f"lacks {part}")
            kinds = ("U8",) if self._is_nested and part == names["absmax"] else ("F32", "F16", "BF16")
            if part != name and stored.dtype(part) not in kinds:
                raise ValueError(f"has {part} of type {stored.dtype(part)}; expected {' or '.join(kinds)}")
            if part.endswith("quant_map") and len(stored.shape(part)) != 1:
                raise ValueError(f"has {part} of shape {list(stored.shape(part))}; expected [{size}]")
            found = math.prod(stored.shape(part))
            if found * (stored.num_bytes(part) // max(1, found) if part == name else 1) != size:
                raise ValueError(f"of shape {list(self.shape)} has {found} values of {part}; expected {size}")

    def num_bytes(self) -> int:
        """See `Matrix`."""
        return sum(map(self._stored.num_bytes, self.parts))

    def low_bit(self) -> LowBitWeight | None:
        """See `Matrix`; always None."""
        return None

    def floats(self, dtype: torch.dtype) -> Tensor:
        """See `Matrix`. The product is rounded to the dtype that the library computes in."""
        read = self._stored.tensor
        data, count = read(self._name).reshape(-1).view(torch.uint8), math.prod(self.shape)
        factors, values = self._factors(), read(f"{self._name}.quant_map").float()
        found = torch.empty(count, dtype=dtype)
        step = _STEP // self._block * self._block or self._block
        for first in range(0, count, step):
            last = min(first + step, count)
            pairs = data[first // 2 : -(-last // 2)]
            codes = torch.stack((pairs >> 4, pairs & 15), 1).view(-1)[: last - first]
            scales = factors[first // self._block : -(-last // self._block)].repeat_interleave(self._block)
            found[first:last] = (values[codes.long()] * scales[: last - first]).to(self._dtype)
        return found.view(self.shape)

    def _factors(self) -> Tensor:
        """float32, the factor of each block."""
        read = self._stored.tensor
        factors = read(f"{self._name}.absmax").reshape(-1)
        if not self._is_nested:
            return factors.float()
        values, outer = read(f"{self._name}.nested_quant_map").float(), read(f"{self._name}.nested_absmax").float()
        return values[factors.long()] * outer.repeat_interleave(self._nested_block)[: len(factors)] + self._offset


def _json_of(state: Tensor) -> dict[str, Any]:
    """The entries in a tensor of bytes."""
    try:
        if state.dtype is not torch.uint8 or state.numel() > _MAX_STATE:
            raise ValueError(f"{state.numel()} elements of {state.dtype}")
        entries = json.loads(bytes(state.reshape(-1).tolist()))
        if not isinstance(entries, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"has a quant_state that is not JSON: {error}") from None
    return entries


def _block_size(entries: Mapping[str, Any], name: str) -> int:
    size = entries.get(name)
    if type(size) is not int or not 2 <= size <= _MAX_BLOCK or size % 2:
        raise ValueError(f"has {name} {size!r} in its quant_state; expected an even number up to {_MAX_BLOCK}")
    return size
