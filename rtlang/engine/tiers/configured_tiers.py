"""The tiers below the pool that a configuration asks for, bound to the model, its number formats, pages and states, and the version."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes

from rtlang.cache.tiers.digest import root_digest
from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.peers.page_server import PageServer
from rtlang.cache.tiers.peers.peer_tier import PeerTier
from rtlang.cache.tiers.tier import CacheTier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.process.peer_address import listen_address, peer_addresses
from rtlang.contract.version import VERSION
from rtlang.model.identity import model_identity
from rtlang.model.runner import PageMemory, StateContent


@dataclass(frozen=True, slots=True)
class CacheTiers:
    """Tiers from the fastest to the slowest, the digest before the first page of every sequence, and the server of pages, which listens."""

    tiers: tuple[CacheTier, ...] = ()
    root_digest: bytes = b""
    server: PageServer | None = None

    @classmethod
    def of(cls, config: RuntimeConfig, memory: PageMemory | None, states: StateContent | None = None) -> CacheTiers:
        """The tiers of a runtime, whose model has `states` if it has recurrent layers.

        Raises:
            ConfigError: cache_dir names an unknown user (~name), or cache_listen an address where this process cannot listen.
        """
        settings = config.cache_host_bytes, config.cache_dir, config.cache_peers
        if memory is None or not config.prefix_sharing or all(each is None for each in settings):
            return cls()
        identity = f"rtlang {VERSION}, {model_identity(config)}, {memory.page_format}"
        state_bytes = 0
        if states is not None:
            identity, state_bytes = f"{identity}, states {states.state_format}", states.state_bytes
        tiers: list[CacheTier] = []
        if config.cache_host_bytes is not None:
            tiers.append(HostTier(config.cache_host_bytes))
        if config.cache_dir is not None:
            try:
                folder = Path(os.fspath(config.cache_dir)).expanduser().absolute()
            except RuntimeError as error:
                raise ConfigError("cache_dir", config.cache_dir, str(error)) from None
            tiers.append(DiskTier(folder, identity, memory.page_bytes, config.cache_dir_bytes, state_bytes))
        root, secret, instance = root_digest(identity), (config.cache_secret or "").encode(), token_bytes(16)
        server = None
        if config.cache_listen is not None:
            server = PageServer(_listener(config.cache_listen), tiers, secret, root, instance)
        if config.cache_peers is not None or server is not None:  # more peers may be named later
            named = config.cache_peers
            addresses = [] if named is None else peer_addresses("cache_peers", named)
            tiers.append(PeerTier(addresses, secret, root, instance, memory.page_bytes, state_bytes=state_bytes))
        return cls(tuple(tiers), root, server)


def _listener(address: str) -> socket.socket:
    host, port = listen_address("cache_listen", address)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=64)
    except OSError as error:
        raise ConfigError("cache_listen", address, f"cannot listen there: {error.strerror or error}") from None
