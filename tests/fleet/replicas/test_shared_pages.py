"""Settings of replicas that exchange pages: what is missing is added, what is set stays."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang.fleet.replicas.shared_pages import HOST_BYTES, with_shared_pages


def test_what_is_missing_is_added() -> None:
    found = with_shared_pages(RuntimeConfig(page_size=8))
    assert (found.page_size, found.cache_listen, found.cache_host_bytes) == (8, "127.0.0.1:0", HOST_BYTES)
    other = with_shared_pages(RuntimeConfig())
    assert found.cache_secret != other.cache_secret, "every fleet has its own"
    assert found.cache_secret is not None
    assert len(found.cache_secret) >= 16


def test_what_is_set_stays() -> None:
    config = RuntimeConfig(cache_listen="127.0.0.1:7", cache_host_bytes=5)
    assert with_shared_pages(config) is config
    found = with_shared_pages(RuntimeConfig(cache_dir="x", cache_secret="0123456789abcdef"))
    assert (found.cache_host_bytes, found.cache_dir, found.cache_secret) == (None, "x", "0123456789abcdef")
