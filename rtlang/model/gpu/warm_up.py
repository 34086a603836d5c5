"""Small steps that launch every kernel of a model once, before graphs are captured and requests are served."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates

WARM_UP_ROWS = 2
"""Most rows of a step, each of which samples a token."""

# Keys shared by two rows: enough to split and merge attention for any head geometry.
_MERGED_KEYS = 1024
_CLASSES = (16, 64, 128)  # query lines of attention tiles


def warm_up_rows(page_size: int, longest: int, groups: Collection[int], *, has_states: bool) -> list[tuple[Row, ...]]:
    """The rows of each step: with masks, log-probabilities, filters, penalties, bias and bans.

    Args:
        longest: maximum sequence length.
        groups: query heads per KV head; for each there are prompts for every class of attention tiles, and a shared prefix.
        has_states: whether the model has recurrent layers, so that rows have states.
    """
    sampled = SamplingParams(temperature=1.0, top_p=0.9)
    biased = replace(SamplingParams(temperature=1.0, presence_penalty=0.5), logit_bias=((0, 1.0),))
    masked = (
        Row(0, (0,) * min(3, page_size), 0, (0,), 0, True, sampled, mask_row=0),
        Row(1, (0,), 0, (1,), 0, True, SamplingParams(logprobs=1)),
    )
    lowered = Row(
        0, (0,), 0, (0,), 0, True, biased, prompt_token_ids=(0,), output_token_ids=(0,), banned_token_ids=(0,)
    )
    steps: list[tuple[Row, ...]] = [masked, (masked[0]._replace(mask_row=None), masked[1]), (lowered,)]
    if groups:  # all in one page, whose content does not matter
        for count in sorted({min(max(1, lines // group), longest) for group in groups for lines in _CLASSES}):
            steps.append((Row(0, (0,) * count, 0, (0,) * -(-count // page_size), 0, True, sampled),))
        pages = min(_MERGED_KEYS, longest - 1) // page_size
        before, page_ids = pages * page_size, (0,) * (pages + 1)
        steps.append(
            tuple(Row(index, (0,), before, page_ids, before * index, True, sampled) for index in range(WARM_UP_ROWS))
        )
    if has_states:
        steps = [
            tuple(row._replace(states=RowStates(None, ((len(row.token_ids), slot),))) for slot, row in enumerate(rows))
            for rows in steps
        ]
    return steps
