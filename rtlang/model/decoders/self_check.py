"""The sequences and steps with which a decoder of `transformers` is held to the stock model when it is loaded.

Each sequence is computed in two chunks, in one step with the others. A recurrent model starts some second chunks from a state that was kept
inside the first one, and so replays tokens whose keys and values are there already.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch, moved
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention
from rtlang.model.layers.states import StateMemory, StateShape, StepStates

CHECK_LENGTHS = (21, 23, 22)  # lengths in tokens of the sequences
CHECK_CUTS = (9, 12, 17)  # how many of these tokens the first step computes
_PAGE_SIZE = 4
_DEVICE_PAGE_SIZE = 16  # the default page size: GPU kernels would be recompiled for another one
_NUM_REPLAYED = 3, 7, 0  # tokens of the first chunks that the second step computes again, if there are states


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One of the two steps.

    Attributes:
        attention: what the decoder computes the step with; all tokens have logits.
        spans: by sequence, its tokens [start, stop) in this step.
    """

    attention: StepAttention
    spans: tuple[tuple[int, int], ...]


def check_sequences(vocab_size: int) -> list[list[int]]:
    """The token ids of the sequences."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(0, vocab_size, (length,), generator=generator).tolist() for length in CHECK_LENGTHS]


def check_steps(
    sequences: Sequence[Sequence[int]],
    geometries: Sequence[HeadGeometry],
    shapes: Sequence[StateShape],
    dtype: torch.dtype,
    device: torch.device,
) -> Iterator[CheckStep]:
    """The two steps over new pages of `dtype` and new states; each must be computed before the next is taken."""
    page_size = _PAGE_SIZE if device.type == "cpu" else _DEVICE_PAGE_SIZE
    per_row = [-(-len(sequence) // page_size) for sequence in sequences]
    kv = PagedKV(geometries, sum(per_row) + 1, page_size, dtype, device)
    pages = iter(range(sum(per_row), 0, -1))  # in descending order: nothing may depend on ascending page ids
    page_ids = [tuple(itertools.islice(pages, count)) for count in per_row]
    memory = StateMemory(shapes, 2 * len(sequences), device) if shapes else None
    replayed = _NUM_REPLAYED if shapes else (0,) * len(sequences)
    kept = [cut - count for cut, count in zip(CHECK_CUTS, replayed, strict=True)]
    first = tuple((0, cut) for cut in CHECK_CUTS)
    for spans in (first, tuple(zip(kept, CHECK_LENGTHS, strict=True))):
        rows = []
        for index, (start, stop) in enumerate(spans):
            tokens = sequences[index][start:stop]
            running, checkpoint = 2 * index, 2 * index + 1
            if start:
                source = checkpoint if replayed[index] else running
                states = RowStates(source, ((stop - start, running),))
            else:
                marks = ((kept[index], checkpoint),) if replayed[index] else ()
                states = RowStates(None, (*marks, (stop, running)))
            rows.append(
                Row(
                    request_id=index,
                    token_ids=tokens,
                    num_computed_tokens=start,
                    page_ids=page_ids[index],
                    num_shared_tokens=0,
                    needs_sample=False,
                    params=SamplingParams(),
                    score_token_ids=tokens,  # requests logits at all positions; the token ids are irrelevant
                    states=states if memory is not None else None,
                    num_replayed_tokens=replayed[index] if start else 0,
                )
            )
        batch = moved(Batch.from_step(Step(0, tuple(rows)), page_size), device)
        step_states = None
        if memory is not None:
            assert batch.states is not None
            step_states = StepStates(memory, batch.states)
        yield CheckStep(StepAttention(batch, kv, states=step_states), spans)


def relative_errors(logits: Tensor, expected: Tensor) -> Tensor:
    """Relative error of each token: [N, vocab_size] twice -> [N]. The mean of a token's logits does not count as their size."""
    spread = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1).clamp_min(1e-6)
    errors: Tensor = (logits - expected).norm(dim=-1) / spread
    return errors


def nudged(embeddings: Tensor, amount: float) -> Tensor:
    """Embeddings whose last bits are changed, differently in each lane."""
    signs: Tensor = torch.arange(embeddings.numel(), device=embeddings.device).view_as(embeddings) * 7919 % 3 - 1
    return (embeddings + embeddings * signs.mul(amount)).to(embeddings.dtype)
