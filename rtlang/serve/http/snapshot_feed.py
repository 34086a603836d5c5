"""Snapshots of the engine for HTTP clients: one sample serves all who ask within a short time, so watchers do not load the engine.

A sample is taken and encoded on another thread, one at a time: it waits for the engine's current step, and the event loop must not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.fleet_report import ReportsFleet
from rtlang.contract.service.snapshot import MAX_STEPS, EngineSnapshot, Watchable, plain_snapshot, seen_by
from rtlang.contract.service.target import Target

MIN_INTERVAL_S = 0.1
"""A sample is used for so long."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An encoded snapshot.

    Attributes:
        head: JSON object of everything but the steps, without its closing brace.
        steps: number and JSON of each recorded step.
    """

    head: str
    steps: tuple[tuple[int, str], ...]

    def json_after(self, step: int) -> str:
        """The JSON of the snapshot, with the steps after number `step`."""
        steps = ",".join(text for number, text in self.steps if number > step)
        return f'{self.head},"steps":[{steps}]}}'

    @property
    def last_step(self) -> int:
        """The number of the last recorded step; 0 if there is none."""
        return self.steps[-1][0] if self.steps else 0


Start = Callable[[Callable[[], Sample | None]], "asyncio.Future[Sample | None]"]


class SnapshotFeed:
    """The snapshots of `target` as `principal` may see them. Owned by the server's event loop.

    Args:
        start: runs a function on a thread.
        replica: the name of a replica of a target that `ReportsFleet`; None for the first that is ready.
    """

    def __init__(self, target: Target, start: Start, principal: Principal = LOCAL, replica: str | None = None) -> None:
        self._target, self._start, self.principal, self._replica = target, start, principal, replica
        self._latest: Sample | None = None
        self._taken_at = float("-inf")
        self._running: asyncio.Future[Sample | None] | None = None

    async def sample(self) -> Sample | None:
        """A snapshot that is at most MIN_INTERVAL_S old; None if the target has no engine to watch.

        Raises:
            EngineDeadError: the engine has stopped.
        """
        loop = asyncio.get_running_loop()
        if loop.time() - self._taken_at < MIN_INTERVAL_S:
            return self._latest
        if self._running is None:
            self._running = self._start(self._take)
            self._running.add_done_callback(self._taken)
        return await asyncio.shield(self._running)

    async def changes(
        self, interval_s: float, is_ending: Callable[[], bool], beside: Callable[[], object] = lambda: None
    ) -> AsyncGenerator[str, None]:
        """The JSON of a snapshot whenever something has changed, at most once per interval; each recorded step is in one of them.

        A change of what `beside` returns counts as well. Ends when `is_ending` says so, and when there is no engine to watch.

        Raises:
            EngineDeadError: the engine has stopped.
        """
        loop = asyncio.get_running_loop()
        last_step, head, known = 0, "", beside()
        while not is_ending():
            started = loop.time()
            sample = await self.sample()
            if sample is None:
                return
            if sample.last_step < last_step:  # a new engine
                last_step = 0
            now = beside()
            if _lasting(sample.head) != _lasting(head) or sample.last_step > last_step or now != known:
                known = now
                yield sample.json_after(last_step)
                last_step, head = max(last_step, sample.last_step), sample.head
            await asyncio.sleep(max(0.0, started + interval_s - loop.time()))

    def _take(self) -> Sample | None:
        """Take and encode a sample; runs on another thread."""
        known = () if self._latest is None else self._latest.steps
        snapshot = self._snapshot(known[-1][0] if known else 0)
        if snapshot is not None and known and snapshot.num_steps < known[-1][0]:  # a new engine counts from the start
            known, snapshot = (), self._snapshot(0)
        if snapshot is None:
            return None
        plain = plain_snapshot(seen_by(snapshot, self.principal))
        new = tuple((step["number"], _json(step)) for step in plain.pop("steps"))
        return Sample(_json(plain)[:-1], (*known, *new)[-MAX_STEPS:])

    def _snapshot(self, after_step: int) -> EngineSnapshot | None:
        if isinstance(self._target, ReportsFleet):
            return self._target.snapshot(after_step=after_step, replica=self._replica)
        return self._target.snapshot(after_step=after_step) if isinstance(self._target, Watchable) else None

    def _taken(self, done: asyncio.Future[Sample | None]) -> None:
        self._running = None
        if not done.cancelled() and done.exception() is None:
            self._latest = done.result()
            self._taken_at = asyncio.get_running_loop().time()


def _json(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _lasting(head: str) -> str:
    """A snapshot without its first two fields, which change without a step: the time, and the memory of the process."""
    return head.split(",", 2)[-1]
