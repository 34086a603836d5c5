"""Latent attention (MLA) of `transformers` models over compressed pages.

The stock module multiplies the latent of every token out to keys and values of all heads before attention. Here pages keep the latent and
the rotated key that all heads share, as one line per token; the projection of keys moves to the queries, that of values to the results:

    q_nope . (W_k c)  =  (q_nope W_k) . c            sum_t p_t (W_v c_t)  =  W_v (sum_t p_t c_t)

A module is recognized by its sizes and by what its `expand_kv` computes, not by its class, so layers of hybrid models are found as well.
Modules that do not fit keep their multiplied-out keys and values.

Source: DeepSeek-AI 2024 (DeepSeek-V2), low-rank joint compression of keys and values and its absorption.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rtlang.model.layers.attention import HeadGeometry
from rtlang.model.layers.low_bit_modules import LowBitModule
from rtlang_kernels import ops

logger = logging.getLogger(__name__)

_SIZES = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_NUM_TOKENS = 3  # on which a module's own expansion is compared with its split weight
_LARGEST_ERROR = 0.05  # rounding to bfloat16 gives 0.004, a part of the weight in the wrong place more than 1


class AbsorbedProjections(torch.nn.Module):
    """Stands in for the `kv_b_proj` of a latent attention module: its part for keys is applied to queries, that for values to results.

    Attributes:
        rank, rope_dim, v_head_dim: elements of a latent, of the shared rotated key, and of a head's result.
        keys: [num_heads, rank, nope_dim] and values: [num_heads, v_head_dim, rank], the parts of the weight; empty once packed.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, weight: Tensor, nope_dim: int, rope_dim: int, v_head_dim: int) -> None:
        """Copy the parts of `weight` [num_heads * (nope_dim + v_head_dim), rank]."""
        super().__init__()
        self.rank, self.nope_dim, self.rope_dim, self.v_head_dim = weight.shape[1], nope_dim, rope_dim, v_head_dim
        parts = weight.detach().view(-1, nope_dim + v_head_dim, self.rank)
        keys, values = parts[:, :nope_dim], parts[:, nope_dim:]
        contiguous = torch.contiguous_format
        self.register_buffer("keys", keys.mT.clone(memory_format=contiguous), persistent=False)
        self.register_buffer("values", values.clone(memory_format=contiguous), persistent=False)
        self._packed: tuple[Callable[[Tensor, Tensor], None], Callable[[Tensor, Tensor], None]] | None = None

    def pack(self) -> None:
        """Pack both parts for the kernels of the CPU, which give a token the same bits whatever the step; elsewhere do nothing."""
        make = ops.backend_for(self.keys.device, self.keys.dtype).head_linears
        if make is not None and self._packed is None:
            self._packed = make(self.keys), make(self.values)
            self.keys, self.values = self.keys.new_empty(0), self.values.new_empty(0)

    def geometry(self, num_heads: int) -> HeadGeometry:
        """Heads of the layer over lines that hold the latent, then the shared key."""
        return HeadGeometry(num_heads, 1, self.rank + self.rope_dim, self.rank, is_latent=True)

    def absorbed(self, q: Tensor) -> Tensor:
        """Queries [T, num_heads, nope_dim + rope_dim] -> [T, num_heads, rank + rope_dim], which lines of the pages are multiplied with."""
        q_nope, q_rope = q[..., : self.nope_dim], q[..., self.nope_dim :]
        if self._packed is None:
            return torch.cat([_multiplied(self.keys, q_nope), q_rope], -1)
        lines = q.new_empty((*q.shape[:2], self.rank + self.rope_dim))
        self._packed[0](q_nope, lines[..., : self.rank])
        lines[..., self.rank :] = q_rope
        return lines

    def expanded(self, latents: Tensor) -> Tensor:
        """Sums of latents [T, num_heads, rank] -> results of the heads [T, num_heads, v_head_dim]."""
        if self._packed is None:
            return _multiplied(self.values, latents)
        out = latents.new_empty((*latents.shape[:2], self.v_head_dim))
        self._packed[1](latents, out)
        return out


def absorb_projections(model: torch.nn.Module) -> int:
    """Let every latent attention module hand compressed keys and values to its attention function; returns the number of modules.

    The function then gets the rotated key [B, 1, T, rope_dim] as `key` and the latent [B, 1, T, rank] as `value`, and finds an
    `AbsorbedProjections` in `module.kv_b_proj`.
    """
    found: list[tuple[Any, AbsorbedProjections]] = [
        (module, made) for module in model.modules() if (made := _absorbed(module)) is not None
    ]
    for module, made in found:
        module.kv_b_proj = made
        module.expand_kv = _keep_compressed
    logger.debug("%d layers keep latents in their pages", len(found))
    return len(found)


def multiply_out(model: torch.nn.Module) -> None:
    """Replace the `kv_b_proj` of latent attention modules by float layers, if their weights have few bits.

    Such a layer multiplies inputs from the one side only, and absorbing it needs both.
    """
    for module in model.modules():
        projection = getattr(module, "kv_b_proj", None)
        if not isinstance(projection, LowBitModule) or _sizes_of(module) is None:
            continue
        module.kv_b_proj = projection.multiplied_out()


def pack_projections(model: torch.nn.Module) -> None:
    """Pack all projections that `absorb_projections` made, see `AbsorbedProjections.pack`."""
    for module in model.modules():
        if isinstance(module, AbsorbedProjections):
            module.pack()


def projections_of(module: torch.nn.Module) -> AbsorbedProjections | None:
    """The projections of an attention module that `absorb_projections` changed."""
    found = getattr(module, "kv_b_proj", None)
    return found if isinstance(found, AbsorbedProjections) else None


def _absorbed(module: torch.nn.Module) -> AbsorbedProjections | None:
    """Projections that can take the place of a module's own, or None."""
    sizes, projection = _sizes_of(module), getattr(module, "kv_b_proj", None)
    if sizes is None or type(projection) is not torch.nn.Linear or _has_bias(projection):
        return None
    rank, nope_dim, rope_dim, v_head_dim = sizes
    num_outputs, num_inputs = projection.weight.shape
    num_heads, rest = divmod(num_outputs, nope_dim + v_head_dim)
    if rest or num_inputs != rank or rank + rope_dim >= num_heads * (nope_dim + rope_dim + v_head_dim):
        return None
    made = AbsorbedProjections(projection.weight, nope_dim, rope_dim, v_head_dim)
    return made if _is_equal(module, made) else None


def _sizes_of(module: torch.nn.Module) -> tuple[int, ...] | None:
    """Sizes of a module of latent attention in the order of `_SIZES`, or None if it is something else."""
    sizes = [getattr(module, name, None) for name in _SIZES]
    found = tuple(size for size in sizes if isinstance(size, int) and size > 0)
    return found if len(found) == len(sizes) and callable(getattr(module, "expand_kv", None)) else None


def _is_equal(module: Any, made: AbsorbedProjections) -> bool:
    """Whether the module expands a latent to the keys and values that the split weight gives, the shared key behind each head's."""
    generator = torch.Generator().manual_seed(0)
    latent, rotated = (
        torch.randn(1, 1, _NUM_TOKENS, size, generator=generator).to(made.keys) for size in (made.rank, made.rope_dim)
    )
    try:
        found_keys, found_values = module.expand_kv(latent, rotated)
    except Exception as error:  # third-party code of any model type may raise anything
        logger.debug("latents are multiplied out: expand_kv fails: %r", error)
        return False
    keys, values = (weights.double() @ latent[0].double().mT for weights in (made.keys.mT, made.values))
    shared = rotated[0].double().mT.expand(len(keys), -1, -1)
    for part, expected in ((found_keys, torch.cat([keys, shared], 1)), (found_values, values)):  # [H, size, T]
        if part.shape != (1, len(expected), _NUM_TOKENS, expected.shape[1]):
            return False
        if not bool((part[0].double().mT - expected).norm() <= _LARGEST_ERROR * expected.norm()):
            return False
    return True


def _has_bias(linear: Any) -> bool:
    return linear.bias is not None


def _keep_compressed(latent: Tensor, rotated: Tensor) -> tuple[Tensor, Tensor]:
    """In the place of `expand_kv`: the shared key as the key and the latent as the value."""
    return rotated, latent


def _multiplied(weight: Tensor, x: Tensor) -> Tensor:
    """weight [num_heads, out, in] times x [T, num_heads, in] -> [T, num_heads, out]."""
    return torch.bmm(x.transpose(0, 1), weight.mT).transpose(0, 1)
