"""Paged attention for both decoders: the KV memory, one plan per step, one call per layer.

`PagedKV` holds K and V of all layers; layers of equal head geometry share one pool, and a page id refers to the same page in all pools.
`StepAttention` covers one step: it plans once per head geometry and runs each layer. A layer writes the step's K and V before attention,
so rows of the same step can read each other's shared pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.cache.pool import KVPool
from rtlang.contract.errors import ConfigError
from rtlang.model.batch import Batch
from rtlang.model.layers.states import StepStates
from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.kv_lines import line_bytes

Window = tuple[int | None, int | None]
"""(sliding window, chunk size) of a layer in tokens; None if not used."""
KVShape = tuple[int, int, int, bool]
"""(num_kv_heads, head_dim, v_head_dim, is_latent) of a layer."""


@dataclass(frozen=True, slots=True)
class HeadGeometry:
    """Heads of one attention layer; keys and values may differ in size.

    Attributes:
        is_latent: the single KV head is a line that all query heads share, and its first `v_head_dim` elements are the values. Pages
            store it once.
    """

    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    v_head_dim: int
    is_latent: bool = False

    @property
    def kv_shape(self) -> KVShape:
        """Determines the shape of the layer's pages."""
        return self.num_kv_heads, self.head_dim, self.v_head_dim, self.is_latent


class PagedKV:
    """K and V of every layer, in pages. Owned by the model runner."""

    def __init__(
        self,
        geometries: Sequence[HeadGeometry],
        num_pages: int,
        page_size: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        kv_dtype: torch.dtype | None = None,
        *,
        has_fixed_order: bool = False,
    ) -> None:
        """Allocate `num_pages` pages of `page_size` tokens for one layer per entry of `geometries`.

        Args:
            dtype: dtype in which layers compute queries, keys and values.
            kv_dtype: dtype in which pages store keys and values; default: `dtype`. int8 comes with scales
                (`rtlang_kernels.contract.kv_lines`) and is refused for latent layers.
            has_fixed_order: of attention over these pages, see `ops.plan_attention`.
        Raises:
            ConfigError: `kv_dtype` is int8 and a layer is latent.
        """
        kv_dtype = kv_dtype or dtype
        self.num_pages, self.page_size, self.dtype = num_pages, page_size, dtype
        self.device, self.has_fixed_order = torch.device(device), has_fixed_order
        self.geometries = tuple(geometries)
        layers_of: dict[KVShape, list[int]] = {}
        for layer, geometry in enumerate(self.geometries):
            layers_of.setdefault(geometry.kv_shape, []).append(layer)
        self._pools: list[KVPool] = []
        views: dict[int, tuple[Tensor, Tensor]] = {}
        for shape, layers in layers_of.items():
            _, size, v_size, is_latent = shape
            held = _held(shape, kv_dtype)
            pool = KVPool(len(layers), num_pages, page_size, *held, kv_dtype, device, is_latent=is_latent)
            self._pools.append(pool)
            views.update({layer: (pool.k(i)[..., :size], pool.v(i)[..., :v_size]) for i, layer in enumerate(layers)})
        self.k = tuple(
            views[layer][0] for layer in range(len(self.geometries))
        )  # [num_slots, num_kv_heads, head_dim] each
        self.v = tuple(
            views[layer][1] for layer in range(len(self.geometries))
        )  # [num_slots, num_kv_heads, v_head_dim]

    def copy_pages(self, copies: Sequence[tuple[int, int]]) -> None:
        """Copy whole pages (source, destination) in every layer."""
        for pool in self._pools:
            pool.copy_pages(copies)

    @property
    def page_format(self) -> str:
        """Determines how the bytes of a page are laid out."""
        if not self.k:
            return f"no layers, {self.page_size} tokens"
        shapes = [(pool.num_layers, *pool.k(0).shape[1:], pool.v(0).shape[2]) for pool in self._pools]
        return f"{self.k[0].dtype}, {self.page_size} tokens, layers and heads {shapes}"

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in all layers."""
        return sum(pool.page_bytes for pool in self._pools)

    @property
    def gives_back(self) -> bool:
        """See `PageMemory`."""
        return True

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        """Give back the memory of unused pages; see `KVPool.release`."""
        for pool in self._pools:
            pool.release(runs)

    @property
    def tensors(self) -> list[Tensor]:
        """The memory: [parts, num_pages, ...] each, contiguous. A page is its part of all of them, in this order."""
        return [tensor for pool in self._pools for tensor in pool.tensors]

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        """The content of pages on the host: uint8 [len(page_ids), page_bytes]; see `KVPool.read_page`."""
        found = np.empty((len(page_ids), self.page_bytes), dtype=np.uint8)
        for page_id, content in zip(page_ids, found, strict=True):
            start = 0
            for pool in self._pools:
                pool.read_page(page_id, content[start : start + pool.page_bytes])
                start += pool.page_bytes
        return found

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """Write the content from `read_pages` into pages on the host."""
        for page_id, content in pages:
            start = 0
            for pool in self._pools:
                pool.write_page(page_id, content[start : start + pool.page_bytes])
                start += pool.page_bytes

    def abandon_writes(self) -> None:
        """See `PageMemory`: on the host, a page is written when its iterable gives it."""

    @staticmethod
    def bytes_per_page(geometries: Sequence[HeadGeometry], page_size: int, dtype: torch.dtype) -> int:
        """Bytes of one page, summed over all layers."""
        return sum(
            KVPool.bytes_per_page(1, page_size, *_held(each.kv_shape, dtype), dtype, is_latent=each.is_latent)
            for each in geometries
        )


def _held(kv_shape: KVShape, kv_dtype: torch.dtype) -> tuple[int, int, int]:
    """Heads and elements per head that a pool of this type holds: with int8, a line that ends in a scale."""
    num_kv_heads, key_size, value_size, is_latent = kv_shape
    if kv_dtype != torch.int8:
        return num_kv_heads, key_size, value_size
    if is_latent:  # one scale cannot serve a normalized latent and a rotated key, which differ in size
        raise ConfigError(
            "kv_dtype", "int8", "not supported for latent attention (MLA), whose pages are compressed; use auto"
        )
    return num_kv_heads, line_bytes(key_size), line_bytes(value_size)


@dataclass(slots=True)
class HiddenTap:
    """Hidden states of a forward pass, for a draft head.

    Attributes:
        layers: the layers whose inputs are taken; empty for the last states, after the norm.
        found: [num_tokens, hidden_size] each, in the order of the layers.
    """

    layers: tuple[int, ...] = ()
    found: list[Tensor] = field(default_factory=list)

    @property
    def states(self) -> Tensor:
        """All of them side by side: [num_tokens, hidden_size * number of layers]."""
        return self.found[0] if len(self.found) == 1 else torch.cat(self.found, 1)


class StepAttention:
    """Attention of one step over `kv`, which it writes. Plans are computed on first use and shared by all layers with equal heads.

    Attributes:
        input_ids: int64 [num_tokens]; defaults to the batch's.
        states: the states of the step's rows; None for a model without recurrent layers.
        tap: receives hidden states of all tokens for a draft head; None for none.
    """

    __slots__ = ("_has_surplus", "_plans", "batch", "input_ids", "kv", "states", "tap")

    def __init__(
        self,
        batch: Batch,
        kv: PagedKV,
        plans: Mapping[HeadGeometry, AttentionPlan] | None = None,
        input_ids: Tensor | None = None,
        states: StepStates | None = None,
        tap: HiddenTap | None = None,
    ) -> None:
        """Create the attention of a step. If `plans` has precomputed plans for all head geometries, `batch` may end with padding rows."""
        self.batch, self.kv, self.states, self.tap = batch, kv, states, tap
        self._has_surplus = bool(plans)
        self.input_ids = batch.input_ids if input_ids is None else input_ids
        self._plans: dict[HeadGeometry, AttentionPlan] = dict(plans or {})

    def plan(self, geometry: HeadGeometry) -> AttentionPlan:
        """The step's plan for layers with these heads."""
        plan = self._plans.get(geometry)
        if plan is None:
            batch = self.batch
            plan = self._plans[geometry] = ops.plan_attention(
                page_table=batch.page_table,
                seq_lens=batch.seq_lens,
                cu_seqlens_q=batch.cu_seqlens_q,
                shared_lens=batch.shared_lens,
                page_size=batch.page_size,
                num_q_heads=geometry.num_q_heads,
                num_kv_heads=geometry.num_kv_heads,
                head_dim=geometry.head_dim,
                dtype=self.kv.dtype,
                device=self.kv.device,
                has_fixed_order=self.kv.has_fixed_order,
            )
        return plan

    def run(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        scale: float,
        sliding_window: int | None = None,
        chunk_size: int | None = None,
        soft_cap: float | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Write k [T, num_kv_heads, head_dim] and v [T, num_kv_heads, v_head_dim], then attend.

        In a latent layer, v [T, 1, v_head_dim] is the latent and k [T, 1, head_dim - v_head_dim] the rest of the line.

        Args:
            q: [T, num_q_heads, head_dim], `kv.dtype`.
            scale: factor of the scores.
            sliding_window: a key is visible if key position > query position - sliding_window.
            chunk_size: a key is visible if position // chunk_size equals that of the query.
            soft_cap: replaces each score with soft_cap * tanh(score / soft_cap).
            sinks: [num_q_heads], a logit per head that receives weight but contributes no value.
        Returns:
            [T, num_q_heads, v_head_dim], dtype of q.
        """
        k_pool, v_pool = self.kv.k[layer], self.kv.v[layer]
        rest = k_pool[..., v_pool.shape[2] :] if self.kv.geometries[layer].is_latent else k_pool
        ops.write_kv(k, v, rest, v_pool, self.batch.slot_mapping)
        # Padding rows are never written; zeros keep later computations on them finite.
        out = q.new_zeros((*q.shape[:2], v_pool.shape[2])) if self._has_surplus else None
        return ops.paged_attention(
            q,
            k_pool,
            v_pool,
            self.plan(self.kv.geometries[layer]),
            scale=scale,
            sliding_window=sliding_window,
            chunk_size=chunk_size,
            soft_cap=soft_cap,
            sinks=sinks,
            out=out,
        )
