"""A live load on a pretended device: its steps are counted, and all of them are replayed."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang_bench.device import live


def test_steps_with_prompts_are_counted_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(live, "OUTPUT_TOKENS", (2, 9))
    (found,) = live.measure(4, (30,), 16, num_pages=256, max_step_tokens=64)
    assert found.num_eager == 0
    assert found.eager_share == 0
    assert 16 // 4 <= found.num_mixed < found.num_replayed
    assert 30 < found.largest <= 64
    assert found.decoding_ms > 0
    assert found.mixed_ms > 0
    monkeypatch.setattr("rtlang.model.gpu.device_graphs.GRAPH_TOKENS", (1, 2, 4))
    (other,) = live.measure(4, (30,), 16, num_pages=256, max_step_tokens=64)
    assert other.num_eager == other.num_mixed > 0
    assert "(0.0%)" in str(found)
    assert "(0.0%)" not in str(other)
