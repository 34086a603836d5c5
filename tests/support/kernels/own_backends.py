"""Runtimes of a CPU and of a GPU in one process, as comparing benchmarks create them."""

from __future__ import annotations

from types import ModuleType

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.runtime.runtime import Runtime


def use_own_backends(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """CPU runtimes of the module use the CPU backend, its other runtimes the GPU backend."""

    def make(*, config: RuntimeConfig) -> Runtime:
        if config.device == "cpu":
            monkeypatch.delenv("RTLANG_KERNELS", raising=False)
        else:
            monkeypatch.setenv("RTLANG_KERNELS", "triton")
        return Runtime(config=config)

    monkeypatch.setattr(module, "Runtime", make)
