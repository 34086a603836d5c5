"""The types of tensors that GGUF files have: numbers, and blocks of weights with common scales."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rtlang_kernels.contract.low_bit import ScaleType, WeightFormat

E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""The values of float4 e2m1, doubled."""
IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_SUPER = ScaleType.SUPER


@dataclass(frozen=True, slots=True)
class BlockType:
    """A type of tensor.

    Attributes:
        name: as ggml spells it, such as `Q4_K`.
        block: elements of a block, consecutive along the inputs; 1 for numbers.
        block_bytes: bytes of a block.
        dtype: of numbers, else None.
        format: of blocks of weights, else None.
    """

    name: str
    block: int
    block_bytes: int
    dtype: torch.dtype | None = None
    format: WeightFormat | None = None

    def num_bytes(self, num_elements: int) -> int:
        """Bytes of a number of elements, a multiple of `block`."""
        return num_elements // self.block * self.block_bytes


def _numbers(name: str, dtype: torch.dtype) -> BlockType:
    return BlockType(name, 1, dtype.itemsize, dtype=dtype)


BLOCK_TYPES = {
    0: _numbers("F32", torch.float32),
    1: _numbers("F16", torch.float16),
    24: _numbers("I8", torch.int8),
    25: _numbers("I16", torch.int16),
    26: _numbers("I32", torch.int32),
    27: _numbers("I64", torch.int64),
    28: _numbers("F64", torch.float64),
    30: _numbers("BF16", torch.bfloat16),
    2: BlockType("Q4_0", 32, 18, format=WeightFormat(4, zero=8)),
    3: BlockType("Q4_1", 32, 20, format=WeightFormat(4, has_offsets=True)),
    6: BlockType("Q5_0", 32, 22, format=WeightFormat(5, zero=16)),
    7: BlockType("Q5_1", 32, 24, format=WeightFormat(5, has_offsets=True)),
    8: BlockType("Q8_0", 32, 34, format=WeightFormat(8, zero=128)),
    10: BlockType("Q2_K", 256, 84, format=WeightFormat(2, 16, _SUPER, has_offsets=True)),
    11: BlockType("Q3_K", 256, 110, format=WeightFormat(3, 16, _SUPER, zero=4)),
    12: BlockType("Q4_K", 256, 144, format=WeightFormat(4, 32, _SUPER, has_offsets=True)),
    13: BlockType("Q5_K", 256, 176, format=WeightFormat(5, 32, _SUPER, has_offsets=True)),
    14: BlockType("Q6_K", 256, 210, format=WeightFormat(6, 16, _SUPER, zero=32)),
    20: BlockType("IQ4_NL", 32, 18, format=WeightFormat(4, table=IQ4_NL)),
    23: BlockType("IQ4_XS", 256, 136, format=WeightFormat(4, 32, _SUPER, table=IQ4_NL)),
    39: BlockType("MXFP4", 32, 17, format=WeightFormat(4, 32, ScaleType.BFLOAT16, table=E2M1_TWICE)),
    40: BlockType("NVFP4", 64, 36, format=WeightFormat(4, 16, table=E2M1_TWICE)),
}
"""The types that are read, by their numbers in a file."""

_OTHERS = {
    4: "Q4_2",
    5: "Q4_3",
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    29: "IQ1_M",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    34: "TQ1_0",
    35: "TQ2_0",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
    41: "Q1_0",
}
"""Names of types that are not read, for messages."""


def block_type(number: int) -> BlockType:
    """The type with a number.

    Raises:
        ValueError: it is not read; names those that are.
    """
    found = BLOCK_TYPES.get(number)
    if found is None:
        known = ", ".join(each.name for each in BLOCK_TYPES.values())
        raise ValueError(f"type = {_OTHERS.get(number, 'unknown')} ({number}): expected one of {known}")
    return found
