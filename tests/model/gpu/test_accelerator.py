"""Which device a setting names, and what the one without a GPU does."""

from __future__ import annotations

import warnings

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.gpu.accelerator import CudaAccelerator, InterpretedAccelerator, accelerator_for


@pytest.mark.skipif(torch.cuda.is_available(), reason="about a machine without a GPU")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match="torch finds no GPU"):
        accelerator_for("cuda")


def test_a_gpu_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> int:
        raise RuntimeError("CUDA error: all devices are busy\nor unavailable")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", busy)
    with pytest.raises(ConfigError, match="the GPU cannot be used: CUDA error: all devices are busy or unavailable"):
        accelerator_for("cuda")


def test_torchs_word_of_a_prototype_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[object] = []

    def set_mode(mode: object) -> None:
        if not modes:
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=1)
        modes.append(mode)

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_mode)
    assert CudaAccelerator().obstacle(lambda: torch.zeros(1)) is None
    assert modes == ["error", 0]


@pytest.mark.parametrize("missing", ["TRITON_INTERPRET", "RTLANG_KERNELS"])
def test_the_interpreter_has_to_be_asked_for(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    assert isinstance(accelerator_for("interpreter"), InterpretedAccelerator)
    monkeypatch.delenv(missing)
    with pytest.raises(ConfigError, match=missing):
        accelerator_for("interpreter")


def test_what_is_fetched_is_as_it_was_then() -> None:
    accelerator = InterpretedAccelerator()
    tensor = torch.arange(4)
    fetched = accelerator.fetch([tensor, tensor + 1])
    tensor.zero_()
    assert [values.tolist() for values in fetched.wait()] == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_what_is_captured_is_done_again() -> None:
    counter = torch.zeros(1)
    replay = InterpretedAccelerator().capture(lambda: counter.add_(1))
    assert [float(replay()) for _ in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("given", [{"dtype": "float16"}, {"kv_dtype": "float8"}, {"device": "tpu"}])
def test_settings_of_a_gpu_are_refused_on_a_cpu(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        RuntimeConfig(**given)  # type: ignore[arg-type]
