"""Counts of open sockets."""

from __future__ import annotations

from rtlang.contract.metrics import Metrics
from rtlang.serve.socket_counts import SocketCounts


def test_limits_hold_in_total_and_for_each_address() -> None:
    counts = SocketCounts(3, 2, Metrics())
    assert [counts.admit("a"), counts.admit("a"), counts.admit("a"), counts.admit("b"), counts.admit("c")] == [
        True, True, False, True, False,
    ]  # fmt: skip
    counts.release("a")
    assert counts.admit("c")
    for address in ("a", "b", "c"):
        counts.release(address)
    assert (counts.total, counts.num_addresses) == (0, 0)


def test_without_a_limit_one_address_may_have_them_all() -> None:
    metrics = Metrics()
    counts = SocketCounts(100, None, metrics)
    assert sum(counts.admit("a") for _ in range(110)) == 100
    assert metrics.snapshot()["rtlang:sockets_refused_total"] == 10
