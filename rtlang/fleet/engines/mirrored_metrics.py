"""The metrics of a server whose engines are other processes: its own, and the engines' metrics as they sent them last.

Counters and histograms of an engine go on when its process is replaced: the last values of the processes before are added to those of the
present one, so that sums over a restart neither fall nor forget whose work it was. What an engine counted after it was asked last, and
before it ended, is lost.
"""

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
_GROWING = ("counter", "histogram")
_Values = dict[str, float]
"""Of the samples of counters and histograms of an engine, by name and labels."""


class MirroredMetrics(Metrics):
    """Metrics of several processes. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._mirrored: dict[str | None, _Families] = {}  # replaced as a whole
        self._last: dict[str | None, _Values] = {}  # of the present process of each engine
        self._before: dict[str | None, _Values] = {}  # sums of the processes before it
        self._lock = threading.Lock()

    def mirror(self, rendered: bytes, replica: str | None = None) -> None:
        """Take over the metrics of an engine in the Prometheus text format.

        Args:
            replica: the value of the label `replica` that each sample gets; None for no label.
        """
        families = _families(rendered.decode(), replica)
        now = _growing(families)
        with self._lock:
            last, before = self._last.get(replica, {}), self._before.setdefault(replica, {})
            if any(now.get(name, -1.0) < value for name, value in last.items()):  # another process
                for name, value in last.items():
                    before[name] = before.get(name, 0.0) + value
            self._last[replica] = now
            if before:
                families = {name: _continued(lines, before) for name, lines in families.items()}
            self._mirrored = {**self._mirrored, replica: families}

    def forget(self, replica: str) -> None:
        """Leave out the metrics of an engine that is gone."""
        with self._lock:
            self._mirrored = {name: families for name, families in self._mirrored.items() if name != replica}
            self._last.pop(replica, None)
            self._before.pop(replica, None)

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
    name = ""
    for line in rendered.splitlines(keepends=True):
        if line.startswith("#"):
            name = line.split(" ")[2]
            found.setdefault(name, ([], []))[0].append(line)
        else:
            found[name][1].append(line if replica is None else _labelled(line, replica))
    return {name: lines for name, lines in found.items() if not name.startswith(OF_SERVER)}


def _grows(comments: list[str]) -> bool:
    """Whether the comments of a family say that its values only grow."""
    return any(comment.startswith("# TYPE ") and comment.split()[-1] in _GROWING for comment in comments)


def _growing(families: _Families) -> _Values:
    """The samples of an engine that only grow."""
    samples = (sample for comments, samples in families.values() if _grows(comments) for sample in samples)
    return {name: float(value) for sample in samples for name, _, value in [sample.rpartition(" ")]}


def _continued(lines: tuple[list[str], list[str]], before: _Values) -> tuple[list[str], list[str]]:
    """A family to which the values of earlier processes are added; samples that the present one does not have yet come last."""
    comments, samples = lines
    if not _grows(comments):
        return lines
    values = {name: float(value) for sample in samples for name, _, value in [sample.rpartition(" ")]}
    family = comments[0].split(" ")[2]
    for name, value in before.items():
        if name in values or name.partition("{")[0] == family:
            values[name] = values.get(name, 0.0) + value
    return comments, [f"{name} {value!r}\n" for name, value in values.items()]


def _labelled(sample: str, replica: str) -> str:
    """A sample with one more label."""
    label = 'replica="' + replica.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    name, brace, rest = sample.partition("{")
    if brace:
        return f"{name}{{{label},{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"
