"""The state of a fleet for people and tools that watch it: each replica with its load, its programs and its deaths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rtlang.contract.service.plain_records import record_from_plain, record_to_plain
from rtlang.contract.service.snapshot import EngineSnapshot

DEFAULT_FLEET = "default"
"""The name of a fleet that was given none."""


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """One replica.

    Attributes:
        name: unique in the fleet.
        state: loading, ready, restarting, draining, spare (ready, but without programs until another one ends) or dead.
        role: any, prefill or decode.
        num_programs: programs that it runs now.
        num_waiting_tokens: tokens that its programs still have to compute or generate, as it reported last.
        num_running: requests in its batch.
        num_free_pages, num_pages: of its KV cache; 0 before its first report.
        num_queried_tokens, num_hit_tokens: tokens looked up in its prefix cache, and found, since it started.
        num_deaths: engines that ended without being asked to.
        num_moved: programs that left it before they had ended: it ended or drained, was only to compute their prompt, or had more work than
            a replica that came.
        report_age_s: seconds since its engine thread worked, as it was asked last; about a second at most while it is idle or busy, more
            if it hangs. None while it loads its model.
    """

    name: str
    state: str
    role: str
    num_programs: int
    num_waiting_tokens: int
    num_running: int
    num_free_pages: int
    num_pages: int
    num_queried_tokens: int
    num_hit_tokens: int
    num_deaths: int
    num_moved: int
    report_age_s: float | None = None

    @property
    def hit_rate(self) -> float:
        """Share of the tokens looked up that were cached, 0 to 1."""
        return self.num_hit_tokens / self.num_queried_tokens if self.num_queried_tokens else 0.0


@dataclass(frozen=True, slots=True)
class FleetReport:
    """A fleet, as one frontend sees it.

    Attributes:
        num_programs: programs of this frontend that have not ended.
        num_unplaced: those of them that wait for a replica to be ready.
        replicas: in the order in which they joined.
    """

    model: str
    num_programs: int
    num_unplaced: int
    replicas: tuple[ReplicaReport, ...] = ()


@runtime_checkable
class ReportsFleet(Protocol):
    """A target that runs its graphs on several replicas."""

    def fleet_report(self) -> FleetReport:
        """The present state. Returns at once; callable from any thread."""

    def snapshot(self, *, after_step: int = 0, replica: str | None = None) -> EngineSnapshot | None:
        """See `Watchable.snapshot`; of the replica with the name, or of the first that is ready. None while there is none."""


def plain_fleet_report(report: FleetReport) -> dict[str, Any]:
    """The report as a map under the names of its fields."""
    return record_to_plain(report)


def read_fleet_report(plain: Mapping[str, Any]) -> FleetReport:
    """The report of a map that `plain_fleet_report` made; unknown fields, of a later version, are ignored.

    Raises:
        ValueError: a field is missing or has another type; names it.
    """
    return record_from_plain(FleetReport, plain)
