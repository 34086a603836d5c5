"""Addresses of peers: their forms, and what needs a secret."""

from __future__ import annotations

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.process.peer_address import is_loopback, listen_address, peer_addresses


def test_addresses_are_hosts_with_ports() -> None:
    assert listen_address("x", "0.0.0.0:7070") == ("0.0.0.0", 7070)
    assert listen_address("x", "[::]:0") == ("::", 0)
    assert peer_addresses("x", "a.b:1, [::1]:2,a.b:1") == [("a.b", 1), ("::1", 2)]
    assert [is_loopback(each) for each in ("localhost", "127.9.9.9", "::1", "10.0.0.1", "host")] == [True] * 3 + [
        False
    ] * 2


@pytest.mark.parametrize(
    "value", ["", "7070", ":7070", "host", "host:", "host:x", "host:65536", "u@h:1", "h:1/x", "::1:7"]
)
def test_another_form_is_refused_by_name(value: str) -> None:
    with pytest.raises(ConfigError, match="cache_listen"):
        RuntimeConfig(cache_host_bytes=1, cache_listen=value)
    with pytest.raises(ConfigError, match="cache_peers"):
        RuntimeConfig(cache_peers=f"127.0.0.1:1,{value}")


def test_what_others_can_reach_needs_a_secret_of_some_length() -> None:
    for settings in ({"cache_listen": "0.0.0.0:1", "cache_host_bytes": 1}, {"cache_peers": "127.0.0.1:1,other:2"}):
        with pytest.raises(ConfigError, match="RTLANG_CACHE_SECRET"):
            RuntimeConfig(**settings)  # type: ignore[arg-type]
        config = RuntimeConfig(**settings, cache_secret="0123456789abcdef")  # type: ignore[arg-type]
        assert "0123456789abcdef" not in repr(config)
    with pytest.raises(ConfigError, match=r"cache_secret = '\.\.\.'"):
        RuntimeConfig(cache_secret="short")
    with pytest.raises(ConfigError, match="requires cache_host_bytes or cache_dir"):
        RuntimeConfig(cache_listen="127.0.0.1:1")
    with pytest.raises(ConfigError, match="requires tensor_parallel 1"):
        RuntimeConfig(cache_peers="127.0.0.1:1", device="interpreter", tensor_parallel=2)
    with pytest.raises(ConfigError, match="cache_peers"):
        RuntimeConfig(cache_peers="127.0.0.1:0")
