"""Drawing and scoring against naive float64 arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, SampledToken
from rtlang.model.sampler import gather_samples, sample_tokens, token_logprobs

VOCAB = 70


def make_row(params: SamplingParams | None = None, **changes: Any) -> Row:
    row = Row(0, (1,), 0, (0,), 0, True, params or SamplingParams())
    return row._replace(**changes)


def random_logits(num_rows: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (3 * torch.randn(num_rows, VOCAB, generator=torch.Generator().manual_seed(seed))).to(dtype)


def pack_mask(allowed: list[list[int]]) -> np.ndarray[Any, np.dtype[np.int32]]:
    words = np.zeros((len(allowed), -(-VOCAB // 32)), dtype=np.uint32)
    for line, token_ids in zip(words, allowed, strict=True):
        for token_id in token_ids:
            line[token_id // 32] |= np.uint32(1) << np.uint32(token_id % 32)
    return words.view(np.int32)


def naive_greedy(logits: torch.Tensor, row: Row, allowed: list[int] | None) -> int:
    values = [float(value) for value in logits]
    params = row.params
    for token_id in set(row.prompt_token_ids) | set(row.output_token_ids):
        penalty = params.repetition_penalty
        values[token_id] = values[token_id] / penalty if values[token_id] > 0 else values[token_id] * penalty
    for token_id in set(row.output_token_ids):
        count = list(row.output_token_ids).count(token_id)
        values[token_id] -= params.presence_penalty + params.frequency_penalty * count
    for token_id, bias in params.logit_bias:
        values[token_id] += bias
    for token_id in row.banned_token_ids:
        values[token_id] = -math.inf
    candidates = range(len(values)) if allowed is None else allowed
    return max(candidates, key=lambda token_id: (values[token_id], -token_id))


token_ids = st.integers(0, VOCAB - 1)


@settings(deadline=None)
@given(
    seed=st.integers(0, 1000),
    options=st.lists(
        st.fixed_dictionaries(
            {
                "repetition_penalty": st.sampled_from([1.0, 0.5, 1.7]),
                "presence_penalty": st.sampled_from([0.0, 2.5, -1.0]),
                "frequency_penalty": st.sampled_from([0.0, 0.75]),
                "logit_bias": st.lists(st.tuples(token_ids, st.sampled_from([-8.0, 5.0])), max_size=3).map(tuple),
                "prompt": st.lists(token_ids, max_size=8),
                "output": st.lists(token_ids, max_size=8),
                "banned": st.lists(token_ids, max_size=3).map(tuple),
                "allowed": st.none() | st.lists(token_ids, min_size=5, max_size=20, unique=True),
            }
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_greedy_rows_of_every_kind_agree_with_a_naive_argmax(seed: int, options: list[dict[str, Any]]) -> None:
    logits = random_logits(len(options), seed)
    rows, masks = [], []
    for option in options:
        mask_row = None
        if option["allowed"] is not None:
            mask_row = len(masks)
            masks.append(option["allowed"])
        names = ("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias")
        rows.append(
            make_row(
                SamplingParams(**{name: option[name] for name in names}),
                prompt_token_ids=tuple(option["prompt"]),
                output_token_ids=tuple(option["output"]),
                banned_token_ids=option["banned"],
                mask_row=mask_row,
            )
        )
    before = logits.clone()
    draws = sample_tokens(logits, rows, pack_mask(masks) if masks else None)
    assert torch.equal(logits, before)
    for draw, line, row, option in zip(draws, logits, rows, options, strict=True):
        assert draw.token_id == naive_greedy(line, row, option["allowed"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_seeded_row_draws_the_same_token_in_any_company(dtype: torch.dtype) -> None:
    logits = random_logits(6, 3, dtype)
    params = [
        SamplingParams(temperature=1.5, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=penalty)
        for top_k, top_p, min_p, penalty in [
            (0, 1.0, 0.0, 1.0),
            (10, 1.0, 0.0, 1.0),
            (0, 0.8, 0.0, 1.0),
            (0, 1.0, 0.05, 1.0),
            (0, 1.0, 0.0, 1.4),
            (12, 0.9, 0.01, 1.2),
        ]
    ]
    rows = [
        make_row(item, seed=2**63 + index, choice=index % 2, num_output_tokens=5, output_token_ids=(1, 2, 3))
        for index, item in enumerate(params)
    ]
    together = [draw.token_id for draw in sample_tokens(logits, rows, None)]
    alone = [sample_tokens(logits[index : index + 1], [row], None)[0].token_id for index, row in enumerate(rows)]
    turned = [draw.token_id for draw in sample_tokens(logits.flip(0), rows[::-1], None)][::-1]
    assert together == alone == turned


def test_seed_choice_and_place_change_the_noise() -> None:
    logits = torch.zeros(1, VOCAB)
    params = SamplingParams(temperature=1.0)
    keys = [(seed, choice, place) for seed in (1, 2) for choice in (0, 1) for place in range(5)]
    drawn = [
        sample_tokens(logits, [make_row(params, seed=seed, choice=choice, num_output_tokens=place)], None)[0].token_id
        for seed, choice, place in keys
    ]
    assert len(set(drawn)) > 10


def test_draws_follow_the_distribution_under_a_bias() -> None:
    logits = torch.full((400, VOCAB), -20.0)
    logits[:, 3], logits[:, 40] = 1.0, 0.0
    params = SamplingParams(temperature=1.0, logit_bias=((40, 1.0),))
    rows = [make_row(params, seed=seed) for seed in range(400)]
    counts = [draw.token_id for draw in sample_tokens(logits, rows, None)]
    assert abs(counts.count(3) - 200) < 50  # five standard deviations of a fair coin
    assert counts.count(3) + counts.count(40) == 400


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_logprobs_are_of_the_unchanged_logits(dtype: torch.dtype) -> None:
    logits = random_logits(3, 4, dtype)
    expected = torch.log_softmax(logits.double(), -1)
    rows = [
        make_row(SamplingParams(logprobs=3, temperature=0.7, logit_bias=((9, 100.0),))),
        make_row(SamplingParams()),
        make_row(SamplingParams(logprobs=0), banned_token_ids=(int(logits[2].argmax()),)),
    ]
    draws = sample_tokens(logits, rows, None)
    assert draws[0].token_id == 9
    assert draws[1].logprob is None
    assert draws[2].token_id == int(logits[2].float().topk(2).indices[1])
    for index in (0, 2):
        found = draws[index].logprob
        assert found is not None
        assert found.token_id == draws[index].token_id
        assert found.logprob == pytest.approx(float(expected[index, found.token_id]), abs=1e-4)
    top = draws[0].logprob.top if draws[0].logprob else ()
    best = expected[0].topk(3)
    assert [token_id for token_id, _ in top] == best.indices.tolist()
    assert [value for _, value in top] == pytest.approx(best.values.tolist(), abs=1e-4)


def test_scores_have_each_their_own_number_of_top_tokens() -> None:
    logits = random_logits(3, 5)
    expected = torch.log_softmax(logits.double(), -1)
    scores = token_logprobs(logits, [7, 8, 9], [0, 2, 500])
    assert [len(score.top) for score in scores] == [0, 2, VOCAB]
    for index, score in enumerate(scores):
        assert score.logprob == pytest.approx(float(expected[index, 7 + index]), abs=1e-5)
        assert [value for _, value in score.top] == sorted((value for _, value in score.top), reverse=True)


def test_a_row_that_is_not_finite_fails_alone() -> None:
    logits = random_logits(5, 6)
    expected = sample_tokens(logits, [make_row()] * 5, None)
    logits[1, 3] = math.nan
    logits[3] = -math.inf
    rows = [make_row(SamplingParams(logprobs=1)) for _ in range(5)]
    draws = sample_tokens(logits, rows, None)
    assert [draw is None for draw in draws] == [False, True, False, True, False]
    for index in (0, 2, 4):
        assert draws[index].token_id == expected[index].token_id
        assert draws[index].logprob is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_processors_get_float32_logits_and_the_output_and_leave_other_rows_alone(dtype: torch.dtype) -> None:
    logits = random_logits(4, 6, dtype)
    untouched = logits.clone()
    seen: list[tuple[list[int], torch.Tensor]] = []

    def note(token_ids: list[int], line: torch.Tensor) -> torch.Tensor:
        seen.append((token_ids, line.clone()))
        token_ids.append(-1)  # a list of its own
        return line

    def flip(token_ids: list[int], line: torch.Tensor) -> torch.Tensor:
        assert token_ids == [3, 5]
        return -line

    flipped = make_row(SamplingParams(logits_processors=(note, flip)), output_token_ids=[3, 5])
    failing = make_row(SamplingParams(logits_processors=(flip, lambda ids, line: line[1:])), output_token_ids=[3, 5])
    rows = [make_row(), flipped, failing, make_row(SamplingParams(logit_bias={2: 99.0}))]
    first, second, third, fourth = sample_tokens(logits, rows, None)
    assert isinstance(first, SampledToken)
    assert isinstance(second, SampledToken)
    assert first.token_id == int(untouched[0].argmax())
    assert second.token_id == int(untouched[1].argmin())
    assert isinstance(third, ParameterError)
    assert isinstance(fourth, SampledToken)
    assert fourth.token_id == 2
    torch.testing.assert_close(logits, untouched)
    ((token_ids, line),) = seen
    assert token_ids == [3, 5, -1]
    torch.testing.assert_close(line, untouched[1].float())
    found = gather_samples(rows, [first, second, third, fourth])
    assert [each.is_finite for each in found] == [True, True, False, True]
    assert [each.error for each in found] == [None, None, third, None]


def test_a_row_with_nothing_allowed_is_not_finite() -> None:
    draws = sample_tokens(random_logits(2), [make_row(mask_row=0), make_row()], pack_mask([[]]))
    assert draws[0] is None
    assert draws[1] is not None


def test_a_mask_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="mask_row = 1"):
        sample_tokens(random_logits(1), [make_row(mask_row=1)], pack_mask([[1]]))
    with pytest.raises(ValueError, match="mask_row = 0"):
        sample_tokens(random_logits(1), [make_row(mask_row=0)], None)


def test_token_ids_beyond_the_vocabulary_are_passed_over() -> None:
    row = make_row(SamplingParams(logit_bias=((VOCAB + 5, 9.0), (4, 99.0))), banned_token_ids=(VOCAB, 5))
    assert sample_tokens(random_logits(1), [row], None)[0].token_id == 4
