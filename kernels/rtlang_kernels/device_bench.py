"""What the GPU half of `python -m rtlang_kernels.bench` measures: steps of attention and of sampling, each checked first, then timed.

A floor is what this very device does at best: the larger of bytes over the copy rate and operations over the matrix rate. Inputs rotate
over sets that exceed the L2 cache several times, so reads come from memory. Preparing a step on the host is its own column. What measures
time is an argument, so all of this is tested in triton's interpreter; `device_run` has the clock, the order and the ceilings.

Peers (`device_peers`): SDPA on contiguous KV, the same with the gather from pages counted, the same kernel without sharing, FlashInfer
where it is installed, compiled FlexAttention for the shape of the target, and torch's own softmax and draw for sampling.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import device_peers, ops
from rtlang_kernels.bench_table import Line
from rtlang_kernels.columns import REFERENCE
from rtlang_kernels.plan import AttentionPlan
from rtlang_kernels.settings import SamplerSettings, checked_settings

PAGE_SIZE = 16
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 4e-3}
CALLS_PER_GRAPH = 12
Heads = tuple[int, int, int]
Measure = Callable[[Sequence[Callable[[], object]]], tuple[float, float]]  # functions in turn -> (median us, spread)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device does at best: bytes and operations per second, and microseconds of an empty launch.

    Attributes:
        noise: how much the first two differed between two measurements, relative.
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
    """A batch as levels of a prefix tree: how many nodes each level has, and how many tokens each node. The last level are the rows."""

    nodes: tuple[int, ...]
    tokens: tuple[int, ...]
    new_tokens: int = 1

    def __str__(self) -> str:
        new = "" if self.new_tokens == 1 else f" +{self.new_tokens}"
        return f"{','.join(map(str, self.nodes))}_{','.join(map(str, self.tokens))}{new}"

    @property
    def unique_tokens(self) -> int:
        """Tokens whose KV is read at least once."""
        return sum(count * size for count, size in zip(self.nodes, self.tokens, strict=True))


def tree(text: str) -> TreeShape:
    """A shape written as `nodes_tokens`, levels separated by commas."""
    nodes, tokens = (tuple(int(part) for part in half.split(",")) for half in text.split("_"))
    return TreeShape(nodes, tokens)


DECODE = [TreeShape((rows,), (size,)) for rows in (1, 8, 32, 128, 256) for size in (1024, 4096)]
DECODE += [TreeShape((rows,), (32768,)) for rows in (1, 8, 32)]
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
FLEX_SHAPE = TreeShape((32,), (4096,))  # of the target; to compile it for each shape would take most of a run
SHAPES = {"decode": DECODE, "trees": TREES, "extend": EXTEND}
HEADS: tuple[Heads, ...] = ((32, 8, 128), (14, 2, 64), (32, 32, 128))
SAMPLING = [(rows, vocab) for rows in (1, 32, 128) for vocab in (32000, 131072, 151936)]


@dataclass(frozen=True, slots=True)
class AttentionCase:
    """Tensors of one step; `pools` are copies of K and V [2, num_slots, num_kv_heads, head_dim] that calls take in turn."""

    shape: TreeShape
    q: Tensor
    pools: list[Tensor]
    plan_args: dict[str, Any]

    def plan(self) -> AttentionPlan:
        """The plan of the step."""
        return ops.plan_attention(**self.plan_args)

    def prepare(self) -> None:
        """All that the host does for a step before its first layer: plan, cut into items, begin the copy."""
        from rtlang_kernels.triton_ops.attention import variant_of

        variant_of(self.plan(), None, None)

    def unshared(self) -> AttentionPlan:
        """The same step with every row on its own."""
        return ops.plan_attention(
            **(self.plan_args | {"shared_lens": np.zeros(len(self.plan_args["seq_lens"]), np.int32)})
        )

    def calls(self, plan: AttentionPlan) -> list[Callable[[], Tensor]]:
        """One call per copy of the pool."""
        scale = self.q.shape[2] ** -0.5
        return [partial(ops.paged_attention, self.q, pool[0], pool[1], plan, scale=scale) for pool in self.pools]


def num_sets(num_bytes: int, l2_bytes: int) -> int:
    """How many sets of inputs of so many bytes calls take in turn to come from memory: four times the L2 cache, if calls suffice."""
    return max(1, min(CALLS_PER_GRAPH, math.ceil(4 * l2_bytes / num_bytes)))


def attention_case(
    shape: TreeShape, heads: Heads, dtype: torch.dtype, device: torch.device, l2_bytes: int
) -> AttentionCase:
    """Random tensors of a shape; every node has its own run of pages."""
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
        "seq_lens": np.full(rows, length, np.int32),
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
    shape_of_pool = (2, used * PAGE_SIZE, num_kv_heads, head_dim)
    copies = num_sets(math.prod(shape_of_pool) * dtype.itemsize, l2_bytes)
    pools = [torch.randn(shape_of_pool, generator=generator, device=device, dtype=dtype) for _ in range(copies)]
    q = torch.randn((rows * new, num_q_heads, head_dim), generator=generator, device=device, dtype=dtype)
    return AttentionCase(shape, q, pools, plan_args)


def attention_error(case: AttentionCase, plan: AttentionPlan) -> float:
    """Relative error against the reference on the same tensors, which is float32 throughout."""
    pool, scale = case.pools[0], case.q.shape[2] ** -0.5
    got = ops.paged_attention(case.q, pool[0], pool[1], plan, scale=scale)
    want = torch.empty(got.shape, dtype=torch.float32, device=got.device)
    lse = torch.empty(got.shape[:2], dtype=torch.float32, device=got.device)
    REFERENCE.paged_attention(case.q, pool[0], pool[1], plan, scale, None, None, None, None, want, lse)
    return float((got.float() - want).norm() / want.norm())


def attention_floor_us(case: AttentionCase, ceilings: Ceilings) -> float:
    """What reading each key once, or multiplying it with every query that sees it, takes at best."""
    num_tokens, num_q_heads, head_dim = case.q.shape
    num_kv_heads, item, new = case.plan_args["num_kv_heads"], case.q.element_size(), case.shape.new_tokens
    seen = case.shape.nodes[-1] * new * (sum(case.shape.tokens) - (new - 1) / 2)  # keys over all tokens
    num_bytes = (
        case.shape.unique_tokens * 2 * num_kv_heads * head_dim * item + 2 * num_tokens * num_q_heads * head_dim * item
    )
    floor: float = 1e6 * max(num_bytes / ceilings.bytes_per_s, 4 * num_q_heads * head_dim * seen / ceilings.flops_per_s)
    return floor


def host_us(function: Callable[[], object], repeats: int = 20) -> float:
    """Median wall time of something the host does."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def attention_label(shape: TreeShape, heads: Heads, dtype: torch.dtype) -> str:
    """What a line of attention is about."""
    return f"{str(dtype)[6:]} {heads[0]}/{heads[1]}x{heads[2]} {shape}"


def attention_lines(
    shapes: Sequence[TreeShape],
    heads: Heads,
    dtype: torch.dtype,
    device: torch.device,
    ceilings: Ceilings,
    measure: Measure,
) -> Iterator[Line]:
    """Check and time attention over some shapes.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    for shape in shapes:
        case = attention_case(shape, heads, dtype, device, ceilings.l2_bytes)
        plan = case.plan()
        error = attention_error(case, plan)
        label = attention_label(shape, heads, dtype)
        if not error < TOLERANCE[dtype]:
            raise ArithmeticError(f"attention {label}: error {error:.1e}")
        ours, spread = measure(case.calls(plan))
        peers = {}
        if len(shape.nodes) > 1:
            peers["unshared"] = measure(case.calls(case.unshared()))[0]
        if shape.new_tokens == 1 and shape.nodes[-1] * sum(shape.tokens) <= 1 << 20:
            peers |= device_peers.sdpa(case, measure)
        if shape == FLEX_SHAPE and dtype == torch.bfloat16:
            peers |= device_peers.flex(case, measure, TOLERANCE[dtype])
        if shape.new_tokens == 1 and dtype != torch.float32:
            peers |= device_peers.flashinfer(case, measure, TOLERANCE[dtype])
        group = "extend" if shape.new_tokens > 1 else "trees" if len(shape.nodes) > 1 else "decode"
        floor = attention_floor_us(case, ceilings)
        yield Line(group, label, ours, spread, host_us(case.prepare), floor, peers, error)


FILTERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("", {}),
    (" top-k 50 top-p 0.9", {"top_k": 50, "top_p": 0.9}),
    (" top-p 0.9", {"top_p": 0.9}),
)
CHECKED_ROWS = 8  # of a batch of draws: the reference makes all noise of a row in numpy


def sampling_cases(shapes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, bool, str, dict[str, float]]]:
    """The first arguments of `sampling_line` for (rows, vocabulary): with and without mask and filters."""
    for rows, vocab_size in shapes:
        for has_mask in (False, True):
            for name, filters in FILTERS:
                yield rows, vocab_size, has_mask, name, filters


def sampling_line(
    rows: int,
    vocab_size: int,
    has_mask: bool,
    name: str,
    filters: dict[str, float],
    dtype: torch.dtype,
    device: torch.device,
    ceilings: Ceilings,
    measure: Measure,
) -> Line:
    """Check and time sampling.

    Raises:
        ArithmeticError: a token differs from the reference's.
    """
    from rtlang_kernels.triton_ops import sampling

    generator = torch.Generator(device).manual_seed(0)
    num_bytes = rows * vocab_size * dtype.itemsize
    copies = num_sets(num_bytes, ceilings.l2_bytes)
    shape = (rows, vocab_size)
    sets = [torch.randn(shape, generator=generator, device=device).mul_(3).to(dtype) for _ in range(copies)]
    masks = np.random.default_rng(0).integers(-(2**31), 2**31, (1, -(-vocab_size // 32))).astype(np.int32)
    full = {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | filters

    def settings_of(count: int) -> SamplerSettings:
        return checked_settings(
            count,
            vocab_size,
            temperature=np.full(count, 0.8),
            top_k=np.full(count, full["top_k"]),
            top_p=np.full(count, full["top_p"]),
            min_p=np.full(count, full["min_p"]),
            seeds=np.arange(count),
            choices=np.zeros(count),
            steps=np.arange(count),
            bitmask=masks if has_mask else None,
            mask_rows=np.zeros(count) if has_mask else None,
        )

    label = f"{str(dtype)[6:]} {rows} x {vocab_size}{' masked' if has_mask else ''}{name}"
    settings, checked = settings_of(rows), min(rows, CHECKED_ROWS)
    staged = sampling.stage(settings, device)
    tokens = sampling.draw(sets[0], staged)[0][:checked].cpu()
    want, _ = REFERENCE.sample(sets[0][:checked].cpu(), settings_of(checked))
    if not torch.equal(tokens, want):
        raise ArithmeticError(f"sampling {label}: {int((tokens != want).sum())} of {checked} tokens differ")
    ours, spread = measure([partial(sampling.draw, logits, staged) for logits in sets])
    floor = 1e6 * (num_bytes + has_mask * rows * vocab_size / 8) / ceilings.bytes_per_s
    peers = {} if name or has_mask else device_peers.plain_sampling(sets, 0.8, measure)
    host = host_us(partial(sampling.stage, settings, device))
    return Line("sampling", label, ours, spread, host, floor, peers, 0.0)
