"""The frontend's figures with few streams: an engine without a model, the server before it, and the clients, each in its process."""

from __future__ import annotations

import sys

import pytest

from rtlang_bench.frontend import frontend_figures
from rtlang_bench.frontend.load_client import Load, Report

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the client needs epoll")


def test_every_token_of_an_engine_without_a_model_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend_figures, "_RATE", 50.0)
    found = {each.name: each for each in frontend_figures.stream_figures(6, 9)}
    assert [name for name in found if name.endswith("_failed")] == [
        f"frontend_{kind}_failed" for kind in ("sse", "sse_ids", "ws")
    ]
    for kind in ("sse", "sse_ids", "ws"):
        assert found[f"frontend_{kind}_failed"].is_met, found[f"frontend_{kind}_failed"].note
        assert found[f"frontend_{kind}_fairness"].value > 0.5


def test_figures_say_what_a_report_shows() -> None:
    report = Report(
        first_s=[1.0] * 98 + [3.0] * 2,
        tokens_at_half=[2, 0],
        num_tokens=1000,
        cpu_s=0.5,
        steady_cpu_s=0.1,
        num_steady_tokens=500,
    )
    load = Load("http://h", {}, 2, 500)
    failed, fair, first, event = frontend_figures._figures("sse", load, report)
    assert (failed.value, fair.value, first.value) == (0, 0.5, 3.0)
    assert event.value == pytest.approx(200.0)
    assert "500 us a token" in event.note
