"""Keeps a fleet in step with its roster: reports the load of its replicas, uses new ones, and drains those that are to go."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.service.fleet_report import FleetReport
from rtlang.fleet.engines.launcher import Launcher
from rtlang.fleet.replicas.fleet_plan import FleetPlan, Roster

logger = logging.getLogger(__name__)

INTERVAL_S = 1.0
STOPPED = "the fleet was stopped"


class FollowingFleet(Protocol):
    """The part of `rtlang.fleet.replicas.fleet.Fleet` that is needed here."""

    def add(self, launcher: Launcher) -> str:
        """Use another replica, once it is ready. Returns at once."""

    def remove(self, name: str, *, drain: bool = True) -> None:
        """Give up a replica; its programs go on at others. Blocks until it is left.

        Raises:
            ParameterError: it is unknown, or the only one.
        """

    def stop(self, reason: str) -> None:
        """End for good; programs fail with the reason. Returns at once."""

    def fleet_report(self) -> FleetReport:
        """The replicas, those that are drained included."""


class RosterSource(Protocol):
    """Takes a report of one frontend, and says which replicas it should use and which it should leave."""

    def hear(self, held: tuple[str, ...], ready: tuple[str, ...], waiting: dict[str, float]) -> Roster:
        """See `FleetPlan.hear`.

        Raises:
            EngineDeadError: nobody answers at present.
        """

    def leave(self) -> None:
        """Say that this frontend uses no replica any more. Raises nothing."""


class RosterFollower:
    """Follows a roster on a thread of its own, from `start` to `close`.

    Args:
        launcher_of: makes the launcher of a replica.
    """

    def __init__(
        self,
        fleet: FollowingFleet,
        source: RosterSource,
        launcher_of: Callable[[str], Launcher],
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._fleet, self._source, self._launcher_of, self._interval_s = fleet, source, launcher_of, interval_s
        self._is_cut_off = False
        self._leaving: set[str] = set()
        self._is_closing = threading.Event()
        self._following = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="rtlang-roster", daemon=True)

    def start(self) -> None:
        """Begin to follow, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Stop following. Call it before the fleet is closed, and `leave` of the source afterwards."""
        self._is_closing.set()
        if self._thread.ident is not None:
            self._thread.join(10.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take no steps meanwhile; waits for the end of those under way."""
        with self._following:
            yield

    def follow_once(self) -> None:
        """Report the present state, and take the steps that the roster asks for. Does nothing while paused, or while another thread does
        it.
        """
        if self._following.acquire(blocking=False):
            try:
                self._follow_once()
            finally:
                self._following.release()

    def _follow_once(self) -> None:
        replicas = {each.name: each for each in self._fleet.fleet_report().replicas}
        alive = {name for name, each in replicas.items() if each.state != "dead"}
        try:
            roster = self._source.hear(
                held=tuple(replicas),
                ready=tuple(name for name in replicas if replicas[name].state in ("ready", "spare")),
                waiting={name: float(replicas[name].num_waiting_tokens) for name in alive},
            )
        except EngineDeadError as error:
            if not self._is_cut_off:
                logger.warning("the roster of the fleet cannot be read; its replicas stay as they are: %s", error)
            self._is_cut_off = True
            return
        self._is_cut_off = False
        if roster.is_over:
            self._is_closing.set()
            self._fleet.stop(STOPPED)
            self._source.leave()
            return
        for name in roster.used:
            if name not in replicas:
                self._fleet.add(self._launcher_of(name))
        for name in replicas:  # one that gave up but should work is added again by the next round
            if name not in roster.used or name not in alive:
                self._leave(name)

    def _leave(self, name: str) -> None:
        """Give up a replica on a thread of its own, unless that is under way."""
        if name in self._leaving:
            return

        def leave() -> None:
            try:
                self._fleet.remove(name)
            except ParameterError as error:
                logger.debug("the replica %s stays: %s", name, error)
            finally:
                self._leaving.discard(name)

        self._leaving.add(name)
        threading.Thread(target=leave, name=f"rtlang-leave-{name}", daemon=True).start()

    def _run(self) -> None:
        while not self._is_closing.is_set():
            try:
                self.follow_once()
            except Exception:  # the next round tries again
                logger.exception("the fleet could not follow its roster")
            self._is_closing.wait(self._interval_s)


class LocalRoster:
    """The roster of a fleet of one process, which makes the plan itself."""

    def __init__(self, plan: FleetPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan, self._clock = plan, clock

    def hear(self, held: tuple[str, ...], ready: tuple[str, ...], waiting: dict[str, float]) -> Roster:
        """See `RosterSource.hear`."""
        now = self._clock()
        self._plan.hear("here", now, held=held, ready=ready, waiting=waiting)
        self._plan.advance(now)
        return self._plan.roster

    def leave(self) -> None:
        """See `RosterSource.leave`."""
        self._plan.leave("here")
