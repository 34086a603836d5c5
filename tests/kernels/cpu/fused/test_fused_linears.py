"""Fused steps over weights of few bits, alone and beside floats: the bits of separate operations, which have tests of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape, LinearLayer
from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.cpu.codegen.linear_vectors import STEP
from rtlang_kernels.cpu.float8_linear import Float8Linear
from rtlang_kernels.cpu.fused import fused_step
from rtlang_kernels.cpu.fused.fused_linears import FusedLinears, is_supported
from rtlang_kernels.cpu.fused.fused_step import CpuFusedStep
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels.cpu.low_bit_linear import LowBitLinear, joined_linear
from rtlang_kernels.dispatch import backend_named
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.kernels.attention_cases import Step, Tree, make_step, relative_error
from tests.support.kernels.fused_steps import places, torch_threads
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, EPS, SCALE = 256, 512, 8, 2, 32, 1e-5, 0.2
SHAPE = FusedShape(torch.bfloat16, HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, EPS)
Q_SIZE, KV_SIZE = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
ANGLES = torch.arange(128)[:, None] * 0.1 ** (torch.arange(HEAD_DIM // 2) / HEAD_DIM)
TREES = {  # 1 token; 9 in tiles of 5 or 3; 40, more than the working memory has room for at first
    1: Tree([37], [1], [0], 8),
    9: Tree([20, 23, 5], [3, 1, 5], [0, 16, 0], 8),
    40: Tree([60, 50], [30, 10], [0, 24], 8),
}


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def floats(num_outputs: int, num_inputs: int, *, is_gated: bool = False) -> LinearLayer:
    weight = noise(num_outputs, num_inputs) * num_inputs**-0.5
    return PackedLinear.pack(weight.bfloat16(), noise(num_outputs, seed=1), is_gated)


def few_bits(
    name: str, num_outputs: int, num_inputs: int, *, is_gated: bool = False, in_order: bool = True
) -> LowBitLinear:
    weight = random_weight(FORMATS[name], num_outputs, num_inputs)
    if not in_order:
        order = torch.randperm(num_inputs, generator=torch.Generator().manual_seed(num_outputs))
        weight = HeldWeight(weight.format, weight.held, order)
    return LowBitLinear.pack([weight], noise(num_outputs, seed=1), is_gated, SHAPE.dtype)


def joined(names: tuple[str, ...], sizes: tuple[int, ...]) -> LinearLayer:
    made = joined_linear([few_bits(name, size, HIDDEN) for name, size in zip(names, sizes, strict=True)])
    assert made is not None
    return made


def layer(qkv: LinearLayer, output: LinearLayer, gate_up: LinearLayer, down: LinearLayer) -> FusedLayer:
    norms = [1 + noise(HIDDEN, seed=seed) / 8 for seed in (2, 3)]
    return FusedLayer(norms[0], qkv, None, noise(HEAD_DIM, seed=4), output, norms[1], gate_up, down)


def mixed_layers() -> list[FusedLayer]:
    """Formats that differ between layers, between the weights of a site, and from those that are floats."""
    return [
        layer(
            joined(("q4_k", "q4_0", "q6_k"), (Q_SIZE, KV_SIZE, KV_SIZE)),
            few_bits("q4_0", HIDDEN, Q_SIZE),
            few_bits("q4_k", 2 * INNER, HIDDEN, is_gated=True),
            few_bits("q6_k", HIDDEN, INNER),
        ),
        layer(
            floats(SHAPE.qkv_size, HIDDEN),
            few_bits("q4_0", HIDDEN, Q_SIZE, in_order=False),
            joined(("q6_k", "q4_k"), (INNER, INNER)),  # gates and factors
            floats(HIDDEN, INNER),
        ),
        layer(
            few_bits("q4_0", SHAPE.qkv_size, HIDDEN, in_order=False),
            floats(HIDDEN, Q_SIZE),
            floats(2 * INNER, HIDDEN, is_gated=True),
            few_bits("q4_0", HIDDEN, INNER),
        ),
    ]


def float8(name: str, num_outputs: int, num_inputs: int, *, is_gated: bool = False) -> LinearLayer:
    weight = random_weight(FLOAT8[name], num_outputs, num_inputs)
    return Float8Linear.pack([weight], noise(num_outputs, seed=1), is_gated, SHAPE.dtype)


class Run:
    """A step, and its pools of each layer."""

    def __init__(self, num_tokens: int, num_layers: int) -> None:
        self.step: Step = make_step(
            TREES[num_tokens],
            num_kv_heads=KV_HEADS,
            group=HEADS // KV_HEADS,
            head_dim=HEAD_DIM,
            dtype=SHAPE.dtype,
            seed=num_tokens,
        )
        self.positions, self.slots = places(self.step)
        self.residual = noise(num_tokens, HIDDEN, seed=num_tokens)
        self.k = tuple(self.step.k_pool.clone() for _ in range(num_layers))
        self.v = tuple(self.step.v_pool.clone() for _ in range(num_layers))

    def fused(self, fused: CpuFusedStep, windows: list[int | None]) -> Tensor:
        tables = self.positions, self.slots, [(ANGLES.cos(), ANGLES.sin())] * len(self.k)
        return fused.forward(self.residual, *tables, self.k, self.v, self.step.plan("cpu"), SCALE, windows)

    def separate(self, layers: list[FusedLayer], norm: Tensor, windows: list[int | None]) -> Tensor:
        """The same by the operations of the backend, one at a time."""
        backend, plan, residual = backend_named("cpu"), self.step.plan("cpu"), self.residual
        cos, sin, num = ANGLES.cos(), ANGLES.sin(), len(self.residual)
        out, lse = torch.empty(num, HEADS, HEAD_DIM, dtype=SHAPE.dtype), torch.empty(num, HEADS)
        for each, k, v, window in zip(layers, self.k, self.v, windows, strict=True):
            projected = each.qkv(backend.add_rms_norm(residual, None, each.input_norm, EPS))
            q, new_k, new_v = projected.view(num, -1, HEAD_DIM).split([HEADS, KV_HEADS, KV_HEADS], 1)
            norms = each.q_norm, each.k_norm, EPS
            backend.rope_append(q, new_k, new_v, cos, sin, self.positions, k, v, self.slots, *norms)
            backend.paged_attention(q, k, v, plan, SCALE, window, None, None, None, out, lse)
            each.output(out.view(num, -1), residual)
            gated = each.gate_up(backend.add_rms_norm(residual, None, each.post_norm, EPS))
            each.down(gated if gated.shape[1] == INNER else backend.silu_and_mul(gated), residual)
        return backend.add_rms_norm(residual, None, norm, EPS)

    @property
    def written(self) -> list[Tensor]:
        """Keys and values of the tokens of the step."""
        return [pool[self.slots] for pool in (*self.k, *self.v)]


@pytest.mark.parametrize("windows", [[None] * 3, [None, 16, None]], ids=str)
@pytest.mark.parametrize("num_tokens", TREES)
def test_every_bit_is_that_of_separate_operations(
    num_tokens: int, windows: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_step, "_MIN_TEAM_WORK", 0)
    monkeypatch.setattr(fused_step, "_SPLIT_NS", 0)
    layers, norm = mixed_layers(), noise(HIDDEN, seed=5)
    wanted = Run(num_tokens, len(layers))
    expected = wanted.separate(layers, norm, windows)
    fused = CpuFusedStep.of(SHAPE, layers, norm)
    assert fused is not None
    for threads in (1, 2, 3, 5):
        with torch_threads(threads):
            run = Run(num_tokens, len(layers))
            assert torch.equal(run.fused(fused, windows), expected)
        assert all(map(torch.equal, run.written, wanted.written))
    assert expected.isfinite().all()


@pytest.mark.parametrize("num_tokens", TREES if is_long() else [9])
def test_float8_beside_few_bits(num_tokens: int) -> None:
    layers = [
        layer(
            float8("float8 of rows", SHAPE.qkv_size, HIDDEN),
            float8("float8 of 128", HIDDEN, Q_SIZE),
            float8("float8 of 128", 2 * INNER, HIDDEN, is_gated=True),
            few_bits("q4_0", HIDDEN, INNER),
        )
    ]
    norm = noise(HIDDEN, seed=5)
    fused = CpuFusedStep.of(SHAPE, layers, norm)
    assert fused is not None
    expected = Run(num_tokens, 1).separate(layers, norm, [None])
    for _ in range(2):
        assert torch.equal(Run(num_tokens, 1).fused(fused, [None]), expected)
    assert expected.isfinite().all()


def test_numbers_of_tokens_one_after_the_other() -> None:
    layers, norm = mixed_layers(), noise(HIDDEN, seed=5)
    fused = CpuFusedStep.of(SHAPE, layers, norm)
    assert fused is not None
    states = [Run(num_tokens, 3).fused(fused, [None] * 3) for num_tokens in (1, 40, 9, 1, 40)]
    assert torch.equal(states[0], states[3])
    assert torch.equal(states[1], states[4])


def normed(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)


def test_a_step_agrees_with_float64() -> None:
    """One token that is the first of its text: attention returns its value, so no rotation and no key matters."""
    weights = {
        name: random_weight(FORMATS["q4_0"], *shape)
        for name, shape in {
            "qkv": (SHAPE.qkv_size, HIDDEN),
            "output": (HIDDEN, Q_SIZE),
            "gate_up": (2 * INNER, HIDDEN),
            "down": (HIDDEN, INNER),
        }.items()
    }
    norm = torch.ones(HIDDEN, dtype=SHAPE.dtype)
    packed = {name: LowBitLinear.pack([each], None, name == "gate_up", SHAPE.dtype) for name, each in weights.items()}
    fused = CpuFusedStep.of(
        SHAPE, [FusedLayer(input_norm=norm, q_norm=None, k_norm=None, post_norm=norm, **packed)], norm
    )
    assert fused is not None
    run = Run(1, 1)
    run.step = make_step(Tree([1], [1], [0], 8), num_kv_heads=KV_HEADS, group=4, head_dim=HEAD_DIM, dtype=SHAPE.dtype)
    run.positions, run.slots = places(run.step)
    run.k, run.v = (run.step.k_pool.clone(),), (run.step.v_pool.clone(),)
    x, exact = run.residual.double(), {name: exact_weight(each) for name, each in weights.items()}
    value = (normed(x) @ exact["qkv"].T)[:, -KV_SIZE:].view(1, KV_HEADS, 1, HEAD_DIM)
    x = x + value.expand(-1, -1, HEADS // KV_HEADS, -1).reshape(1, -1) @ exact["output"].T
    gate, up = (normed(x) @ exact["gate_up"].T).chunk(2, 1)
    x = x + (functional.silu(gate) * up) @ exact["down"].T
    assert relative_error(run.fused(fused, [None]), normed(x)) < 0.02


def joined_orders() -> LinearLayer:
    made = joined_linear([few_bits("q4_0", size, HIDDEN, in_order=False) for size in (Q_SIZE, 2 * KV_SIZE)])
    assert made is not None
    return made


def float8_in_another_order() -> LinearLayer:
    weight = random_weight(FLOAT8["float8 of rows"], 64, 64)
    order = torch.arange(63, -1, -1)
    return Float8Linear.pack([HeldWeight(weight.format, weight.held, order)], None, False, torch.bfloat16)


class Foreign:
    """A layer that this backend did not make."""

    in_features, out_features = HIDDEN, SHAPE.qkv_size


@pytest.mark.parametrize(
    "make",
    [
        joined_orders,
        lambda: LowBitLinear.pack([random_weight(FORMATS["q4_0"], 64, 64)], None, False, torch.float32),
        lambda: LowBitLinear.pack([random_weight(FORMATS["int8 of rows"], 64, 48)], None, False, torch.bfloat16),
        lambda: Float8Linear.pack([random_weight(FLOAT8["float8 of rows"], 64, 48)], None, False, torch.bfloat16),
        float8_in_another_order,
        lambda: PackedLinear.pack(torch.zeros(64, 64)),
        lambda: PackedLinear.pack(torch.zeros(64, 63, dtype=torch.bfloat16)),
        Foreign,
    ],
    ids=[
        "two orders",
        "dtype",
        "part of a group",
        "part of a group of float8",
        "order of float8",
        "dtype of floats",
        "part of a word",
        "another kind",
    ],
)
def test_what_is_not_supported(make: Callable[[], Any]) -> None:
    linear, layers = make(), mixed_layers()
    assert not is_supported(linear, SHAPE.dtype)
    changed = replace(layers[1], down=linear)
    assert CpuFusedStep.of(SHAPE, [layers[0], changed], noise(HIDDEN)) is None
    with pytest.raises(ValueError, match="layer 1: expected"):
        CpuFusedStep(SHAPE, [layers[0], changed], noise(HIDDEN))


def test_a_step_counts_the_bytes_of_its_tiles() -> None:
    results = SHAPE.qkv_size, HIDDEN, INNER, HIDDEN
    layers = [(each.qkv, each.output, each.gate_up, each.down) for each in mixed_layers()]
    linears = FusedLinears(layers, results, SHAPE.dtype)
    counted = [part.nbytes for site in sum(layers, ()) for part in getattr(site, "parts", (site,))]
    assert linears.num_bytes(1) == sum(counted)
    assert linears.num_bytes(200) > 20 * sum(counted)
    assert sum(counted) > 100 * STEP
    assert linears.has_split
    assert not FusedLinears(layers[:1], results, SHAPE.dtype).has_split


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name: str) -> None:
    layers = [
        layer(
            few_bits(name, SHAPE.qkv_size, HIDDEN),
            few_bits(name, HIDDEN, Q_SIZE),
            few_bits(name, 2 * INNER, HIDDEN, is_gated=True),
            few_bits(name, HIDDEN, INNER),
        )
    ]
    norm = noise(HIDDEN, seed=5)
    fused = CpuFusedStep.of(SHAPE, layers, norm)
    assert fused is not None
    for num_tokens in TREES:
        expected = Run(num_tokens, 1).separate(layers, norm, [None])
        assert torch.equal(Run(num_tokens, 1).fused(fused, [None]), expected)
