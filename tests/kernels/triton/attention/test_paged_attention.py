"""GPU attention against float64, in Triton's interpreter, or natively with RTLANG_TEST_DEVICE=cuda."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime.errors import OutOfResources

from rtlang_kernels import ops
from rtlang_kernels.planning.work_items import PARTIAL, schedule
from rtlang_kernels.triton.attention import paged_attention
from tests.support.kernels.attention_cases import (
    Step,
    Tree,
    exact,
    latent_step,
    make_step,
    random_tree,
    relative_error,
    use_backend,
)
from tests.support.kernels.gpu import DEVICE, IS_INTERPRETED, TOLERANCE, on_device, planned

SPLIT = {"min_shared": 1, "min_split": 16, "min_saving_ratio": 0.0}  # shares and splits as much as possible


def check(step: Step, **options: Any) -> paged_attention.Work:
    """Compare a step with float64; returns its plan."""
    there = on_device(step)
    plan = planned(there)
    scale = step.q.shape[2] ** -0.5
    shape = (*step.q.shape[:2], step.v_pool.shape[2])
    poisoned = torch.full(shape, float("nan"), dtype=step.q.dtype, device=DEVICE)
    moved = {key: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    out, lse = ops.paged_attention_with_lse(
        there.q, there.k_pool, there.v_pool, plan, scale=scale, out=poisoned, **moved
    )
    want, want_lse = exact(step, scale=scale, **options)
    tolerance = TOLERANCE[step.q.dtype]
    assert relative_error(out.cpu(), want) < tolerance
    assert float((lse.cpu().double() - want_lse).abs().max()) < max(20 * tolerance * tolerance, 2e-5)
    work: paged_attention.Work = plan.work
    return work


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make every plan of the test share and split according to these options."""

    def choose(**options: float) -> None:
        monkeypatch.setattr(paged_attention, "schedule", partial(schedule, **(SPLIT | options)))

    return choose


@pytest.mark.parametrize(
    ("dtype", "group", "head_dim"),
    [
        (torch.float32, 7, 64),
        (torch.float16, 7, 64),
        (torch.bfloat16, 7, 64),
        (torch.bfloat16, 1, 128),
        (torch.float16, 2, 80),
        (torch.float32, 4, 96),
        (torch.bfloat16, 8, 256),
        (torch.float32, 3, 8),
    ],
    ids=str,
)
def test_random_trees_agree_with_float64(
    dtype: torch.dtype, group: int, head_dim: int, split: Callable[..., None]
) -> None:
    rng = np.random.default_rng(group * 1000 + head_dim)
    tree = random_tree(rng, num_rows=4, longest=60, page_size=16, extend=True)
    split()
    check(make_step(tree, num_kv_heads=2 if group < 8 else 1, group=group, head_dim=head_dim, dtype=dtype))


@pytest.mark.parametrize("is_split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sliding_window": 20},
        {"chunk_size": 32},
        {"soft_cap": 2.0},
        {"sinks": True},
        {"sliding_window": 40, "soft_cap": 3.0, "sinks": True},
    ],
    ids=str,
)
def test_options_agree_with_float64(is_split: bool, options: dict[str, Any], split: Callable[..., None]) -> None:
    tree = random_tree(np.random.default_rng(7), num_rows=6, longest=80, page_size=8, extend=True)
    if is_split:
        split()
    given = dict(options)
    if given.get("sinks"):
        given["sinks"] = torch.randn(4, generator=torch.Generator().manual_seed(1))
    work = check(make_step(tree, num_kv_heads=2, group=2, head_dim=16), **given)
    (variant,) = work.variants.values()
    assert (variant.num_partials > 0) == is_split


def test_full_tiles_and_edges_on_both_sides(split: Callable[..., None]) -> None:
    """A window that starts inside the keys, long enough for tiles visible to every token."""
    tree = Tree([400, 260], [12, 1], [0, 224], 16)
    step = make_step(tree, num_kv_heads=1, group=2, head_dim=32)
    check(step, sliding_window=215)
    check(step)
    split(min_split=64)
    check(step)


def test_a_token_with_many_heads_fills_a_tile() -> None:
    tree = random_tree(np.random.default_rng(1), num_rows=3, longest=24, page_size=16, extend=True)
    check(make_step(tree, num_kv_heads=1, group=71, head_dim=16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)  # several programs per item, and one
def test_wide_tiles_of_shared_rows(dtype: torch.dtype) -> None:
    tree = Tree([140] * 20, [1] * 20, [0] + [128] * 19, 16)
    work = check(make_step(tree, num_kv_heads=1, group=4, head_dim=64, dtype=dtype))
    (variant,) = work.variants.values()
    assert variant.class_sizes[2] > 0  # 80 lines: the widest class
    assert (variant.items[:, PARTIAL] >= 0).all()


def test_any_cut_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = random_tree(np.random.default_rng(5), num_rows=6, longest=90, page_size=16, extend=True)
    step = on_device(make_step(tree, num_kv_heads=1, group=2, head_dim=32))
    outputs = []
    for options in ({"min_saving_ratio": float("inf")}, {}, {"min_saving_ratio": 0.0, "min_shared": 16}, SPLIT):
        monkeypatch.setattr(paged_attention, "schedule", partial(schedule, **options))  # type: ignore[arg-type]
        outputs.append(ops.paged_attention(step.q, step.k_pool, step.v_pool, planned(step), scale=0.2))
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0], rtol=1e-5, atol=1e-5)


def test_values_of_another_size_than_keys(split: Callable[..., None]) -> None:
    tree = random_tree(np.random.default_rng(3), num_rows=3, longest=60, page_size=8, extend=True)
    split()
    check(make_step(tree, num_kv_heads=2, group=2, head_dim=48, v_head_dim=24))


@pytest.mark.parametrize(
    ("dtype", "group", "rank", "rope_dim"),
    [
        (torch.bfloat16, 16, 512, 64),
        (torch.float16, 40, 32, 16),
        (torch.bfloat16, 128, 16, 8),
        (torch.float32, 16, 64, 16),  # keys and values in tiles of their own, as for the next one
        (torch.bfloat16, 5, 48, 16),
    ],
    ids=str,
)
def test_values_that_are_parts_of_the_keys(
    dtype: torch.dtype, group: int, rank: int, rope_dim: int, split: Callable[..., None]
) -> None:
    """Latent attention: all query heads share a line, of which rows share prefixes."""
    tree = random_tree(np.random.default_rng(rank), num_rows=3, longest=50, page_size=16, extend=rank < 500)
    split()
    check(latent_step(tree, group=group, rank=rank, rope_dim=rope_dim, dtype=dtype))


def test_float32_tiles_that_do_not_fit_a_processor_are_left_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __getitem__(self, grid: object) -> Callable[..., None]:
            def launch(*_: object, **__: object) -> None:
                raise OutOfResources(145_408, 101_376, "shared memory")

            return launch

    monkeypatch.setattr(paged_attention, "rect_attn", Full())
    tree = random_tree(np.random.default_rng(4), num_rows=3, longest=40, page_size=16, extend=True)
    check(latent_step(tree, group=3, rank=32, rope_dim=16))
    step = on_device(latent_step(tree, group=3, rank=32, rope_dim=16, dtype=torch.bfloat16))
    with pytest.raises(OutOfResources):
        ops.paged_attention(step.q, step.k_pool, step.v_pool, planned(step), scale=0.2)


def test_single_rows_and_single_tokens() -> None:
    for tree in (Tree([1], [1], [0], 16), Tree([33], [33], [0], 16), Tree([16, 17], [1, 1], [0, 16], 16)):
        check(make_step(tree, num_kv_heads=2, group=2, head_dim=16))


def test_queries_may_be_strided_views() -> None:
    tree = Tree([20, 40, 50], [1, 3, 1], [0, 16, 32], 16)
    step = make_step(tree, num_kv_heads=2, group=2, head_dim=16)
    fused = torch.full((5, 10, 16), float("nan"))
    fused[:, :4] = step.q
    check(Step(tree, fused[:, :4], step.k_pool, step.v_pool, step.plan_args))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the interpreter, about the maximum of the row with NaN
def test_a_nan_does_not_spread_to_other_rows(split: Callable[..., None]) -> None:
    split()
    tree = Tree([40, 41, 42], [1, 1, 1], [0, 32, 32], 16)
    step = on_device(make_step(tree, num_kv_heads=2, group=2, head_dim=16))
    clean = ops.paged_attention(step.q, step.k_pool, step.v_pool, planned(step), scale=0.25)
    step.q[1, 0, 0] = float("nan")
    dirty = ops.paged_attention(step.q, step.k_pool, step.v_pool, planned(step), scale=0.25)
    assert torch.isnan(dirty[1, 0]).all()
    assert torch.equal(dirty[0], clean[0])
    assert torch.equal(dirty[2], clean[2])


def test_layers_with_the_same_window_share_a_schedule() -> None:
    step = on_device(make_step(Tree([40], [1], [0], 16), num_kv_heads=1, group=2, head_dim=16))
    plan = planned(step)
    for window in (None, None, 8, 8, 1000):
        ops.paged_attention(step.q, step.k_pool, step.v_pool, plan, scale=1.0, sliding_window=window)
    variants = plan.work.variants
    assert set(variants) == {(None, None), (8, None), (1000, None)}
    assert variants[1000, None] is variants[None, None]  # the window hides nothing


def test_merge_states_combines_disjoint_keys() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 2, 10, generator=generator, dtype=torch.float64)
    values = torch.randn(3, 2, 10, 8, generator=generator, dtype=torch.float64)

    def state(keys: slice) -> tuple[torch.Tensor, torch.Tensor]:
        part = scores[..., keys]
        out = torch.einsum("thk,thkd->thd", part.softmax(-1), values[..., keys, :])
        return out.float().to(DEVICE), part.logsumexp(-1).float().to(DEVICE)

    with use_backend("triton"):
        out, lse = ops.merge_states(*state(slice(0, 4)), *state(slice(4, 10)))
        want, want_lse = state(slice(0, 10))
        torch.testing.assert_close(out, want)
        torch.testing.assert_close(lse, want_lse)
        empty, nothing = torch.full_like(out, float("nan")), torch.full_like(lse, float("-inf"))
        kept, kept_lse = ops.merge_states(out, lse, empty, nothing)
        torch.testing.assert_close(kept, out)
        torch.testing.assert_close(kept_lse, lse)
        none, none_lse = ops.merge_states(empty, nothing, empty, nothing)
        assert torch.equal(none, torch.zeros_like(none))
        assert torch.isneginf(none_lse).all()


@pytest.mark.skipif(not IS_INTERPRETED, reason="about a machine without a GPU")
def test_a_cpu_is_rejected_unless_kernels_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    step = make_step(Tree([4], [1], [0], 16), num_kv_heads=1, group=1, head_dim=16)
    monkeypatch.setattr("rtlang_kernels.triton.primitives.jit.is_interpreting", lambda: False)
    with pytest.raises(ValueError, match="the triton backend supports cuda"):
        planned(step)
