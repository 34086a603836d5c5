"""One run that holds a recurrent model to `transformers`, step by step: ragged, chunked, marked, from kept states, with replayed tokens.

It plays the engine: three sequences are computed together in chunks of random lengths, states are kept at random marks, and two more
sequences begin from kept states over shared pages while the others go on. Every logit is compared with those of the stock model over the
whole sequence without a cache.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.decoders.self_check import relative_errors
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.states import StateMemory, StepStates

PAGE_SIZE = 4
_NUM_SLOTS, _NUM_PAGES = 48, 80
_LENGTHS = 37, 11, 26
_SHARED = 21
"""Tokens that the later sequences have in common with the first."""


@dataclass
class StatefulSequence:
    """A sequence under computation. Its running state is in `slot`, states that were kept in others, by number of tokens."""

    token_ids: list[int]
    slot: int
    page_ids: list[int] = field(default_factory=list)
    num_computed: int = 0
    num_written: int = 0
    source: int | None = None
    kept: dict[int, int] = field(default_factory=dict)
    logits: dict[int, Tensor] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether all tokens are computed."""
        return self.num_computed == len(self.token_ids)


class StateDriver:
    """Computes sequences on a decoder, with memory of its own that starts as noise."""

    def __init__(self, decoder: Decoder, seed: int = 0) -> None:
        self.decoder, self.random = decoder, random.Random(seed)
        self._kv = PagedKV(decoder.geometries, _NUM_PAGES, PAGE_SIZE, decoder.dtype)
        self._memory = StateMemory(decoder.state_shapes, _NUM_SLOTS)
        for shape in decoder.state_shapes:
            self._memory.of(shape.layer, shape.name).fill_(3.0)  # what a slot held before must not matter
        self._pages = self.random.sample(range(_NUM_PAGES), _NUM_PAGES)
        self._slots = self.random.sample(range(_NUM_SLOTS), _NUM_SLOTS)

    def sequence(self, token_ids: Sequence[int]) -> StatefulSequence:
        """A new sequence without any state."""
        return StatefulSequence(list(token_ids), self._slots.pop())

    def fork(self, token_ids: Sequence[int], parent: StatefulSequence, num_tokens: int) -> StatefulSequence:
        """A sequence that begins from the state of `parent` after `num_tokens` tokens, over whole pages that are equal."""
        common = next(
            (i for i, (a, b) in enumerate(zip(token_ids, parent.token_ids, strict=False)) if a != b), len(token_ids)
        )
        num_pages = min(common, parent.num_written, len(token_ids) - 1) // PAGE_SIZE
        made = self.sequence(token_ids)
        made.source, made.num_computed = parent.kept[num_tokens], num_tokens
        made.page_ids, made.num_written = parent.page_ids[:num_pages], num_pages * PAGE_SIZE
        if num_tokens > made.num_written:  # the page of the kept state is copied
            self._kv.copy_pages([(parent.page_ids[num_pages], self._pages[-1])])
            made.page_ids, made.num_written = [*made.page_ids, self._pages.pop()], num_tokens
        return made

    def step(self, sequences: Sequence[StatefulSequence], *, max_tokens: int = 9) -> None:
        """Compute the next tokens of some sequences, a random number of each, and keep states at random marks."""
        parts = [(each, self.random.randint(1, max_tokens)) for each in sequences if not each.is_done]
        rows = [
            self._row(sequence, min(count, len(sequence.token_ids) - sequence.num_computed))
            for sequence, count in parts
        ]
        batch = Batch.from_step(Step(0, tuple(rows)), PAGE_SIZE)
        assert batch.states is not None
        attention = StepAttention(batch, self._kv, states=StepStates(self._memory, batch.states))
        with torch.inference_mode():
            logits = self.decoder.project(self.decoder.forward(attention)).float()
        for row, (sequence, _), found in zip(
            rows, parts, logits.split([len(row.token_ids) for row in rows]), strict=True
        ):
            for offset, line in enumerate(found):
                sequence.logits[row.num_computed_tokens + offset] = line

    def _row(self, sequence: StatefulSequence, count: int) -> Row:
        start, stop = sequence.num_computed, sequence.num_computed + count
        while len(sequence.page_ids) * PAGE_SIZE < stop:
            sequence.page_ids.append(self._pages.pop())
        marks = {}
        for end in sorted(self.random.sample(range(1, count + 1), min(count, 2))):
            if len(self._slots) > 8 and start + end not in sequence.kept and end < count:
                marks[end] = sequence.kept[start + end] = self._slots.pop()
        tokens = sequence.token_ids[start:stop]
        source, sequence.source = sequence.source, sequence.slot
        num_replayed = max(0, min(sequence.num_written, stop) - start)
        sequence.num_computed, sequence.num_written = stop, max(stop, sequence.num_written)
        return Row(
            id(sequence),
            tokens,
            start,
            tuple(sequence.page_ids),
            0,
            False,
            SamplingParams(),
            score_token_ids=tokens,
            states=RowStates(source, (*marks.items(), (count, sequence.slot))),
            num_replayed_tokens=num_replayed,
        )


def scheduled(driver: StateDriver, vocab_size: int) -> list[StatefulSequence]:
    """Random sequences, all computed: side by side in random chunks, two of them from kept states of the first."""
    draw = driver.random
    tokens = [[draw.randrange(vocab_size) for _ in range(length)] for length in _LENGTHS]
    first, second, third = map(driver.sequence, tokens)
    while first.num_computed < _SHARED + 6:
        driver.step([first, second] if first.num_computed < 8 else [first, second, third])
    forks = []
    for place in draw.sample(sorted(each for each in first.kept if each <= _SHARED), 2):
        own = [draw.randrange(vocab_size) for _ in range(draw.randint(3, 14))]
        forks.append(driver.fork(first.token_ids[:_SHARED] + own, first, place))
    sequences = [first, second, third, *forks]
    while not all(each.is_done for each in sequences):
        driver.step(draw.sample(sequences, len(sequences)), max_tokens=draw.choice((1, 9)))
    return sequences


def state_errors(decoder: Decoder, model: Any, vocab_size: int, *, seed: int = 0) -> list[float]:
    """Largest relative error of the logits of each sequence against `model`, the same weights in `transformers` alone.

    Args:
        model: in float32 with its own ("eager") attention.
    """
    errors = []
    for sequence in scheduled(StateDriver(decoder, seed), vocab_size):
        with torch.inference_mode():
            stock = model(input_ids=torch.tensor([sequence.token_ids]), use_cache=False).logits[0].float()
        places = sorted(sequence.logits)
        found = torch.stack([sequence.logits[place] for place in places])
        errors.append(float(relative_errors(found, stock[places]).max()))
    return errors
