"""Rectangles tile the positions of every row exactly once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_kernels.planning import shared_prefix_tiling
from tests.support.kernels.attention_cases import Tree, make_step, random_tree
from tests.support.long_tests import sized


@settings(max_examples=sized(100), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), num_rows=st.integers(1, 9), longest=st.integers(1, 70))
def test_rectangles_tile_the_positions_of_a_row(seed: int, num_rows: int, longest: int) -> None:
    tree = random_tree(np.random.default_rng(seed), num_rows, longest, page_size=4, extend=True)
    plan = make_step(tree, num_kv_heads=1, group=1, head_dim=8).plan("cpu")
    table = shared_prefix_tiling.tree_rectangles(plan)
    covered = [np.zeros(length, int) for length in tree.seq_lens]
    for row, row_end, start, stop, _ in table.tolist():
        for member in range(row, row_end):
            covered[member][start:stop] += 1
            shared = slice(start // 4, -(-stop // 4))
            assert np.array_equal(plan.page_table[member, shared], plan.page_table[row, shared])
    assert all((count == 1).all() for count in covered)


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
