"""Rectangles, calls and segments tile the visible positions of every token exactly once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_kernels.planning import shared_prefix_tiling
from tests.support.attention_cases import Tree, make_step, random_tree


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_rows=st.integers(1, 9),
    longest=st.integers(1, 70),
    window=st.sampled_from([None, 1, 7, 24, 1000]),
    chunk=st.sampled_from([None, 5, 16, 1000]),
)
def test_calls_and_segments_tile_the_visible_positions_of_a_token(
    seed: int, num_rows: int, longest: int, window: int | None, chunk: int | None
) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, num_rows, longest, page_size=4, extend=True)
    plan = make_step(tree, num_kv_heads=1, group=1, head_dim=8).plan("cpu")
    positions = plan.token_positions()
    table = shared_prefix_tiling.tree_rectangles(plan)
    covered = [np.zeros(length, int) for length in tree.seq_lens]
    for row, row_end, start, stop, _ in table.tolist():
        for member in range(row, row_end):
            covered[member][start:stop] += 1
            shared = slice(start // 4, -(-stop // 4))
            assert np.array_equal(plan.page_table[member, shared], plan.page_table[row, shared])
    assert all((count == 1).all() for count in covered)

    first = shared_prefix_tiling.first_visible(positions, window, chunk)
    clipped = shared_prefix_tiling.clip_to_visible(plan, table, first)
    kept = clipped[(rng.random(len(table)) < 0.6) & (clipped[:, 2] < clipped[:, 3])]  # any selection must work
    token_row, segment_start, segments, partial_start, partial_call, keys_before = shared_prefix_tiling.assign_segments(
        kept, plan.cu_seqlens_q, positions, first
    )
    for token, position in enumerate(positions.tolist()):
        seen = np.zeros(plan.seq_lens[token_row[token]], int)
        for start, stop in segments[segment_start[token] : segment_start[token + 1]].tolist():
            assert start < stop
            seen[start:stop] += 1
        private = int(seen.sum())
        for call in partial_call[partial_start[token] : partial_start[token + 1]].tolist():
            row, row_end, start, stop, is_causal = kept[call].tolist()
            assert row <= token_row[token] < row_end
            seen[start : position + 1 if is_causal else stop] += 1
        low = 0 if window is None else max(0, position - window + 1)
        low = low if chunk is None else max(low, position // chunk * chunk)
        want = np.zeros_like(seen)
        want[low : position + 1] = 1
        assert np.array_equal(seen, want)
        assert keys_before[token + 1] - keys_before[token] == private


def test_nested_sharing_gives_nested_rectangles() -> None:
    tree = Tree([40, 44, 36, 20], [1, 1, 1, 1], [0, 32, 16, 8], 4)
    table = shared_prefix_tiling.tree_rectangles(make_step(tree, num_kv_heads=1, group=1, head_dim=8).plan("cpu"))
    assert sorted(map(tuple, table[:, :4].tolist())) == [
        (0, 1, 32, 40),
        (0, 2, 16, 32),
        (0, 3, 8, 16),
        (0, 4, 0, 8),
        (1, 2, 32, 44),
        (2, 3, 16, 36),
        (3, 4, 8, 20),
    ]
