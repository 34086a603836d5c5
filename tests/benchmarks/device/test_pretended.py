"""The pretended device: the texts of its rows, and where it refuses to be."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")  # there is none for some platforms

import torch

from rtlang_bench.device.pretended import Script, pretended_device


def test_each_noise_key_has_a_text_of_its_own() -> None:
    script = Script()
    script.set([[5, 6, 7], [8, 9]])
    assert script.sampled(torch.tensor([30, 10, 30]), torch.tensor([0, 0, 1])).tolist() == [5, 8, 6]
    assert script.sampled(torch.tensor([20, 10]), torch.tensor([7, 7])).tolist() == [7, 9]  # the first text again
    script.set([[1]])
    assert script.sampled(torch.tensor([20, 10]), torch.tensor([7, 0])).tolist() == [1, 1]


def test_the_environment_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RTLANG_KERNELS", raising=False)
    with pytest.raises(RuntimeError, match="before triton is imported"), pretended_device():
        pass
