"""The items of a step tile the visible positions of every token exactly once, for any sharing and splitting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.planning import shared_prefix_tiling
from rtlang_kernels.planning import work_items as schedules
from rtlang_kernels.planning.tile_sizes import LINES, SM_90, GpuProperties
from rtlang_kernels.planning.work_items import FULL_HI, FULL_LO, ITEM_ROW, NUM_TOKENS, P0, P1, PARTIAL, TOKEN, Schedule
from tests.support.kernels.attention_cases import Tree, make_step, random_tree
from tests.support.long_tests import sized

MACHINE = GpuProperties(SM_90, 132, 50 << 20)


def planned(
    plan: AttentionPlan, window: int | None = None, gpu: GpuProperties = MACHINE, **options: Any
) -> tuple[Schedule, np.ndarray]:
    first = shared_prefix_tiling.first_visible(plan.token_positions(), window, None)
    return schedules.schedule(plan, shared_prefix_tiling.tree_rectangles(plan), first, gpu, **options), first


def check(plan: AttentionPlan, work: Schedule, first: np.ndarray) -> None:
    """Every token sees each of its positions once; partial rows are in order of position."""
    positions, group = plan.token_positions(), plan.num_q_heads // plan.num_kv_heads
    row_of = np.repeat(np.arange(plan.num_rows), np.diff(plan.cu_seqlens_q))
    seen = [np.zeros(length, int) for length in plan.seq_lens[row_of]]
    parts: dict[int, list[tuple[int, int]]] = {token: [] for token in range(plan.num_tokens)}
    direct = set()
    partials = []
    assert work.class_start[0] == 0
    assert work.class_start[-1] == len(work.items)
    for index, item in enumerate(work.items):
        row, p0, p1, token, num_tokens = item[[ITEM_ROW, P0, P1, TOKEN, NUM_TOKENS]].tolist()
        lines_class = int(np.searchsorted(work.class_start, index, side="right")) - 1
        assert 0 < num_tokens * group <= LINES[lines_class]
        assert 0 <= p0 < p1
        assert p0 <= item[FULL_LO] <= p1
        assert p0 <= item[FULL_HI] <= p1
        pages = slice(p0 // plan.page_size, -(-p1 // plan.page_size))
        for other in range(token, token + num_tokens):
            assert np.array_equal(plan.page_table[row_of[other], pages], plan.page_table[row, pages])
            low, high = max(p0, int(first[other])), min(p1, int(positions[other]) + 1)
            if low < high:
                seen[other][low:high] += 1
            if item[FULL_LO] < item[FULL_HI]:
                assert first[other] <= item[FULL_LO]
                assert item[FULL_HI] <= positions[other] + 1
            parts[other].append((p0, p1))
            if item[PARTIAL] < 0:
                direct.add(other)
            else:
                partials.append((int(item[PARTIAL]) + other - token, other, p0))
    for token, count in enumerate(seen):
        want = np.zeros_like(count)
        want[first[token] : positions[token] + 1] = 1
        assert np.array_equal(count, want)
        assert token not in direct or len(parts[token]) == 1
    assert sorted(row for row, _, _ in partials) == list(range(work.num_partials))
    assert sorted(direct | set(work.merge_tokens.tolist())) == list(range(plan.num_tokens))
    where = {row: (token, p0) for row, token, p0 in partials}
    for index, token in enumerate(work.merge_tokens.tolist()):
        rows = work.merge_rows[work.merge_start[index] : work.merge_start[index + 1]].tolist()
        assert [where[row][0] for row in rows] == [token] * len(parts[token])
        begins = [where[row][1] for row in rows]
        assert begins == sorted(begins)


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_rows=st.integers(1, 12),
    longest=st.integers(1, 90),
    window=st.sampled_from([None, 1, 7, 24, 1000]),
    group=st.sampled_from([1, 4, 7, 71]),
    min_shared=st.sampled_from([1, 8, 32]),
    min_split=st.sampled_from([1, 16, 64]),
    min_saving_ratio=st.sampled_from([0.0, 0.05, 1.0, float("inf")]),
    num_multiprocessors=st.sampled_from([1, 8, 132]),
)
def test_items_tile_the_visible_positions_of_a_token(
    seed: int,
    num_rows: int,
    longest: int,
    window: int | None,
    group: int,
    min_shared: int,
    min_split: int,
    min_saving_ratio: float,
    num_multiprocessors: int,
) -> None:
    tree = random_tree(np.random.default_rng(seed), num_rows, longest, page_size=4, extend=True)
    plan = make_step(tree, num_kv_heads=1, group=group, head_dim=8).plan("reference")
    gpu = GpuProperties(SM_90, num_multiprocessors, 0)
    options = {"min_shared": min_shared, "min_split": min_split, "min_saving_ratio": min_saving_ratio}
    work, first = planned(plan, window, gpu, **options)
    check(plan, work, first)
    if min_saving_ratio == float("inf"):
        assert all(item[NUM_TOKENS] == 1 or item[TOKEN] >= plan.cu_seqlens_q[item[ITEM_ROW]] for item in work.items)


@settings(max_examples=sized(60), deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_rows=st.integers(1, 12),
    longest=st.integers(1, 300),
    window=st.sampled_from([None, 1, 70, 1000]),
    group=st.sampled_from([1, 4, 71]),
    is_sharing=st.booleans(),
)
def test_in_a_fixed_order_parts_follow_from_the_position(
    seed: int, num_rows: int, longest: int, window: int | None, group: int, is_sharing: bool
) -> None:
    tree = random_tree(np.random.default_rng(seed), num_rows, longest, page_size=4, extend=True)
    plan = make_step(tree, num_kv_heads=1, group=group, head_dim=8).plan("reference")
    plan.has_fixed_order = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedules, "SEGMENT", 64)
        ratio = 0.0 if is_sharing else 1.0
        work, first = planned(plan, window, min_shared=1, min_saving_ratio=ratio, is_windowed=window is not None)
    check(plan, work, first)
    assert work.class_sizes[0] == 0
    assert sum(size > 0 for size in work.class_sizes) == 1
    positions = plan.token_positions()
    seen: dict[int, list[tuple[int, int]]] = {token: [] for token in range(plan.num_tokens)}
    for item in work.items[np.argsort(work.items[:, P0])]:
        assert item[P0] % schedules.SPLIT_STEP == 0
        for token in range(item[TOKEN], item[TOKEN] + item[NUM_TOKENS]):
            if item[P0] <= positions[token]:
                seen[token].append((int(item[P0]), min(int(item[P1]), int(positions[token]) + 1)))
    for token, parts in seen.items():
        if window is None:
            end = int(positions[token]) + 1
            assert parts == [(start, min(start + 64, end)) for start in range(0, end, 64)]
        else:
            assert len(parts) == 1


def tree_plan(rows: int, shared: int, own: int, group: int = 4) -> AttentionPlan:
    tree = Tree([shared + own] * rows, [1] * rows, [0] + [shared] * (rows - 1), 16)
    return make_step(tree, num_kv_heads=1, group=group, head_dim=8).plan("reference")


def keys_read(work: Schedule) -> int:
    return int((work.items[:, P1] - work.items[:, P0]).sum())


def test_a_long_shared_prefix_is_read_once() -> None:
    plan = tree_plan(16, 2048, 32)
    work, first = planned(plan)
    check(plan, work, first)
    assert keys_read(work) == 2048 + 16 * 32


@pytest.mark.parametrize("shared", [16, 32])
def test_a_short_shared_prefix_is_read_by_each_row(shared: int) -> None:
    plan = tree_plan(2, shared, 64, group=16)
    work, first = planned(plan)
    check(plan, work, first)
    assert keys_read(work) == 2 * (shared + 64)
    assert work.num_partials == 0


def test_an_unshared_range_goes_to_the_rectangles_below() -> None:
    tree = Tree([16 + 512 + 16] * 8, [1] * 8, [0, 528, 528, 528, 16, 528, 528, 528], 16)
    plan = make_step(tree, num_kv_heads=1, group=4, head_dim=8).plan("reference")
    work, first = planned(plan)
    check(plan, work, first)
    shared = work.items[work.items[:, NUM_TOKENS] > 1]
    assert sorted((int(item[TOKEN]), int(item[NUM_TOKENS])) for item in shared if item[P0] == 0) == [(0, 4), (4, 4)]


def test_one_long_row_is_split_over_the_processor() -> None:
    plan = tree_plan(1, 0, 16384)
    work, first = planned(plan)
    check(plan, work, first)
    sizes = work.items[:, P1] - work.items[:, P0]
    assert len(sizes) == 16384 // schedules.MIN_SPLIT
    assert len(set(sizes.tolist())) == 1


def test_many_rows_are_not_split() -> None:
    plan = tree_plan(300, 0, 512)
    work, first = planned(plan)
    check(plan, work, first)
    assert len(work.items) == 300
    assert work.num_partials == 0


def test_costly_items_come_first_within_a_class() -> None:
    tree = random_tree(np.random.default_rng(0), 12, 90, page_size=4, extend=True)
    work, _ = planned(make_step(tree, num_kv_heads=1, group=4, head_dim=8).plan("reference"))
    for begin, end in zip(work.class_start[:-1], work.class_start[1:], strict=True):
        costs = (work.items[begin:end, P1] - work.items[begin:end, P0]).tolist()
        assert costs == sorted(costs, reverse=True)


def test_too_many_heads_in_a_group_are_rejected() -> None:
    plan = tree_plan(1, 0, 4, group=129)
    with pytest.raises(ValueError, match="num_kv_heads = 129"):
        planned(plan)
