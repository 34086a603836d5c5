"""The plan of a fleet: which replicas should exist, which take new programs, and which only end their work before they are given up.

Several frontends may use one fleet. Each says regularly which replicas it uses, which are ready and how much work waits there, and is
told the roster. A replica that is to go is taken off the roster first; it ends when no frontend uses it any more. A frontend that has
not been heard of for `frontend_timeout_s` does not count. Without any frontend for `orphan_timeout_s` the fleet ends. A fleet that is
stopped ends once every frontend knows it and has left.

No input or output and no clock: the owner of the plan carries out the changes that `advance` asks for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rtlang.fleet.replicas.scaling import Scaling, ScalingState, wanted_replicas

FRONTEND_TIMEOUT_S = 30.0
ORPHAN_TIMEOUT_S = 600.0
LEAVE_TIMEOUT_S = 5.0
"""Seconds that frontends have to leave a fleet that was stopped."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Replicas that a frontend should use, and those that it should leave. `is_over`: the fleet was stopped, and its frontends end."""

    used: tuple[str, ...]
    draining: tuple[str, ...]
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """Replicas to create and to end. `is_over`: the fleet was stopped or has had no frontend for too long, and has ended."""

    created: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    is_over: bool = False


@dataclass(slots=True)
class _Frontend:
    """What a frontend said last."""

    heard: float
    held: frozenset[str] = frozenset()
    ready: frozenset[str] = frozenset()
    waiting: dict[str, float] = field(default_factory=dict)


class FleetPlan:
    """The plan of one fleet. Not thread-safe.

    Args:
        scaling: the bounds of its size.
        now: seconds of any clock that does not go back, here and in all methods.
        num_replicas: its size at first; the smallest allowed if it is not given.
        names: replicas that exist already, in use.
        orphan_timeout_s: None for a fleet that stays without frontends.
    """

    def __init__(
        self,
        scaling: Scaling,
        now: float,
        *,
        num_replicas: int | None = None,
        names: Iterable[str] = (),
        frontend_timeout_s: float = FRONTEND_TIMEOUT_S,
        orphan_timeout_s: float | None = ORPHAN_TIMEOUT_S,
    ) -> None:
        self.scaling = scaling
        self._frontend_timeout_s, self._orphan_timeout_s = frontend_timeout_s, orphan_timeout_s
        self._used: dict[str, None] = dict.fromkeys(names)  # in the order of their creation
        self._draining: dict[str, float] = {}  # since when
        self._replaced: set[str] = set()  # in use, of before a rolling update
        self._is_replacing = False
        self._frontends: dict[str, _Frontend] = {}
        self._state = ScalingState()
        first = scaling.min_replicas if num_replicas is None else num_replicas
        self._num_wanted = min(max(first, scaling.min_replicas), scaling.max_replicas)
        self._last_heard = now
        self._stopped_at: float | None = None
        numbers = [int(name[1:]) for name in self._used if name[1:].isdigit()]
        self._next_number = max(numbers, default=0) + 1

    @property
    def roster(self) -> Roster:
        """The replicas as they should be used now."""
        return Roster(tuple(self._used), tuple(self._draining), is_over=self.is_stopped)

    @property
    def is_stopped(self) -> bool:
        """Whether the fleet was stopped."""
        return self._stopped_at is not None

    @property
    def is_replacing(self) -> bool:
        """Whether a rolling update is under way."""
        return self._is_replacing

    @property
    def frontends(self) -> tuple[str, ...]:
        """The frontends that were heard of recently, as of the last `advance`."""
        return tuple(self._frontends)

    @property
    def waiting(self) -> dict[str, float]:
        """Tokens that wait at each replica, as a frontend reported it; each replica reports its whole queue to all frontends."""
        found: dict[str, float] = {}
        for frontend in self._frontends.values():
            for name, tokens in frontend.waiting.items():
                found[name] = max(tokens, found.get(name, 0.0))
        return found

    def hear(
        self, frontend: str, now: float, *, held: Collection[str], ready: Collection[str], waiting: Mapping[str, float]
    ) -> Roster:
        """Take the report of a frontend; returns the roster.

        Args:
            held: the replicas that it uses or still leaves, those that load their model included.
            ready: the ones among them that work.
            waiting: tokens that wait at each; numbers that are not finite are left out.
        """
        known = {name: tokens for name, tokens in waiting.items() if math.isfinite(tokens)}
        self._frontends[frontend] = _Frontend(now, frozenset(held), frozenset(ready), known)
        self._last_heard = now
        return self.roster

    def leave(self, frontend: str) -> None:
        """Forget a frontend, which uses no replica any more."""
        self._frontends.pop(frontend, None)

    def scale(self, scaling: Scaling) -> None:
        """Change the bounds of the size."""
        self.scaling, self._state = scaling, ScalingState()
        self._num_wanted = min(max(self._num_wanted, scaling.min_replicas), scaling.max_replicas)

    def stop(self, now: float) -> None:
        """Stop the fleet: its frontends are told, and it ends when they have left."""
        self._stopped_at = now if self._stopped_at is None else self._stopped_at

    def adopt(self, names: Iterable[str]) -> None:
        """Take these replicas for those in use, which somebody has exchanged."""
        self._used = dict.fromkeys(names)
        self._replaced.intersection_update(self._used)

    def replace_all(self) -> None:
        """Begin a rolling update: every replica in use is replaced by a new one, one at a time."""
        self._replaced.update(self._used)
        self._is_replacing = True

    def advance(self, now: float, *, has_room: bool = True) -> Changes:
        """Take the next steps of the plan; call it every second or so.

        Args:
            has_room: whether the machines have room for one replica more than is wanted. A rolling update starts a new replica before it
                gives up an old one if there is, and after it otherwise.
        """
        for name, frontend in list(self._frontends.items()):
            if now - frontend.heard > self._frontend_timeout_s:
                del self._frontends[name]
        if self._is_over(now):
            ended = (*self._used, *self._draining)
            self._used.clear()
            self._draining.clear()
            return Changes(ended=ended, is_over=True)
        ended = tuple(name for name, since in self._draining.items() if self._is_left(name, since))
        for name in ended:
            del self._draining[name]
        ready = {name for frontend in self._frontends.values() for name in frontend.ready}
        num_ready = sum(name in ready for name in self._used)
        num_starting = len(self._used) - num_ready
        self._replaced.intersection_update(self._used)
        if self._is_replacing and not (self._replaced or self._draining or len(self._used) < self._size):
            self._is_replacing = False
        if self._is_replacing:
            while len(self._used) > self._size + 1:  # the bounds have changed meanwhile
                self._drain(self._least_useful(ready, self._replaced), now)
            created = self._create(self._size - 1 - len(self._used))
            return Changes(created or self._replace(num_starting, now, has_room=has_room), ended)
        if self._frontends:
            num_ready = max(0, num_ready - self.scaling.num_spares)
            total = sum(self.waiting.get(name, 0.0) for name in self._used)
            self._num_wanted, self._state = wanted_replicas(
                self.scaling,
                self._state,
                now=now,
                num_ready=num_ready,
                num_starting=max(len(self._used), self._size) - self.scaling.num_spares - num_ready,
                waiting=total,
            )
        while len(self._used) > self._size:
            self._drain(self._least_useful(ready), now)
        return Changes(self._create(self._size - len(self._used)), ended)

    @property
    def _size(self) -> int:
        """The number of replicas that are wanted, spares included."""
        return self._num_wanted + self.scaling.num_spares

    def _is_over(self, now: float) -> bool:
        if self._stopped_at is not None and (not self._frontends or now - self._stopped_at > LEAVE_TIMEOUT_S):
            return True
        orphan_s = self._orphan_timeout_s
        return not self._frontends and orphan_s is not None and now - self._last_heard > orphan_s

    def _replace(self, num_starting: int, now: float, *, has_room: bool) -> tuple[str, ...]:
        """One step of a rolling update; returns the replicas to create."""
        if num_starting or self._draining:
            return ()
        num_missing = self._size - len(self._used)
        if num_missing > 0:
            return self._create(num_missing)
        is_full = not has_room and len(self._used) > 1  # a fleet of one always starts the new one first
        if num_missing < 0 or is_full:
            oldest = next((name for name in self._used if name in self._replaced), None)
            if oldest is not None:
                self._drain(oldest, now)
            return ()
        return self._create(1)

    def _least_useful(self, ready: Collection[str], replaced: Collection[str] = ()) -> str:
        """The replica in use to give up first: one that is not ready, then one that will be replaced, then the one with the least work."""
        waiting = self.waiting
        return min(self._used, key=lambda name: (name in ready, name not in replaced, waiting.get(name, 0.0)))

    def _drain(self, name: str, now: float) -> None:
        del self._used[name]
        self._replaced.discard(name)
        self._draining[name] = now

    def _create(self, count: int) -> tuple[str, ...]:
        created = tuple(f"r{self._next_number + index}" for index in range(count))
        self._next_number += len(created)
        self._used.update(dict.fromkeys(created))
        return created

    def _is_left(self, name: str, since: float) -> bool:
        """Whether every frontend knows that the replica is to go, and has left it."""
        return all(each.heard > since and name not in each.held for each in self._frontends.values())
