"""Choices of prompt kernels for the head geometries of a model."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.gpu.prompt_kernels import choose_prompt_kernels, prompt_candidates
from rtlang.model.layers.attention import HeadGeometry

prompt_trial = pytest.importorskip("rtlang_kernels.triton.attention.prompt_trial")


def test_each_geometry_is_chosen_once_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []

    def choose(shape: prompt_trial.PromptShape) -> prompt_trial.PromptChoice:
        chosen.append(shape)
        return prompt_trial.PromptChoice("prompt_attn", 2048, "measured")

    monkeypatch.setattr(prompt_trial, "choose", choose)
    plain, wide = HeadGeometry(32, 8, 128, 128), HeadGeometry(16, 16, 192, 128)
    gpu = torch.device("cuda", 0)
    found = choose_prompt_kernels([plain, wide, plain], torch.bfloat16, 16, gpu)
    assert found == ["heads of 128: prompt_attn, FlashAttention-3 from 2048 tokens (measured)"]
    assert chosen == [(gpu, torch.bfloat16, 32, 8, 128, 16)]
    assert choose_prompt_kernels([plain], torch.bfloat16, 16, torch.device("cpu")) == []


def test_what_cannot_be_tried_is_named() -> None:
    text = prompt_candidates(torch.device("cpu"))
    assert text.startswith("rect_attn; no FlashAttention-3: cpu: not a GPU of NVIDIA; no prompt_attn: ")
