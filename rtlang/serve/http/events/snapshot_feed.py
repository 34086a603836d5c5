"""Snapshots of the engine for HTTP clients: taken and encoded once for all who watch, so that watchers load neither engine nor server.

A sample is taken on another thread, one at a time: it waits for the engine's current step, and the event loop must not. Those who ask
within a short time share it. Streams with one interval are served together: each change is encoded once for all that have seen the same
before, and written to one after the other, beginning with another one each time. A reader whose connection takes no bytes is passed over;
later it gets the newest sample, with all steps that it has missed and that are still kept.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.fleet_report import ReportsFleet
from rtlang.contract.service.snapshot import MAX_STEPS, EngineSnapshot, Watchable, plain_snapshot, seen_by
from rtlang.contract.service.target import Target
from rtlang.serve.http.events.direct_events import DirectWriter

MIN_INTERVAL_S = 0.1
"""A sample is used for so long."""
_TURN_READERS = 64  # served in one turn of the event loop: about 2 ms


@dataclass(frozen=True, slots=True)
class Sample:
    """An encoded snapshot.

    Attributes:
        head: JSON object of everything but the steps, without its closing brace.
        steps: number and JSON of each recorded step.
        sessions: JSON list of the sessions, with the time of the snapshot.
    """

    head: str
    steps: tuple[tuple[int, str], ...]
    sessions: str = ""
    _encoded: dict[int, bytes] = field(default_factory=dict, compare=False)

    def json_after(self, step: int) -> bytes:
        """The JSON of the snapshot, with the steps after number `step`. Encoded once."""
        found = self._encoded.get(step)
        if found is None:
            found = self._encoded[step] = _snapshot_json(self, step)
        return found

    @property
    def last_step(self) -> int:
        """The number of the last recorded step; 0 if there is none."""
        return self.steps[-1][0] if self.steps else 0

    @property
    def lasting(self) -> str:
        """The head without its first two fields, which change without a step: the time, and the memory of the process."""
        return self.head.split(",", 2)[-1]


class FeedReader:
    """One stream of snapshots.

    Args:
        interval_s: seconds between two snapshots, at least.
        direct: writes while `batches` waits.

    Attributes:
        due: when the reader gets the next snapshot, on the clock of the loop.
    """

    def __init__(self, interval_s: float, direct: DirectWriter) -> None:
        self.interval_s, self.due = interval_s, 0.0
        self._direct = direct
        self._last_step, self._lasting = 0, ""
        self._replicas: tuple[str, ...] = ()
        self._newest: tuple[Sample, tuple[str, ...]] | None = None  # that it has not seen
        self._arrived = asyncio.Event()
        self._is_waiting = self._has_ended = False

    def offer(self, sample: Sample, replicas: tuple[str, ...]) -> None:
        """The present state. Nothing is sent without news."""
        if sample.last_step < self._last_step:  # a new engine
            self._last_step = 0
        is_known = sample.last_step == self._last_step and sample.lasting == self._lasting
        if is_known and replicas == self._replicas:
            return
        if self._is_waiting and self._newest is None and self._direct.is_ready:
            self._direct.write(self._event(sample, replicas))
        else:
            self._newest = sample, replicas
            self._arrived.set()

    def end(self) -> None:
        """Nothing follows."""
        self._has_ended = True
        self._arrived.set()

    async def groups(self) -> AsyncGenerator[Sequence[bytes], None]:
        """The events that were not written directly. Ask for the next group only when the last one is written."""
        while True:
            self._is_waiting = True
            await self._arrived.wait()
            self._is_waiting = False
            self._arrived.clear()
            newest, self._newest = self._newest, None
            if newest is not None:
                yield (self._event(*newest),)
            if self._has_ended:
                return

    def _event(self, sample: Sample, replicas: tuple[str, ...]) -> bytes:
        data = b"event: snapshot\ndata: " + sample.json_after(self._last_step) + b"\n\n"
        if replicas != self._replicas:
            data = f"event: replicas\ndata: {json.dumps(replicas)}\n\n".encode() + data
        self._last_step, self._lasting, self._replicas = sample.last_step, sample.lasting, replicas
        return data


Start = Callable[[Callable[[], Sample | None]], "asyncio.Future[Sample | None]"]


class SnapshotFeed:
    """The snapshots of `target` as `principal` may see them. Owned by the server's event loop.

    Args:
        start: runs a function on a thread.
        replica: the name of a replica of a target that `ReportsFleet`; None for the first that is ready.
        is_ending: tells that no stream goes on.
    """

    def __init__(
        self,
        target: Target,
        start: Start,
        principal: Principal = LOCAL,
        replica: str | None = None,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        self._target, self._start, self.principal, self._replica = target, start, principal, replica
        self._is_ending = is_ending
        self._latest: Sample | None = None
        self._taken_at = float("-inf")
        self._running: asyncio.Future[Sample | None] | None = None
        self._readers: dict[FeedReader, None] = {}  # the next one that is served first
        self._publishing: asyncio.Task[None] | None = None
        self._has_changed = asyncio.Event()  # `_readers`

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

    async def changes(self, interval_s: float, direct: DirectWriter) -> AsyncGenerator[Sequence[bytes], None]:
        """Events with the snapshot whenever something has changed, at most once per interval; each recorded step is in one of them.

        The names of the replicas come first, and whenever they change. Ends when the feed ends, and when there is no engine to watch.
        """
        reader = FeedReader(interval_s, direct)
        self._readers[reader] = None
        self._has_changed.set()
        if self._publishing is None:
            self._publishing = asyncio.create_task(self._publish())
        try:
            async for group in reader.groups():
                yield group
        finally:
            self._readers.pop(reader, None)
            self._has_changed.set()

    async def _publish(self) -> None:
        """Serve the readers for as long as there are any."""
        loop = asyncio.get_running_loop()
        try:
            while self._readers and not self._is_ending():
                self._has_changed.clear()
                sample = None
                with suppress(EngineDeadError):
                    sample = await self.sample()
                if sample is None:
                    break
                await self._serve(sample, loop.time())
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min((reader.due for reader in self._readers), default=0.0)):
                        await self._has_changed.wait()
        finally:
            for reader in tuple(self._readers):
                reader.end()
            self._publishing = None

    async def _serve(self, sample: Sample, now: float) -> None:
        """Offer a sample to the readers that are due."""
        target = self._target
        names = tuple(each.name for each in target.fleet_report().replicas) if isinstance(target, ReportsFleet) else ()
        due = [reader for reader in self._readers if reader.due <= now]
        for number, reader in enumerate(due, 1):
            reader.offer(sample, names)
            # On a common grid, so that all readers with this interval have seen the same.
            reader.due = (math.floor(now / reader.interval_s) + 1) * reader.interval_s if reader.interval_s else now
            if number % _TURN_READERS == 0:
                await asyncio.sleep(0)
        if due and (first := due[0]) in self._readers:
            del self._readers[first]
            self._readers[first] = None

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
        sessions = {"object": "list", "taken_s": plain["taken_s"], "data": plain["sessions"]}
        return Sample(_json(plain)[:-1], (*known, *new)[-MAX_STEPS:], _json(sessions))

    def _snapshot(self, after_step: int) -> EngineSnapshot | None:
        if isinstance(self._target, ReportsFleet):
            return self._target.snapshot(after_step=after_step, replica=self._replica)
        return self._target.snapshot(after_step=after_step) if isinstance(self._target, Watchable) else None

    def _taken(self, done: asyncio.Future[Sample | None]) -> None:
        self._running = None
        if not done.cancelled() and done.exception() is None:
            self._latest = done.result()
            self._taken_at = asyncio.get_running_loop().time()


def _snapshot_json(sample: Sample, step: int) -> bytes:
    steps = ",".join(text for number, text in sample.steps if number > step)
    return f'{sample.head},"steps":[{steps}]}}'.encode()


def _json(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
