"""Rows come in tree order, and each says how many pages it shares with the row before."""

from __future__ import annotations

import random

import pytest

from rtlang.contract.step import RowStates
from rtlang.engine.requests.held_states import HeldStates
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.batch_layout import BatchLayout
from tests.support.long_tests import sized
from tests.support.requests import make_request

PAGE_SIZE = 4


def request(request_id: int, page_ids: list[int]) -> Request:
    made = make_request(request_id, [7] * (len(page_ids) * PAGE_SIZE))
    made.pages.page_ids, made.pages.num_tree_tokens = page_ids, len(page_ids) * PAGE_SIZE
    made.num_computed_tokens = len(made.token_ids) - 1
    return made


@pytest.mark.parametrize("seed", range(sized(20)))
def test_neighbouring_rows_share_exactly_their_common_pages(seed: int) -> None:
    rng = random.Random(seed)
    paths: list[list[int]] = [[0]]
    for page_id in range(1, 40):
        paths.append([*rng.choice(paths), page_id])
    running = [request(index, path) for index, path in enumerate(rng.sample(paths, 25))]
    layout = BatchLayout(PAGE_SIZE)
    for _ in range(3):
        chosen = {each: 1 for each in running if rng.random() < 0.6}
        laid_out = layout.lay_out(running, chosen)
        assert set(laid_out.requests) == set(chosen)
        assert [each.request_id for each in laid_out.requests] == [row.request_id for row in laid_out.rows]
        assert laid_out.num_mask_rows == 0
        previous: list[int] = []
        for each, row in zip(laid_out.requests, laid_out.rows, strict=True):
            num_common = 0
            while (
                num_common < min(len(previous), len(each.pages.page_ids))
                and previous[num_common] == each.pages.page_ids[num_common]
            ):
                num_common += 1
            assert row.num_shared_tokens == num_common * PAGE_SIZE
            previous = each.pages.page_ids


class OneState:
    """Stands in for `StateSlots`, whose rows it lets end with their running state."""

    def row(self, request: Request, num_tokens: int) -> RowStates:
        return RowStates(0, ((num_tokens, request.request_id),))


@pytest.mark.parametrize(
    ("ends", "num_shared"), [((9, 14), 8), ((14, 6), 4), ((16, 14), 12), ((16, 16), 16), ((3, 16), 0)]
)
def test_rows_that_replay_tokens_share_no_more_than_both_reach(ends: tuple[int, int], num_shared: int) -> None:
    requests = [request(index, [0, 1, 2, 3]) for index in range(2)]
    for each in requests:
        each.num_computed_tokens, each.states = 2, HeldStates((0,), 0, 16)
    layout = BatchLayout(PAGE_SIZE, OneState())  # type: ignore[arg-type]
    rows = layout.lay_out(requests, {each: end - 2 for each, end in zip(requests, ends, strict=True)}).rows
    assert [row.num_shared_tokens for row in rows] == [0, num_shared]
    assert [row.num_replayed_tokens for row in rows] == [end - 2 for end in ends]


def test_the_order_is_kept_until_it_is_invalidated() -> None:
    first, second = request(1, [0, 1]), request(2, [0, 2])
    layout = BatchLayout(PAGE_SIZE)
    assert layout.lay_out([second, first], {first: 1, second: 1}).requests == (first, second)
    third = request(3, [0])
    layout.invalidate()
    assert layout.lay_out([second, first, third], {first: 1, third: 1}).requests == (third, first)
