"""The pages of a draft model under random use: every page is accounted for, and computed tokens are found again."""

from __future__ import annotations

import random

import pytest

from rtlang.cache.scope import PUBLIC, CacheScope
from rtlang.engine.drafts.model_pages import ModelPages
from rtlang.engine.requests.request import Request
from tests.engine.requests.test_request import request

PAGE = 4


def compute(pages: ModelPages, target: Request, num_drafts: int = 0, wrong: int = 99) -> bool:
    """Compute all tokens of a request and some drafts behind them."""
    sequence = pages.open(target)
    if not pages.reserve(target, len(target.token_ids) + num_drafts, {target}):
        return False
    sequence.token_ids += target.token_ids[len(sequence.token_ids) :]
    sequence.num_agreed = len(sequence.token_ids)
    pages.store(target)
    sequence.token_ids += [wrong] * num_drafts
    pages.check()
    return True


def test_wrong_drafts_are_computed_again_and_right_ones_are_not() -> None:
    pages, target = ModelPages(16, PAGE, sharing=True), request([1, 2, 3, 4, 5, 6])
    assert pages.open(target).token_ids == []
    assert compute(pages, target, num_drafts=3, wrong=7)
    target.token_ids += [7, 7, 8, 9]
    assert pages.open(target).token_ids == [1, 2, 3, 4, 5, 6, 7, 7]


def test_the_last_token_is_always_computed_again() -> None:
    pages, target = ModelPages(16, PAGE, sharing=True), request([1, 2, 3, 4])
    assert compute(pages, target)
    assert pages.open(target).token_ids == [1, 2, 3]


@pytest.mark.parametrize("sharing", [True, False])
def test_a_later_request_finds_the_pages_of_an_ended_one(sharing: bool) -> None:
    pages = ModelPages(16, PAGE, sharing=sharing)
    first = request(list(range(10)))
    assert compute(pages, first)
    pages.close(first)
    pages.check()
    assert pages.cache.num_in_use == 0
    assert len(pages.open(request(list(range(12)))).token_ids) == (8 if sharing else 0)


def test_a_namespace_finds_its_own_sequences_only() -> None:
    pages = ModelPages(16, PAGE, sharing=True)
    first = request(list(range(10)), scope=CacheScope(1))
    assert compute(pages, first)
    pages.close(first)
    assert len(pages.open(request(list(range(12)), scope=CacheScope(1))).token_ids) == 8
    assert len(pages.open(request(list(range(12)), scope=CacheScope(2))).token_ids) == 0
    assert len(pages.open(request(list(range(12)), scope=PUBLIC)).token_ids) == 0


def test_pages_are_taken_from_the_request_that_was_used_least_recently() -> None:
    pages = ModelPages(6, PAGE, sharing=True)
    old, new, next_one = (request([10 * index + place for place in range(8)]) for index in range(1, 4))
    assert compute(pages, old)
    assert compute(pages, new)
    pages.open(new)
    assert compute(pages, next_one)
    third = request([50 + place for place in range(12)])
    assert compute(pages, third)
    pages.check()
    assert len(pages.open(old).token_ids) < 7, "its pages were evicted"


def test_a_request_that_is_larger_than_the_pool_gets_no_pages() -> None:
    pages, target = ModelPages(4, PAGE, sharing=True), request(list(range(20)))
    assert not compute(pages, target)
    pages.check()
    pages.close(target)
    assert pages.cache.num_in_use == 0


@pytest.mark.parametrize("seed", range(6))
def test_random_use_loses_no_page(seed: int) -> None:
    rng = random.Random(seed)
    pages = ModelPages(rng.choice([6, 12, 40]), rng.choice([1, 4]), sharing=rng.random() < 0.8)
    live: list[Request] = []
    for _ in range(200):
        if not live or rng.random() < 0.2:
            live.append(request(rng.choices(range(3), k=rng.randint(1, 12)), scope=CacheScope(rng.randint(0, 1))))
        target = rng.choice(live)
        match rng.randint(0, 3):
            case 0:
                target.token_ids += rng.choices(range(3), k=rng.randint(1, 4))
            case 1:
                pages.close(target)
                live.remove(target)
            case 2:
                pages.reopen(target)
            case _:
                compute(pages, target, rng.randint(0, 3), rng.randint(0, 2))
        pages.check()
    for target in live:
        pages.close(target)
    pages.check()
    assert pages.cache.num_in_use == 0
