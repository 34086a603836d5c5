"""Graphs of whole steps, captured at load time for any decoder: one per number of tokens and level.

The tokens of a step may be those of as many rows, of rows with drafts, or of prompts beside decoding rows: a graph serves any number of
tokens per row. Everything that a graph reads has a fixed address: reusable plans, KV pages, weights and the tokens sampled last. Logits are
computed after the graph, for the tokens that need them. A decoder that reads values back from the device has no graphs; its steps are
launched kernel by kernel, which is logged once with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.gpu.device_batch import FixedSteps, Heads, HeadsPlan, JointPlan, resolved, token_sources
from rtlang.model.layers.attention import HeadGeometry, HiddenTap, PagedKV, StepAttention, Window
from rtlang.model.layers.states import StateMemory, StepStates
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from rtlang_kernels.planning.decode_states import DecodeStates

logger = logging.getLogger(__name__)

GRAPH_TOKENS: tuple[int, ...] = (
    *(1, 2, 4, 8, 16, 24, 32, 48, 64, 96),
    *range(128, 640, 64),
    *range(640, 1024, 128),
    *range(1024, 2049, 256),
)
"""Sizes of graphs in tokens. Of a graph of 24 tokens or more, at most a third is padding; of 320 or more, at most a fifth."""
_ANOTHER = "another rank cannot do it"
_ANY_HEADS: Heads = (1, 1, 16)
_MAX_TABLE_WORDS = 1 << 20  # maximum size of one graph's page table


class StateSink(Protocol):
    """Keeps hidden states of each step at a fixed address, for a draft head."""

    def tap(self) -> HiddenTap:
        """Receives the states of a step."""

    def write(self, tap: HiddenTap) -> None:
        """Keep the states of a step. Only enqueues work."""


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """Which graphs to capture. Each costs a few numbers per token, and the time to capture it.

    Attributes:
        num_rows: maximum number of rows of a step; a row has a token or more.
        num_decoded: tokens up to which graphs are captured at every level, for steps of decoding, with or without drafts. Such a graph
            returns the states of all tokens, a larger one of as many as the largest of these.
        num_tokens: tokens of the largest graph.
    """

    num_rows: int
    num_decoded: int
    num_tokens: int

    @classmethod
    def of(cls, num_rows: int, num_decoded: int, num_tokens: int) -> GraphSizes:
        """Sizes of `GRAPH_TOKENS` from the numbers that are needed."""
        decoded = _size_for(max(num_rows, num_decoded))
        return cls(num_rows, decoded, max(decoded, _size_for(num_tokens)))

    def __iter__(self) -> Iterator[int]:
        return (size for size in GRAPH_TOKENS if size <= self.num_tokens)


def _size_for(num_tokens: int) -> int:
    return next((size for size in GRAPH_TOKENS if size >= num_tokens), GRAPH_TOKENS[-1])


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """A step in the buffers of a graph, or only as a batch if it fits none.

    Attributes:
        graph: holds the step; None if it is to be launched kernel by kernel.
        batch: the step; None in pure decoding in a graph.
        sources: see `token_sources`; None without a batch.
        sampling_rows, scoring_rows: as in `Batch`.
    """

    graph: FixedSteps | None
    batch: Batch | None
    sources: NDArray[np.int32] | None
    sampling_rows: tuple[int, ...]
    scoring_rows: tuple[int, ...]


class StepGraphs:
    """The graphs of a model. Used by one thread.

    Args:
        steps: by number of tokens, ascending.
    """

    def __init__(self, steps: Mapping[int, FixedSteps], page_size: int) -> None:
        self.steps, self._page_size = dict(steps), page_size
        self._has_warned = False

    @property
    def num_grown(self) -> int:
        """Number of steps whose plan extended that of the previous step by one key."""
        return sum(each.plan.num_grown for each in self.steps.values())

    def write(self, step: Step, sampled_at: Mapping[int, int]) -> WrittenStep:
        """Write a step into the smallest graph that has as many tokens.

        Args:
            sampled_at: by request id, index of its token among those sampled last.
        Raises:
            ValueError: the step is malformed.
        """
        rows = step.rows
        is_decoding = bool(rows) and all(map(_is_decoding, rows))
        batch = None if is_decoding else Batch.from_step(step, self._page_size)
        num_tokens = len(rows) if batch is None else batch.num_tokens
        size = next((size for size in self.steps if size >= num_tokens), None)
        graph = None if size is None else self.steps[size]
        for each in self.steps.values():
            if each is not graph:
                each.forget()
        if batch is None:
            if graph is not None and graph.write_decoding(rows, sampled_at):
                return WrittenStep(graph, None, None, tuple(range(len(rows))), ())
            batch = Batch.from_step(step, self._page_size)
        sources = token_sources(batch, rows, sampled_at)
        if graph is not None and (is_decoding or not graph.write(batch, sources)):
            if not self._has_warned:
                logger.warning("a step of %d tokens does not fit its graph; launching kernel by kernel", num_tokens)
                self._has_warned = True
            graph = None
        return WrittenStep(graph, batch, sources, batch.sampling_rows, batch.scoring_rows)


def _is_decoding(row: Row) -> bool:
    """Whether a row computes one token and samples the next one, and nothing else."""
    return len(row.token_ids) == 1 and row.needs_sample and not len(row.score_token_ids) and not row.num_replayed_tokens


def capture_steps(
    decoder: Decoder,
    kv: PagedKV,
    accelerator: Accelerator,
    sampled: Tensor,
    sizes: GraphSizes,
    max_len: int,
    agree: Callable[[bool], bool] = bool,
    memory: StateMemory | None = None,
    sink: StateSink | None = None,
) -> StepGraphs:
    """Capture a graph for each number of tokens; none if the decoder or the device does not support it.

    Args:
        kv: KV pages; padding tokens write to its last page.
        sampled: int64, the tokens sampled last; its address must not change.
        max_len: maximum sequence length in tokens.
        agree: whether a claim holds on all ranks: all of them have the same graphs, or none.
        memory: states of a model with recurrent layers.
        sink: gets the hidden states of all tokens of a step.
    """
    decoder.reserve(max_len)
    made = {size: _made(decoder, kv, sampled, sizes, size, max_len, memory, sink) for size in sizes}
    _, launches = made[min(made)]
    launches[0]()
    obstacle = accelerator.obstacle(launches[0])
    if not agree(obstacle is None):
        logger.warning("steps are launched kernel by kernel instead of replayed from graphs: %s", obstacle or _ANOTHER)
        return StepGraphs({}, kv.page_size)
    found: dict[int, FixedSteps] = {}
    for size in reversed(made):  # largest first, so that the others reuse its memory
        make, launches = made[size]
        replays: list[Callable[[], Tensor]] = []
        for launch in launches:
            if accelerator.compiles:
                launch()
            reason = _ANOTHER
            try:
                replays.append(accelerator.capture(launch))
                is_captured = True
            except RuntimeError as error:
                is_captured, reason = False, " ".join(str(error).split())
            if not agree(is_captured):
                logger.warning("steps are launched kernel by kernel, because capturing a graph failed: %s", reason)
                return StepGraphs({}, kv.page_size)
        found[size] = make(replays)
    return StepGraphs(dict(reversed(found.items())), kv.page_size)


def _made(
    decoder: Decoder,
    kv: PagedKV,
    sampled: Tensor,
    sizes: GraphSizes,
    size: int,
    max_len: int,
    memory: StateMemory | None,
    sink: StateSink | None,
) -> tuple[Callable[[Sequence[Callable[[], Tensor]]], FixedSteps], list[Callable[[], Tensor]]]:
    """The buffers of a graph: a function that makes its `FixedSteps` from its replays, and the launches to capture."""
    num_rows, is_decoded = min(size, sizes.num_rows), size <= sizes.num_decoded
    plan = _plan(decoder, kv, size, num_rows, max_len)
    batch = _batch(plan, size, None if is_decoded else sizes.num_decoded, kv.page_size, max_len, kv.device)
    fits = plan.set(np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=np.int32), np.zeros(1, dtype=np.int32))
    assert fits, "one key"
    plan.sources[:] = -1
    plan.upload()
    states = None if memory is None else _states(size, num_rows, kv.device)
    step_states = None if memory is None or states is None else StepStates(memory, states.plan)
    # A step of more tokens than decoding has contains prompts, which take tiles of every class.
    levels = range(0 if is_decoded else plan.num_levels - 1, plan.num_levels)
    launches: list[Callable[[], Tensor]] = [
        partial(_compute, decoder, kv, plan, level, batch, sampled, step_states, sink) for level in levels
    ]

    def make(replays: Sequence[Callable[[], Tensor]]) -> FixedSteps:
        each = [replays[max(0, level - levels[0])] for level in range(plan.num_levels)]
        return FixedSteps(plan, each, states, None if is_decoded else len(batch.logit_indices))

    return make, launches


def _compute(
    decoder: Decoder,
    kv: PagedKV,
    plan: JointPlan,
    level: int,
    batch: Batch,
    sampled: Tensor,
    states: StepStates | None,
    sink: StateSink | None,
) -> Tensor:
    """The decoder's states of the wanted tokens of the plan."""
    ids = resolved(batch.input_ids, plan.on_device("sources"), sampled)
    plans = {geometry: plan.attention(_heads(geometry), level) for geometry in decoder.geometries}
    tap = None if sink is None else sink.tap()
    found = decoder.forward(StepAttention(batch, kv, plans, ids, states, tap))
    if sink is not None and tap is not None:
        sink.write(tap)
    return found


def _heads(geometry: HeadGeometry) -> Heads:
    return geometry.num_q_heads, geometry.num_kv_heads, geometry.head_dim


def _plan(decoder: Decoder, kv: PagedKV, size: int, num_rows: int, max_len: int) -> JointPlan:
    """One reusable plan per head geometry; plans do not depend on v_head_dim. Without attention layers, one for its arrays of tokens."""
    from rtlang_kernels.triton.attention.decode_plan import DecodePlan

    pages = -(-max_len // kv.page_size)
    windows_of: dict[Heads, list[Window]] = {}
    for geometry, window in zip(decoder.geometries, decoder.windows, strict=True):
        windows_of.setdefault(_heads(geometry), []).append(window)
    windows_of = windows_of or {_ANY_HEADS: [(None, None)]}
    plans: dict[Heads, HeadsPlan] = {}
    for heads, windows in windows_of.items():
        num_q_heads, num_kv_heads, head_dim = heads
        plans[heads] = DecodePlan(
            size,
            min(num_rows * pages, max(_MAX_TABLE_WORDS, pages)),
            kv.num_pages - 1,
            page_size=kv.page_size,
            num_q_heads=num_q_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            dtype=decoder.dtype,
            device=kv.device,
            windows=windows,
            has_fixed_order=kv.has_fixed_order,
        )
    return JointPlan(plans)


def _states(size: int, num_rows: int, device: torch.device) -> DecodeStates:
    """Reusable states of steps; one that begins a sequence is written."""
    states = DecodeStates(size, device, num_rows + 1)
    fits = states.set(StatePlan.of(np.array([0, 1], dtype=np.int32), [NO_SLOT], [()]))
    assert fits, "one token"
    states.upload()
    return states


def _batch(
    plan: JointPlan, size: int, num_wanted: int | None, page_size: int, max_len: int, device: torch.device
) -> Batch:
    """A batch of the plan's device buffers; `num_wanted` as in `FixedSteps`."""
    any_plan = next(iter(plan.plans.values())).plans[-1]
    return Batch(
        input_ids=plan.on_device("input_ids"),
        positions=plan.on_device("positions"),
        slot_mapping=plan.on_device("slots"),
        cu_seqlens_q=any_plan.cu_seqlens_q,
        seq_lens=np.full(size, max_len, dtype=np.int32),
        page_table=any_plan.page_table,
        shared_lens=any_plan.shared_lens,
        logit_indices=(
            torch.arange(size, device=device) if num_wanted is None else plan.on_device("wanted")[:num_wanted]
        ),
        sampling_rows=tuple(range(size)),
        scoring_rows=(),
        page_size=page_size,
    )
