"""Counts the open sockets of a server, in total and for each client address, and the WebSocket connections of each principal.

More than the limits allow are refused.
"""

from __future__ import annotations

from collections import Counter

from rtlang.contract.config import ServeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.metrics import Metrics


class SocketCounts:
    """Owned by the server's event loop.

    Args:
        max_sockets: maximum number of open sockets.
        max_per_address: the same for one client address; None for no such limit.
    """

    def __init__(self, max_sockets: int, max_per_address: int | None, metrics: Metrics) -> None:
        self._max_sockets, self._max_per_address, self._metrics = max_sockets, max_per_address, metrics
        self._by_address: Counter[str] = Counter()
        self.total = 0

    def admit(self, address: str) -> bool:
        """Count a new socket; False, and not counted, if a limit is reached. Each admitted socket must be released once."""
        limit = self._max_per_address
        if self.total >= self._max_sockets or (limit is not None and self._by_address[address] >= limit):
            self._metrics.sockets_refused.inc()
            return False
        self.total += 1
        self._by_address[address] += 1
        self._metrics.sockets.set(self.total)
        return True

    def release(self, address: str) -> None:
        """Forget a socket that was admitted."""
        self.total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._metrics.sockets.set(self.total)

    @property
    def num_addresses(self) -> int:
        """Number of addresses with an open socket."""
        return len(self._by_address)


class PrincipalConnections:
    """The WebSocket connections of each principal. Owned by the server's event loop."""

    def __init__(self, config: ServeConfig) -> None:
        self._config = config
        self._by_name: Counter[str] = Counter()

    def admit(self, principal: Principal, *, is_shared: bool) -> int | None:
        """Count a connection; returns the limit, without counting, if it is reached. Each admitted connection must be released once.

        Args:
            is_shared: whether several principals have keys: one of them gets at most half of all connections then.
        """
        limit = principal.limits.max_connections or self._config.max_connections_per_principal
        if limit is None:
            limit = max(1, self._config.max_connections // 2) if is_shared else self._config.max_connections
        if self._by_name[principal.name] >= limit:
            return limit
        self._by_name[principal.name] += 1
        return None

    def release(self, principal: Principal) -> None:
        """Forget a connection that was admitted."""
        self._by_name[principal.name] -= 1
        if not self._by_name[principal.name]:
            del self._by_name[principal.name]

    @property
    def num_principals(self) -> int:
        """Number of principals with a connection."""
        return len(+self._by_name)
