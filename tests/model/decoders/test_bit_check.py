"""The check of bits tells decoders that depend on a step, or lose states in it, from those that do not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rtlang.model.decoders.bit_check import has_equal_bits
from rtlang.model.decoders.fixed_tiles import _StateParts
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.layers.attention import StepAttention
from rtlang.model.layers.states import StepStates
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.tiny_models import VOCAB_SIZE, random_model, save_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
Forward = Callable[[StepAttention], torch.Tensor]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> TransformersDecoder:
    (family,) = (each for each in FAMILIES if each.model_type == "lfm2")
    path: Path = save_checkpoint(random_model(make_config(family)), tmp_path_factory.mktemp("lfm2"))
    return TransformersDecoder.load(path, torch.float32, dummy_seed=None, is_deterministic=True)


def passes(decoder: TransformersDecoder, forward: Forward | None = None) -> bool:
    with torch.inference_mode():
        return has_equal_bits(
            forward or decoder.forward, VOCAB_SIZE, decoder.geometries, decoder.state_shapes, decoder.dtype
        )


def test_equal_bits_pass(decoder: TransformersDecoder) -> None:
    assert passes(decoder)


@pytest.mark.parametrize("num_tokens", [1, 32, 64, 74])
def test_bits_that_depend_on_the_number_of_tokens_do_not_pass(decoder: TransformersDecoder, num_tokens: int) -> None:
    def uneven(attention: StepAttention) -> torch.Tensor:
        logits = decoder.forward(attention)
        return logits * (1 + 2**-20) if attention.batch.num_tokens == num_tokens else logits

    assert not passes(decoder, uneven)


def without_sources(plan: StatePlan) -> StatePlan:
    return rebuilt(plan, sources=[NO_SLOT] * plan.num_rows)


def without_early_marks(plan: StatePlan) -> StatePlan:
    """Only the last mark of each row is written."""
    return rebuilt(plan, keep=slice(-1, None))


def rebuilt(plan: StatePlan, sources: list[int] | None = None, keep: slice = slice(None)) -> StatePlan:
    marks = list(zip(plan.mark_ends.tolist(), plan.mark_slots.tolist(), strict=True))
    bounds = plan.cu_marks.tolist()
    own = [marks[first:last][keep] for first, last in itertools.pairwise(bounds)]
    return StatePlan.of(plan.cu_seqlens, sources or plan.sources.tolist(), own)


@pytest.mark.parametrize("change", [without_sources, without_early_marks])
def test_lost_states_do_not_pass(decoder: TransformersDecoder, change: Callable[[StatePlan], StatePlan]) -> None:
    def lossy(attention: StepAttention) -> torch.Tensor:
        assert attention.states is not None
        plan = change(attention.states.plan)
        states = StepStates(attention.states.memory, plan)
        return decoder.forward(
            StepAttention(dataclasses.replace(attention.batch, states=plan), attention.kv, states=states)
        )

    assert not passes(decoder, lossy)


def test_states_that_are_lost_between_tiles_do_not_pass(
    decoder: TransformersDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = _StateParts.next

    def forgetting(self: _StateParts, start: int, stop: int, size: int) -> StatePlan:
        self._entering = NO_SLOT
        return stock(self, start, stop, size)

    monkeypatch.setattr(_StateParts, "next", forgetting)
    assert not passes(decoder)
