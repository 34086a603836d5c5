"""The tiers below the pool that a configuration asks for, bound to the model, its number formats, the page size and the version."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rtlang.cache.tiers.digest import root_digest
from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.tier import CacheTier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.version import VERSION
from rtlang.model.identity import model_identity
from rtlang.model.runner import PageMemory


@dataclass(frozen=True, slots=True)
class CacheTiers:
    """Tiers from the fastest to the slowest, and the digest before the first page of every sequence."""

    tiers: tuple[CacheTier, ...] = ()
    root_digest: bytes = b""

    @classmethod
    def of(cls, config: RuntimeConfig, memory: PageMemory | None) -> CacheTiers:
        """The tiers of a runtime.

        Raises:
            ConfigError: cache_dir names an unknown user (~name).
        """
        if memory is None or (config.cache_host_bytes is None and config.cache_dir is None):
            return cls()
        identity = f"rtlang {VERSION}, {model_identity(config)}, {memory.page_format}"
        tiers: list[CacheTier] = []
        if config.cache_host_bytes is not None:
            tiers.append(HostTier(config.cache_host_bytes))
        if config.cache_dir is not None:
            try:
                folder = Path(os.fspath(config.cache_dir)).expanduser().absolute()
            except RuntimeError as error:
                raise ConfigError("cache_dir", config.cache_dir, str(error)) from None
            tiers.append(DiskTier(folder, identity, memory.page_bytes, config.cache_dir_bytes))
        return cls(tuple(tiers), root_digest(identity))
