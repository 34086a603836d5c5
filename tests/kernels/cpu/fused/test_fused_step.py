"""The fused step against float64: ragged steps over shared pages, with every option of a layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape
from rtlang_kernels.cpu import layer_ops, linear
from rtlang_kernels.cpu.codegen.tile_vectors import EMULATED
from rtlang_kernels.cpu.fused import fused_step
from rtlang_kernels.cpu.fused.fused_step import CpuFusedStep
from rtlang_kernels.cpu.linear import PackedLinear, code_for, tile_code
from rtlang_kernels.dispatch import BACKENDS, backend_named
from tests.support.kernels.attention_cases import Step, Tree, exact, in_int8, lines_of, make_step, relative_error
from tests.support.kernels.fused_steps import places, torch_threads

HIDDEN, INNER, NUM_LAYERS, LONGEST, EPS = 64, 96, 3, 64, 1e-5
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2e-2}
TREES = {
    "one token": Tree([37], [1], [0], 8),
    "first token": Tree([1], [1], [0], 8),
    "four rows": Tree([37, 40, 9, 1], [1, 1, 1, 1], [0, 32, 8, 0], 8),
    "ragged": Tree([20, 23, 5], [3, 1, 4], [0, 16, 0], 8),
}

Weights = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Layer:
    """Plain weights of a layer."""

    input_norm: Tensor | None
    qkv: Weights
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Weights
    post_norm: Tensor | None
    gate_up: Weights
    down: Weights
    output_norm: Tensor | None = None
    down_norm: Tensor | None = None

    def packed(self, *, is_gelu: bool = False) -> FusedLayer:
        """The same for the fused step."""
        qkv, output, down = (PackedLinear.pack(*weights) for weights in (self.qkv, self.output, self.down))
        gate_up = PackedLinear.pack(*self.gate_up, not is_gelu)
        before = self.input_norm, qkv, self.q_norm, self.k_norm, output
        return FusedLayer(*before, self.post_norm, gate_up, down, self.output_norm, self.down_norm)


class Model:
    """Random weights, and the same forward pass in float64, one operation at a time."""

    def __init__(
        self, dtype: torch.dtype, num_kv_heads: int, group: int, head_dim: int, has_bias: bool, has_qk_norm: bool
    ) -> None:
        self.shape = FusedShape(dtype, HIDDEN, INNER, num_kv_heads * group, num_kv_heads, head_dim, EPS)
        self._generator = torch.Generator().manual_seed(head_dim)
        shape = self.shape

        def linear(num_outputs: int, num_inputs: int) -> Weights:
            bias = self.random(num_outputs) if has_bias else None
            return (self.random(num_outputs, num_inputs) * num_inputs**-0.5).to(dtype), bias

        self.layers = [
            Layer(
                input_norm=self.random(HIDDEN),
                qkv=linear(shape.qkv_size, HIDDEN),
                q_norm=self.random(head_dim) if has_qk_norm else None,
                k_norm=self.random(head_dim) if has_qk_norm else None,
                output=linear(HIDDEN, shape.q_size),
                post_norm=self.random(HIDDEN),
                gate_up=linear(2 * INNER, HIDDEN),
                down=linear(HIDDEN, INNER),
            )
            for _ in range(NUM_LAYERS)
        ]
        self.norm = self.random(HIDDEN)
        angles = torch.arange(LONGEST)[:, None] * 0.1 ** (torch.arange(head_dim // 2) / head_dim)
        self.cos, self.sin = angles.cos(), angles.sin()
        self.rotations = [(self.cos, self.sin)] * NUM_LAYERS

    def fused(self) -> CpuFusedStep:
        """The fused step of these weights."""
        is_gelu = self.shape.is_gelu
        return CpuFusedStep(self.shape, [layer.packed(is_gelu=is_gelu) for layer in self.layers], self.norm)

    def random(self, *shape: int) -> Tensor:
        """Random numbers in the model's type."""
        return torch.randn(shape, generator=self._generator).to(self.shape.dtype)

    def exact(
        self, residual: Tensor, step: Step, positions: Tensor, slots: Tensor, windows: list[int | None]
    ) -> Tensor:
        """The normed states in float64; the pools of the step are left as they are."""
        shape, x = self.shape, residual.double()
        for layer, window, rotation in zip(self.layers, windows, self.rotations, strict=True):
            projected = _linear(_normed(x, layer.input_norm), layer.qkv)
            q, k, v = projected.split_with_sizes([shape.q_size, shape.kv_size, shape.kv_size], 1)
            k_pool, v_pool, kept = step.k_pool.double(), step.v_pool.double(), slots >= 0
            k_pool[slots[kept]] = self._rotated(k, layer.k_norm, positions, rotation)[kept]
            v_pool[slots[kept]] = v.reshape(len(x), -1, shape.head_dim)[kept]
            moved = replace(step, q=self._rotated(q, layer.q_norm, positions, rotation), k_pool=k_pool, v_pool=v_pool)
            options = {"sliding_window": window, "soft_cap": shape.soft_cap}
            attended, _ = exact(moved, scale=shape.head_dim**-0.5, **options)
            branch = _normed(_linear(attended.view(len(x), -1), layer.output), layer.output_norm)
            x = x + shape.residual_factor * branch
            gate, up = _linear(_normed(x, layer.post_norm), layer.gate_up).chunk(2, dim=1)
            gate = functional.gelu(gate, approximate="tanh") if shape.is_gelu else functional.silu(gate)
            x = x + shape.residual_factor * _normed(_linear(gate * up, layer.down), layer.down_norm)
        return _normed(x, self.norm)

    def _rotated(
        self, heads: Tensor, norm: Tensor | None, positions: Tensor, rotation: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Heads [num_tokens, size] as [num_tokens, num_heads, head_dim], normed each or together, and rotated."""
        head_dim, num = self.shape.head_dim, self.shape.rotary_size
        if norm is not None and len(norm) != head_dim:
            heads, norm = _normed(heads, norm), None
        heads = _normed(heads.reshape(len(heads), -1, head_dim), norm)
        a, b = heads[..., :num].chunk(2, dim=2)
        c, s = (each[positions, None].double() for each in rotation)
        return torch.cat((a * c - b * s, b * c + a * s, heads[..., num:]), dim=2)


def _normed(x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return x
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight.double()


def _linear(x: Tensor, weights: Weights) -> Tensor:
    weight, bias = weights
    return functional.linear(x, weight.double(), None if bias is None else bias.double())


def check(model: Model, tree: Tree, windows: list[int | None], replayed: slice = slice(0)) -> None:
    """Compare the fused step with float64; runs it twice with one object, on separate pools. K and V of `replayed` are there already."""
    shape = model.shape
    fused = model.fused()
    heads = {"num_kv_heads": shape.num_kv_heads, "group": shape.num_q_heads // shape.num_kv_heads}
    for seed in range(2):
        step = make_step(tree, head_dim=shape.head_dim, dtype=shape.dtype, seed=seed, **heads)
        positions, slots = places(step)
        slots[replayed] = -1
        residual = model.random(len(positions), HIDDEN)
        want = model.exact(residual, step, positions, slots, windows)
        k_pools = tuple(step.k_pool.clone() for _ in windows)
        v_pools = tuple(step.v_pool.clone() for _ in windows)
        scale = shape.head_dim**-0.5
        got = fused.forward(
            residual, positions, slots, model.rotations, k_pools, v_pools, step.plan("cpu"), scale, windows
        )
        assert got.dtype == shape.dtype
        assert relative_error(got, want) < TOLERANCE[shape.dtype]
        slots = slots[slots >= 0]
        others = torch.ones(len(step.k_pool), dtype=torch.bool)
        others[slots] = False
        for pool, before in [*((p, step.k_pool) for p in k_pools), *((p, step.v_pool) for p in v_pools)]:
            assert torch.equal(pool[others].nan_to_num(), before[others].nan_to_num())
            assert not bool((pool[slots] == before[slots]).all())


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize(
    "options",
    [
        {"num_kv_heads": 2, "group": 2, "head_dim": 16, "has_bias": False, "has_qk_norm": False},
        {"num_kv_heads": 1, "group": 4, "head_dim": 32, "has_bias": True, "has_qk_norm": True},
    ],
    ids=["plain", "biases and norms"],
)
def test_every_step_agrees_with_float64(options: dict[str, Any], tree: Tree, dtype: torch.dtype) -> None:
    check(Model(dtype, **options), tree, [None] * NUM_LAYERS)


VARIANTS: dict[str, dict[str, Any]] = {
    "gelu": {"is_gelu": True},
    "partial rotation": {"rotary_dim": 8},
    "scaled branches": {"residual_factor": 0.22},
    "soft cap": {"soft_cap": 2.0},
    "norms of branches too": {"has_branch_norms": True},
    "norms of branches only": {"has_branch_norms": True, "has_input_norms": False},
    "norms of all heads together": {"has_wide_norms": True},
    "norms of float32": {"has_branch_norms": True, "has_float_norms": True},
    "layers with other rotations": {"has_own_rotations": True},
    "all": {
        "is_gelu": True,
        "rotary_dim": 12,
        "residual_factor": 0.5,
        "soft_cap": 3.0,
        "has_branch_norms": True,
        "has_wide_norms": True,
        "has_float_norms": True,
        "has_own_rotations": True,
    },
}


def variant(
    dtype: torch.dtype,
    *,
    has_branch_norms: bool = False,
    has_input_norms: bool = True,
    has_wide_norms: bool = False,
    has_float_norms: bool = False,
    has_own_rotations: bool = False,
    **entries: Any,
) -> Model:
    """A model with entries of its shape, and norms and rotations of its layers, that a Llama does not have."""
    model = Model(dtype, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    shape = model.shape = replace(model.shape, **entries)

    def norm(size: int) -> Tensor:
        weight = model.random(size).float()
        return weight if has_float_norms else weight.to(dtype)

    for index, layer in enumerate(model.layers):
        model.layers[index] = replace(
            layer,
            input_norm=norm(HIDDEN) if has_input_norms else None,
            post_norm=norm(HIDDEN) if has_input_norms else None,
            output_norm=norm(HIDDEN) if has_branch_norms else None,
            down_norm=norm(HIDDEN) if has_branch_norms else None,
            q_norm=norm(shape.q_size) if has_wide_norms else None,
            k_norm=norm(shape.kv_size) if has_wide_norms else None,
        )
    model.norm = norm(HIDDEN)
    half = shape.rotary_size // 2
    bases = [0.1, 0.03, 0.3] if has_own_rotations else [0.1] * NUM_LAYERS
    angles = [torch.arange(LONGEST)[:, None] * base ** (torch.arange(half) / shape.head_dim) for base in bases]
    model.rotations = [(each.cos(), each.sin()) for each in angles]
    return model


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_layers_of_other_families_agree_with_float64(options: dict[str, Any], dtype: torch.dtype) -> None:
    check(variant(dtype, **options), TREES["ragged"], [None, 10, None])


def test_layers_of_other_families_have_the_same_bits_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fused_step, "_MIN_TEAM_WORK", 0)
    model = variant(torch.bfloat16, **VARIANTS["all"])
    fused, step = model.fused(), make_step(TREES["ragged"], num_kv_heads=2, group=2, head_dim=16, dtype=torch.bfloat16)
    positions, slots = places(step)
    residual, found = model.random(len(positions), HIDDEN), []
    for count in (1, 3):
        with torch_threads(count):
            pools = [tuple(pool.clone() for _ in range(NUM_LAYERS)) for pool in (step.k_pool, step.v_pool)]
            given = positions, slots, model.rotations, *pools, step.plan("cpu")
            found.append(fused.forward(residual.clone(), *given, 0.25, [None] * NUM_LAYERS))
    assert torch.equal(*found)


def test_layers_that_the_step_cannot_compute_are_refused() -> None:
    model = variant(torch.bfloat16)
    layers = [layer.packed() for layer in model.layers]
    with pytest.raises(ValueError, match="gate_up"):
        CpuFusedStep(replace(model.shape, is_gelu=True), layers, model.norm)
    with pytest.raises(ValueError, match="norms"):
        CpuFusedStep(model.shape, layers, model.norm.float())


@pytest.mark.parametrize("windows", [[10] * 3, [None, 10, None], [60, None, 61]], ids=str)
def test_windows_of_layers(windows: list[int | None]) -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    for tree in (TREES["four rows"], TREES["ragged"]):
        check(model, tree, windows)


def test_replayed_tokens_read_the_pages_and_do_not_write_them() -> None:
    """The second row begins inside the pages that it shares with the first one."""
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=True)
    tree = Tree([20, 23, 9], [3, 12, 9], [0, 16, 8], 8)
    check(model, tree, [None, 10, None], replayed=slice(3, 8))


def test_attention_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_step, "_MIN_TEAM_WORK", 0)
    monkeypatch.setattr(fused_step, "_SPLIT_NS", 0)
    with torch_threads(3):
        model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
        check(model, TREES["four rows"], [None] * NUM_LAYERS)


def test_working_memory_grows_with_the_step() -> None:
    model = Model(torch.bfloat16, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    lengths = [4] * 10  # 40 tokens: more than the memory has room for at first
    check(model, Tree(lengths, lengths, [0] * len(lengths), 8), [None] * NUM_LAYERS)


def test_a_step_in_matrix_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "code_for", lambda *types: tile_code(code_for(*types), EMULATED))
    model = Model(torch.bfloat16, num_kv_heads=2, group=2, head_dim=16, has_bias=True, has_qk_norm=False)
    for tree in (TREES["one token"], TREES["ragged"], Tree([60, 60], [35, 35], [0, 24], 8)):
        check(model, tree, [None] * NUM_LAYERS)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 65},
        {"intermediate_size": 97},
        {"head_dim": 17},
        {"head_dim": 8, "num_q_heads": 3, "num_kv_heads": 2},
        {"num_q_heads": 2, "num_kv_heads": 4},
        {"dtype": torch.float16},
    ],
    ids=str,
)
def test_unsupported_shapes(change: dict[str, Any]) -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    assert model.shape.is_supported
    shape = replace(model.shape, **change)
    assert not shape.is_supported
    with pytest.raises(ValueError, match="is_supported"):
        CpuFusedStep(shape, [layer.packed() for layer in model.layers], model.norm)


def test_one_backend_offers_the_fused_step() -> None:
    assert [backend_named(name).fused_step is not None for name in BACKENDS] == [name == "cpu" for name in BACKENDS]


def test_num_bytes_counts_the_packed_weights() -> None:
    model = Model(torch.bfloat16, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    linear = [weight for layer in model.layers for weight, _ in (layer.qkv, layer.output, layer.gate_up, layer.down)]
    assert model.shape.num_bytes(NUM_LAYERS, 131) == sum(weight.nbytes for weight in linear) + 131 * HIDDEN * 2


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64], ids=str)
def test_the_default_dtype_of_torch_has_no_effect(default: torch.dtype) -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    layer_ops._ones.cache_clear()
    torch.set_default_dtype(default)
    try:
        check(model, TREES["ragged"], [None] * NUM_LAYERS)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("windows", [[None] * NUM_LAYERS, [None, 10, None]], ids=str)
def test_threads_change_no_bit(threads: int, windows: list[int | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_step, "_MIN_TEAM_WORK", 0)
    monkeypatch.setattr(fused_step, "_SPLIT_NS", 0)
    model = Model(torch.bfloat16, num_kv_heads=2, group=2, head_dim=16, has_bias=True, has_qk_norm=True)
    fused = model.fused()
    for tree in TREES.values():
        step = make_step(tree, num_kv_heads=2, group=2, head_dim=16, dtype=torch.bfloat16)
        positions, slots = places(step)
        residual = model.random(len(positions), HIDDEN)
        found = []
        for count in (1, threads):
            with torch_threads(count):
                pools = [tuple(pool.clone() for _ in range(NUM_LAYERS)) for pool in (step.k_pool, step.v_pool)]
                state = fused.forward(
                    residual.clone(),
                    positions,
                    slots,
                    model.rotations,
                    *pools,
                    step.plan("cpu"),
                    0.25,
                    windows,
                )
            found.append([state, *(pool[slots] for kind in pools for pool in kind)])
        for one, several in zip(*found, strict=True):
            assert torch.equal(one, several)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_a_step_over_pools_of_int8_has_the_bits_of_separate_operations(dtype: torch.dtype) -> None:
    """And the pools that it writes have them as well; the same object computes with both kinds of pools."""
    model = Model(dtype, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=True)
    fused, backend = model.fused(), backend_named("cpu")
    for tree in (TREES["four rows"], TREES["ragged"]):
        plain = make_step(tree, num_kv_heads=2, group=2, head_dim=16, dtype=dtype)
        step = in_int8(plain)
        positions, slots = places(step)
        residual = model.random(len(positions), HIDDEN)
        pools = [[lines_of(pool).clone()[..., :16] for _ in model.layers] for pool in (step.k_pool, step.v_pool)]
        others = [[lines_of(pool).clone()[..., :16] for pool in kind] for kind in pools]
        windows, rope = [None] * NUM_LAYERS, (model.cos, model.sin)
        given = tuple(pools[0]), tuple(pools[1])
        got = fused.forward(
            residual.clone(), positions, slots, model.rotations, *given, step.plan("cpu"), 0.25, windows
        )
        x, plan, sizes = residual.clone(), step.plan("cpu"), [4, 2, 2]
        for layer, k_pool, v_pool in zip(model.layers, *others, strict=True):
            packed, heads = layer.packed(), (len(x), 8, 16)
            h = backend.add_rms_norm(x, None, layer.input_norm, EPS)
            q, k, v = packed.qkv(h).view(heads).split_with_sizes(sizes, 1)
            norms = layer.q_norm, layer.k_norm
            backend.rope_append(q, k, v, *rope, positions, k_pool, v_pool, slots, *norms, EPS)
            out, lse = torch.empty((len(x), 4, 16), dtype=dtype), torch.empty((len(x), 4))
            backend.paged_attention(q, k_pool, v_pool, plan, 0.25, None, None, None, None, out, lse)
            packed.output(out.view(len(x), -1), x)
            packed.down(packed.gate_up(backend.add_rms_norm(x, None, layer.post_norm, EPS)), x)
        assert torch.equal(got, backend.add_rms_norm(x, None, model.norm, EPS))
        for written, expected in zip((*pools[0], *pools[1]), (*others[0], *others[1]), strict=True):
            assert torch.equal(lines_of(written), lines_of(expected))
        near = tuple(plain.k_pool.clone() for _ in windows), tuple(plain.v_pool.clone() for _ in windows)
        want = fused.forward(
            residual.clone(), positions, slots, model.rotations, *near, plain.plan("cpu"), 0.25, windows
        )
        assert 1e-4 < relative_error(got, want.double()) < 3e-2


def test_models_of_one_shape_have_pools_of_their_own_kinds() -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    plain = make_step(TREES["four rows"], num_kv_heads=2, group=2, head_dim=16)
    step = in_int8(plain)
    positions, slots = places(step)
    near = tuple(plain.k_pool.clone() for _ in model.layers), tuple(plain.v_pool.clone() for _ in model.layers)
    k_lines, v_lines = (
        tuple(lines_of(pool).clone()[..., :16] for _ in model.layers) for pool in (step.k_pool, step.v_pool)
    )
    fused, other, residual = model.fused(), model.fused(), model.random(len(positions), HIDDEN)

    def state(fused: CpuFusedStep, pools: tuple[tuple[Tensor, ...], tuple[Tensor, ...]], plan: AttentionPlan) -> Tensor:
        places_of_tokens = positions, slots, model.rotations
        return fused.forward(residual.clone(), *places_of_tokens, *pools, plan, 0.25, [None] * NUM_LAYERS)

    before = state(fused, near, plain.plan("cpu"))
    state(other, (k_lines, v_lines), step.plan("cpu"))
    assert torch.equal(state(fused, near, plain.plan("cpu")), before)


def test_a_team_works_on_steps_that_are_large_enough() -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    fused = model.fused()
    assert [fused.is_worthwhile(tokens) for tokens in (1, fused.max_tokens, fused.max_tokens + 1)] == [
        True,
        True,
        False,
    ]
    with torch_threads(3):
        assert fused._num_threads(1) == 1
        height = model.layers[0].packed().down.code.max_rows
        enough = fused_step._MIN_TEAM_WORK // model.shape.num_bytes(NUM_LAYERS, 0) * height
        assert fused._num_threads(enough // 2) == 1
        assert fused._num_threads(enough + 2 * height) == 3


def test_earlier_steps_leave_no_state() -> None:
    model = Model(torch.float32, num_kv_heads=2, group=2, head_dim=16, has_bias=False, has_qk_norm=False)
    fused = model.fused()
    results = []
    for tree in (TREES["one token"], TREES["four rows"], TREES["one token"]):
        step = make_step(tree, num_kv_heads=2, group=2, head_dim=16)
        positions, slots = places(step)
        pools = [tuple(pool.clone() for _ in range(NUM_LAYERS)) for pool in (step.k_pool, step.v_pool)]
        residual = torch.from_numpy(np.random.default_rng(0).standard_normal((len(positions), HIDDEN), np.float32))
        windows = [None] * NUM_LAYERS
        results.append(
            fused.forward(residual, positions, slots, model.rotations, *pools, step.plan("cpu"), 0.25, windows)
        )
    assert torch.equal(results[0], results[2])
