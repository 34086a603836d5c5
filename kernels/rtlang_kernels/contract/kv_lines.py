"""Keys and values in int8: the line that a pool holds of one head of one token.

A line is `size` bytes of values, a byte of padding if `size` is odd, and the scale as a bfloat16. A value is `byte * scale`, exactly. With
`largest` the largest magnitude of the head, the scale is `largest / 127` as a float32, rounded up to a bfloat16, and a byte is the element
divided by the scale as a float32, rounded to the nearest integer, ties to even: at most 127 in magnitude. The scale of zeros is 0. If an
element is not finite, the scale is NaN and the bytes are 0, so a result that uses the token is NaN.

A pool of int8 is a view [num_slots, num_kv_heads, size] into such lines: its heads lie `line_bytes(size)` apart.
"""

from __future__ import annotations

from torch import Tensor

LARGEST = 127  # magnitude of a byte
SCALE_BYTES = 2


def scale_offset(size: int) -> int:
    """Bytes from the start of a line to its scale."""
    return size + size % 2


def line_bytes(size: int) -> int:
    """Bytes of a line of `size` elements; even, and at least `size` rounded up to a multiple of 4."""
    return scale_offset(size) + SCALE_BYTES


def has_adjacent_heads(pool: Tensor, head_stride: int | None = None) -> bool:
    """Whether the heads of a slot of pool [num_slots, num_heads, size] are `head_stride` elements apart; default: size.

    The only head of a slot may be a part of a longer line, as the values of latent attention are.
    """
    head_stride = pool.shape[2] if head_stride is None else head_stride
    return pool.stride(2) == 1 and (pool.shape[1] == 1 or pool.stride(1) == head_stride)
