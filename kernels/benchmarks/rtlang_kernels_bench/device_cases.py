"""Inputs of the GPU benchmark: prefix trees, their tensors, and the measured ceilings that floors are computed from.

Inputs rotate over several sets that together exceed the L2 cache several times, so reads come from memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan

PAGE_SIZE = 16
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 4e-3}
CALLS_PER_GRAPH = 12
Heads = tuple[int, int, int]
Measure = Callable[[Sequence[Callable[[], object]]], tuple[float, float]]  # functions in turn -> (median us, spread)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured limits of the device: bytes and operations per second, and microseconds of an empty launch.

    Attributes:
        noise: relative difference of the first two between two measurements.
    """

    bytes_per_s: float
    flops_per_s: float
    launch_us: float
    l2_bytes: int
    noise: float = 0.0

    def __str__(self) -> str:
        rates = f"copy {self.bytes_per_s / 1e12:.2f} TB/s, bfloat16 product {self.flops_per_s / 1e12:.0f} TFLOP/s"
        return f"{rates}, empty launch {self.launch_us:.1f} us, L2 {self.l2_bytes >> 20} MiB, noise {self.noise:.1%}"


@dataclass(frozen=True, slots=True)
class TreeShape:
    """A batch as levels of a prefix tree: nodes per level, tokens per node. The nodes of the last level are the rows.

    With `shortest`, the rows of the only level have different lengths, spread evenly from `shortest` to its tokens, in mixed order.
    """

    nodes: tuple[int, ...]
    tokens: tuple[int, ...]
    new_tokens: int = 1
    shortest: int | None = None

    def __str__(self) -> str:
        new = "" if self.new_tokens == 1 else f" +{self.new_tokens}"
        ragged = "" if self.shortest is None else f" from {self.shortest}"
        return f"{','.join(map(str, self.nodes))}_{','.join(map(str, self.tokens))}{new}{ragged}"

    @property
    def row_lengths(self) -> NDArray[np.int32]:
        """Tokens of each row: int32 [rows]."""
        rows, length = self.nodes[-1], sum(self.tokens)
        if self.shortest is None:
            return np.full(rows, length, np.int32)
        return np.random.default_rng(0).permutation(np.linspace(self.shortest, length, rows).astype(np.int32))

    @property
    def unique_tokens(self) -> int:
        """Number of tokens whose KV is read at least once."""
        if self.shortest is not None:
            return int(self.row_lengths.sum())
        return sum(count * size for count, size in zip(self.nodes, self.tokens, strict=True))


def tree(text: str) -> TreeShape:
    """Parse a shape written as `nodes_tokens`, levels separated by commas."""
    nodes, tokens = (tuple(int(part) for part in half.split(",")) for half in text.split("_"))
    return TreeShape(nodes, tokens)


DECODE = [TreeShape((rows,), (size,)) for rows in (1, 8, 32, 128, 256) for size in (1024, 4096)]
DECODE += [TreeShape((rows,), (32768,)) for rows in (1, 8, 32)]
DECODE[4:4] = [TreeShape((32,), (8000,), shortest=200)]
TREES = [
    tree(text)
    for text in (
        "1,10_4096,416",
        "1,256_256,32",
        "1,1024_2048,32",
        "1,2,64_1024,256,256",
        "1,4,256_32,256,32",
        "1,8,512_32,2048,256",
        "1,4,8,256_32,256,256,32",
        "1,4,16,512_1024,256,128,32",
        "1,16,32,64,128,1024_256,128,64,32,32,32",
        "4,16,256,512_512,32,128,32",
    )
]
EXTEND = [TreeShape((1,), (8192,), 8192), TreeShape((1, 64), (4096, 128), 128)]
EXTEND += [TreeShape((1,), (2048,), 2048), TreeShape((16,), (2048,), 2048)]
FLEX_SHAPE = TreeShape(
    (32,), (4096,)
)  # the target shape; compiling FlexAttention for every shape would take most of a run
SHAPES = {"decode": DECODE, "trees": TREES, "extend": EXTEND}
HEADS: tuple[Heads, ...] = ((32, 8, 128), (14, 2, 64), (32, 32, 128))
LATENT: tuple[tuple[Heads, int], ...] = (((16, 1, 576), 512), ((128, 1, 576), 512))
"""Latent attention: heads over a shared line, and the elements of the line that are its value."""
SAMPLING = [(rows, vocab) for rows in (1, 32, 128) for vocab in (32000, 131072, 151936)]


@dataclass(frozen=True, slots=True)
class AttentionCase:
    """Tensors of one step; `pools` are copies of K and V, each [num_slots, num_kv_heads, size], that calls use in turn.

    In latent attention, V is a view of K.
    """

    shape: TreeShape
    q: Tensor
    pools: list[tuple[Tensor, Tensor]]
    plan_args: dict[str, Any]

    def plan(self) -> AttentionPlan:
        """The plan of the step."""
        return ops.plan_attention(**self.plan_args)

    def prepare(self) -> None:
        """All host work of a step before its first layer: plan, cut into items, start the copy."""
        from rtlang_kernels.triton.attention.paged_attention import variant_of

        variant_of(self.plan(), None, None)

    def unshared(self) -> AttentionPlan:
        """The same step without sharing between rows."""
        return ops.plan_attention(
            **(self.plan_args | {"shared_lens": np.zeros(len(self.plan_args["seq_lens"]), np.int32)})
        )

    def fixed(self) -> AttentionPlan:
        """The same step in a fixed order of sums."""
        return ops.plan_attention(**(self.plan_args | {"has_fixed_order": True}))

    def calls(self, plan: AttentionPlan) -> list[Callable[[], Tensor]]:
        """One call per copy of the pool."""
        scale = self.q.shape[2] ** -0.5
        return [partial(ops.paged_attention, self.q, pool[0], pool[1], plan, scale=scale) for pool in self.pools]


def num_sets(num_bytes: int, l2_bytes: int) -> int:
    """Number of input sets of this size to rotate over, so that reads come from memory: four times the L2 cache, if calls suffice."""
    return max(1, min(CALLS_PER_GRAPH, math.ceil(4 * l2_bytes / num_bytes)))


def attention_case(
    shape: TreeShape,
    heads: Heads,
    dtype: torch.dtype,
    device: torch.device,
    l2_bytes: int,
    rank: int | None = None,
) -> AttentionCase:
    """Random tensors of a shape; every node has consecutive pages of its own. `rank`: of latent attention."""
    num_q_heads, num_kv_heads, head_dim = heads
    rows = shape.nodes[-1]
    length = sum(shape.tokens)
    pages = [-(-size // PAGE_SIZE) for size in shape.tokens]
    table = np.zeros((rows, sum(pages)), np.int32)
    shared = np.zeros(rows, np.int64)
    used, column, is_same = 0, 0, np.ones(rows, np.bool_)
    is_same[0] = False
    for count, size, width in zip(shape.nodes, shape.tokens, pages, strict=True):
        node = np.arange(rows) * count // rows
        table[:, column : column + width] = used + node[:, None] * width + np.arange(width)
        is_same[1:] &= node[1:] == node[:-1]
        shared += np.where(is_same, size, 0)
        used, column = used + count * width, column + width
    new = shape.new_tokens
    plan_args = {
        "page_table": table,
        "seq_lens": shape.row_lengths,
        "cu_seqlens_q": np.arange(rows + 1, dtype=np.int32) * new,
        "shared_lens": np.minimum(shared, length - new if new > 1 else length).astype(np.int32),
        "page_size": PAGE_SIZE,
        "num_q_heads": num_q_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
        "dtype": dtype,
        "device": device,
    }
    generator = torch.Generator(device).manual_seed(0)
    shape_of_pool = (2 if rank is None else 1, used * PAGE_SIZE, num_kv_heads, head_dim)
    copies = num_sets(math.prod(shape_of_pool) * dtype.itemsize, l2_bytes)
    made = [torch.randn(shape_of_pool, generator=generator, device=device, dtype=dtype) for _ in range(copies)]
    pools = [(pool[0], pool[1] if rank is None else pool[0, ..., :rank]) for pool in made]
    q = torch.randn((rows * new, num_q_heads, head_dim), generator=generator, device=device, dtype=dtype)
    return AttentionCase(shape, q, pools, plan_args)


def attention_label(shape: TreeShape, heads: Heads, dtype: torch.dtype) -> str:
    """Label of a line of attention."""
    return f"{str(dtype)[6:]} {heads[0]}/{heads[1]}x{heads[2]} {shape}"
