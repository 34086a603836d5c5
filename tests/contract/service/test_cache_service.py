"""Plain data of the cache service, and its bounds."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.service.cache_service import (
    MAX_TREE_NODES,
    MAX_TTL_S,
    PinGrant,
    cache_service_of,
    checked_max_nodes,
    checked_ttl_s,
)


def test_grants_are_plain_data() -> None:
    grant = PinGrant("a1", 41, 36, 600.0, True)
    plain = json.loads(json.dumps(grant.to_plain()))
    assert PinGrant.from_plain(plain | {"later": 1}) == grant


def test_times_and_counts_are_bounded() -> None:
    assert checked_ttl_s(MAX_TTL_S) == MAX_TTL_S
    assert checked_ttl_s(3) == 3.0
    assert checked_max_nodes(MAX_TREE_NODES) == MAX_TREE_NODES
    for ttl_s in (0, -1, MAX_TTL_S + 1, True, "3", None, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="ttl_s"):
            checked_ttl_s(ttl_s)
    for max_nodes in (0, MAX_TREE_NODES + 1, True, "3", 2.0):
        with pytest.raises(ParameterError, match="max_nodes"):
            checked_max_nodes(max_nodes)


def test_a_target_may_have_no_cache() -> None:
    assert cache_service_of(object()) is None
    assert cache_service_of(SimpleNamespace(cache_service=3)) == 3
