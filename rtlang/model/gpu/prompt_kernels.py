"""Chooses the kernels for prompts on a GPU when a model is loaded (`rtlang_kernels.triton.attention.prompt_trial`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from rtlang.model.layers.attention import HeadGeometry


def choose_prompt_kernels(
    geometries: Iterable[HeadGeometry], dtype: torch.dtype, page_size: int, device: torch.device
) -> list[str]:
    """Choose the kernels of each head geometry of a model; returns a line about each.

    The first load on a kind of GPU tries the candidates in a process of its own, for up to three minutes. Without a GPU there is nothing to
    choose.
    """
    if device.type != "cuda":
        return []
    from rtlang_kernels.triton.attention.prompt_choice import PromptShape
    from rtlang_kernels.triton.attention.prompt_trial import choose

    shapes: dict[Any, None] = {}
    for geometry in geometries:
        heads = geometry.num_q_heads, geometry.num_kv_heads, geometry.head_dim
        if geometry.v_head_dim == geometry.head_dim:
            shapes[PromptShape(device, dtype, *heads, page_size)] = None
    return [f"heads of {shape.head_dim}: {choose(shape).describe()}" for shape in shapes]


def prompt_candidates(device: torch.device) -> str:
    """The kernels for prompts that a device can run in bfloat16 with heads of 128 elements, and why it cannot run the others."""
    from rtlang_kernels.triton.attention.prompt_choice import PromptShape
    from rtlang_kernels.triton.attention.prompt_trial import candidates

    names, excuses = candidates(PromptShape(device, torch.bfloat16, 32, 8, 128, 16))
    return "; ".join(filter(None, [", ".join(names), excuses]))
