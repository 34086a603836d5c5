"""Counts of open sockets."""

from __future__ import annotations

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.runs.principal import LOCAL, Principal, PrincipalLimits
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.network.socket_counts import PrincipalConnections, SocketCounts


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
    assert metrics.snapshot()["rtlang_sockets_refused_total"] == 10


@pytest.mark.parametrize(
    ("settings", "limits", "is_shared", "expected"),
    [
        ({"max_connections": 10}, {}, False, 10),
        ({"max_connections": 10}, {}, True, 5),
        ({"max_connections": 1}, {}, True, 1),
        ({"max_connections": 10, "max_connections_per_principal": 3}, {}, True, 3),
        ({"max_connections": 10, "max_connections_per_principal": 3}, {"max_connections": 7}, True, 7),
    ],
)
def test_each_principal_has_connections_of_its_own(
    settings: dict[str, int], limits: dict[str, int], is_shared: bool, expected: int
) -> None:
    counts = PrincipalConnections(ServeConfig(port=0, **settings))  # type: ignore[arg-type]
    ana = Principal("ana", limits=PrincipalLimits(**limits))  # type: ignore[arg-type]
    assert [counts.admit(ana, is_shared=is_shared) for _ in range(expected + 2)] == [None] * expected + [expected] * 2
    assert counts.admit(Principal("bo"), is_shared=is_shared) is None
    counts.release(ana)
    assert counts.admit(ana, is_shared=is_shared) is None
    for _ in range(expected):
        counts.release(ana)
    counts.release(Principal("bo"))
    assert counts.num_principals == 0


def test_a_server_without_keys_has_one_principal() -> None:
    counts = PrincipalConnections(ServeConfig(port=0, max_connections=2))
    assert [counts.admit(LOCAL, is_shared=False) for _ in range(3)] == [None, None, 2]
