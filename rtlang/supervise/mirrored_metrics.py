"""The metrics of a server whose engine is another process: its own, and those of the engine as it sent them last."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.exposition import generate_latest

from rtlang.contract.metrics import Metrics

OF_SERVER = ("rtlang:ws_", "rtlang:sockets", "rtlang:engine_restarts")
"""Prefixes of the names of the metrics that the server's process counts."""


class MirroredMetrics(Metrics):
    """Metrics of two processes. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._mirrored = b""

    def mirror(self, rendered: bytes) -> None:
        """Take over the engine's metrics in the Prometheus text format."""
        lines = [line for line in rendered.splitlines(keepends=True) if not _is_of_server(line.decode())]
        self._mirrored = b"".join(lines)

    def render(self) -> bytes:
        """See `Metrics.render`."""
        return self._mirrored + generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """The server's own metrics."""
        for family in self.registry.collect():
            if not self._mirrored or family.name.startswith(OF_SERVER):
                yield family


def _is_of_server(line: str) -> bool:
    name = line.split(" ")[2] if line.startswith("#") else line
    return name.startswith(OF_SERVER)
