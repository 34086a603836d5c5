"""The lines about kernels that `rtlang check` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.model import kernel_choices
from rtlang_kernels.host.processor import Processor
from rtlang_kernels.host.tuning import Tuning


def test_every_choice_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Processor("Some CPU", "znver9", 2, has_avx2=True, has_fma=True)
    choices = Tuning(tmp_path, machine)
    choices.note("linear layers", "bfloat16", "vdpbf16ps")
    choices.choose("prefetch", "1 row", ("near", "far"), {"near": 0.002, "far": 0.001}.__getitem__)
    choices.choose("prefetch", "8 rows", ("near",), {"near": 0.002}.__getitem__)
    monkeypatch.setattr(kernel_choices, "tuning", lambda: choices)
    monkeypatch.setattr(kernel_choices, "processor", lambda: machine)
    assert kernel_choices.kernel_lines() == [
        "Some CPU (znver9: avx2, fma)",
        "linear layers, bfloat16: vdpbf16ps",
        "prefetch, 1 row: far (1 ms, others 2 ms)",
        "prefetch, 8 rows: near (2 ms)",
    ]
