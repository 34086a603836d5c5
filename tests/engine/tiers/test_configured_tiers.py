"""Which tiers a configuration asks for, and what binds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.peers.peer_tier import PeerTier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.engine.tiers.configured_tiers import CacheTiers
from tests.support.engine.fake_runner import FakeRunner
from tests.support.engine.fake_state_runner import FakeStateRunner


def test_no_setting_means_no_tier() -> None:
    assert CacheTiers.of(RuntimeConfig(), FakeRunner(4)) == CacheTiers()
    assert CacheTiers.of(RuntimeConfig(cache_host_bytes=1), None) == CacheTiers()


def test_tiers_are_bound_to_model_number_format_and_pages(tmp_path: Path) -> None:
    config = RuntimeConfig(cache_host_bytes=100, cache_dir=str(tmp_path / "new"))
    made = CacheTiers.of(config, FakeRunner(4))
    assert [type(tier) for tier in made.tiers] == [HostTier, DiskTier]
    wider = FakeRunner(4)
    wider.page_format = "int128"
    others = [
        CacheTiers.of(RuntimeConfig(cache_dir=str(tmp_path), dtype="float32"), FakeRunner(4)),
        CacheTiers.of(RuntimeConfig(cache_dir=str(tmp_path), weights="dummy"), FakeRunner(4)),
        CacheTiers.of(RuntimeConfig(cache_dir=str(tmp_path), kv_dtype="int8"), FakeRunner(4)),
        CacheTiers.of(RuntimeConfig(cache_dir=str(tmp_path)), wider),
    ]
    assert len({each.root_digest for each in (made, *others)}) == 5
    assert CacheTiers.of(RuntimeConfig(cache_dir=str(tmp_path)), FakeRunner(4)).root_digest == made.root_digest
    assert not (tmp_path / "new").exists()
    states = [FakeStateRunner(4, state_bytes=size).state_memory for size in (64, 64)]
    states[1].state_format = "another"
    with_states = [CacheTiers.of(config, FakeRunner(4), each) for each in states]
    assert len({each.root_digest for each in (made, *with_states)}) == 3
    again = FakeStateRunner(4, state_bytes=64).state_memory
    assert CacheTiers.of(config, FakeRunner(4), again).root_digest == with_states[0].root_digest


def test_pages_are_served_from_the_own_tiers_and_peers_are_asked_last() -> None:
    config = RuntimeConfig(cache_host_bytes=100, cache_listen="127.0.0.1:0", cache_peers="127.0.0.1:1, [::1]:2")
    made = CacheTiers.of(config, FakeRunner(4))
    assert made.server is not None
    assert [type(tier) for tier in made.tiers] == [HostTier, PeerTier]
    host, port = made.server.address
    taken = RuntimeConfig(cache_host_bytes=100, cache_listen=f"{host}:{port}")
    with pytest.raises(ConfigError, match=f"cache_listen = '{host}:{port}': cannot listen there"):
        CacheTiers.of(taken, FakeRunner(4))
    made.server.close()
    assert CacheTiers.of(replace(taken, prefix_sharing=False), FakeRunner(4)) == CacheTiers()
    again = CacheTiers.of(taken, FakeRunner(4)).server
    assert again is not None
    again.close()


def test_an_unknown_user_is_named() -> None:
    with pytest.raises(ConfigError, match="cache_dir = '~nobody-of-this-name/x'"):
        CacheTiers.of(RuntimeConfig(cache_dir="~nobody-of-this-name/x"), FakeRunner(4))
    with pytest.raises(ConfigError, match=r"cache_dir = .*requires tensor_parallel 1"):
        RuntimeConfig(cache_dir="x", device="interpreter", tensor_parallel=2)
    with pytest.raises(ConfigError, match="cache_host_bytes = 0"):
        RuntimeConfig(cache_host_bytes=0)
