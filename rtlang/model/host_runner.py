"""Runs steps on the CPU.

`launch` computes everything that needs no mask: page copies, the forward pass, logits of the rows that need a sample, scores. Meanwhile the
engine may fill the step's bitmask on other threads. `sample` samples the tokens. Rows that need neither a sample nor scores cost no
logits, and only a bounded number of scored tokens have logits at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.cache.system_memory import trim_heap
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, SampledRow, Step, StepOutput
from rtlang.model import system_resources
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.draft_heads.head_runner import NUM_SCRATCH_PAGES, HeadRunner
from rtlang.model.draft_heads.loading import load_draft_head
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.cache_division import LEAST_STATES, MemoryNeeds, divide_cache, states_beside
from rtlang.model.layers.states import StateMemory, StepStates, state_bytes
from rtlang.model.loader import check_ranks, load_model
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import MessageKind, release_of, step_of, step_words
from rtlang.model.parallel.rank_pages import RankPages
from rtlang.model.parallel.ranks import Ranks
from rtlang.model.runner import PageMemory, StateContent
from rtlang.model.sampler import Sample, gather_samples, sample_tokens, sampled_rows, token_logprobs
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars.machine.export import Walk

logger = logging.getLogger(__name__)

_USUAL_SEQUENCES, _USUAL_TOKENS = 64, 4096
"""The default pool has room for so many sequences of so many tokens, or of the longest that the model takes, and for one of these."""
_MANY = 1 << 40  # more pages than there can be
_SCORE_CHUNK_BYTES = 64 << 20  # logits of scored tokens held at a time


@dataclass(slots=True)
class HostFlight:
    """A launched step.

    Attributes:
        logits: [num_sampled_tokens, vocab_size]; None if no row needs a sample.
        scores: by row; None if its logits were not finite.
        samples: one per sampled token, once `sample` was called.
    """

    step: Step
    batch: Batch
    logits: Tensor | None
    scores: dict[int, tuple[TokenLogprob, ...] | None]
    samples: list[Sample] = field(default_factory=list)


class HostRunner:
    """The `Runner` of the host. Computes each step at once, with `tensor_parallel` together with the processes of other ranks.

    Args:
        group: the connected ranks of which this runner is one; default: `load` starts the others, if there are to be any.

    Attributes:
        ranks: the other ranks.

    Attributes (after `load`):
        model_config, tokenizer: the loaded model's.
        decoder: the model.
        kv: the pages.
        states: the states of recurrent layers; None for a model without any.
        head: runs the draft head; None if the settings name none.
    """

    is_pipelined: ClassVar[bool] = False

    model_config: ModelConfig
    tokenizer: Tokenizer
    decoder: Decoder
    kv: PagedKV
    states: StateMemory | None = None
    head: HeadRunner | None = None

    def __init__(self, config: RuntimeConfig, group: RankGroup | None = None) -> None:
        self.config = config
        self.ranks = Ranks(config, group)
        self.num_replayed = self.num_eager = 0

    @property
    def is_row_invariant(self) -> bool:
        """See `Runner`."""
        return self.decoder.is_row_invariant

    @property
    def num_pages(self) -> int:
        """Pages in the KV pool."""
        return self.kv.num_pages if self.head is None else self.head.num_pages

    @property
    def num_states(self) -> int:
        """See `Runner`."""
        return 0 if self.states is None else self.states.num_slots

    @property
    def max_model_len(self) -> int:
        """Maximum sequence length in tokens: the setting, else the checkpoint's."""
        return self.config.max_model_len or self.model_config.max_position_embeddings

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """See `Runner`: the settings as they are."""
        return config

    @property
    def page_memory(self) -> PageMemory:
        """See `Runner`."""
        group = self.ranks.group
        return self.kv if group is None else RankPages(self.kv, group.size, self.ranks.send)

    @property
    def state_memory(self) -> StateContent | None:
        """See `Runner`."""
        return self.states

    def load(self) -> None:
        """Load the model and allocate the KV pool.

        Raises:
            ModelLoadError: as `load_model`, or the process of a rank has ended.
            ConfigError: max_model_len exceeds the checkpoint's maximum, or the KV pool does not fit or holds less than two pages or, for a
                model with recurrent layers, two states.
        """
        num_ranks = self.config.tensor_parallel
        torch.set_num_threads(self.config.num_threads or max(1, system_resources.num_cores() // num_ranks))
        check_ranks(self.config)
        with self.ranks.loading() as group:
            self._load(group)
        logger.info(
            "KV pool of %d pages of %d tokens: %.0f MiB, %s",
            self.kv.num_pages,
            self.config.page_size,
            self.kv.num_pages * self.kv.page_bytes / 2**20,
            "int8 with scales" if self.config.kv_dtype == "int8" else str(self.kv.dtype).removeprefix("torch."),
        )
        if self.states is not None:
            size = system_resources.show_bytes(self.states.state_bytes)
            logger.info("state pool of %d states of %s", self.states.num_slots, size)

    def _load(self, group: RankGroup | None) -> None:
        with torch.inference_mode():
            self.decoder, self.model_config, self.tokenizer = load_model(self.config, group=group)
            head = None
            if group is None and (self.config.speculation == "on" or self.decoder.is_row_invariant):
                head = load_draft_head(self.config, self.decoder, self.model_config)
        trim_heap()  # before the size of the pool is computed from the free memory
        longest = self.model_config.max_position_embeddings
        if self.config.max_model_len is not None and self.config.max_model_len > longest:
            raise ConfigError("max_model_len", self.config.max_model_len, f"the checkpoint supports at most {longest}")
        geometries, dtype, num_scratch = self.decoder.geometries, self.decoder.dtype, 0
        if head is not None:
            geometries, num_scratch = (*geometries, *head.geometries), NUM_SCRATCH_PAGES
        kv_dtype = torch.int8 if self.config.kv_dtype == "int8" else dtype
        bytes_per_page = PagedKV.bytes_per_page(geometries, self.config.page_size, kv_dtype)
        if group is None:
            num_pages, num_states = self._pick_sizes(bytes_per_page, state_bytes(self.decoder.state_shapes))
        else:  # rank 0 decides, when all have loaded their weights into the memory that they share
            group.smallest(0)
            num_pages = group.smallest(self._pick_sizes(bytes_per_page * group.size, 0)[0] if group.is_first else _MANY)
            num_states = 0
        self.kv = PagedKV(geometries, num_pages + num_scratch, self.config.page_size, dtype, kv_dtype=kv_dtype)
        if head is not None:
            sizes = {"num_pages": num_pages, "max_model_len": self.max_model_len}
            self.head = HeadRunner(head, self.kv, self.model_config, self.tokenizer, **sizes)
        if num_states:
            self.states = StateMemory(self.decoder.state_shapes, num_states)
        if not self.ranks.is_following:
            self._warm_up()
            trim_heap()

    def follow(self) -> None:
        """As a rank other than 0, compute what rank 0 says until it says that this ends.

        Raises:
            RuntimeError: another rank has ended.
        """
        group = self.ranks.group
        assert group is not None
        while (kind := (words := group.receive())[0]) != MessageKind.END:
            if kind == MessageKind.STEP:
                step = step_of(words)
                with torch.inference_mode():
                    self._forward(step, StepAttention(Batch.from_step(step, self.config.page_size), self.kv))
            elif kind == MessageKind.RELEASE:
                self.kv.release(release_of(words))
                trim_heap()

    def close(self) -> None:
        """See `Runner`; drops the weights and the pages, and ends the processes of other ranks."""
        for name in ("decoder", "kv", "states", "head"):
            self.__dict__.pop(name, None)
        self.ranks.close()

    def sample_again(self, flight: HostFlight, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        """See `Runner`; never called, since no row is lost."""
        raise AssertionError(f"no row of {indices} can be lost: the host computes all masks")

    def can_follow(self, walk: Walk) -> bool:
        """See `Runner`; always False, since the host computes all masks."""
        return False

    def launch(self, step: Step) -> HostFlight:
        """See `Runner`; computes the step's page copies and forward pass."""
        batch = Batch.from_step(step, self.config.page_size)
        with torch.inference_mode(), self.ranks.guard():
            if self.ranks.group is not None:
                self.ranks.send(step_words(step))
            tap = None if self.head is None else self.head.tap()
            states = self._forward(step, StepAttention(batch, self.kv, states=self._step_states(batch), tap=tap))
            if self.head is not None and tap is not None:
                self.head.follow(step, self.head.head.combine(tap.states))
            num_sampling = len(batch.sampling_rows)
            logits = self.decoder.project(states[:num_sampling]) if num_sampling else None
            scores = self._score(step, batch, states[num_sampling:]) if batch.scoring_rows else {}
        return HostFlight(step, batch, logits, scores)

    def _forward(self, step: Step, attention: StepAttention) -> Tensor:
        self.kv.copy_pages(step.copies)
        return self.decoder.forward(attention)

    def _step_states(self, batch: Batch) -> StepStates | None:
        if self.states is None:
            return None
        assert batch.states is not None, "rows of a model with recurrent layers have states"
        return StepStates(self.states, batch.states)

    def sample(
        self,
        flight: HostFlight,
        rows: Sequence[Row],
        bitmask: NDArray[np.int32] | None = None,
        walks: Mapping[int, Walk] = MappingProxyType({}),
    ) -> None:
        """See `Runner`; samples the tokens now."""
        if flight.logits is not None:
            with torch.inference_mode():
                flight.samples = sample_tokens(flight.logits, sampled_rows(rows), bitmask)

    def collect(self, flight: HostFlight) -> StepOutput:
        """See `Runner`."""
        outputs = gather_samples(flight.step.rows, flight.samples)
        for index, scores in flight.scores.items():
            output = outputs[index]
            is_finite = output.is_finite and scores is not None
            tokens = output.tokens if is_finite else ()
            outputs[index] = output._replace(tokens=tokens, scores=scores or (), is_finite=is_finite)
        return StepOutput(flight.step.step_id, tuple(outputs))

    def _score(self, step: Step, batch: Batch, states: Tensor) -> dict[int, tuple[TokenLogprob, ...] | None]:
        """Scores by row, from the states of the scoring rows in order; None for a row whose logits are not finite."""
        rows = [step.rows[index] for index in batch.scoring_rows]
        token_ids = [token_id for row in rows for token_id in row.score_token_ids]
        num_top = [row.num_score_top for row in rows for _ in row.score_token_ids]
        chunk = max(1, _SCORE_CHUNK_BYTES // (4 * self.model_config.vocab_size))
        found: list[TokenLogprob] = []
        for start in range(0, len(token_ids), chunk):
            part = slice(start, start + chunk)
            found += token_logprobs(self.decoder.project(states[part]), token_ids[part], num_top[part])
        scores: dict[int, tuple[TokenLogprob, ...] | None] = {}
        start = 0
        for index, row in zip(batch.scoring_rows, rows, strict=True):
            own = tuple(found[start : start + len(row.score_token_ids)])
            start += len(own)
            # a log-probability is NaN if any logit of its row is NaN or +inf; -inf is valid and marks a forbidden token
            scores[index] = own if all(item.logprob == item.logprob for item in own) else None
        return scores

    def _warm_up(self) -> None:
        """Run one small step, so that kernels are compiled or loaded from their disk cache before the first request."""
        sampled = SamplingParams(temperature=1.0)
        rows: tuple[Row, ...] = (
            Row(0, (0,) * min(3, self.config.page_size), 0, (0,), 0, True, sampled, mask_row=0),
            Row(1, (0,), 0, (1,), 0, True, SamplingParams(logprobs=1)),
        )
        bitmask = np.full((1, -(-self.model_config.vocab_size // 32)), -1, dtype=np.int32)
        if self.states is not None:
            rows = tuple(
                row._replace(states=RowStates(None, ((len(row.token_ids), slot),))) for slot, row in enumerate(rows)
            )
        flight = self.launch(Step(0, rows, num_mask_rows=1))
        self.sample(flight, rows, bitmask)
        self.collect(flight)
        if self.head is not None:
            self.head.clear()

    def _pick_sizes(self, page_bytes: int, state_bytes: int) -> tuple[int, int]:
        """Numbers of pages and of states."""
        config, page_size, free = self.config, self.config.page_size, system_resources.free_bytes()
        needs = MemoryNeeds(
            page_bytes,
            state_bytes,
            usual_pages=-(-min(_USUAL_TOKENS, self.max_model_len) // page_size),
            longest_pages=-(-self.max_model_len // page_size),
            row_limit=config.row_limit,
        )
        if config.num_pages is not None:
            needed = config.num_pages * page_bytes + LEAST_STATES * state_bytes
            if needed > free:
                of_states = f" with {LEAST_STATES} states" if state_bytes else ""
                raise ConfigError(
                    "num_pages",
                    config.num_pages,
                    f"the KV pool{of_states} needs {needed:,} bytes, but only {free:,} are free",
                )
            left = max(free // 2 - config.num_pages * page_bytes, LEAST_STATES * state_bytes)
            if config.cache_bytes is not None:
                left = min(config.cache_bytes, free) - config.num_pages * page_bytes
            sizes = config.num_pages, states_beside(needs, config.num_pages, left, config.state_fraction)
        else:
            sizes = divide_cache(needs, self._pick_cache_bytes(needs, free), config.state_fraction)
        self._check_sizes(needs, *sizes)
        return sizes

    def _pick_cache_bytes(self, needs: MemoryNeeds, free: int) -> int:
        if self.config.cache_bytes is not None:
            if self.config.cache_bytes > free:
                raise ConfigError("cache_bytes", self.config.cache_bytes, f"only {free:,} bytes of memory are free")
            return self.config.cache_bytes
        num_sharing = system_resources.num_sharing()
        longest = needs.longest_pages * needs.page_bytes + LEAST_STATES * needs.state_bytes
        limit = max(system_resources.total_bytes() // 4 // num_sharing, longest)
        return min(needs.sequences_bytes(_USUAL_SEQUENCES), limit, free // 2 // num_sharing)

    def _check_sizes(self, needs: MemoryNeeds, num_pages: int, num_states: int) -> None:
        config = self.config
        if num_pages >= 2 and (num_states >= LEAST_STATES or not needs.state_bytes):
            return
        name, needed = "cache_bytes", f"a page takes {needs.page_bytes:,} bytes, and at least two pages are needed"
        if needs.state_bytes:
            needed = (
                f"a state takes {needs.state_bytes:,} bytes and a page {needs.page_bytes:,}, and at least {LEAST_STATES} states and two "
                f"pages are needed, but there is room for {num_states} and {num_pages}"
            )
            if config.state_fraction is not None:
                name = "state_fraction"
        raise ConfigError(name, getattr(config, name), needed)
