"""The responses of one connection of WebSocket mode, in the lanes that its client names.

A lane has one response at a time, in the order in which they were asked for; a client that names no lanes has one. Up to MAX_RUNNING lanes
run side by side. Each lane keeps its last response for the next one to continue, also with `store: false`, until a response of the lane
fails. At most MAX_QUEUED requests wait, of together at most one message of the greatest length.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rtlang.contract.errors import OverloadError
from rtlang.serve.http.errors import HttpError
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.websocket_mode.frames import Create
from rtlang.serve.websocket_mode.run import ResponseRun

logger = logging.getLogger(__name__)

MAX_LANES = 32
"""Lanes that the client of one connection may name."""
MAX_RUNNING = 16
"""Responses of one connection that run at the same time."""
MAX_QUEUED = 64
"""Requests of one connection that wait for an earlier one."""
_RETRY_S = 1.0


@dataclass(slots=True)
class _Lane:
    """A lane. `last`: the id of its last response, if the connection keeps it."""

    name: str | None
    waiting: deque[Create] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    last: str | None = None


class Lanes:
    """Runs the responses of one connection. Used on the server's event loop.

    Args:
        run: runs one response.
        on_idle: called when the last response has ended.
        on_fault: called when a bug ended a lane.
    """

    def __init__(
        self, run: ResponseRun, max_bytes: int, on_idle: Callable[[], None], on_fault: Callable[[], None]
    ) -> None:
        self._run, self._max_bytes, self._on_idle, self._on_fault = run, max_bytes, on_idle, on_fault
        self._lanes: dict[str | None, _Lane] = {}
        self._places = asyncio.Semaphore(MAX_RUNNING)
        self._num_queued = self._num_queued_bytes = 0
        self._has_ended = False

    @property
    def num_running(self) -> int:
        """Number of lanes with a response that has not ended."""
        return sum(lane.task is not None for lane in self._lanes.values())

    def add(self, asked: Create) -> None:
        """Run a response when it is its turn.

        Raises:
            HttpError: the client names too many lanes.
            OverloadError: too many requests wait.
        """
        lane = self._lanes.get(asked.lane)
        if lane is None:
            if asked.lane is not None and len(self._lanes.keys() - {None}) >= MAX_LANES:
                message = f"this connection has {MAX_LANES} stream_ids, which is its maximum; use one of them again"
                raise HttpError(400, message, code="websocket_stream_limit_reached", param="stream_id")
            lane = self._lanes[asked.lane] = _Lane(asked.lane)
        is_free = lane.task is None
        if not is_free and (
            self._num_queued >= MAX_QUEUED or self._num_queued_bytes + asked.num_bytes > self._max_bytes
        ):
            message = f"{self._num_queued} requests wait on this connection; wait for a response to end"
            raise OverloadError(message, _RETRY_S)
        lane.waiting.append(asked)
        self._num_queued += 1
        self._num_queued_bytes += asked.num_bytes
        if is_free:
            lane.task = asyncio.create_task(self._work(lane))

    def end(self) -> None:
        """Cancel all responses and forget the kept ones. Idempotent."""
        if self._has_ended:
            return
        self._has_ended = True
        for lane in self._lanes.values():
            lane.waiting.clear()
            self._keep(lane, None)
            if lane.task is not None:
                lane.task.cancel()
        self._num_queued = self._num_queued_bytes = 0

    async def _work(self, lane: _Lane) -> None:
        try:
            while lane.waiting:
                async with self._places:
                    asked = lane.waiting.popleft()
                    self._num_queued -= 1
                    self._num_queued_bytes -= asked.num_bytes
                    self._keep(lane, await self._run(asked))
        except Exception:
            logger.exception("a lane of a connection failed")
            self._on_fault()
        finally:
            lane.task = None
            if not self.num_running:
                self._on_idle()

    def _keep(self, lane: _Lane, done: StoredResponse | None) -> None:
        """Keep a response as the last one of a lane, in place of the one before."""
        if lane.last is not None:
            self._run.forget(lane.last)
        lane.last = None
        if done is not None and not self._has_ended and self._run.keep(done):
            lane.last = done.response["id"]
