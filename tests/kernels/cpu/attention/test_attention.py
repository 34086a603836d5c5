"""CPU attention gives a token the same bits, however its step is composed: alone or among others, in any chunks, tree or threads."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention import attention, attention_kernel, attention_layout
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED, NO_TILES
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.host.processor import Processor
from tests.support.kernels.attention_cases import Step, Tree, exact, in_int8, lines_of, make_step, relative_error

NUM_KV_HEADS, GROUP, HEAD_DIM, PAGE = 2, 3, 32, 16
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"sliding_window": 100},
    "chunks": {"chunk_size": 96},
    "cap and sinks": {"soft_cap": 2.0, "sinks": torch.linspace(-2, 2, NUM_KV_HEADS * GROUP)},
}
EVERY_OPTION = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


HAS_AMX = pytest.mark.skipif(usable_tiles() != AMX, reason="the processor has no matrix tiles")
ARITHMETIC = {
    "float32": (torch.float32, NO_TILES),
    "bfloat16 in vectors": (torch.bfloat16, NO_TILES),
    "bfloat16 in emulated tiles": (torch.bfloat16, EMULATED),
    "bfloat16 in tiles of the processor": (torch.bfloat16, AMX),
    "int8 in vectors": (torch.int8, NO_TILES),
    "int8 in emulated tiles": (torch.int8, EMULATED),
    "int8 in tiles of the processor": (torch.int8, AMX),
}


@pytest.fixture(
    params=[
        pytest.param(value, id=name, marks=HAS_AMX if value[1] == AMX else ()) for name, value in ARITHMETIC.items()
    ]
)
def dtype(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.dtype:
    """The type of the pools, for every way to compute with it; queries for pools of int8 are bfloat16."""
    chosen, tiles = request.param
    monkeypatch.setattr(attention_layout, "usable_tiles", lambda: tiles)
    return chosen  # type: ignore[no-any-return]


def step_of(tree: Tree, dtype: torch.dtype) -> Step:
    kind = torch.bfloat16 if dtype == torch.int8 else dtype
    step = make_step(tree, num_kv_heads=NUM_KV_HEADS, group=GROUP, head_dim=HEAD_DIM, dtype=kind)
    return in_int8(step) if dtype == torch.int8 else step


def attend(step: Step, backend: str = "cpu", **options: Any) -> tuple[Tensor, Tensor]:
    """Output and lse, with a fresh plan."""
    plan, scale = step.plan(backend), HEAD_DIM**-0.5
    return ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, plan, scale=scale, **options)


def part(step: Step, tokens: Any, rows: list[int], seq_lens: list[int], shared_lens: list[int] | None = None) -> Step:
    """The same pools and pages for other rows: `tokens` selects query tokens, one range or list per row."""
    chosen = [np.arange(step.q.shape[0])[own] for own in tokens]
    args = step.plan_args | {
        "page_table": step.plan_args["page_table"][rows],
        "seq_lens": np.array(seq_lens, np.int32),
        "cu_seqlens_q": np.concatenate(([0], np.cumsum([len(own) for own in chosen]))).astype(np.int32),
        "shared_lens": np.array(shared_lens or [0] * len(rows), np.int32),
    }
    return replace(step, q=step.q[np.concatenate(chosen)], plan_args=args)


@EVERY_OPTION
def test_a_prompt_has_the_same_bits_whole_in_chunks_and_token_by_token(
    dtype: torch.dtype, options: dict[str, Any]
) -> None:
    length = 1100  # more than one segment
    step = step_of(Tree([length], [length], [0], PAGE), dtype)
    whole = attend(step, **options)
    want = attend(step, "reference", **options)
    assert relative_error(whole[0], want[0].double()) < 4e-3
    torch.testing.assert_close(whole[1], want[1], atol=1e-3, rtol=0)
    for low, high in pairwise((0, 1, 63, 200, 201, 330, 1010, length)):
        chunk = attend(part(step, [slice(low, high)], [0], [high]), **options)
        assert all(torch.equal(a, b[low:high]) for a, b in zip(chunk, whole, strict=True))
    tokens = [0, 15, 16, 63, 64, 99, 100, 257, 1023, 1024, 1087, 1099]
    decoded = attend(
        part(step, [slice(t, t + 1) for t in tokens], [0] * len(tokens), [t + 1 for t in tokens]), **options
    )
    assert all(torch.equal(a, b[tokens]) for a, b in zip(decoded, whole, strict=True))


@EVERY_OPTION
def test_a_row_has_the_same_bits_alone_among_others_and_in_any_tree(
    dtype: torch.dtype, options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(1)
    shared = [0, *(int(rng.choice([0, 16, 64, 80, 128, 208])) for _ in range(30))]
    lens = [300 + int(rng.integers(0, 60)) for _ in shared]
    step = step_of(Tree(lens, [1] * len(lens), shared, PAGE), dtype)
    together = attend(step, **options)
    without_tree = attend(
        replace(step, plan_args=step.plan_args | {"shared_lens": np.zeros(len(lens), np.int32)}), **options
    )
    assert all(torch.equal(a, b) for a, b in zip(without_tree, together, strict=True))
    for row in (0, 7, 30):
        alone = attend(part(step, [slice(row, row + 1)], [row], [lens[row]]), **options)
        assert all(torch.equal(a[0], b[row]) for a, b in zip(alone, together, strict=True))


def test_copied_pages_and_rows_of_several_tokens_change_no_bits(dtype: torch.dtype) -> None:
    """A prompt and drafts below a prefix of more than one segment, which they share or have copies of."""
    lens, q_lens, shared = [1200, 1210, 1300, 1190], [1, 5, 150, 1], [0, 1136, 1120, 1184]
    step = step_of(Tree(lens, q_lens, shared, PAGE), dtype)
    together = attend(step)
    table, width = step.plan_args["page_table"], step.plan_args["page_table"].shape[1]
    copied = np.arange(len(lens) * width, dtype=np.int32).reshape(len(lens), width)
    pools = []
    for pool in (step.k_pool, step.v_pool):
        lines = lines_of(pool)
        pages = lines.view(-1, PAGE, *lines.shape[1:])
        moved = pages[torch.from_numpy(table).long().view(-1)].view(-1, *lines.shape[1:])
        pools.append(moved[..., :HEAD_DIM])
    args = step.plan_args | {"page_table": copied, "shared_lens": np.zeros(len(lens), np.int32)}
    apart = attend(replace(step, k_pool=pools[0], v_pool=pools[1], plan_args=args))
    assert all(torch.equal(a, b) for a, b in zip(apart, together, strict=True))


@pytest.mark.parametrize("num_threads", [2, 3, 4, 6])
def test_threads_change_no_bits(num_threads: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree([300, 280, 1100, 270, 90], [1, 3, 40, 1, 90], [0, 256, 256, 192, 0], PAGE)
    for options in OPTIONS.values():
        step = step_of(tree, dtype)
        one = attend(step, **options)
        with monkeypatch.context() as patch:
            patch.setattr(attention, "SPLIT_NS", 0)
            patch.setattr(torch, "get_num_threads", lambda: num_threads)
            plan, scale = step.plan("cpu"), HEAD_DIM**-0.5
            many = ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, plan, scale=scale, **options)
            chunks = next(iter(plan.work.variants.values())).chunks
            assert len(chunks) == num_threads
        assert all(torch.equal(a, b) for a, b in zip(one, many, strict=True))


def test_keys_that_no_token_sees_are_not_read(dtype: torch.dtype) -> None:
    """Pages before a window and the rest of the last page may hold anything, and so may their numbers."""
    step = step_of(Tree([500], [1], [0], PAGE), dtype)
    want = attend(step, sliding_window=70)
    assert bool(want[0].isfinite().all())
    slots = step.plan("cpu").slots(0, 0, 500)
    for pool in (step.k_pool, step.v_pool):
        lines_of(pool)[slots[:430]] = float("nan") if pool.is_floating_point() else -1
    step.plan_args["page_table"][0, : 430 // PAGE] = -1
    assert all(torch.equal(a, b) for a, b in zip(attend(step, sliding_window=70), want, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("features", [{"has_avx2": True}, {"has_avx512": True}], ids=str)
def test_a_processor_without_products_of_pairs_computes_in_float32(
    features: dict[str, bool], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention_kernel.geometry.cache_clear()
    with monkeypatch.context() as patch:
        for module in (attention_kernel, attention_layout):
            patch.setattr(module, "processor", lambda: Processor("any", "any", 2, **features))
        step = step_of(Tree([300, 310, 290], [1, 4, 1], [0, 208, 256], PAGE), dtype)
        together = attend(step)
        want = attend(step, "reference")
        assert relative_error(together[0], want[0].double()) < 3e-3
        torch.testing.assert_close(together[1], want[1], atol=1e-5, rtol=0)
        alone = attend(part(step, [slice(1, 5)], [1], [310]))
        assert all(torch.equal(a, b[1:5]) for a, b in zip(alone, together, strict=True))
    attention_kernel.geometry.cache_clear()


INT8_SHAPES = [
    (7, 64, 64, torch.bfloat16),
    (2, 192, 128, torch.float32),
    (3, 80, 48, torch.bfloat16),
    (2, 11, 6, torch.bfloat16),
]


@pytest.mark.parametrize("shape", INT8_SHAPES, ids=str)
def test_a_pool_of_int8_agrees_with_float64(shape: tuple[int, int, int, torch.dtype]) -> None:
    """The definition adds almost nothing to the error of the quantized keys and values; the rest is the rounding of results."""
    group, head_dim, v_head_dim, kind = shape
    tree = Tree([150, 100, 90, 64, 1], [1, 30, 3, 64, 1], [0, 64, 64, 0, 0], 8)
    plain = make_step(tree, num_kv_heads=2, group=group, head_dim=head_dim, v_head_dim=v_head_dim, dtype=kind)
    step, scale = in_int8(plain), head_dim**-0.5
    out, lse = ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, step.plan("cpu"), scale=scale)
    want, want_lse = exact(step, scale=scale)
    assert relative_error(out, want) < (1e-4 if kind == torch.float32 else 3e-3)
    assert float((lse.double() - want_lse).abs().max()) < 2e-4
    assert 1e-3 < relative_error(want, exact(plain, scale=scale)[0]) < 1.2e-2


def test_a_token_of_int8_that_is_not_finite_spoils_those_that_see_it() -> None:
    """In keys and in values, of one head, also for tokens of the same prompt before it."""
    bad, plain = 70, make_step(Tree([100], [100], [0], PAGE), num_kv_heads=2, group=2, head_dim=32)
    clean = in_int8(plain)
    want = attend(clean)[0]
    for pool, value in ((plain.k_pool, float("nan")), (plain.v_pool, float("inf"))):
        kept = pool.clone()
        slot = int(clean.plan("cpu").slots(0, bad, bad + 1)[0])
        pool[slot, 1, 3] = value
        pools = (lines_of(each).clone()[..., :32] for each in (clean.k_pool, clean.v_pool))
        spoiled = replace(clean, **dict(zip(("k_pool", "v_pool"), pools, strict=True)))
        slots = torch.tensor([slot])
        ops.write_kv(plain.k_pool[slots], plain.v_pool[slots], spoiled.k_pool, spoiled.v_pool, slots)
        got = attend(spoiled)[0]
        assert torch.equal(got[:, :2], want[:, :2])
        assert torch.equal(got[:bad], want[:bad])
        assert got[bad:, 2:].isnan().all()
        pool.copy_(kept)


def test_heads_that_are_not_lines_apart_are_refused() -> None:
    step = in_int8(make_step(Tree([20], [1], [0], PAGE), num_kv_heads=2, group=1, head_dim=32))
    with pytest.raises(ValueError, match="k_pool strides"):
        attend(replace(step, k_pool=step.k_pool.contiguous()))
