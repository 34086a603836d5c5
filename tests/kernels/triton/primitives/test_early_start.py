"""The interpreter starts no kernel early; which kernels do on a GPU is tested by compiling them (aot/test_compiler)."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.planning.tile_sizes import GFX942, PRETENDED, SM_80, SM_90, GpuProperties
from rtlang_kernels.triton.primitives import early_start
from rtlang_kernels.triton.primitives.early_start import EARLY, LATE


def test_the_processor_and_a_switch_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = torch.device("meta")
    assert early_start.early_start(torch.device("cpu")) == LATE
    monkeypatch.setattr(early_start, "is_interpreting", lambda: False)
    for arch, arguments in ((SM_80, LATE), (SM_90, EARLY), (GFX942, LATE)):
        token = PRETENDED.set(GpuProperties(arch, 1, 1))
        assert early_start.early_start(meta) == arguments
        PRETENDED.reset(token)
    monkeypatch.setenv("RTLANG_EARLY_START", "0")
    token = PRETENDED.set(GpuProperties(SM_90, 1, 1))
    assert early_start.early_start(torch.device("meta", 1)) == LATE  # the first launch on another device
    PRETENDED.reset(token)
