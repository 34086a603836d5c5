"""The reader of the snapshot feed: the times between snapshots, however their bytes arrive."""

from __future__ import annotations

import pytest

from rtlang_bench.frontend.feed_client import FeedChannel


def test_a_gap_is_noted_for_each_snapshot_after_the_first() -> None:
    gaps: list[float] = []
    channel = FeedChannel("h:1", gaps, until=float("inf"))
    assert channel.begin().startswith(b"GET /v1/engine/snapshot/stream")
    stream = b"HTTP/1.1 200 OK\r\n\r\n" + b"event: snapshot\ndata: {}\n\n" * 4
    for start in range(0, len(stream), 7):
        assert channel.take(stream[start : start + 7]) == b""
    assert len(gaps) == 3
    with pytest.raises(ValueError, match="ended the feed"):
        channel.take(b"")


def test_a_reader_stops_at_its_time() -> None:
    assert FeedChannel("h:1", [], until=0.0).take(b"x") is None
