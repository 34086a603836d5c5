"""The events of one running program, as they come.

The body runs in a thread of its own (a coroutine body in the event loop, where one runs); the runtime's thread puts events into a queue,
and whoever iterates turns them into typed events per variable.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import Text
from rtlang.contract.params import SamplingParams
from rtlang.contract.target import Target
from rtlang.lang.body import Body
from rtlang.lang.execution.interruptible_condition import InterruptibleCondition
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.run import OnError, check_on_error, resolve_runtime, settle
from rtlang.lang.execution.session import Session
from rtlang.lang.meta import Meta
from rtlang.lang.state import State


@dataclass(frozen=True, slots=True)
class TextEvent:
    """More text of a variable. Forks that share a name differ in `node_id`, texts of one node (n > 1) in `choice`."""

    name: str | None
    text: str
    node_id: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ValueEvent:
    """A variable is there: its parsed value, its text and its meta."""

    name: str | None
    value: Any
    text: str
    meta: Meta
    node_id: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """A variable failed, or its text does not read as its type."""

    name: str | None
    error: RtlangError
    node_id: int


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The program has ended."""

    result: Result


StreamEvent = TextEvent | ValueEvent | ErrorEvent | EndEvent


class Stream:
    """A program that runs, and its events. Iterate once, with `for` or `async for`; the last event is an `EndEvent`.

    `close` (or leaving a `with` block) cancels what still runs. Leaving a loop early does not.
    """

    def __init__(
        self,
        body: Body,
        runtime: Target | None,
        *,
        params: SamplingParams | None,
        priority: int,
        deadline_s: float | None,
        on_error: OnError,
    ) -> None:
        check_on_error(on_error)
        body.check_complete()
        self._on_error: OnError = on_error
        self._session = Session(
            resolve_runtime(runtime),
            is_async=body.is_async,
            params=params,
            priority=priority,
            deadline_s=deadline_s,
            on_event=self._put,
            on_end=lambda: self._put(None),
        )
        self._state = State(self._session.recording)
        self._bell = InterruptibleCondition()
        self._raw: deque[Event | None] = deque()
        self._ready: deque[StreamEvent] = deque()
        self._sleeper: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self._returned: Any = None
        self._error: BaseException | None = None
        self._is_body_done = False
        self._result: Result | None = None
        self._is_over = False
        self._task = self._start(body)

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._is_over:
                raise StopIteration
            with self._session.ended_by_errors():  # Ctrl-C while waiting
                self._bell.wait(self._has_news, self._session.remaining_s())
            self._session.expire()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        loop = asyncio.get_running_loop()
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._is_over:
                raise StopAsyncIteration
            future: asyncio.Future[None] = loop.create_future()
            with self._bell.lock:
                if self._has_news():
                    continue
                self._sleeper = (loop, future)
            await asyncio.wait((future,), timeout=self._session.remaining_s())
            self._session.expire()

    def text(self, name: str) -> Iterator[str]:
        """The pieces of one variable's text, as they come."""
        for event in self:
            if isinstance(event, TextEvent) and event.name == name:
                yield event.text

    async def atext(self, name: str) -> AsyncIterator[str]:
        """`text` for coroutines."""
        async for event in self:
            if isinstance(event, TextEvent) and event.name == name:
                yield event.text

    def result(self) -> Result:
        """The result; waits for the end, dropping events not yet taken. Raises as the iteration does."""
        for _ in self:
            pass
        assert self._result is not None
        return settle(self._result, self._on_error)

    async def aresult(self) -> Result:
        """`result` for coroutines."""
        async for _ in self:
            pass
        assert self._result is not None
        return settle(self._result, self._on_error)

    def close(self) -> None:
        """Cancel what still runs. Idempotent."""
        self._session.cancel()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _start(self, body: Body) -> object:
        if body.is_async:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                work = lambda: asyncio.run(self._work_async(body))  # noqa: E731
            else:
                return loop.create_task(self._work_async(body))
        else:
            work = lambda: self._work(body)  # noqa: E731
        thread = threading.Thread(target=work, name="rtlang-stream", daemon=True)
        thread.start()
        return thread

    def _work(self, body: Body) -> None:
        try:
            with self._session.ended_by_errors():
                self._returned = body.call(self._state)
                self._session.finish()
        except BaseException as error:
            self._error = error
        self._body_done()

    async def _work_async(self, body: Body) -> None:
        try:
            with self._session.ended_by_errors():
                self._returned = await body.call_async(self._state)
                await self._session.finish_async()
        except asyncio.CancelledError as error:
            self._error = error
            self._body_done()
            raise
        except BaseException as error:
            self._error = error
        self._body_done()

    def _body_done(self) -> None:
        self._is_body_done = True
        self._put(None)

    def _put(self, event: Event | None) -> None:
        with self._bell.lock:
            if event is not None:
                self._raw.append(event)
            self._bell.ring()
            sleeper, self._sleeper = self._sleeper, None
        if sleeper is not None:
            loop, future = sleeper
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:  # the loop is closed: nobody iterates there any more
                return

    def _has_news(self) -> bool:
        return bool(self._raw) or self._has_ended()

    def _has_ended(self) -> bool:
        return self._is_body_done and self._session.final is not None

    def _next(self) -> StreamEvent | None:
        """The next event that is there; sets `_is_over` behind the last one."""
        if self._is_over:
            return None
        while not self._ready:
            has_ended = self._has_ended()
            with self._bell.lock:
                raw = self._raw.popleft() if self._raw else None
            if raw is not None:
                self._ready.extend(self._translate(raw))
            elif has_ended:
                self._is_over = True
                result = Result(self._session, self._state, self._returned, self._error)
                self._result = result
                return EndEvent(settle(result, self._on_error))
            else:
                return None
        return self._ready.popleft()

    def _translate(self, event: Event) -> list[StreamEvent]:
        recording = self._session.recording
        match event:
            case TextDelta():
                node = recording.nodes[event.node_id]
                name = None if isinstance(node, Text) else node.name
                return [TextEvent(name, event.text, event.node_id, event.choice)]
            case NodeFinished():
                found: list[StreamEvent] = []
                for choice, completion in enumerate(event.completions):
                    value = recording.read(event.node_id, choice)
                    if isinstance(value, RtlangError):
                        found.append(ErrorEvent(event.name, value, event.node_id))
                        continue
                    meta = recording.meta_of(event.node_id, choice)
                    found.append(ValueEvent(event.name, value, completion.text, meta, event.node_id, choice))
                return found
            case NodeFailed():
                if isinstance(recording.nodes[event.node_id], Text):
                    return []
                return [ErrorEvent(event.name, recording.root_error(event.node_id, event.error), event.node_id)]
            case _:
                return []


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
