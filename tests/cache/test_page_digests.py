"""What became of evicted pages. (Digests: tests/cache/tiers/test_digest.py.)"""

from __future__ import annotations

from rtlang.cache import page_digests
from rtlang.cache.page_digests import EvictionHistory


def test_the_history_tells_when_a_page_was_evicted_last_and_is_bounded(monkeypatch: object) -> None:
    now = [0.0]
    history = EvictionHistory(lambda: now[0])
    history.note([b"a", b"b"])
    now[0] = 5.0
    history.note([b"a"])
    now[0] = 7.0
    assert history.seconds_since(b"a") == 2.0
    assert history.seconds_since(b"b") == 7.0
    assert history.seconds_since(b"c") is None
    assert history.take_new() == [b"a", b"b", b"a"]
    assert history.take_new() == []
    many = [number.to_bytes(4, "little") for number in range(page_digests.MAX_EVICTED)]
    history.note(many)
    assert history.seconds_since(b"a") is None
    assert history.seconds_since(many[0]) == 0.0
