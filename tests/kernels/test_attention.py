"""Every backend of the attention operations against float64, over the same random steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention import attention
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
from tests.support.long_tests import crossed

BACKENDS = sorted(ops.BACKENDS)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-3}
SHAPES = [(1, 64), (7, 64), (4, 80), (9, 96), (8, 128), (2, 8), (3, 36)]
"""Heads per KV head and size of a head."""
OPTIONS: list[dict[str, object]] = [
    {},
    {"sliding_window": 20},
    {"chunk_size": 32},
    {"soft_cap": 2.0},
    {"sinks": True},
    {"sliding_window": 40, "soft_cap": 3.0, "sinks": True},
]


def check(step: Step, name: str, **options: object) -> None:
    plan = step.plan(name)
    shape = (*step.q.shape[:2], step.v_pool.shape[2])
    poisoned = torch.full(shape, float("nan"), dtype=step.q.dtype)
    scale = step.q.shape[2] ** -0.5
    out, lse = ops.paged_attention_with_lse(
        step.q,
        step.k_pool,
        step.v_pool,
        plan,
        scale=scale,
        out=poisoned,
        **options,  # type: ignore[arg-type]
    )
    assert out is poisoned
    want, want_lse = exact(step, scale=scale, **options)  # type: ignore[arg-type]
    tolerance = TOLERANCE[step.q.dtype]
    assert relative_error(out, want) < tolerance
    assert float((lse.double() - want_lse).abs().max()) < max(20 * tolerance * tolerance, 2e-5)


@pytest.mark.parametrize(("name", "dtype", "shape"), crossed(BACKENDS, list(TOLERANCE), SHAPES), ids=str)
def test_random_trees_agree_with_float64(name: str, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    group, head_dim = shape
    rng = np.random.default_rng(group * 1000 + head_dim)
    for seed in range(2):
        tree = random_tree(rng, num_rows=5, longest=90, page_size=16, extend=seed == 1)
        check(make_step(tree, num_kv_heads=2, group=group, head_dim=head_dim, dtype=dtype, seed=seed), name)


@pytest.mark.parametrize(("name", "in_order", "options"), crossed(BACKENDS, [False, True], OPTIONS), ids=str)
def test_options_agree_with_float64(name: str, in_order: bool, options: dict[str, object]) -> None:
    rng = np.random.default_rng(7)
    for seed in range(2):
        tree = random_tree(rng, num_rows=6, longest=100, page_size=8, extend=True)
        step = make_step(tree, num_kv_heads=2, group=2, head_dim=16, seed=seed, in_order=in_order)
        given = dict(options)
        if given.get("sinks"):
            given["sinks"] = torch.randn(4, generator=torch.Generator().manual_seed(seed))
        check(step, name, **given)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_large_shared_prefixes_and_prefills_agree_with_float64(name: str, dtype: torch.dtype) -> None:
    tree = Tree([288, 290, 300, 272, 273, 280], [1, 1, 1, 1, 40, 17], [0, 256, 256, 256, 160, 160], 16)
    for in_order in (False, True):
        step = make_step(tree, num_kv_heads=2, group=7, head_dim=64, dtype=dtype, in_order=in_order)
        check(step, name)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    ("dtype", "head_dim", "v_head_dim"),
    [(torch.float32, 16, 8), (torch.bfloat16, 192, 128), (torch.bfloat16, 11, 3)],
    ids=str,
)
def test_values_of_another_size_than_keys(name: str, dtype: torch.dtype, head_dim: int, v_head_dim: int) -> None:
    tree = random_tree(np.random.default_rng(3), num_rows=4, longest=90, page_size=8, extend=True)
    check(make_step(tree, num_kv_heads=2, group=2, head_dim=head_dim, v_head_dim=v_head_dim, dtype=dtype), name)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_that_replay_tokens_of_shared_pages(name: str, dtype: torch.dtype) -> None:
    """Each row shares 48 tokens with the one before and computes tokens from the state at 32, 5, 0 and 47 on."""
    tree = Tree([60, 52, 70, 48, 49], [4, 20, 65, 48, 2], [0, 48, 48, 48, 48], 16)
    for options in ({}, {"sliding_window": 20}, {"chunk_size": 32}):
        for in_order in (False, True):
            step = make_step(tree, num_kv_heads=2, group=2, head_dim=32, dtype=dtype, in_order=in_order)
            check(step, name, **options)
    alone = Tree([52], [20], [0], 16)
    pages = step.plan_args | {"page_table": step.plan_args["page_table"][1:2]}
    for key, own in (("seq_lens", [52]), ("cu_seqlens_q", [0, 20]), ("shared_lens", [0])):
        pages[key] = np.array(own, np.int32)
    single = Step(alone, step.q[4:24], step.k_pool, step.v_pool, pages)
    together = ops.paged_attention(step.q, step.k_pool, step.v_pool, step.plan(name), scale=0.25)[4:24]
    separate = ops.paged_attention(single.q, step.k_pool, step.v_pool, single.plan(name), scale=0.25)
    assert relative_error(together, separate.double()) < TOLERANCE[dtype]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    ("dtype", "group", "rank", "rope_dim"),
    [(torch.bfloat16, 16, 512, 64), (torch.float32, 40, 256, 32), (torch.float32, 3, 40, 5), (torch.bfloat16, 9, 7, 3)],
    ids=str,
)
def test_values_that_are_parts_of_the_keys(name: str, dtype: torch.dtype, group: int, rank: int, rope_dim: int) -> None:
    """Latent attention: all query heads share a line, of which rows share prefixes."""
    rng = np.random.default_rng(rank)
    tree = random_tree(rng, num_rows=4, longest=70, page_size=8, extend=True)
    check(latent_step(tree, group=group, rank=rank, rope_dim=rope_dim, dtype=dtype), name)
    if rank < 100:
        shared = Tree([288, 290, 300, 272], [1, 1, 1, 9], [0, 256, 256, 256], 16)
        check(latent_step(shared, group=group, rank=rank, rope_dim=rope_dim, dtype=dtype), name, sliding_window=200)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_latent_attention_of_a_token_has_the_same_bits_in_any_step(dtype: torch.dtype) -> None:
    """A prompt in one step, in chunks, and token by token beside the other row."""
    tree = Tree([60, 55], [60, 55], [0, 32], 16)
    step = latent_step(tree, group=5, rank=64, rope_dim=16, dtype=dtype)
    whole = ops.paged_attention(step.q, step.k_pool, step.v_pool, step.plan("cpu"), scale=0.2)
    for lengths, new in (([20, 32], [20, 32]), ([41, 33], [21, 1]), ([42, 55], [1, 22]), ([60, 55], [18, 3])):
        arguments = step.plan_args | {
            "seq_lens": np.array(lengths, np.int32),
            "cu_seqlens_q": np.array([0, new[0], sum(new)], np.int32),
            "shared_lens": np.array([0, min(32, lengths[0] // 16 * 16)], np.int32),
        }
        firsts = lengths[0] - new[0], 60 + lengths[1] - new[1]
        rows = torch.cat([torch.arange(first, first + n) for first, n in zip(firsts, new, strict=True)])
        out = ops.paged_attention(step.q[rows], step.k_pool, step.v_pool, ops.plan_attention(**arguments), scale=0.2)
        assert torch.equal(out, whole[rows])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("group", [6, 5])
def test_threads_that_share_the_heads_of_one_line_give_the_same_bits(
    dtype: torch.dtype, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more threads than tokens, two of 4 threads have 3 of 6 query heads each; 5 heads are not divided."""
    monkeypatch.setattr(attention, "SPLIT_NS", 0)
    before = torch.get_num_threads()
    tree = Tree([1100, 70], [1, 2], [0, 64], 16)
    step = latent_step(tree, group=group, rank=64, rope_dim=16, dtype=dtype)
    sinks = torch.randn(group, generator=torch.Generator().manual_seed(2))
    found = []
    try:
        for num_threads in (1, 2, 4, 6):
            torch.set_num_threads(num_threads)
            plan = step.plan("cpu")
            found.append(ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, plan, scale=0.2, sinks=sinks))
            chunks = attention.variant_of(plan, None, None, 64).chunks
            if num_threads > 3:  # the tokens
                assert len(chunks) == math.gcd(group, num_threads)
    finally:
        torch.set_num_threads(before)
    want, want_lse = exact(step, scale=0.2, sinks=sinks)
    assert relative_error(found[0][0], want) < TOLERANCE[dtype]
    assert float((found[0][1].double() - want_lse).abs().max()) < 1e-3
    for out, lse in found[1:]:
        assert torch.equal(out, found[0][0])
        assert torch.equal(lse, found[0][1])


@pytest.mark.parametrize("name", BACKENDS)
def test_single_rows_and_single_tokens(name: str) -> None:
    for tree in (Tree([1], [1], [0], 16), Tree([33], [33], [0], 16), Tree([16, 17], [1, 1], [0, 16], 16)):
        check(make_step(tree, num_kv_heads=2, group=2, head_dim=16), name)


@pytest.mark.parametrize("name", BACKENDS)
def test_queries_may_be_strided_views(name: str) -> None:
    tree = Tree([20, 40, 50], [1, 3, 1], [0, 16, 32], 16)
    step = make_step(tree, num_kv_heads=2, group=2, head_dim=16)
    fused = torch.full((5, 10, 16), float("nan"))
    fused[:, :4] = step.q
    view = Step(tree, fused[:, :4], step.k_pool, step.v_pool, step.plan_args)
    check(view, name)


def test_a_nan_does_not_spread_to_other_rows() -> None:
    tree = Tree([40, 41, 42], [1, 1, 1], [0, 32, 32], 16)
    step = make_step(tree, num_kv_heads=2, group=2, head_dim=16)
    clean = ops.paged_attention(step.q, step.k_pool, step.v_pool, step.plan("cpu"), scale=0.25)
    step.q[1, 0, 0] = float("nan")
    dirty = ops.paged_attention(step.q, step.k_pool, step.v_pool, step.plan("cpu"), scale=0.25)
    assert torch.isnan(dirty[1, 0]).all()
    assert torch.equal(dirty[0], clean[0])
    assert torch.equal(dirty[2], clean[2])


@pytest.mark.parametrize("name", BACKENDS)
def test_merge_states_combines_disjoint_keys(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 2, 10, generator=generator, dtype=torch.float64)
    values = torch.randn(3, 2, 10, 8, generator=generator, dtype=torch.float64)

    def state(keys: slice) -> tuple[torch.Tensor, torch.Tensor]:
        part = scores[..., keys]
        out = torch.einsum("thk,thkd->thd", part.softmax(-1), values[..., keys, :])
        return out.float(), part.logsumexp(-1).float()

    with use_backend(name):
        out, lse = ops.merge_states(*state(slice(0, 4)), *state(slice(4, 10)))
        want, want_lse = state(slice(0, 10))
        torch.testing.assert_close(out, want)
        torch.testing.assert_close(lse, want_lse)
        empty, nothing = torch.full_like(out, float("nan")), torch.full_like(lse, float("-inf"))
        kept, kept_lse = ops.merge_states(out, lse, empty, nothing)
        assert torch.equal(kept, out)
        assert torch.equal(kept_lse, lse)
        none, none_lse = ops.merge_states(empty, nothing, empty, nothing)
        assert torch.equal(none, torch.zeros_like(none))
        assert torch.isneginf(none_lse).all()


def test_wrong_shapes_are_named() -> None:
    step = make_step(Tree([20], [1], [0], 16), num_kv_heads=2, group=2, head_dim=16)
    plan = step.plan("cpu")
    with pytest.raises(ValueError, match="q ="):
        ops.paged_attention(step.q[:, :2], step.k_pool, step.v_pool, plan, scale=1.0)
    with pytest.raises(ValueError, match="k_pool"):
        ops.paged_attention(step.q, step.k_pool[:, :1], step.v_pool, plan, scale=1.0)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"scale = {scale}: expected a positive, finite number"):
            ops.paged_attention(step.q, step.k_pool, step.v_pool, plan, scale=scale)
    with pytest.raises(ValueError, match="shared_lens"):
        ops.plan_attention(**(step.plan_args | {"shared_lens": [16]}))
    with pytest.raises(ValueError, match="page_table"):
        ops.plan_attention(**(step.plan_args | {"seq_lens": [33]}))
