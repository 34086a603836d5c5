"""The features of the processor that kernels are compiled for."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rtlang_kernels.host.processor import Processor, processor

ROOT = Path(__file__).parents[3]


def test_features_agree_with_torch() -> None:
    found = processor()
    assert processor() is found
    assert found.num_cores == os.cpu_count()
    assert found.model
    if platform.machine() == "x86_64":
        assert found.has_avx2 == torch.cpu._is_avx2_supported()
        assert found.has_avx512 == torch.cpu._is_avx512_supported()
        assert found.has_bf16_dot == torch.cpu._is_avx512_bf16_supported()
        assert found.has_int8_dot == torch.cpu._is_vnni_supported()
        assert not found.has_neon


def test_features_are_listed_by_name() -> None:
    assert Processor("a", "b", 2, has_avx2=True, has_fma=True).features == ("avx2", "fma")
    assert Processor("a", "b", 2).features == ()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("+avx2,+fma,-avx512f", "avx2 fma"),
        ("+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8", "bf16_dot amx avx512"),
        ("+avx512f,+avx512bw,+avx512vl,+avx512dq,+amx-tile,+amx-int8", "avx512"),  # tiles without bfloat16
        ("+avx512f,+avx512bf16", ""),  # incomplete
    ],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features are named as on x86")
def test_the_settings_of_numba_decide(features: str, expected: str) -> None:
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    code = "from rtlang_kernels.host.processor import processor as p; print(p().target, *p().features)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT / "kernels")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout.split() == ["haswell", *expected.split()]
