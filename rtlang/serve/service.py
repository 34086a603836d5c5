"""What the connections of one server share: the target, the limits, and the way to an orderly end."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Protocol

from rtlang.contract.config import ServeConfig
from rtlang.contract.metrics import Metrics
from rtlang.contract.target import Target
from rtlang.serve.connection import ConnectionFacts
from rtlang.serve.event_bridge import EventBridge
from rtlang.serve.resumable import ResumeRegistry


class StreamSocket(Protocol):
    """A connection, as the service sees it."""

    @property
    def num_running(self) -> int:
        """Graphs that have not ended."""

    def drain(self, deadline_s: float) -> None:
        """Tell the client that the server ends."""

    def end(self, code: int, reason: str) -> None:
        """Close in good order."""


class StreamService:
    """What the connections of one server share. Owned by the server's event loop.

    Args:
        target: where graphs run.
        config: limits and access.
        facts: what `welcome` says.
        metrics: where connections are counted.
        loop: the one that owns all of this.
    """

    def __init__(
        self,
        target: Target,
        config: ServeConfig,
        facts: ConnectionFacts,
        metrics: Metrics,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.target, self.config, self.facts, self.metrics, self.loop = target, config, facts, metrics, loop
        self.handover = EventBridge(loop)
        self.lasting = ResumeRegistry(loop, facts.epoch, config.resume_buffer_bytes, metrics)
        self.sockets: set[StreamSocket] = set()
        self.numbers = count(1)
        self.is_draining = False
        self.idle = asyncio.Event()

    def drain(self, deadline_s: float) -> None:
        """Accept nothing more; tell every client that the server ends in `deadline_s`."""
        self.is_draining = True
        self.lasting.close()  # nobody can come back any more
        for socket in tuple(self.sockets):
            socket.drain(deadline_s)
        self.check_idle()

    def check_idle(self) -> None:
        """Set or clear `idle`: whether no graph is running."""
        if not any(socket.num_running for socket in self.sockets):
            self.idle.set()
        else:
            self.idle.clear()

    def close_all(self, code: int, reason: str) -> None:
        """End every connection; graphs still running are cancelled, those that were to last too."""
        self.lasting.close()
        for socket in tuple(self.sockets):
            socket.end(code, reason)
