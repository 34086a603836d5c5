"""Checkpoints stored as well-known models are published: loaded, run and held on a device (triton's interpreter) as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from tests.support.models.published_weights import DEVICE, PUBLISHED, compare_published

QUICK = ("Meta-Llama-3-8B-Instruct-FP8", "Llama-2-7B-Chat-GPTQ (desc_act)")


def marked() -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in PUBLISHED]


@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", marked())
def test_published_weights_run_as_they_are_stored(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    found = compare_published(tmp_path, name)
    assert found.error < 1e-3
    assert found.bytes_per_byte < 1.05
