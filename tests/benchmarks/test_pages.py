"""The bench of pages between two runtimes: the same texts over a link of any speed, and what its table says."""

from __future__ import annotations

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang_bench import pages as page_exchange
from rtlang_bench.pages import Exchange, PageExchange, measure_page_exchange


def test_texts_are_the_same_over_a_fast_and_a_slow_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_exchange, "_NUM_WARM", 1)
    config = RuntimeConfig(num_threads=1, dtype="float32")
    found = measure_page_exchange(config, lengths=(48,), links=("loopback", "10 Mbit/s"), rounds=1)
    assert found.is_met
    fast, slow = found.rows
    assert (fast.link, slow.link, fast.num_tokens) == ("loopback", "10 Mbit/s", 48)
    assert slow.fetch_s > 2 * found.page_bytes / 1.25e6, "the link carries no more"
    assert found.bytes_per_s > 0
    assert found.page_size == 16


def test_the_table_says_from_which_length_on_pages_are_fetched() -> None:
    rows = (
        Exchange("loopback", 100, 0.1, 0.01, 0.1, 0, True),
        Exchange("loopback", 200, 0.2, 0.01, 0.02, 192, True),
        Exchange("loopback", 400, 0.4, 0.02, 0.03, 384, True),
        Exchange("slow", 400, 0.4, 4.0, 0.4, 16, True),
    )
    shown = str(PageExchange(1000, 16, 2e9, rows))
    assert "loopback: fetched from 200 tokens on\nslow: computed" in shown
    assert "2,000 MB/s" in shown
