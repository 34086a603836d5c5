"""Steps as words: what determines the computation comes out again, whatever the sizes."""

from __future__ import annotations

import random

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.parallel.messages import (
    MessageKind,
    end_words,
    release_of,
    release_words,
    sampled_of,
    sampled_words,
    step_of,
    step_words,
)
from tests.support.long_tests import sized


def random_row(chance: random.Random) -> Row:
    num_tokens = chance.choice((1, 1, 1, 2, 40))
    num_drafts = chance.choice((0, num_tokens - 1))
    num_scores = 0 if num_drafts else chance.choice((0, 0, num_tokens))
    return Row(
        request_id=chance.choice((3, 2**31, 2**62)),
        token_ids=[chance.randrange(2**31 - 1) for _ in range(num_tokens)],
        num_computed_tokens=chance.randrange(10_000),
        page_ids=tuple(chance.randrange(1 << 20) for _ in range(chance.randrange(1, 30))),
        num_shared_tokens=chance.randrange(100),
        needs_sample=bool(num_drafts) or chance.random() < 0.5,
        params=SamplingParams(temperature=0.5, seed=4),
        seed=9,
        mask_row=2,
        prompt_token_ids=(1, 2, 3),
        score_offset=0,
        score_token_ids=(0,) * num_scores,
        input_is_pending=chance.random() < 0.3,
        num_draft_tokens=num_drafts,
    )


@pytest.mark.parametrize("seed", range(sized(20)))
def test_a_step_comes_out_as_it_was_put_in_without_what_only_sampling_needs(seed: int) -> None:
    chance = random.Random(seed)
    rows = tuple(random_row(chance) for _ in range(chance.randrange(1, 9)))
    copies = tuple((chance.randrange(99), chance.randrange(99)) for _ in range(chance.randrange(3)))
    step = Step(chance.choice((1, 2**40)), rows, copies, num_mask_rows=3)
    words = step_words(step)
    assert words[0] == MessageKind.STEP
    found = step_of(words)
    assert (found.step_id, found.copies) == (step.step_id, step.copies)
    names = (
        "request_id token_ids num_computed_tokens page_ids num_shared_tokens needs_sample score_offset score_token_ids"
    )
    for mine, row in zip(found.rows, rows, strict=True):
        for name in (*names.split(), "input_is_pending", "num_draft_tokens", "num_sampled"):
            expected = getattr(row, name)
            assert getattr(mine, name) == (list(expected) if name in ("token_ids", "page_ids") else expected), name
        assert (mine.params, mine.prompt_token_ids, mine.mask_row) == (SamplingParams(), (), None)


def test_a_decoding_step_of_64_rows_takes_a_few_kilobytes() -> None:
    rows = tuple(Row(index, (5,), 500, tuple(range(32)), 0, True, SamplingParams()) for index in range(64))
    assert step_words(Step(0, rows)).nbytes < 12_000


@pytest.mark.parametrize("sampled_at", [{}, {7: 0}, {2**40: 2, 5: 1}])
def test_the_places_of_sampled_tokens_come_out_again(sampled_at: dict[int, int]) -> None:
    words = sampled_words(4, sampled_at)
    assert words[0] == MessageKind.SAMPLED
    assert sampled_of(words) == (4, sampled_at)


def test_runs_of_unused_pages_come_out_again() -> None:
    assert release_of(release_words([(3, 4), (9, 1)])) == [(3, 4), (9, 1)]
    assert release_of(release_words([])) == []
    assert end_words().tolist() == [MessageKind.END]
