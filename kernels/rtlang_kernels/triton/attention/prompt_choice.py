"""Which kernels compute prompts on a device: chosen for each head geometry when a model is loaded (`prompt_trial`), read at every launch.

Until something else has been chosen, `rect_attn` computes everything. Choices change the last bits of results.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class PromptShape(NamedTuple):
    """The head geometry of a layer, as far as the choice depends on it."""

    device: torch.device
    dtype: torch.dtype
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    page_size: int


class PromptChoice(NamedTuple):
    """The kernels chosen for the prompts of a geometry.

    Attributes:
        kernel: for tiles of 128 query lines: "rect_attn" or "prompt_attn".
        flash_tokens: rows with at least so many new tokens go to FlashAttention-3; None if none do.
        reason: the measured times, or why nothing was measured.
    """

    kernel: str
    flash_tokens: int | None
    reason: str

    def describe(self) -> str:
        """The choice and its reason in one line."""
        flash = f", FlashAttention-3 from {self.flash_tokens} tokens" if self.flash_tokens else ""
        return f"{self.kernel}{flash} ({self.reason})"


NOT_CHOSEN = PromptChoice("rect_attn", None, "nothing has been measured")
_choices: dict[PromptShape, PromptChoice] = {}


def set_choice(shape: PromptShape, choice: PromptChoice) -> None:
    """Use a choice for all later steps of this process."""
    _choices[shape] = choice


def choice_for(shape: PromptShape) -> PromptChoice:
    """The choice for a geometry."""
    return _choices.get(shape, NOT_CHOSEN)
