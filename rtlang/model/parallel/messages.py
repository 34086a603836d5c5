"""What rank 0 tells the other ranks between steps, as int32 words: a few kilobytes per step.

A step holds what determines the computation: tokens, pages and copies of pages, and which tokens have logits. Sampling parameters,
masks and the history of requests stay on rank 0. Numbers of 64 bits take two words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step

Words = NDArray[np.int32]

_PARAMS = SamplingParams()
_NUM_FIELDS = 9


class MessageKind(IntEnum):
    """The first word of a message."""

    STEP = 1
    SAMPLED = 2
    RELEASE = 3
    END = 4


def step_words(step: Step) -> Words:
    """A step as words."""
    rows = step.rows
    fields = [
        (
            len(row.token_ids),
            len(row.page_ids),
            row.num_computed_tokens,
            row.num_shared_tokens,
            row.needs_sample,
            row.num_draft_tokens,
            row.input_is_pending,
            row.score_offset,
            len(row.score_token_ids),
        )
        for row in rows
    ]
    sizes = MessageKind.STEP, len(rows), len(step.copies)
    return np.concatenate(
        [
            np.array(sizes, dtype=np.int32),
            _long_words([step.step_id, *(row.request_id for row in rows)]),
            np.array(fields, dtype=np.int32).reshape(-1),
            np.array(step.copies, dtype=np.int32).reshape(-1),
            *(np.asarray(row.token_ids, dtype=np.int32) for row in rows),
            *(np.asarray(row.page_ids, dtype=np.int32) for row in rows),
        ]
    )


def step_of(words: Words) -> Step:
    """The step of `step_words`, without what only rank 0 needs; ids of scored tokens are 0."""
    num_rows, num_copies = words[1:3].tolist()
    start = 3
    step_id, *request_ids = _longs(words[start : start + 2 * (num_rows + 1)])
    start += 2 * (num_rows + 1)
    fields = words[start : start + _NUM_FIELDS * num_rows].reshape(num_rows, _NUM_FIELDS).tolist()
    start += _NUM_FIELDS * num_rows
    copies = words[start : start + 2 * num_copies].reshape(-1, 2).tolist()
    start += 2 * num_copies
    lists: list[list[int]] = []
    for length in [row[0] for row in fields] + [row[1] for row in fields]:
        lists.append(words[start : start + length].tolist())
        start += length
    rows = tuple(
        Row(
            request_id,
            lists[index],
            computed,
            lists[num_rows + index],
            shared,
            bool(needs_sample),
            _PARAMS,
            score_offset=score_offset,
            score_token_ids=(0,) * num_scores,
            input_is_pending=bool(is_pending),
            num_draft_tokens=num_drafts,
        )
        for index, (
            request_id,
            (_, _, computed, shared, needs_sample, num_drafts, is_pending, score_offset, num_scores),
        ) in enumerate(zip(request_ids, fields, strict=True))
    )
    return Step(step_id, rows, tuple((source, destination) for source, destination in copies))


def sampled_words(num_sampled: int, sampled_at: Mapping[int, int]) -> Words:
    """How many tokens were sampled on the device, and by request id where its token is among them."""
    head = np.array([MessageKind.SAMPLED, num_sampled], dtype=np.int32)
    return np.concatenate([head, np.array(list(sampled_at.values()), dtype=np.int32), _long_words(list(sampled_at))])


def sampled_of(words: Words) -> tuple[int, dict[int, int]]:
    """The arguments of `sampled_words`."""
    count = (len(words) - 2) // 3
    places, request_ids = words[2 : 2 + count].tolist(), _longs(words[2 + count :])
    return int(words[1]), dict(zip(request_ids, places, strict=True))


def release_words(runs: Sequence[tuple[int, int]]) -> Words:
    """Runs of unused pages (first page, number of pages), whose memory is given back."""
    return np.array([MessageKind.RELEASE, *(number for run in runs for number in run)], dtype=np.int32)


def release_of(words: Words) -> list[tuple[int, int]]:
    """The argument of `release_words`."""
    return [(first, count) for first, count in words[1:].reshape(-1, 2).tolist()]


def end_words() -> Words:
    """The other ranks end."""
    return np.array([MessageKind.END], dtype=np.int32)


def _long_words(numbers: Sequence[int]) -> Words:
    return np.array(numbers, dtype=np.int64).view(np.int32)


def _longs(words: Words) -> list[int]:
    found: list[int] = words.copy().view(np.int64).tolist()  # a copy, since 64-bit numbers must be aligned
    return found
