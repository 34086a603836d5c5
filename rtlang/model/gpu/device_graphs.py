"""Captures graphs of pure decoding steps at load time, one per number of tokens and level, for any decoder.

The tokens of a step may be those of as many rows, or of fewer rows with drafts: a graph serves any number of tokens per row.
Everything that a graph reads has a fixed address: reusable plans, KV pages, weights and the tokens sampled last. A decoder that reads
values back from the device has no graphs; its steps are launched kernel by kernel, which is logged once with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.gpu.device_batch import DecodeSteps, Heads, HeadsPlan, JointPlan, resolved
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention, Window
from rtlang.model.layers.states import StateMemory, StepStates
from rtlang_kernels.contract.state_plan import NO_SLOT
from rtlang_kernels.planning.decode_states import DecodeStates

logger = logging.getLogger(__name__)

_ANOTHER = "another rank cannot do it"
_ANY_HEADS: Heads = (1, 1, 16)
_MAX_TABLE_WORDS = 1 << 20  # maximum size of one graph's page table


def capture_decoding(
    decoder: Decoder,
    kv: PagedKV,
    accelerator: Accelerator,
    sampled: Tensor,
    sizes: Sequence[int],
    max_len: int,
    agree: Callable[[bool], bool] = bool,
    memory: StateMemory | None = None,
) -> dict[int, DecodeSteps]:
    """Capture a graph for each number of tokens; empty if the decoder or the device does not support it.

    Args:
        kv: KV pages; padding tokens write to its last page.
        sampled: int64, the tokens sampled last; its address must not change.
        sizes: number of tokens of each graph, ascending.
        max_len: maximum sequence length in tokens.
        agree: whether a claim holds on all ranks: all of them have the same graphs, or none.
        memory: states of a model with recurrent layers.
    """
    decoder.reserve(max_len)
    found: dict[int, DecodeSteps] = {}
    for size in reversed(sizes):  # largest first, so that the others reuse its memory
        plan = _plan(decoder, kv, size, max_len)
        batch = _batch(plan, size, kv.page_size, max_len, kv.device)
        zeros = np.zeros((size, 1), dtype=np.int32)
        fits = plan.set(zeros, np.ones(size, dtype=np.int32), np.zeros(size, dtype=np.int32))
        assert fits, "one key each"
        plan.sources[:] = -1
        plan.upload()
        states = None if memory is None else _states(size, kv.device)
        replays: list[Callable[[], Tensor]] = []
        for level in range(plan.num_levels):
            step_states = None if memory is None or states is None else StepStates(memory, states.plan)
            launch = partial(_compute, decoder, kv, plan, level, batch, sampled, step_states)
            launch()
            is_first = not found and not replays
            obstacle = accelerator.obstacle(launch) if is_first else None
            if is_first and not agree(obstacle is None):
                logger.warning(
                    "decoding steps are launched kernel by kernel instead of replayed from graphs: %s",
                    obstacle or _ANOTHER,
                )
                return {}
            reason = _ANOTHER
            try:
                replays.append(accelerator.capture(launch))
                is_captured = True
            except RuntimeError as error:
                is_captured, reason = False, " ".join(str(error).split())
            if not agree(is_captured):
                logger.warning(
                    "decoding steps are launched kernel by kernel, because capturing a graph failed: %s", reason
                )
                return {}
        found[size] = DecodeSteps(plan, replays, states)
    return dict(reversed(found.items()))


def _compute(
    decoder: Decoder,
    kv: PagedKV,
    plan: JointPlan,
    level: int,
    batch: Batch,
    sampled: Tensor,
    states: StepStates | None,
) -> Tensor:
    """The logits of all tokens of the plan."""
    ids = resolved(batch.input_ids, plan.on_device("sources"), sampled)
    plans = {geometry: plan.attention(_heads(geometry), level) for geometry in kv.geometries}
    return decoder.project(decoder.forward(StepAttention(batch, kv, plans, ids, states)))


def _heads(geometry: HeadGeometry) -> Heads:
    return geometry.num_q_heads, geometry.num_kv_heads, geometry.head_dim


def _plan(decoder: Decoder, kv: PagedKV, size: int, max_len: int) -> JointPlan:
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
            min(size * pages, max(_MAX_TABLE_WORDS, pages)),
            kv.num_pages - 1,
            page_size=kv.page_size,
            num_q_heads=num_q_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            dtype=decoder.dtype,
            device=kv.device,
            windows=windows,
        )
    return JointPlan(plans)


def _states(size: int, device: torch.device) -> DecodeStates:
    """Reusable states of decoding steps, in which every token begins a sequence."""
    states = DecodeStates(size, device)
    fits = states.set(np.arange(size + 1, dtype=np.int32), [NO_SLOT] * size, [()] * size)
    assert fits, "no marks"
    states.upload()
    return states


def _batch(plan: JointPlan, size: int, page_size: int, max_len: int, device: torch.device) -> Batch:
    """A batch of the plan's device buffers."""
    any_plan = next(iter(plan.plans.values())).plans[-1]
    return Batch(
        input_ids=plan.on_device("input_ids"),
        positions=plan.on_device("positions"),
        slot_mapping=plan.on_device("slots"),
        cu_seqlens_q=any_plan.cu_seqlens_q,
        seq_lens=np.full(size, max_len, dtype=np.int32),
        page_table=any_plan.page_table,
        shared_lens=any_plan.shared_lens,
        logit_indices=torch.arange(size, device=device),
        sampling_rows=tuple(range(size)),
        scoring_rows=(),
        page_size=page_size,
    )
