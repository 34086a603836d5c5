"""Runtimes of a CPU and of a GPU beside each other in one process, as a benchmark that compares them makes them."""

from __future__ import annotations

from types import ModuleType

import pytest

from rtlang.config import RuntimeConfig
from rtlang.engine.runtime import Runtime


def use_own_columns(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """The module's runtimes of the CPU use the CPU's kernels, its others those of a GPU."""

    def make(*, config: RuntimeConfig) -> Runtime:
        if config.device == "cpu":
            monkeypatch.delenv("RTLANG_KERNELS", raising=False)
        else:
            monkeypatch.setenv("RTLANG_KERNELS", "triton")
        return Runtime(config=config)

    monkeypatch.setattr(module, "Runtime", make)
