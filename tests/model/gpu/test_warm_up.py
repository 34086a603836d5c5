"""The steps of a warm-up fit the pool and reach every class of attention tiles."""

from __future__ import annotations

import pytest

from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.gpu.warm_up import WARM_UP_ROWS, warm_up_rows


def lengths(rows: tuple[Row, ...]) -> list[int]:
    return [len(row.token_ids) for row in rows]


@pytest.mark.parametrize(("page_size", "longest"), [(1, 2), (16, 4096), (32, 20)])
def test_steps_are_well_formed(page_size: int, longest: int) -> None:
    for has_states in (False, True):
        steps = warm_up_rows(page_size, longest, {1, 4, 7}, has_states=has_states)
        for rows in steps:
            batch = Batch.from_step(Step(0, rows, num_mask_rows=1), page_size)
            assert int(batch.seq_lens.max()) <= max(longest, min(3, page_size))
            assert len(rows) <= WARM_UP_ROWS
            assert all(page_id < 2 for row in rows for page_id in row.page_ids)
            assert (batch.states is not None) == has_states


def test_prompts_fill_every_class_of_tiles() -> None:
    steps = warm_up_rows(16, 4096, {4}, has_states=False)
    assert [lengths(rows) for rows in steps] == [[3, 1], [3, 1], [1], [4], [16], [32], [1, 1]]
    assert [row.num_shared_tokens for row in steps[-1]] == [0, 1024]
    assert len(warm_up_rows(16, 4096, (), has_states=False)) == 3
