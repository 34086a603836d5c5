"""Counts the open sockets of a server, in total and for each client address, and refuses more than the limits allow."""

from __future__ import annotations

from collections import Counter

from rtlang.contract.metrics import Metrics


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
