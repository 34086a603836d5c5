"""Settings with which the replicas of one machine exchange the pages of their caches.

Each engine listens on a free port of loopback and tells the fleet where; the fleet tells the others (`Fleet`).
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig

HOST_BYTES = 1 << 30
"""Default of `cache_host_bytes`, for each replica."""


def with_shared_pages(config: RuntimeConfig) -> RuntimeConfig:
    """The settings, completed for the exchange: a place to listen, a tier to serve from, and a secret of this fleet."""
    if config.cache_listen is not None:
        return config
    has_tier = config.cache_host_bytes is not None or config.cache_dir is not None
    return replace(
        config,
        cache_listen="127.0.0.1:0",
        cache_host_bytes=config.cache_host_bytes if has_tier else HOST_BYTES,
        cache_secret=config.cache_secret or secrets.token_hex(16),
    )
