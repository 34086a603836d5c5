"""Runs steps on a device, one step ahead of the host.

`launch` enqueues copies and layers and `sample` enqueues sampling, without waiting; `collect` waits for the tokens of one step while the
next one is computed. Sampled tokens stay on the device for the rows that continue, except for rows with drafts: the host has to see which
of these are right. Steps are replayed from graphs captured at load time, one per number of tokens, whatever their rows compute; steps of
more tokens are launched kernel by kernel.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.cache.system_memory import trim_heap
from rtlang.contract.config import LEAST_DEVICE_ROWS, RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.step import Row, SampledRow, Step, StepOutput
from rtlang.model import system_resources
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.draft_heads.device_head import DeviceHeadRunner
from rtlang.model.draft_heads.draft_head import DraftHead
from rtlang.model.draft_heads.head_runner import NUM_SCRATCH_PAGES
from rtlang.model.draft_heads.loading import load_draft_head
from rtlang.model.gpu.accelerator import Accelerator, Fetched, Stopwatch, accelerator_for
from rtlang.model.gpu.device_batch import on_device
from rtlang.model.gpu.device_content import DevicePages, DeviceStates, contents_of
from rtlang.model.gpu.device_grammar import DeviceGrammars, LostRows
from rtlang.model.gpu.device_graphs import GRAPH_TOKENS, GraphSizes, StepGraphs, capture_steps
from rtlang.model.gpu.device_sampler import (
    DeviceMasks,
    PendingSample,
    launch_logprobs,
    launch_sampling,
    read_logprobs,
    uploaded_masks,
)
from rtlang.model.gpu.prompt_kernels import choose_prompt_kernels
from rtlang.model.gpu.sampler_rows import SamplerRows
from rtlang.model.gpu.warm_up import WARM_UP_ROWS, warm_up_rows
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention
from rtlang.model.layers.cache_division import LEAST_STATES, MemoryNeeds, divide_cache, states_beside
from rtlang.model.layers.states import StateMemory, StepStates, state_bytes
from rtlang.model.loader import check_ranks, load_model
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import MessageKind, end_words, sampled_of, sampled_words, step_of, step_words
from rtlang.model.parallel.ranks import Ranks
from rtlang.model.sampler import gather_samples, sampled_rows
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars import Vocabulary
from rtlang_grammars.machine.export import Walk
from rtlang_kernels.host.transfer import copy_to_device

logger = logging.getLogger(__name__)

_SCORE_CHUNK_BYTES = 256 << 20  # logits of scored tokens held at a time
_MAX_GRID_ROWS = 1 << 15  # grids are limited to 65535 in the second dimension
CACHE_SHARE = 0.85
"""Share of the memory left by the weights for pages and states; the rest is for activations, logits and graphs."""
_USUAL_TOKENS = 4096  # of a sequence, to divide the memory between pages and states
_ROW_TOKENS = 1024  # of a sequence, to choose the number of rows: steps are full before all pages are in use
# With drafts, graphs of decoding have up to 8 tokens per row, and 256 tokens at most unless there are more rows. Graphs of prompts beside
# decoding rows have at least 1024 tokens, which is the usual limit of a step, and 8 per row.
_TOKENS_PER_ROW, _MAX_DRAFTED_TOKENS, _PROMPT_TOKENS = 8, 256, 1024


@dataclass(slots=True)
class DeviceFlight:
    """A launched step. Owned by the caller of `launch` until it is collected.

    Attributes:
        sampling_rows: the row of each token to sample, in order.
        logits: logits of these tokens on the device, until they are sampled.
        watch: measures the step.
        scores: pending log-probabilities, in chunks of (token ids, number of top entries each, values).
        sampled: a row for each token to sample.
        lost: those that may have to be sampled again, see `sample_again`.
    """

    step: Step
    sampling_rows: tuple[int, ...]
    scoring_rows: tuple[int, ...]
    logits: Tensor | None
    watch: Stopwatch
    scores: list[tuple[list[int], list[int], Fetched]] = field(default_factory=list)
    samples: PendingSample | None = None
    sampled: Sequence[Row] = ()
    lost: LostRows | None = None


class Beside(Protocol):
    """A model whose weights are loaded before the device's memory is divided, and whose pages later, from the share that is left."""

    def load_weights(self) -> None:
        """Load its weights."""

    def pool_share(self, page_bytes: int) -> int:
        """Bytes to leave to it for each page of so many bytes."""


class DeviceRunner:
    """The `Runner` of a device. Owns the decoder, the KV pages and all other device memory.

    With other ranks, each of which has a device, all launch the same steps and replay the same graphs, which contain the sums over ranks.
    Rank 0 samples, and the others get the tokens on their devices.

    Args:
        group: as for `HostRunner`.

    Attributes:
        beside: another model that will be loaded on the device.

    Attributes (after `load`):
        config: with the limits of a step that follow from the memory.
        model_config, tokenizer, decoder, kv, states: as in `HostRunner`; the last page of `kv` is a scratch page.
        head: runs the draft head; None if there is none.
        grammars: automata on the device.
        num_replayed, num_eager: number of steps replayed from a graph, and of others.
    """

    is_pipelined: ClassVar[bool] = True

    model_config: ModelConfig
    tokenizer: Tokenizer
    decoder: Decoder
    kv: PagedKV
    states: StateMemory | None = None
    head: DeviceHeadRunner | None = None
    grammars: DeviceGrammars

    def __init__(
        self, config: RuntimeConfig, accelerator: Accelerator | None = None, group: RankGroup | None = None
    ) -> None:
        self.config = config
        self.ranks = Ranks(config, group)
        self._accelerator = accelerator
        self._sampled = torch.empty(0, dtype=torch.int64)
        self._sampled_at: dict[int, int] = {}  # by request id, index of its token in _sampled
        self._sampler_rows = SamplerRows()
        self._graphs = StepGraphs({}, config.page_size)
        self._pages: DevicePages | None = None
        self._slots: DeviceStates | None = None
        self.num_replayed = self.num_eager = 0
        self._num_grown = 0  # total of graphs that no longer exist
        self._is_closed = self._has_weights = False
        self._head: DraftHead | None = None
        self.beside: Beside | None = None

    @property
    def num_grown(self) -> int:
        """Number of replayed steps whose plan extends that of the previous step by one key."""
        return self._num_grown + self._graphs.num_grown

    @property
    def accelerator(self) -> Accelerator:
        """The device."""
        if self._accelerator is None:
            self._accelerator = accelerator_for(self.config.device)
        return self._accelerator

    @property
    def is_row_invariant(self) -> bool:
        """See `Runner`; with `deterministic`, `load` has refused models without it."""
        return self.config.deterministic

    @property
    def num_pages(self) -> int:
        """See `Runner`."""
        self._check_open()
        return self.kv.num_pages - 1 if self.head is None else self.head.num_pages

    @property
    def num_states(self) -> int:
        """See `Runner`."""
        return 0 if self.states is None else self.states.num_slots

    @property
    def max_model_len(self) -> int:
        """Maximum sequence length in tokens: the setting, else the checkpoint's."""
        return self.config.max_model_len or self.model_config.max_position_embeddings

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """See `Runner`."""
        return config.with_device_rows(self.config.row_limit)

    @property
    def page_memory(self) -> DevicePages | None:
        """See `Runner`; None with other ranks, each of which has a part of a page."""
        return self._pages

    @property
    def state_memory(self) -> DeviceStates | None:
        """See `Runner`."""
        return self._slots

    def load(self) -> None:
        """Load the model, allocate the KV pool, compile kernels and capture graphs.

        Raises:
            ModelLoadError: as `load_model`, or the process of a rank has ended.
            ConfigError: the device is unavailable, max_model_len exceeds the checkpoint's maximum, or the KV pool does not fit.
        """
        self._check_open()
        check_ranks(self.config)
        with self.ranks.loading() as group:
            self._load(group)

    def load_weights(self, group: RankGroup | None = None) -> None:
        """Load the model alone, before the memory of the device is divided; `load` does the rest."""
        self.accelerator.enter()
        with torch.inference_mode():
            self.decoder, self.model_config, self.tokenizer = load_model(self.config, self.accelerator, group)
            if self._may_draft:
                self._head = load_draft_head(self.config, self.decoder, self.model_config)
        self._has_weights = True
        trim_heap()

    @property
    def bytes_per_page(self) -> int:
        """Bytes of a page in all layers, as soon as the weights are loaded."""
        return PagedKV.bytes_per_page(self._geometries, self.config.page_size, self._kv_dtype)

    @property
    def _geometries(self) -> tuple[HeadGeometry, ...]:
        """Those of the model's layers and of the draft head's."""
        return (*self.decoder.geometries, *(() if self._head is None else self._head.geometries))

    @property
    def _kv_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn if self.config.kv_dtype == "float8" else self.decoder.dtype

    def _load(self, group: RankGroup | None) -> None:
        accelerator, config = self.accelerator, self.config
        accelerator.enter()
        torch.set_num_threads(config.num_threads or max(1, system_resources.num_cores() // config.tensor_parallel))
        with torch.inference_mode():
            if not self._has_weights:
                self.load_weights(group)
            if self.beside is not None:
                self.beside.load_weights()
            longest = self.model_config.max_position_embeddings
            if config.max_model_len is not None and config.max_model_len > longest:
                raise ConfigError("max_model_len", config.max_model_len, f"the checkpoint supports at most {longest}")
            geometries, dtype = self._geometries, self.decoder.dtype
            is_plain = self._kv_dtype == dtype and not config.deterministic
            if group is None and is_plain:  # ranks would choose each for itself
                choose_prompt_kernels(geometries, dtype, config.page_size, accelerator.device)
            num_pages, num_states, num_rows = self._pick_sizes(self.bytes_per_page)
            if group is not None:
                num_pages = group.smallest(num_pages)
                num_rows = group.smallest(num_rows)
            limits = config.with_device_rows(num_rows)
            # A step has no more rows and tokens than the pool has pages and slots, whatever the settings allow.
            most_rows = min(limits.row_limit, max(num_pages, LEAST_DEVICE_ROWS))
            most_tokens = min(limits.step_limit, max(num_pages * config.page_size, _PROMPT_TOKENS))
            self.config = config = replace(limits, max_rows=most_rows, max_step_tokens=most_tokens)
            where, is_fixed = (dtype, accelerator.device, self._kv_dtype), config.deterministic
            num_held = num_pages + 1 + (0 if self._head is None else NUM_SCRATCH_PAGES)
            self.kv = PagedKV(geometries, num_held, config.page_size, *where, has_fixed_order=is_fixed)
            if self._head is not None:
                options: dict[str, Any] = {"num_pages": num_pages, "max_model_len": self.max_model_len}
                parts = self._head, self.kv, self.model_config, self.tokenizer
                self.head = DeviceHeadRunner(*parts, **options, accelerator=accelerator)
            if num_states:
                self.states = StateMemory(self.decoder.state_shapes, num_states, accelerator.device)
            if group is None:
                self._pages, self._slots = contents_of(self.kv, self.states, accelerator, config)
            self.grammars = DeviceGrammars(accelerator, self._vocabulary, self._most_samples())
            self._sampled = torch.zeros(
                max(WARM_UP_ROWS, self._most_samples()), dtype=torch.int64, device=accelerator.device
            )
            if self.ranks.is_following:
                self.follow()
            else:
                self._warm_up()
                self.ranks.send(end_words())
            agree = bool if group is None else partial(_all_agree, group)
            places = self._sampled, self._graph_sizes(), self.max_model_len
            if self.head is not None:
                self.head.capture(*places[:2])
            self._graphs = capture_steps(self.decoder, self.kv, accelerator, *places, agree, self.states, self.head)
            self._sampled_at, self.num_replayed, self.num_eager = {}, 0, 0
        logger.info(
            "KV pool of %d pages of %d tokens on %s, steps of up to %d rows and %d tokens, graphs for %s tokens",
            num_pages,
            config.page_size,
            accelerator.name,
            config.row_limit,
            config.step_limit,
            ", ".join(map(str, self._graphs.steps)) or "no",
        )
        if self.states is not None:
            size = system_resources.show_bytes(self.states.state_bytes)
            logger.info("state pool of %d states of %s", self.states.num_slots, size)

    def close(self) -> None:
        """Free the device's memory: weights, KV pages, graphs and automata. Later calls are refused. Idempotent.

        Remaining references to the runner, such as in a traceback, keep no device memory alive.
        """
        self._is_closed, self._num_grown = True, self.num_grown
        self._graphs = StepGraphs({}, self.config.page_size)
        for content in (self._pages, self._slots):
            if content is not None:
                content.close()
        self._pages = self._slots = None
        if self.head is not None:
            self.head.close()
        for name in ("kv", "states", "decoder", "grammars", "head"):
            self.__dict__.pop(name, None)
        self._head = None
        self._sampled = torch.empty(0, dtype=torch.int64)
        if self._accelerator is not None:
            self._accelerator.release()
        self.ranks.close()

    def follow(self) -> None:
        """See `HostRunner.follow`."""
        group = self.ranks.group
        assert group is not None
        while (kind := (words := group.receive())[0]) != MessageKind.END:
            if kind == MessageKind.STEP:
                self.launch(step_of(words))
            elif kind == MessageKind.SAMPLED:
                num_sampled, self._sampled_at = sampled_of(words)
                if num_sampled:
                    with torch.inference_mode():
                        group.broadcast(self._sampled[:num_sampled])

    def launch(self, step: Step) -> DeviceFlight:
        """See `Runner`; enqueues the step's page copies and layers. The previous step must have been sampled.

        Raises:
            ValueError: the step is malformed (a bug of the caller); nothing was computed.
            RuntimeError: the runner is closed.
        """
        self._check_open()
        watch = self.accelerator.stopwatch()
        with torch.inference_mode():
            written = self._graphs.write(step, self._sampled_at)
            self._announce(step)
            with self.ranks.guard():
                self.kv.copy_pages(step.copies)
                if written.graph is not None:
                    states = written.graph.replay()
                    self.num_replayed += 1
                    if self.head is not None:
                        self.head.follow_graph(step, self._sampled_at)
                else:
                    assert written.batch is not None
                    assert written.sources is not None
                    there = on_device(written.batch, written.sources, self._sampled, self.accelerator.device)
                    tap = None if self.head is None else self.head.tap()
                    attention = StepAttention(there, self.kv, states=self._step_states(there), tap=tap)
                    states = self.decoder.forward(attention)
                    self.num_eager += 1
                    if self.head is not None and tap is not None:
                        self.head.follow_eager(step, tap, self._sampled_at)
                num_sampling = len(written.sampling_rows)
                logits = self.decoder.project(states[:num_sampling]) if num_sampling else None
                flight = DeviceFlight(step, written.sampling_rows, written.scoring_rows, logits, watch)
                if not self.ranks.is_following:
                    self._score(flight, states[num_sampling:])
        return flight

    def _step_states(self, batch: Batch) -> StepStates | None:
        if self.states is None:
            return None
        assert batch.states is not None, "rows of a model with recurrent layers have states"
        return StepStates(self.states, batch.states)

    def _announce(self, step: Step) -> None:
        """Let the other ranks launch the step as well: they decide in the same way how."""
        if self.ranks.group is not None:
            self.ranks.send(step_words(step))

    def sample(
        self,
        flight: DeviceFlight,
        rows: Sequence[Row],
        bitmask: NDArray[np.int32] | None,
        walks: Mapping[int, Walk] = MappingProxyType({}),
    ) -> None:
        """See `Runner`; enqueues sampling. The walk of a row with a pending input is ignored: the device has already advanced it.

        A row with drafts has no walk: the host knows its tokens, and computes a mask for each.
        """
        self._check_open()
        self._sampled_at = {}
        if flight.logits is None:
            flight.watch.stop()
            self._hand_on(0)
            return
        with torch.inference_mode():
            sampling = sampled_rows(rows)
            found = [walks.get(index) for index in flight.sampling_rows]
            is_followed = any(walk is not None for walk in found)
            if is_followed:
                masks: DeviceMasks | None = self.grammars.masks(sampling, found, bitmask)
            else:
                masks = uploaded_masks(self.accelerator.device, sampling, bitmask)
            flight.samples = launch_sampling(self.accelerator, flight.logits, sampling, masks, self._sampler_rows)
            self._sampled[: len(sampling)].copy_(flight.samples.token_ids)
            if is_followed:
                flight.sampled, flight.lost = sampling, self.grammars.advance(found, self._sampled, flight.logits)
            flight.logits = None
            flight.watch.stop()
        self._sampled_at = {row.request_id: index for index, row in enumerate(sampling) if not row.num_draft_tokens}
        self._hand_on(len(sampling))

    def _hand_on(self, num_sampled: int) -> None:
        """Copy the tokens sampled last to the devices of the other ranks."""
        group = self.ranks.group
        if group is not None:
            self.ranks.send(sampled_words(num_sampled, self._sampled_at))
            if num_sampled:
                with torch.inference_mode(), self.ranks.guard():
                    group.broadcast(self._sampled[:num_sampled])

    def can_follow(self, walk: Walk) -> bool:
        """See `Runner`."""
        self._check_open()
        return self.grammars.takes(walk)

    def collect(self, flight: DeviceFlight) -> StepOutput:
        """See `Runner`."""
        self._check_open()
        with self.ranks.guard():
            outputs = gather_samples(flight.step.rows, flight.samples.wait() if flight.samples is not None else ())
            found = [
                logprob
                for token_ids, num_top, fetched in flight.scores
                for logprob in read_logprobs(token_ids, num_top, *fetched.wait())
            ]
        self.ranks.check()  # a sum without a rank that has ended is none
        for index in flight.lost.wait() if flight.lost is not None else ():
            outputs[flight.sampling_rows[index]] = SampledRow(is_lost=True)
        start = 0
        for index in flight.scoring_rows:
            output, stop = outputs[index], start + len(flight.step.rows[index].score_token_ids)
            scores: tuple[TokenLogprob, ...] = tuple(found[start:stop])
            start = stop
            if all(item.logprob == item.logprob for item in scores):  # NaN if any logit was NaN or +inf
                outputs[index] = output._replace(scores=scores)
            else:
                outputs[index] = SampledRow((), (), False)
        return StepOutput(flight.step.step_id, tuple(outputs), flight.watch.seconds())

    def sample_again(
        self, flight: DeviceFlight, indices: Sequence[int], bitmask: NDArray[np.int32]
    ) -> list[SampledRow]:
        """See `Runner`."""
        self._check_open()
        lost = flight.lost
        assert lost is not None
        places = [flight.sampling_rows.index(index) for index in indices]
        rows = [flight.sampled[place]._replace(mask_row=line) for line, place in enumerate(places)]
        with torch.inference_mode():
            (kept,) = copy_to_device(
                self.accelerator.device, [np.array([lost.places.index(place) for place in places], dtype=np.int64)]
            )
            logits = lost.logits.index_select(0, kept)
            masks = uploaded_masks(self.accelerator.device, rows, bitmask)
            samples = launch_sampling(self.accelerator, logits, rows, masks, self._sampler_rows)
        return gather_samples(rows, samples.wait())

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("this runner is closed")

    def _score(self, flight: DeviceFlight, states: Tensor) -> None:
        rows = [flight.step.rows[index] for index in flight.scoring_rows]
        token_ids = [token_id for row in rows for token_id in row.score_token_ids]
        num_top = [row.num_score_top for row in rows for _ in row.score_token_ids]
        chunk = max(1, min(_MAX_GRID_ROWS, _SCORE_CHUNK_BYTES // (4 * self.model_config.vocab_size)))
        for start in range(0, len(token_ids), chunk):
            part = slice(start, start + chunk)
            logits = self.decoder.project(states[part])
            fetched = launch_logprobs(self.accelerator, logits, token_ids[part], num_top[part])
            flight.scores.append((token_ids[part], num_top[part], fetched))

    def _vocabulary(self) -> Vocabulary:
        return self.tokenizer.vocabulary(self.model_config.vocab_size)

    def _most_rows(self) -> int:
        return next((size for size in GRAPH_TOKENS if size >= self.config.row_limit), self.config.row_limit)

    def _most_samples(self) -> int:
        """Maximum number of tokens that a step samples."""
        most = self._most_rows()
        return max(most, self.config.step_limit) if self._may_draft else most

    @property
    def _may_draft(self) -> bool:
        return self.config.may_draft(is_row_invariant=self.is_row_invariant)

    def _graph_sizes(self) -> GraphSizes:
        config, most = self.config, self._most_rows()
        drafted = min(_TOKENS_PER_ROW * most, _MAX_DRAFTED_TOKENS) if self._may_draft else most
        wanted = max(_PROMPT_TOKENS, _TOKENS_PER_ROW * most)
        return GraphSizes.of(most, drafted, min(config.step_limit, wanted))

    def _warm_up(self) -> None:
        """Run small steps of each kind, so that kernels are compiled before graphs are captured and before serving."""
        groups: set[int] = set()
        if self.accelerator.compiles:
            self.grammars.warm_up(self.model_config.vocab_size, self.decoder.dtype)
            groups = {geometry.num_q_heads // geometry.num_kv_heads for geometry in self.decoder.geometries}
        bitmask = np.full((1, -(-self.model_config.vocab_size // 32)), -1, dtype=np.int32)
        for rows in warm_up_rows(self.config.page_size, self.max_model_len, groups, has_states=self.states is not None):
            masks = sum(row.mask_row is not None for row in rows)
            flight = self.launch(Step(0, rows, num_mask_rows=masks))
            self.sample(flight, rows, bitmask if masks else None)
            self.collect(flight)
        if self.head is not None:
            self.head.clear()

    def _pick_sizes(self, bytes_per_page: int) -> tuple[int, int, int]:
        """Numbers of pages and of states, and of rows that the memory is for; there is a scratch page besides."""
        free, config, size = self.accelerator.free_bytes(), self.config, state_bytes(self.decoder.state_shapes)
        given = None if config.cache_bytes is None else config.cache_bytes // config.tensor_parallel
        share = 0 if self.beside is None else self.beside.pool_share(bytes_per_page)
        default = int(CACHE_SHARE * free / (1 + share / max(1, bytes_per_page)))
        cache_bytes = default if given is None else given
        if config.num_pages is not None:
            page_bytes = (config.num_pages + 1) * bytes_per_page
            needed = page_bytes + (LEAST_STATES * size if size else 0)
            if needed > free:
                raise ConfigError(
                    "num_pages", config.num_pages, f"the KV pool needs {needed:,} bytes, but only {free:,} are free"
                )
            left = int(CACHE_SHARE * (free - page_bytes))
            cache_bytes = page_bytes + (left if size else 0)
        elif cache_bytes > free:
            raise ConfigError("cache_bytes", config.cache_bytes, f"only {free:,} bytes of memory are free")
        row_pages = -(-min(_ROW_TOKENS, self.max_model_len) // config.page_size)
        num_rows = cache_bytes // max(1, row_pages * bytes_per_page + 2 * size)
        num_rows = max((count for count in GRAPH_TOKENS if count <= num_rows), default=1)
        needs = MemoryNeeds(
            bytes_per_page,
            size,
            usual_pages=-(-min(_USUAL_TOKENS, self.max_model_len) // config.page_size),
            longest_pages=-(-self.max_model_len // config.page_size),
            row_limit=config.with_device_rows(num_rows).row_limit,
        )
        if config.num_pages is not None:
            return config.num_pages, states_beside(needs, config.num_pages, left, config.state_fraction), num_rows
        num_pages, num_states = divide_cache(needs, cache_bytes, config.state_fraction)
        if num_pages < 3 or (size and num_states < LEAST_STATES):
            of_states = f"{LEAST_STATES} states of {size:,} bytes and " if size else ""
            reason = f"a page takes {bytes_per_page:,} bytes, and at least {of_states}three pages are needed"
            raise ConfigError("cache_bytes", cache_bytes, reason)
        return num_pages - 1, num_states, num_rows


def _all_agree(group: RankGroup, claim: bool) -> bool:
    """Whether the claim holds on every rank."""
    return group.smallest(int(claim)) == 1
