"""The steps with which a decoder is held to the stock model."""

from __future__ import annotations

import torch

from rtlang.model.decoders.self_check import (
    CHECK_CUTS,
    CHECK_LENGTHS,
    check_sequences,
    check_steps,
    nudged,
    relative_errors,
)
from rtlang.model.layers.attention import HeadGeometry
from rtlang.model.layers.states import StateShape

GEOMETRIES = (HeadGeometry(2, 1, 8, 8),)
SHAPES = (StateShape(0, "recurrent0", (2, 3), torch.float32),)


def test_two_steps_compute_every_token_once_without_states() -> None:
    sequences = check_sequences(100)
    steps = list(check_steps(sequences, GEOMETRIES, (), torch.float32, torch.device("cpu")))
    assert [step.spans for step in steps] == [
        tuple((0, cut) for cut in CHECK_CUTS),
        tuple(zip(CHECK_CUTS, CHECK_LENGTHS, strict=True)),
    ]
    slots = torch.cat([step.attention.batch.slot_mapping for step in steps])
    assert len(set(slots.tolist())) == sum(CHECK_LENGTHS)
    assert all(step.attention.states is None for step in steps)


def test_states_are_kept_inside_the_first_chunks_and_tokens_after_them_are_replayed() -> None:
    first, second = check_steps(check_sequences(100), GEOMETRIES, SHAPES, torch.float32, torch.device("cpu"))
    assert first.attention.states is not None
    assert second.attention.states is not None
    assert first.attention.states.memory is second.attention.states.memory
    written = first.attention.states.plan
    ends = {}
    for row in range(3):
        own = slice(written.cu_marks[row], written.cu_marks[row + 1])
        ends[row] = dict(zip(written.mark_slots[own].tolist(), written.mark_ends[own].tolist(), strict=True))
    sources = second.attention.states.plan.sources.tolist()
    assert [ends[row][sources[row]] for row in range(3)] == [start for start, _ in second.spans]
    assert [cut - start for cut, (start, _) in zip(CHECK_CUTS, second.spans, strict=True)] == [3, 7, 0]
    replayed = second.attention.batch.slot_mapping == -1
    starts = second.attention.batch.cu_seqlens_q
    assert [int(replayed[starts[row] : starts[row + 1]].sum()) for row in range(3)] == [3, 7, 0]


def test_errors_are_relative_to_the_spread_of_a_tokens_logits() -> None:
    expected = torch.tensor([[101.0, 99.0], [2.0, 0.0]])
    errors = relative_errors(expected + torch.tensor([[0.1, -0.1], [0.0, 0.5]]), expected)
    torch.testing.assert_close(errors, torch.tensor([0.1, 0.5 / 2**0.5]), rtol=1e-3, atol=0)


def test_a_nudge_changes_lanes_by_their_size() -> None:
    embeddings = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    moved = (nudged(embeddings, 1e-3) / embeddings - 1).abs()
    assert moved.max() < 1.1e-3
    assert (moved > 0.9e-3).float().mean() > 0.5
