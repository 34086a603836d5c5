"""Steps in tiles of fixed size: nothing is lost or doubled, and a model of transformers gives a token the same bits in every step."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.fixed_tiles import TILE_SIZES, TileSizes, tiles_of
from rtlang.model.host_runner import HostRunner
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from tests.support.long_tests import sized
from tests.support.models.families import FAMILIES, Family, make_config
from tests.support.models.model_steps import Pages, TrackedSequence, all_logits, next_row, ragged_logits
from tests.support.models.state_check import StateDriver, scheduled
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint, random_model, save_checkpoint

PAGE_SIZE = 4
SIZES = TILE_SIZES[0]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def random_batch(rng: random.Random, num_slots: int = 0) -> Batch:
    """Rows of random lengths; with state slots, they continue, share and keep states in some of them."""
    rows, page, before = [], 0, 0
    slots = rng.sample(range(num_slots), num_slots)
    kept = [slots.pop() for _ in range(num_slots // 4)]  # read by several rows, and written by none
    for index in range(rng.randint(1, 9)):
        shared = rng.randint(0, before // PAGE_SIZE) * PAGE_SIZE if index else 0
        computed = shared + rng.randint(0, 9)
        token_ids = [rng.randrange(250) for _ in range(rng.choice([1, 1, 2, 7, 40, 90]))]
        before = computed + len(token_ids)
        num_own = -(-before // PAGE_SIZE) - shared // PAGE_SIZE
        pages = [*(rows[-1].page_ids[: shared // PAGE_SIZE] if rows else ()), *range(page, page + num_own)]
        page += num_own
        kind = rng.randrange(3)
        scores = token_ids[1:] if kind == 2 else []
        states = random_states(rng, len(token_ids), slots, kept) if slots else None
        rows.append(
            Row(
                index,
                token_ids,
                computed,
                pages,
                shared,
                kind == 1,
                SamplingParams(),
                score_token_ids=scores,
                states=states,
            )
        )
    return Batch.from_step(Step(0, tuple(rows)), PAGE_SIZE)


def random_states(rng: random.Random, num_tokens: int, slots: list[int], kept: list[int]) -> RowStates:
    running = slots.pop()
    source = rng.choice([None, running, rng.choice(kept)])
    ends = sorted(rng.sample(range(1, num_tokens + 1), min(num_tokens, rng.randint(0, 3))))
    return RowStates(
        source, tuple((end, slots.pop() if i or rng.random() < 0.3 else running) for i, end in enumerate(ends))
    )


@pytest.mark.parametrize("seed", range(sized(20)))
def test_tiles_hold_each_token_with_its_row_once(seed: int) -> None:
    batch = random_batch(random.Random(seed))
    row_of = np.repeat(np.arange(len(batch.seq_lens)), np.diff(batch.cu_seqlens_q))
    found: list[tuple[int, int]] = []
    wanted: list[int] = []
    for tile in tiles_of(batch, SIZES):
        part = tile.batch
        assert tile.size in (SIZES.small, SIZES.large)
        assert 0 < part.num_tokens <= tile.size
        assert part.cu_seqlens_q[0] == 0
        assert (np.diff(part.cu_seqlens_q) > 0).all()
        assert part.cu_seqlens_q[-1] == part.num_tokens
        wanted += [tile.start + index for index in part.logit_indices.tolist()]
        for row in range(len(part.seq_lens)):
            first, stop = int(part.cu_seqlens_q[row]), int(part.cu_seqlens_q[row + 1])
            of_step = row_of[tile.start + first]
            assert (part.page_table[row] == batch.page_table[of_step]).all()
            assert part.shared_lens[row] in (0, batch.shared_lens[of_step])
            for token in range(first, stop):
                place = tile.start + token
                found.append((place, int(part.seq_lens[row]) - stop + token))
                for name in ("input_ids", "positions", "slot_mapping"):
                    assert getattr(part, name)[token] == getattr(batch, name)[place]
    assert found == list(enumerate(batch.positions.tolist()))
    assert sorted(wanted) == sorted(batch.logit_indices.tolist())


def compute_states(plan: StatePlan, token_ids: list[int], memory: dict[int, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What rows have read at each token, where a state is the tokens before it; `memory` changes as the plan says."""
    assert len(token_ids) == plan.num_tokens
    before, found = dict(memory), []
    for row in range(plan.num_rows):
        source = int(plan.sources[row])
        state = () if source == NO_SLOT else before[source]
        own = slice(plan.cu_marks[row], plan.cu_marks[row + 1])
        marks = dict(zip(plan.mark_ends[own].tolist(), plan.mark_slots[own].tolist(), strict=True))
        for place, token in enumerate(token_ids[plan.cu_seqlens[row] : plan.cu_seqlens[row + 1]], start=1):
            state = (*state, token)
            found.append(state)
            if place in marks:
                memory[marks[place]] = state
    return found


@pytest.mark.parametrize("sizes", TILE_SIZES, ids=str)
@pytest.mark.parametrize("seed", range(sized(20)))
def test_states_go_from_tile_to_tile(seed: int, sizes: TileSizes) -> None:
    num_slots = 48
    batch = random_batch(random.Random(seed), num_slots)
    whole = {slot: (-slot,) for slot in range(num_slots + 2)}
    in_tiles = dict(whole)
    assert batch.states is not None
    expected = compute_states(batch.states, batch.input_ids.tolist(), whole)
    found = []
    for tile in tiles_of(batch, sizes, (num_slots, num_slots + 1)):
        assert tile.batch.states is not None
        filling = tile.size - tile.batch.num_tokens
        tokens = tile.batch.input_ids.tolist() + [999] * filling
        found += compute_states(tile.batch.states, tokens, in_tiles)[: tile.batch.num_tokens]
    assert found == expected
    assert all(in_tiles[slot] == whole[slot] for slot in range(num_slots))
    assert not any(999 in state for state in in_tiles.values())


def load(path: Path, dtype: str, **settings: Any) -> HostRunner:
    given = {"decoder": "transformers", "num_pages": 64, "page_size": PAGE_SIZE, "num_threads": 1}
    runner = HostRunner(RuntimeConfig(model=str(path), dtype=dtype, **given | settings))
    runner.load()
    return runner


@pytest.mark.parametrize(
    ("family", "dtype"),
    [
        *itertools.product(("gemma2", "gpt2"), ("float32", "bfloat16")),
        *[("mixtral", "float32"), ("gpt_oss", "bfloat16")],  # experts
    ],
)
def test_a_token_has_the_same_bits_in_every_step(family: str, dtype: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, family)
    runner = load(path, dtype, deterministic=True)
    assert runner.is_row_invariant
    stock = load(path, dtype)
    assert not stock.is_row_invariant
    for (token_ids, logits), (_, plain) in zip(
        ragged_logits(runner, VOCAB_SIZE), ragged_logits(stock, VOCAB_SIZE), strict=True
    ):
        alone = next_row(TrackedSequence(token_ids), len(token_ids), Pages(64, seed=9), PAGE_SIZE)
        (whole,) = all_logits(runner, [alone])
        assert torch.equal(whole[-len(logits) :], logits)
        tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float32" else {"rtol": 0.1, "atol": 0.3}
        torch.testing.assert_close(logits, plain, **tolerance)


@pytest.mark.parametrize(
    ("model_type", "dtype"),
    [("qwen3_next", "float32"), ("bamba", "bfloat16"), ("lfm2", "float32"), ("jamba", "float32")],
)
def test_a_token_of_a_recurrent_model_has_the_same_bits_in_every_step(
    model_type: str, dtype: str, tmp_path: Path
) -> None:
    (family,) = (each for each in FAMILIES if each.model_type == model_type)
    runner = load(save_checkpoint(random_model(make_config(family)), tmp_path), dtype, deterministic=True)
    assert runner.is_row_invariant
    driver = StateDriver(runner.decoder)
    for sequence in scheduled(driver, VOCAB_SIZE):
        alone = StateDriver(runner.decoder)
        again = alone.sequence(sequence.token_ids)
        while not again.is_done:
            alone.step([again], max_tokens=1)
        for place, logits in sequence.logits.items():
            assert torch.equal(logits, again.logits[place]), place


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", [each for each in FAMILIES if each.has_states], ids=lambda each: each.model_type)
def test_every_recurrent_family_passes_the_check_of_bits(family: Family, dtype: str, tmp_path: Path) -> None:
    path = save_checkpoint(random_model(make_config(family)), tmp_path)
    assert load(path, dtype, deterministic=True).is_row_invariant


def test_a_step_without_logits_is_computed(tmp_path: Path) -> None:
    runner = load(make_checkpoint(tmp_path, "gemma2"), "float32", deterministic=True)
    row = Row(0, list(range(40)), 0, tuple(range(10)), 0, False, SamplingParams())
    flight = runner.launch(Step(0, (row,)))
    assert flight.logits is None
    assert flight.scores == {}


def test_a_model_whose_bits_depend_on_the_step_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.gemma2 import modeling_gemma2

    forward = modeling_gemma2.Gemma2MLP.forward

    def uneven(self: Any, x: torch.Tensor) -> torch.Tensor:
        """Tokens at odd places get other bits, as the rest of a vector loop may give them."""
        factors = 1 + 2**-18 * (torch.arange(x.shape[1]) % 2)
        return forward(self, x) * factors[:, None]

    path = make_checkpoint(tmp_path, "gemma2")
    monkeypatch.setattr(modeling_gemma2.Gemma2MLP, "forward", uneven)
    assert not load(path, "float32").is_row_invariant
    with pytest.raises(ConfigError, match=r"deterministic = True: expected False for model type 'gemma2'") as refused:
        load(path, "float32", deterministic=True)
    assert refused.value.field == "deterministic"


def test_stacked_matrices_that_kernels_do_not_know_are_refused(tmp_path: Path) -> None:
    (family,) = (each for each in FAMILIES if each.model_type == "jetmoe")
    path = save_checkpoint(random_model(make_config(family)), tmp_path)
    with pytest.raises(ConfigError, match="'jetmoe': the number of tokens per expert"):
        load(path, "float32", deterministic=True)


def test_native_decoders_need_nothing(tmp_path: Path) -> None:
    runner = load(make_checkpoint(tmp_path, "llama"), "float32", decoder="native", deterministic=True)
    assert runner.is_row_invariant
