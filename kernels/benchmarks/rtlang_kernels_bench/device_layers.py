"""GPU benchmark of the small kernels of a layer: norm of the residual, gated activation, rotation with KV append.

Each is checked against the reference on the same tensors, then timed in the same way as attention, beside the reference compiled
by `torch.compile`. A floor is bytes over the copy rate. Shapes are those of a decode step of an 8B model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.dispatch import REFERENCE
from rtlang_kernels_bench import baselines
from rtlang_kernels_bench.device_cases import TOLERANCE, Ceilings, Measure, num_sets
from rtlang_kernels_bench.table import Line

ROWS = (1, 32, 128)
EPS = 1e-6


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Sizes of a layer of a model."""

    hidden_size: int = 4096
    mlp_size: int = 14336
    num_q_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128


Call = Callable[..., Tensor | None]


@dataclass(frozen=True, slots=True)
class LayerCase:
    """One kernel and its reference, which take the same tensors; the tensors that they write, and the least bytes they move."""

    name: str
    ours: Call
    definition: Call
    tensors: Callable[[], tuple[Tensor, ...]]
    written: tuple[int, ...]
    num_bytes: int


def cases(rows: int, shape: LayerShape, dtype: torch.dtype, device: torch.device) -> list[LayerCase]:
    """The kernels of a step of `rows` rows."""
    generator = torch.Generator(device).manual_seed(0)
    item, dim = dtype.itemsize, shape.head_dim
    q_size, kv_size = shape.num_q_heads * dim, shape.num_kv_heads * dim
    weight = torch.randn(shape.hidden_size, generator=generator, device=device).to(dtype)
    angles = torch.outer(torch.arange(rows + 1.0), 10_000.0 ** -torch.linspace(0, 1, dim // 2)).to(device)
    cos, sin, positions = angles.cos(), angles.sin(), torch.arange(rows, device=device)

    def random(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, device=device).to(dtype)

    def heads() -> tuple[Tensor, ...]:
        kv = (rows, shape.num_kv_heads, dim)
        return random(rows, shape.num_q_heads, dim), random(*kv), random(*kv), torch.zeros_like(random(2, *kv))

    def norm(x: Tensor, residual: Tensor) -> Tensor:
        return ops.add_rms_norm(x, residual, weight, EPS)

    def plain_norm(x: Tensor, residual: Tensor) -> Tensor:
        return REFERENCE.add_rms_norm(x, residual, weight, EPS)

    def rope(q: Tensor, k: Tensor, v: Tensor, pool: Tensor) -> None:
        ops.rope_append(q, k, v, cos, sin, positions, pool[0], pool[1], positions)

    def plain_rope(q: Tensor, k: Tensor, v: Tensor, pool: Tensor) -> None:
        REFERENCE.rope_append(q, k, v, cos, sin, positions, pool[0], pool[1], positions, None, None, EPS)

    hidden, mlp = shape.hidden_size, shape.mlp_size
    return [
        LayerCase(
            f"add_rms_norm {rows} x {hidden}",
            norm,
            plain_norm,
            lambda: (random(rows, hidden), random(rows, hidden)),
            (1,),
            4 * rows * hidden * item,
        ),
        LayerCase(
            f"silu_and_mul {rows} x {mlp}",
            ops.silu_and_mul,
            REFERENCE.silu_and_mul,
            lambda: (random(rows, 2 * mlp),),
            (),
            3 * rows * mlp * item,
        ),
        LayerCase(
            f"rope_append {rows} x {shape.num_q_heads}/{shape.num_kv_heads}x{dim}",
            rope,
            plain_rope,
            heads,
            (0, 3),
            rows * (2 * q_size + 4 * kv_size) * item,
        ),
    ]


def layer_lines(
    rows: int, shape: LayerShape, dtype: torch.dtype, device: torch.device, ceilings: Ceilings, measure: Measure
) -> Iterator[Line]:
    """Check and time the kernels of a step of `rows` rows.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    for case in cases(rows, shape, dtype, device):
        label = f"{str(dtype)[6:]} {case.name}"
        error = error_of(case)
        if not error < TOLERANCE[dtype]:
            raise ArithmeticError(f"layers {label}: error {error:.1e}")
        sets = [case.tensors() for _ in range(num_sets(case.num_bytes, ceilings.l2_bytes))]
        ours, spread = measure([partial(case.ours, *tensors) for tensors in sets])
        peers = baselines.compiled(case.definition, sets, measure)
        yield Line("layers", label, ours, spread, 0.0, 1e6 * case.num_bytes / ceilings.bytes_per_s, peers, error)


def error_of(case: LayerCase) -> float:
    """Largest relative error of results and written tensors against the reference."""
    tensors = case.tensors()
    mine, theirs = ([tensor.clone() for tensor in tensors] for _ in range(2))
    got, want = case.ours(*mine), case.definition(*theirs)
    pairs = [(mine[index], theirs[index]) for index in case.written]
    if got is not None and want is not None:
        pairs.append((got, want))
    return max(float((a.float() - b.float()).norm() / b.float().norm()) for a, b in pairs)
