"""Steps in a reusable plan: whatever rows do between steps, the plan holds the step that was asked for."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.gpu.device_batch import FixedSteps, on_device, resolved, sources_of, token_sources

PAGE_SIZE = 4


class PlainPlan:
    """A plan that only remembers what it was told."""

    def __init__(self, num_rows: int) -> None:
        self.page_size = PAGE_SIZE
        self.input_ids = np.zeros(num_rows, np.int64)
        self.sources = np.zeros(num_rows, np.int32)
        self.slots, self.wanted = np.zeros(num_rows, np.int64), np.zeros(2 * num_rows, np.int64)
        self.num_sets = self.num_grown = self.num_uploads = 0
        self.table = np.zeros((num_rows, 64), np.int32)
        self.seq_lens = self.shared_lens = np.zeros(0, np.int32)
        self.starts: np.ndarray | None = None
        self.can_grow = True
        self.fitting = 0

    def set(
        self,
        page_table: np.ndarray,
        seq_lens: np.ndarray,
        shared_lens: np.ndarray,
        cu_seqlens_q: np.ndarray | None = None,
    ) -> bool:
        if len(page_table) > len(self.table):
            return False
        self.table[:] = -1
        self.table[: len(page_table), : page_table.shape[1]] = page_table
        self.seq_lens, self.shared_lens = seq_lens, shared_lens
        self.starts = cu_seqlens_q
        self.num_sets += 1
        return True

    def grow(self, rows: np.ndarray, columns: np.ndarray, page_ids: np.ndarray) -> bool:
        if not self.can_grow:
            return False
        self.table[rows, columns] = page_ids
        self.seq_lens = self.seq_lens + 1
        self.num_grown += 1
        return True

    def upload(self) -> None:
        self.num_uploads += 1

    def on_device(self, name: str) -> torch.Tensor:
        return torch.from_numpy(getattr(self, name))


def row_of(request_id: int, computed: int, pages: list[int], *, known: bool = True, shared: int = 0) -> Row:
    return Row(
        request_id, [computed % 7], computed, pages, shared, True, SamplingParams(), input_is_pending=not known
    )  # fmt: skip


def check(plan: PlainPlan, rows: list[Row]) -> None:
    assert plan.seq_lens.tolist() == [row.num_computed_tokens + 1 for row in rows]
    assert plan.shared_lens.tolist() == [row.num_shared_tokens for row in rows]
    for index, row in enumerate(rows):
        needed = row.num_computed_tokens // PAGE_SIZE + 1
        assert plan.table[index, :needed].tolist() == list(row.page_ids[:needed])
        assert plan.input_ids[index] == row.token_ids[0]


def test_a_kept_step_is_the_one_that_was_asked_for() -> None:
    """Pages are replaced as they are filled, at once or a step later, as the tree does it; rows come and go."""
    rng = random.Random(0)
    plan = PlainPlan(6)
    steps = FixedSteps(plan, [lambda: torch.zeros(6, 1)])
    fresh = iter(range(10_000))
    state: dict[int, tuple[int, list[int]]] = {}
    next_id = 0
    for _ in range(400):
        if len(state) < 2 or (rng.random() < 0.1 and len(state) < 6):
            computed = rng.randint(0, 20)
            state[next_id] = computed, [next(fresh) for _ in range(computed // PAGE_SIZE + 1)]
            next_id += 1
        if rng.random() < 0.05:
            state.pop(rng.choice(list(state)))
        rows = []
        for request_id, (computed, pages) in state.items():
            known = rng.random() < 0.5
            while len(pages) * PAGE_SIZE < computed + 1:
                pages.append(next(fresh))
            end = computed + known
            if end % PAGE_SIZE == 0 and end and rng.random() < 0.5:
                pages[end // PAGE_SIZE - 1] = next(fresh)  # the tree had an equal one
            rows.append(row_of(request_id, computed, pages, known=known))
        if not rows:
            continue
        plan.can_grow = rng.random() < 0.95
        assert steps.write_decoding(rows, {row.request_id: index for index, row in enumerate(rows)})
        check(plan, rows)
        expected = [index if row.input_is_pending else -1 for index, row in enumerate(rows)]
        assert plan.sources[: len(rows)].tolist() == expected
        repeats = set(rng.sample(list(state), 1)) if rng.random() < 0.05 and state else set()
        for request_id, (computed, pages) in state.items():
            if request_id not in repeats:  # a row in vain is computed again
                state[request_id] = computed + 1, pages
    assert plan.num_grown > 100
    assert plan.num_sets > 30
    assert plan.num_uploads == plan.num_grown + plan.num_sets


def test_a_step_after_another_kind_is_planned_anew() -> None:
    plan = PlainPlan(2)
    steps = FixedSteps(plan, [lambda: torch.zeros(2, 1), lambda: torch.ones(2, 1)])
    for computed in (3, 4):
        assert steps.write_decoding([row_of(1, computed, [5, 6])], {})
    assert (plan.num_sets, plan.num_grown) == (1, 1)
    steps.forget()
    assert steps.write_decoding([row_of(1, 5, [5, 6])], {})
    assert steps.write_decoding([row_of(1, 6, [5, 6], shared=4)], {})
    assert (plan.num_sets, plan.num_grown) == (3, 1)
    assert not steps.write_decoding([row_of(index, 1, [1]) for index in range(3)], {})
    assert float(steps.replay().sum()) == 0
    plan.fitting = 1
    assert float(steps.replay().sum()) == 1


def written(steps: FixedSteps, rows: list[Row], sampled_at: dict[int, int]) -> bool:
    batch = Batch.from_step(Step(0, tuple(rows)), PAGE_SIZE)
    return steps.write(batch, token_sources(batch, rows, sampled_at))


@pytest.mark.parametrize("num_wanted", [None, 6])
def test_a_step_with_drafts_is_written_whole_and_continues_nothing(num_wanted: int | None) -> None:
    plan = PlainPlan(8)
    states = torch.arange(10.0, 18.0)[:, None]  # of each token; those that are not wanted may be missing
    steps = FixedSteps(
        plan, [lambda: states if num_wanted is None else states[plan.wanted[:num_wanted]]], num_wanted=num_wanted
    )
    params = SamplingParams()

    def rows(computed: int, *drafts: int) -> list[Row]:
        own = Row(1, [9, *drafts], computed, [5, 6, 7], 0, True, params, num_draft_tokens=len(drafts))
        return [own, Row(2, [0], computed + 2, [5, 8, 9], 4, True, params, input_is_pending=True)]

    assert steps.write_decoding(rows(5), {2: 3})
    assert steps.replay().flatten().tolist() == [10, 11]
    assert written(steps, rows(6, 11, 12, 13), {2: 3})
    assert steps.replay().flatten().tolist() == [10, 11, 12, 13, 14]
    assert (plan.num_sets, plan.num_grown) == (2, 0)
    assert plan.starts is not None
    assert plan.starts.tolist() == [0, 4, 5]
    assert plan.seq_lens.tolist() == [10, 9]
    assert plan.table[:2, :3].tolist() == [[5, 6, 7], [5, 8, 9]]
    assert plan.input_ids[:5].tolist() == [9, 11, 12, 13, 0]
    assert plan.sources[:5].tolist() == [-1, -1, -1, -1, 3]
    assert steps.write_decoding(rows(7), {2: 0})
    assert (plan.num_sets, plan.num_grown) == (3, 0), "the tokens before it are not those of the step before"
    assert plan.starts is None


def test_a_step_with_prompts_has_the_states_of_its_wanted_tokens() -> None:
    """Of the tokens that are sampled, then of those that are scored; a replayed token has no slot, and a page more is not copied."""
    plan = PlainPlan(8)
    steps = FixedSteps(plan, [lambda: torch.arange(8.0)[:, None]])
    params = SamplingParams()
    rows = [
        Row(1, [3, 4, 5, 6], 2, [5, 6, 7, 8], 0, False, params, score_offset=1, score_token_ids=[5, 6]),
        Row(2, [8, 9], 4, [1, 2], 0, True, params, num_replayed_tokens=1),
        Row(3, [0], 7, [3, 4], 0, True, params, input_is_pending=True),
    ]
    assert written(steps, rows, {3: 1})
    assert steps.replay().flatten().tolist() == [5, 6, 1, 2]
    assert plan.slots[:7].tolist() == [22, 23, 24, 25, -1, 9, 19]
    assert plan.sources[:7].tolist() == [-1] * 6 + [1]
    assert plan.table[:, :2].tolist()[:3] == [[5, 6], [1, 2], [3, 4]]
    assert (plan.table[:, 2:] == -1).all()
    few = FixedSteps(plan, [lambda: torch.zeros(3, 1)], num_wanted=3)
    assert not written(few, rows, {3: 1}), "four are wanted"


def test_placeholders_become_the_tokens_that_were_drawn() -> None:
    params = SamplingParams()
    rows = (
        Row(7, [11, 12], 0, [0], 0, False, params),
        Row(8, [0], 3, [1], 0, True, params, input_is_pending=True),
        Row(9, [13], 0, [2], 0, True, params),
    )
    batch = Batch.from_step(Step(0, rows), PAGE_SIZE)
    assert sources_of(rows, {8: 2}).tolist() == [-1, 2, -1]
    drawn = torch.tensor([100, 101, 102])
    sources = np.array([-1, -1, 2, -1], np.int32)
    assert resolved(batch.input_ids, torch.from_numpy(sources), drawn).tolist() == [11, 12, 102, 13]
    there = on_device(batch, sources, drawn, torch.device("cpu"))
    assert there.input_ids.tolist() == [11, 12, 102, 13]
    for name in ("positions", "slot_mapping", "logit_indices"):
        assert torch.equal(getattr(there, name), getattr(batch, name))
