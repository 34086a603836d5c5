"""A cache service through messages is the service itself."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from rtlang.contract.request_graph import RoleEnd, RoleStart, TokenIds
from rtlang.contract.runs.principal import LOCAL, Principal, PrincipalLimits
from rtlang.fleet.messages.cache_calls import RemoteCacheService, answer_cache_call
from tests.support.engine.fake_cache_service import FakeCacheService

ANA = Principal("ana", namespace="ana", limits=PrincipalLimits(max_rows=2), client="http 1")


def test_calls_and_their_values_cross_as_they_are() -> None:
    service, direct = FakeCacheService(), FakeCacheService()
    methods: list[str] = []

    def ask(method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0) -> Any:
        assert principal.name in ("ana", "ben")
        methods.append(method)
        sent = msgpack.unpackb(msgpack.packb([method, args]))
        return msgpack.unpackb(msgpack.packb(answer_cache_call(service, *sent)))

    remote = RemoteCacheService(ask)
    parts = [RoleStart("user"), "hello", TokenIds((5, 17)), RoleEnd()]
    assert remote.explain(parts, ANA) == direct.explain(parts, ANA)
    assert service.parts == [tuple(parts)]
    grant = remote.pin(parts, 30.0, ANA)
    assert grant == direct.pin(parts, 30.0, ANA)
    assert remote.pins(ANA) == [grant] == direct.pins(ANA)
    assert remote.pins(Principal("ben")) == []
    assert remote.tree(2, ANA) == direct.tree(2, ANA)
    assert remote.unpin(grant.pin_id, ANA)
    assert not remote.unpin(grant.pin_id, ANA)
    assert all(method.startswith("cache.") for method in methods)
    with pytest.raises(ValueError, match="unknown"):
        answer_cache_call(service, "cache.close", [ANA.to_plain()])
