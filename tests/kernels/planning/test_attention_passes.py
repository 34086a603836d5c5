"""Passes fold every visible key of a token once, in order, in the blocks and segments that its positions give."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_kernels.planning import attention_passes as fields
from rtlang_kernels.planning.attention_passes import BLOCK, SEGMENT, plan_passes
from rtlang_kernels.planning.shared_prefix_tiling import first_visible, tree_rectangles
from tests.support.kernels.attention_cases import Tree, make_step, random_tree
from tests.support.long_tests import sized


@settings(max_examples=sized(120), deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_rows=st.integers(1, 9),
    longest=st.sampled_from([70, 300, 2500]),
    window=st.sampled_from([None, 1, 24, 1000]),
    chunk=st.sampled_from([None, 96, 1000]),
    group=st.sampled_from([1, 7, 200]),
)
def test_passes_tile_the_visible_positions_of_a_token(
    seed: int, num_rows: int, longest: int, window: int | None, chunk: int | None, group: int
) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, num_rows, longest, page_size=16, extend=True)
    plan = make_step(tree, num_kv_heads=1, group=1, head_dim=2).plan("reference")
    positions, num_tokens = plan.token_positions(), plan.num_tokens
    rows = np.repeat(np.arange(num_rows), tree.q_lens)
    first = first_visible(positions, window, chunk)
    cut = int(rng.integers(0, num_tokens + 1))
    seen: list[list[tuple[int, int]]] = [[] for _ in range(num_tokens)]
    for tokens in ((0, cut), (cut, num_tokens)):
        if tokens[0] == tokens[1]:
            continue
        passes, num_slots = plan_passes(
            tree_rectangles(plan), plan.cu_seqlens_q, positions, first, tokens, group, min_shared_tokens=2
        )
        owner: dict[int, int] = {}  # token whose unfinished state a slot holds
        second: dict[int, bool] = {}
        finished = set()
        for entry in passes.tolist():
            token, token_end, row, low, high, slot, is_second, is_first, ends_segment, is_last = entry
            assert tokens[0] <= token < token_end <= tokens[1]
            assert slot >= 0
            assert slot + token_end - token <= num_slots
            assert low == high or low // SEGMENT == (high - 1) // SEGMENT
            assert is_last or high % BLOCK == 0
            for member in range(token, token_end):
                place, key_low, key_high = (
                    slot + member - token,
                    max(low, first[member]),
                    min(high, positions[member] + 1),
                )
                pages = slice(low // 16, -(-high // 16))
                assert np.array_equal(plan.page_table[row, pages], plan.page_table[rows[member], pages]) or (
                    key_low >= key_high
                )
                assert member not in finished
                if is_first and not is_second:
                    owner[place] = member
                assert owner[place] == member
                if is_second:  # an unfinished second state is continued, a finished one starts again
                    assert is_first != second.get(member, False)
                else:
                    assert not second.get(member, False)
                second[member] = bool(is_second) and not ends_segment
                assert not is_last or not is_second or ends_segment
                if key_low < key_high:
                    seen[member].append((int(key_low), int(key_high)))
                if is_last:
                    finished.add(member)
        assert finished == set(range(*tokens))
    for token, ranges in enumerate(seen):
        assert ranges[0][0] == first[token]
        assert ranges[-1][1] == positions[token] + 1
        assert all(a[1] == b[0] and a[1] % BLOCK == 0 for a, b in pairwise(ranges))


@pytest.mark.parametrize(("shared", "num_passes"), [(0, 3), (48, 3), (64, 4), (112, 4), (128, 4)])
def test_whole_blocks_of_a_prefix_are_one_pass_for_all_rows(shared: int, num_passes: int) -> None:
    plan = make_step(
        Tree([140, 150, 145], [1, 1, 1], [0, shared, shared], 16), num_kv_heads=1, group=1, head_dim=2
    ).plan("reference")
    positions = plan.token_positions()
    passes, num_slots = plan_passes(
        tree_rectangles(plan), plan.cu_seqlens_q, positions, np.zeros_like(positions), (0, 3), 1, min_shared_tokens=2
    )
    assert len(passes) == num_passes
    if num_passes == 4:
        assert passes[0].tolist()[:5] == [0, 3, 0, 0, shared // BLOCK * BLOCK]
        assert passes[1:, fields.FIRST_KEY].tolist() == [shared // BLOCK * BLOCK] * 3
        assert num_slots == 4


@pytest.mark.parametrize(
    ("length", "q_len", "shared"), [(128, 1, 64), (128, 3, 64), (128, 70, 0), (129, 1, 128), (64, 1, 0)]
)
def test_rows_whose_own_keys_are_shared_keep_a_last_pass(length: int, q_len: int, shared: int) -> None:
    """The same tokens in the same pages, the computed ones included: a prompt that is cached as a whole."""
    whole = length // 16 * 16
    tree = Tree([length] * 3, [q_len] * 3, [0, whole, whole], 16)
    plan = make_step(tree, num_kv_heads=1, group=1, head_dim=2).plan("reference")
    positions = plan.token_positions()
    tokens = (0, plan.num_tokens)
    passes, _ = plan_passes(
        tree_rectangles(plan), plan.cu_seqlens_q, positions, np.zeros_like(positions), tokens, 1, min_shared_tokens=2
    )
    last = passes[passes[:, fields.IS_LAST] == 1]
    assert sum(int(entry[fields.TOKEN_END] - entry[fields.TOKEN]) for entry in last) == plan.num_tokens
    assert [entry[fields.LAST_KEY] for entry in passes.tolist() if not entry[fields.IS_LAST]] == [shared] * bool(shared)
