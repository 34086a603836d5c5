"""Responses that run without their client: `background: true`.

A run keeps the events of its stream, encoded, so that clients can read it from any event on, also after its end, for as long as memory
allows. Each principal has a bounded number of unfinished runs, and a bounded share of the memory of all runs. Owned by the server's event
loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from rtlang.contract.events import Event
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.errors import HttpError, draining_error
from rtlang.serve.http.events.asked_events import asked_events
from rtlang.serve.http.events.sse import DONE, sse_event
from rtlang.serve.http.response_turn import ResponseTurn
from rtlang.serve.responses.output_events import Chunk
from rtlang.serve.service import StreamService

MAX_RUNNING = 64
"""Unfinished runs of one principal."""
MAX_RUNS = 256
"""Runs of one principal whose events are kept, finished ones included."""
MAX_EVENT_BYTES = 16 << 20
"""Bytes of the events of one principal's runs."""
_RETRY_S = 5.0


class BackgroundRun:
    """One response that runs by itself.

    Attributes:
        events: the encoded events of the stream so far; the place of an event is its number. Empty once `is_dropped`.
        is_dropped: the events are no longer kept.
        status: of the response.
        num_bytes: bytes of the events.
    """

    def __init__(
        self,
        service: StreamService,
        turn: ResponseTurn,
        principal: Principal,
        queued: dict[str, Any],
        begun: list[bytes],
    ) -> None:
        """Begin to run. `queued` is the response before, `begun` the encoded events before the first output."""
        self._service, self._principal, self.response_id = service, principal, str(queued["id"])
        self._turn: ResponseTurn | None = turn  # until the end
        self.events: list[bytes] = []
        self.is_dropped = False
        self.status = "queued"
        self.num_bytes = 0
        self._changed = asyncio.Event()
        self._keep(begun)
        self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    @property
    def is_running(self) -> bool:
        """Whether the response has not ended."""
        return self._turn is not None

    @property
    def num_request_bytes(self) -> int:
        """Size of the request as JSON text; 0 at the end, when only the store has it."""
        return 0 if self._turn is None else self._turn.given.num_bytes

    def response(self) -> dict[str, Any]:
        """The response as it is now, while it runs."""
        assert self._turn is not None
        return self._turn.writer.snapshot(self.status)

    @property
    def response_bytes(self) -> int:
        """Approximate size as JSON text, of its request and its events together."""
        return self.num_request_bytes + self.num_bytes

    async def cancel(self) -> None:
        """End the response, if it runs, and wait for its end."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._turn is not None:  # it was cancelled before it began
            self._end(self._turn, self._turn.writer.snapshot("cancelled"))

    def drop_events(self) -> None:
        """Forget the events. Readers of the stream get an error."""
        self.events, self.is_dropped, self.num_bytes = [], True, 0
        self._wake()

    async def stream(self, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        """The encoded events after the one with the number `after`; -1 for all.

        Raises:
            HttpError: the events are no longer kept.
        """
        at = after + 1
        while True:
            if self.is_dropped:
                message = "the events of this response are no longer kept; poll the response instead"
                raise HttpError(400, message, code="events_dropped", param="stream")
            changed, ended = self._changed, not self.is_running
            if at < len(self.events):
                group = self.events[at:]
                at = len(self.events)
                yield group
            elif ended:
                yield (DONE,)
                return
            else:
                await changed.wait()

    async def _run(self) -> None:
        final: dict[str, Any] | None = None
        turn = self._turn
        assert turn is not None
        try:
            async with contextlib.aclosing(asked_events(self._service, turn.asked, self._principal)) as batches:
                async for events in batches:
                    self.status = "in_progress"
                    await turn.tokens.load(events)
                    write = partial(_encoded_events, turn, events)
                    more_s = turn.heading_s(events)
                    encoded, last = await self._service.encode(self._principal, events, write, more_s=more_s)
                    self._keep(encoded)
                    final = last or final
        except asyncio.CancelledError:
            final = turn.writer.snapshot("cancelled")
        except Exception as error:
            final = await self._failed(turn, error)
        assert final is not None, "a graph that ended has finished its generation"
        self._end(turn, final)

    def _end(self, turn: ResponseTurn, final: dict[str, Any]) -> None:
        self._turn, self.status = None, final["status"]
        if final["status"] in ("cancelled", "failed"):  # the writer stores the others
            self._service.responses.store.put(self._principal.name, turn.record(final))
        self._wake()

    async def _failed(self, turn: ResponseTurn, error: BaseException) -> dict[str, Any]:
        """The response with an error."""
        chunk = turn.failure(error)
        write = partial(_encoded, chunk)
        self._keep([await self._service.encode(self._principal, (), write, more_s=turn.given.heading_s)])
        found: dict[str, Any] = chunk["response"]
        return found

    def _keep(self, encoded: list[bytes]) -> None:
        if not self.is_dropped:
            self.events += encoded
            self.num_bytes += sum(map(len, encoded))
            if self.num_bytes > MAX_EVENT_BYTES:
                self.drop_events()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class BackgroundRuns:
    """The background responses of a server."""

    def __init__(self, service: StreamService) -> None:
        self._service = service
        self._runs: dict[str, dict[str, BackgroundRun]] = {}  # of each principal, the oldest first

    async def start(self, turn: ResponseTurn, principal: Principal) -> tuple[BackgroundRun, dict[str, Any]]:
        """Run a response. Returns also what it is before.

        Raises:
            HttpError: the principal has too many unfinished ones (429), or the server is shutting down (503).
        """
        if self._service.is_draining:
            raise draining_error(self._service.config.drain_timeout_s)
        begin = partial(_begun, turn)
        queued, begun = await self._service.encode(principal, (), begin, more_s=turn.given.heading_s)
        runs = self._runs.setdefault(principal.name, {})
        if sum(run.is_running for run in runs.values()) >= MAX_RUNNING:
            message = f"{MAX_RUNNING} background responses of this client are unfinished"
            raise HttpError(429, message, code="rate_limit_exceeded", param="background", retry_after=_RETRY_S)
        self._trim(runs)
        run = BackgroundRun(self._service, turn, principal, queued, begun)
        self._service.responses.store.put(principal.name, turn.record(queued))
        runs[run.response_id] = run
        return run, queued

    def get(self, principal: Principal, response_id: str) -> BackgroundRun | None:
        """A run of a principal, unfinished or still kept; None if there is none."""
        return self._runs.get(principal.name, {}).get(response_id)

    def forget(self, principal: Principal, response_id: str) -> None:
        """Drop a run that has ended."""
        runs = self._runs.get(principal.name, {})
        runs.pop(response_id, None)
        if not runs:
            self._runs.pop(principal.name, None)

    def _trim(self, runs: dict[str, BackgroundRun]) -> None:
        """Make room for one more run: finished runs are dropped, the oldest first, then the events of running ones."""
        for response_id in [each for each, run in runs.items() if not run.is_running]:
            if len(runs) < MAX_RUNS and _num_bytes(runs) <= MAX_EVENT_BYTES:
                return
            del runs[response_id]
        for run in runs.values():
            if _num_bytes(runs) <= MAX_EVENT_BYTES:
                return
            run.drop_events()


def _num_bytes(runs: dict[str, BackgroundRun]) -> int:
    return sum(run.num_bytes for run in runs.values())


def _encoded(chunk: Chunk) -> bytes:
    return sse_event(chunk, event=chunk["type"])


def _encoded_events(turn: ResponseTurn, events: Sequence[Event]) -> tuple[list[bytes], dict[str, Any] | None]:
    """The encoded events of the stream for events of the graph, and the response if they end it."""
    chunks = [chunk for event in events for chunk in turn.writer.chunks(event)]
    ends = [chunk["response"] for chunk in chunks if chunk["type"] in ("response.completed", "response.incomplete")]
    return [_encoded(chunk) for chunk in chunks], ends[-1] if ends else None


def _begun(turn: ResponseTurn) -> tuple[dict[str, Any], list[bytes]]:
    """A response before it runs, and the encoded events before its first output."""
    return turn.writer.snapshot("queued"), [_encoded(chunk) for chunk in turn.writer.queue()]
