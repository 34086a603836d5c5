"""Streams the events of a running program.

The body runs in its own thread (a coroutine body in the running event loop, if any); the runtime's thread puts events into a queue, and
iteration converts them into typed events per variable.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

from rtlang.contract.errors import CheckError, RtlangError, ValueParseError
from rtlang.contract.events import Event, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.growing_json import JsonPath, Path
from rtlang.contract.request_graph import Node, Text
from rtlang.lang.execution.program_run import ProgramRun
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.run import origin_of, resolve_runtime, settle
from rtlang.lang.execution.stream_names import StreamNames
from rtlang.lang.lazy_values.static_types import R_co
from rtlang.lang.partials.partial_object import PartialObject
from rtlang.lang.program_state.body import Body
from rtlang.lang.recordings.meta import Meta
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.views.live_display import LiveDisplay, live_display


@dataclass(frozen=True, slots=True)
class TextEvent:
    """New text of a variable. Text of a generation with checks comes when it is accepted.

    Attributes:
        path: the path of the node, such as `fork[1]/tip`, or `answer[1]` for the second of n completions. It tells apart what has the
            same name.
    """

    name: str | None
    text: str
    node_id: int
    choice: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class AttemptEvent:
    """A generation with checks has written more of an attempt, or its checks have ended.

    Attributes:
        path: of the attempt: that of the generation, and for repairs `:repair[1]`, ... after it.
        text: new text of the attempt; empty when the checks have ended.
        is_accepted: what the checks say; None before.
        message: why they refused the attempt.
    """

    name: str | None
    path: str
    text: str
    node_id: int
    is_accepted: bool | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningEvent:
    """New text of the reasoning before a variable (`gen(reasoning=...)`), its marks included. Its path is like `answer:thought`."""

    name: str | None
    text: str
    node_id: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class PartialEvent:
    """A variable written as JSON has grown: some values inside it became final, or the string at the end grew.

    A final value equals the same place of the whole value: a number is final only when the character after it is known.
    Values inside types that may change them (validators, unions of several objects, sets) become final with the whole.

    Attributes:
        final_paths: places that became final with this event, inner places first: `("address", "city")`, `("items", 0)`. The
            path of the whole value is empty.
        growing: the place of the string that is being written; None if the text does not end inside one.
        added: the text that this event added to it, escapes resolved.
        path: the path of the node, as of a `TextEvent`.
    """

    name: str | None
    final_paths: tuple[Path, ...]
    growing: Path | None
    added: str
    node_id: int
    choice: int
    path: str
    _object: PartialObject = field(repr=False, compare=False)
    _places: tuple[JsonPath, ...] = field(repr=False, compare=False)
    _length: int = field(repr=False, compare=False)

    @property
    def final(self) -> dict[Path, Any]:
        """The values that became final with this event by their paths, parsed to the declared types when this is read."""
        found: dict[Path, Any] = {}
        for place in self._places:
            with suppress(ValueError):  # the whole text is invalid then, and an `ErrorEvent` follows
                found[place.path] = self._object.value_at(place)
        return found

    @property
    def value(self) -> Any:
        """The value so far: dicts and lists in which final values have their types; costs time proportional to its length."""
        return self._object.snapshot(self._length)


@dataclass(frozen=True, slots=True)
class ValueEvent:
    """A completed variable: its parsed value, its text, its meta and its path."""

    name: str | None
    value: Any
    text: str
    meta: Meta
    node_id: int
    choice: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """A value that the program sent with `s.emit(value)`. `path` names the call: the same in every run of the program."""

    path: str
    value: Any
    node_id: int


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """A variable that failed, or whose text does not parse as its type."""

    name: str | None
    error: RtlangError
    node_id: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class EndEvent(Generic[R_co]):
    """The end of the program, also of one that failed: `result.error` says why."""

    result: Result[R_co]


StreamEvent: TypeAlias = (
    TextEvent | AttemptEvent | ReasoningEvent | PartialEvent | ValueEvent | EmitEvent | ErrorEvent | EndEvent[R_co]
)


@dataclass(frozen=True, slots=True)
class _Emission:
    """A value that the program has sent."""

    node_id: int
    value: Any


class Stream(Generic[R_co]):
    """A running program and its events. Iterate once, with `for` or `async for`; the last event is always an `EndEvent`.

    With on_error="raise", the error of the run is raised after it.

    `close` (or leaving a `with` block) cancels the program. Leaving a loop early does not.
    """

    def __init__(self, body: Body, options: ProgramOptions) -> None:
        body.check_complete()
        self._on_error = options.on_error
        self._run = ProgramRun(
            body,
            resolve_runtime(options.runtime),
            options,
            origin=origin_of(body, options),
            on_event=self._put,
            on_end=lambda: self._put(None),
            on_emission=lambda node_id, value: self._put(_Emission(node_id, value)),
        )
        self._session = self._run.session
        self._condition = InterruptibleCondition()
        self._raw: deque[Event | _Emission | None] = deque()
        self._emitted: int | None = None  # the emission that the reader has now
        self._ready: deque[StreamEvent[R_co]] = deque()
        self._is_body_done = False
        self._names = StreamNames(self._session.recording)
        self._objects: dict[tuple[int, int], PartialObject] = {}  # by node and choice
        self._paths: dict[tuple[int, int | None], str] = {}
        self._result: Result[R_co] | None = None
        self._is_over = self._has_raised = False
        self._task = self._start(body)

    @property
    def recorded_nodes(self) -> tuple[Node, ...]:
        """The nodes that the program has recorded so far, those included that the compiler merged or dropped."""
        return tuple(self._session.recording.nodes.outer.values())

    def __iter__(self) -> Iterator[StreamEvent[R_co]]:
        return self

    def __next__(self) -> StreamEvent[R_co]:
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._is_over:
                self._raise_error()
                raise StopIteration
            with self._session.ended_by_errors():  # Ctrl-C while waiting
                self._condition.wait(self._has_news, self._session.remaining_s())
            self._session.expire()

    def __aiter__(self) -> AsyncIterator[StreamEvent[R_co]]:
        return self

    async def __anext__(self) -> StreamEvent[R_co]:
        while True:
            event = self._next()
            if event is not None:
                return event
            if self._is_over:
                self._raise_error()
                raise StopAsyncIteration
            await self._condition.wait_async(self._has_news, self._session.remaining_s())
            self._session.expire()

    def text(self, name: str) -> Iterator[str]:
        """Iterate over the chunks of one variable's text.

        Args:
            name: of the variable, or a path such as `fork[1]/tip`, or a place such as `fork[1]`. Texts that follow one another, as in a
                loop, come one after the other.
        Raises:
            TraceError: the program generates nothing of this name; lists the names. Raised once its body has ended. Or it generates
                several texts of this name side by side, such as in forks, which would mix; lists their paths.
        """
        for event in self:
            if self._is_asked(event, name, TextEvent):
                assert isinstance(event, TextEvent)
                self._names.check_alone(event, name)
                yield event.text

    async def atext(self, name: str) -> AsyncIterator[str]:
        """`text` for coroutines."""
        async for event in self:
            if self._is_asked(event, name, TextEvent):
                assert isinstance(event, TextEvent)
                self._names.check_alone(event, name)
                yield event.text

    def partial(self, name: str) -> Iterator[PartialEvent]:
        """Iterate over the growing value of one variable that is written as JSON, or of all with this name: events have their paths.

        Args:
            name: as for `text`.
        Raises:
            TraceError: the program generates nothing of this name.
        """
        for event in self:
            if self._is_asked(event, name, PartialEvent):
                assert isinstance(event, PartialEvent)
                yield event

    async def apartial(self, name: str) -> AsyncIterator[PartialEvent]:
        """`partial` for coroutines."""
        async for event in self:
            if self._is_asked(event, name, PartialEvent):
                assert isinstance(event, PartialEvent)
                yield event

    def result(self) -> Result[R_co]:
        """Wait for the end and return the result, dropping unread events. Raises like the iteration."""
        for _ in self:
            pass
        assert self._result is not None
        return settle(self._result, self._on_error)

    async def aresult(self) -> Result[R_co]:
        """`result` for coroutines."""
        async for _ in self:
            pass
        assert self._result is not None
        return settle(self._result, self._on_error)

    def display(self) -> Result[R_co]:
        """Show the run while it goes on and return its result: in a notebook as one output that grows, elsewhere as text.

        Raises like the iteration.
        """
        live = live_display(self._session)
        while self._show_next(live):
            with self._session.ended_by_errors():  # Ctrl-C while waiting
                self._condition.wait(self._has_news, self._wait_s(live))
            self._session.expire()
        return self._shown(live)

    async def adisplay(self) -> Result[R_co]:
        """`display` for coroutines."""
        live = live_display(self._session)
        while self._show_next(live):
            await self._condition.wait_async(self._has_news, self._wait_s(live))
            self._session.expire()
        return self._shown(live)

    def _ipython_display_(self) -> None:
        """A stream that is the value of a cell is shown while it goes on."""
        self.display()

    def _show_next(self, live: LiveDisplay) -> bool:
        """Show the events that are there; returns whether more will come."""
        try:
            while (event := self._next()) is not None:
                match event:
                    case TextEvent() | ReasoningEvent():
                        live.add(event.node_id, getattr(event, "choice", 0), event.text)
                    case AttemptEvent() if event.is_accepted is None:
                        live.add(event.node_id, 0, event.text)
                    case ValueEvent() | AttemptEvent():
                        live.end_node(event.node_id)
                    case ErrorEvent():
                        live.end_node(event.node_id, event.error)
                if live.due_s() == 0.0:
                    live.update()
        except BaseException as error:
            live.end(error, None)
            raise
        if live.due_s() == 0.0:
            live.update()
        return not self._is_over

    def _wait_s(self, live: LiveDisplay) -> float | None:
        found = [each for each in (live.due_s(), self._session.remaining_s()) if each is not None]
        return min(found, default=None)

    def _shown(self, live: LiveDisplay) -> Result[R_co]:
        assert self._result is not None
        live.end(self._result.error, self._result._value)
        return settle(self._result, self._on_error)

    def close(self) -> None:
        """Cancel the program. Idempotent."""
        self._session.cancel()

    def __enter__(self) -> Stream[R_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Stream[R_co]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _is_asked(self, event: StreamEvent[R_co], name: str, kind: type) -> bool:
        """Whether an event is of this kind and of what `text` or `partial` was asked for.

        Raises:
            TraceError: nothing is.
        """
        self._names.check(name, is_complete=self._is_body_done and self._run.error is None)
        return isinstance(event, kind) and self._names.is_asked(event, name)

    def _start(self, body: Body) -> object:
        if body.is_async:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                work = lambda: asyncio.run(self._work_async())  # noqa: E731
            else:
                return loop.create_task(self._work_async())
        else:
            work = lambda: self._work()  # noqa: E731
        thread = threading.Thread(target=work, name="rtlang-stream", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        self._run.execute()
        self._body_done()

    async def _work_async(self) -> None:
        await self._run.execute_async()
        self._body_done()
        if isinstance(self._run.error, asyncio.CancelledError):
            raise self._run.error

    def _body_done(self) -> None:
        self._is_body_done = True
        self._put(None)

    def _put(self, event: Event | _Emission | None) -> None:
        with self._condition.lock:
            if event is not None:
                self._raw.append(event)
            self._condition.notify_all()

    def _has_news(self) -> bool:
        return bool(self._raw) or self._has_ended()

    def _has_ended(self) -> bool:
        return self._is_body_done and self._session.final is not None

    def _next(self) -> StreamEvent[R_co] | None:
        """The next available event, or None; sets `_is_over` after the last one."""
        if self._emitted is not None:  # the reader asks for the next event, so it has dealt with this one
            self._session.acknowledge(self._emitted)
            self._emitted = None
        if self._is_over:
            return None
        while not self._ready:
            has_ended = self._has_ended()
            with self._condition.lock:
                raw = self._raw.popleft() if self._raw else None
            if raw is not None:
                self._ready.extend(self._translate(raw))
            elif has_ended:
                self._is_over = True
                result = self._result = self._run.result()
                return EndEvent(result)
            else:
                return None
        found = self._ready.popleft()
        if isinstance(found, EmitEvent):
            self._emitted = found.node_id
        return found

    def _raise_error(self) -> None:
        """Raise the error of the run after its last event, once."""
        error = self._result.error if self._result is not None and self._on_error == "raise" else None
        if error is not None and not self._has_raised:
            self._has_raised = True
            raise error

    def _translate(self, event: Event | _Emission) -> list[StreamEvent[R_co]]:
        nodes, outcomes = self._session.recording.nodes, self._session.recording.outcomes
        if isinstance(event, _Emission):
            return [EmitEvent(nodes.path_at(event.node_id) or "", event.value, event.node_id)]
        if not isinstance(event, (TextDelta, NodeFinished, NodeFailed)):
            return []
        node_id = event.node_id
        if nodes.is_checked(node_id):
            return self._of_checked(event)
        if node_id in nodes.names_of_reasoning:
            if not isinstance(event, TextDelta):
                return []  # the value ends next, with this text in its meta or with this error
            return [ReasoningEvent(nodes.names_of_reasoning[node_id], event.text, node_id, self._path(node_id, 0))]
        match event:
            case TextDelta():
                node, path = nodes.node(node_id), self._path(node_id, event.choice)
                name = None if isinstance(node, Text) else node.name
                return [TextEvent(name, event.text, node_id, event.choice, path), *self._grown(name, event, path)]
            case NodeFinished():
                found: list[StreamEvent[R_co]] = []
                for choice, completion in enumerate(event.completions):
                    value, path = outcomes.read(node_id, choice), self._path(node_id, choice)
                    if isinstance(value, ValueParseError):
                        found.append(ErrorEvent(event.name, outcomes.parse_error(node_id, value), node_id, path))
                        continue
                    meta = outcomes.meta_of(node_id, choice)
                    found.append(ValueEvent(event.name, value, completion.text, meta, node_id, choice, path))
                return found
            case NodeFailed():
                if isinstance(nodes.node(node_id), Text):
                    return []
                error = outcomes.root_error(node_id, event.error)
                return [ErrorEvent(event.name, error, node_id, self._path(node_id))]

    def _of_checked(self, event: TextDelta | NodeFinished | NodeFailed) -> list[StreamEvent[R_co]]:
        """The events of a generation with checks: of its attempts, and of its end."""
        recording, node_id = self._session.recording, event.node_id
        nodes, outcomes = recording.nodes, recording.outcomes
        name = nodes.shown_name(node_id)
        attempts = nodes.attempts_of(nodes.checked_at(node_id))
        assert attempts is not None
        path = attempts[0].path  # that of the generation
        if nodes.checked_at(node_id) == node_id:
            if isinstance(event, NodeFailed):
                return [ErrorEvent(name, outcomes.root_error(node_id, event.error), node_id, path)]
            assert isinstance(event, NodeFinished)
            if event.is_cancelled:
                return []
            text, value = outcomes.text_of(node_id, 0), outcomes.read(node_id, 0)
            return [
                TextEvent(name, text, node_id, path=path),
                ValueEvent(name, value, text, outcomes.meta_of(node_id, 0), node_id, path=path),
            ]
        for attempt in attempts:
            if node_id == attempt.node_id and isinstance(event, TextDelta):
                return [AttemptEvent(name, attempt.path, event.text, node_id)]
            if node_id == attempt.thought and isinstance(event, TextDelta):
                return [ReasoningEvent(name, event.text, node_id, f"{attempt.path}:thought")]
            if node_id == attempt.message and not isinstance(event, TextDelta):
                is_over = isinstance(event, NodeFinished) or isinstance(event.error, CheckError)
                message = outcomes.message_of(node_id)
                found = AttemptEvent(name, attempt.path, "", attempt.node_id, message is None, message)
                return [found] if is_over else []
        return []

    def _path(self, node_id: int, choice: int | None = None) -> str:
        key = (node_id, choice)
        if key not in self._paths:
            self._paths[key] = self._session.recording.nodes.path_at(node_id, choice) or ""
        return self._paths[key]

    def _grown(self, name: str | None, event: TextDelta, node_path: str) -> list[StreamEvent[R_co]]:
        """The event for the parts of a JSON value that this text adds or makes final, if any."""
        key = (event.node_id, event.choice)
        if key not in self._objects:
            shape = self._session.recording.outcomes.shape_of(event.node_id)
            if shape is None:
                return []
            self._objects[key] = PartialObject(shape)
        grown = self._objects[key]
        places, growing, added = grown.push(event.text)
        if not places and not added:
            return []
        paths = tuple(place.path for place in places)
        path = None if growing is None else growing.path
        return [PartialEvent(name, paths, path, added, *key, node_path, grown, places, grown.text.length)]
