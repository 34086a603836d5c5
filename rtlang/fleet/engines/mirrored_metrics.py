"""The metrics of a server whose engines are other processes: its own, and the engines' metrics as they sent them last."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.exposition import generate_latest

from rtlang.contract.service.metrics import Metrics

OF_SERVER = (
    "rtlang_door_",
    "rtlang_principal_",
    "rtlang_server_",
    "rtlang_ws_",
    "rtlang_sockets",
    "rtlang_engine_restarts",
    "rtlang_replicas",
    "rtlang_moved_programs",
    "rtlang_programs_unplaced",
)
"""Prefixes of the names of the metrics that the server's process counts."""
_Families = dict[str, tuple[list[str], list[str]]]
"""By the name of a family: its comments and its samples, as lines."""


class MirroredMetrics(Metrics):
    """Metrics of several processes. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._mirrored: dict[str | None, _Families] = {}  # replaced as a whole
        self._lock = threading.Lock()

    def mirror(self, rendered: bytes, replica: str | None = None) -> None:
        """Take over the metrics of an engine in the Prometheus text format.

        Args:
            replica: the value of the label `replica` that each sample gets; None for no label.
        """
        families = _families(rendered.decode(), replica)
        with self._lock:
            self._mirrored = {**self._mirrored, replica: families}

    def forget(self, replica: str) -> None:
        """Leave out the metrics of an engine that is gone."""
        with self._lock:
            self._mirrored = {name: families for name, families in self._mirrored.items() if name != replica}

    def render(self) -> bytes:
        """See `Metrics.render`."""
        joined: _Families = {}
        for families in self._mirrored.values():
            for name, (comments, samples) in families.items():
                joined.setdefault(name, (comments, []))[1].extend(samples)
        lines = [line for comments, samples in joined.values() for line in (*comments, *samples)]
        return "".join(lines).encode() + generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """The server's own metrics."""
        for family in self.registry.collect():
            if not self._mirrored or family.name.startswith(OF_SERVER):
                yield family


def _families(rendered: str, replica: str | None) -> _Families:
    """The families of the engine; every one begins with its comments."""
    found: _Families = {}
    name, has_samples = "", True
    for line in rendered.splitlines(keepends=True):
        if line.startswith("#"):
            if has_samples:
                name, has_samples = line.split(" ")[2], False
            found.setdefault(name, ([], []))[0].append(line)
        else:
            has_samples = True
            found.setdefault(name, ([], []))[1].append(line if replica is None else _labelled(line, replica))
    return {name: lines for name, lines in found.items() if not name.startswith(OF_SERVER)}


def _labelled(sample: str, replica: str) -> str:
    """A sample with one more label."""
    label = 'replica="' + replica.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    name, brace, rest = sample.partition("{")
    if brace:
        return f"{name}{{{label},{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"
