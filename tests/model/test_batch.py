"""A step as arrays, against token-by-token bookkeeping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch

PARAMS = SamplingParams()


@st.composite
def rows(draw: st.DrawFn, page_size: int) -> Row:
    num_computed = draw(st.integers(0, 20))
    token_ids = tuple(draw(st.lists(st.integers(0, 999), min_size=1, max_size=9)))
    needed = -(-(num_computed + len(token_ids)) // page_size)
    page_ids = draw(st.lists(st.integers(0, 99), min_size=needed, max_size=needed + 2, unique=True))
    offset = draw(st.integers(0, len(token_ids)))
    num_scores = draw(st.integers(0, len(token_ids) - offset))
    return Row(
        request_id=draw(st.integers(0, 9)),
        token_ids=token_ids,
        num_computed_tokens=num_computed,
        page_ids=tuple(page_ids),
        num_shared_tokens=0,
        needs_sample=draw(st.booleans()),
        params=PARAMS,
        score_offset=offset if num_scores else 0,
        score_token_ids=(1,) * num_scores,
    )


@given(st.data())
def test_every_token_lies_where_its_row_says(data: st.DataObject) -> None:
    page_size = data.draw(st.integers(1, 5))
    step = Step(0, tuple(data.draw(st.lists(rows(page_size), min_size=1, max_size=5))))
    batch = Batch.from_step(step, page_size)
    token, sampled, scored = 0, [], []
    for index, row in enumerate(step.rows):
        assert batch.cu_seqlens_q[index] == token
        for offset, token_id in enumerate(row.token_ids):
            position = row.num_computed_tokens + offset
            assert batch.input_ids[token] == token_id
            assert batch.positions[token] == position
            assert batch.slot_mapping[token] == row.page_ids[position // page_size] * page_size + position % page_size
            token += 1
        assert batch.seq_lens[index] == row.num_computed_tokens + len(row.token_ids)
        assert batch.page_table[index, : len(row.page_ids)].tolist() == list(row.page_ids)
        sampled += [token - 1] * row.needs_sample
        start = token - len(row.token_ids) + row.score_offset
        scored += range(start, start + len(row.score_token_ids))
    assert batch.num_tokens == batch.cu_seqlens_q[-1] == token
    assert batch.logit_indices.tolist() == sampled + scored
    assert batch.sampling_rows == tuple(index for index, row in enumerate(step.rows) if row.needs_sample)
    assert batch.scoring_rows == tuple(index for index, row in enumerate(step.rows) if row.score_token_ids)
    assert batch.page_table.dtype == batch.seq_lens.dtype == batch.shared_lens.dtype == np.int32


def make_row(**changes: object) -> Row:
    settings: dict[str, object] = {
        "request_id": 7,
        "token_ids": (1, 2, 3),
        "num_computed_tokens": 2,
        "page_ids": (0, 1),
        "num_shared_tokens": 0,
        "needs_sample": True,
        "params": PARAMS,
    }
    return Row(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": ()}, "no tokens"),
        ({"page_ids": (0,)}, "but needs 5"),
        ({"score_token_ids": (1, 2), "score_offset": 2}, "scores 2 tokens from offset 2"),
        ({"score_token_ids": (1, 2), "score_offset": -1}, "scores 2 tokens from offset -1"),
    ],
)
def test_a_malformed_row_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch.from_step(Step(0, (make_row(**changes),)), 4)


def test_a_step_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        Batch.from_step(Step(0, ()), 4)
