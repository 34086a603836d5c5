"""Calls of tools that a program runs itself (`call.run()`): each is a call of the graph, for whose value the body waits.

The function still runs on the thread of the body, or on its event loop, as if it were called directly: it may use what belongs to that
thread, and the exception that it raises is the cause of the error that the body gets. The graph only knows its outcome, so that a journal
keeps it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from rtlang.contract.errors import AbortedError, CallError, RtlangError, ToolError
from rtlang.contract.graph.host_calls import HostFunction, checked_answer
from rtlang.contract.graph.node_paths import segment
from rtlang.contract.graph.nodes import Policy
from rtlang.contract.process.call_context import CallContext, current_call_or_none, within_call
from rtlang.contract.request_graph import Const, Operand
from rtlang.lang.effect_marks import policy_of
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.output_types.returned_values import plain_of, return_reader
from rtlang.lang.output_types.tool_calls import Origin, ToolCall
from rtlang.lang.recordings.driver import Driver
from rtlang.lang.recordings.recorded_nodes import RecordedNodes


class CallRecording(Protocol):
    """The part of a recording that calls need."""

    @property
    def nodes(self) -> RecordedNodes: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def is_closed(self) -> bool: ...
    def check_waiting(self, node_ids: tuple[int, ...], location: str, what: str, reason: str) -> None: ...
    def note_break(self, location: str, what: str, reason: str) -> None: ...
    def add_call(
        self, name: str, operands: tuple[Operand, ...], run: HostFunction, path: str, policy: Policy
    ) -> int: ...
    def plain_value(self, node_id: int) -> Any: ...


class ToolRuns:
    """Runs the calls of tools that one recording has read; see `rtlang.lang.output_types.tool_calls.CallRuns`.

    Args:
        recording: a weak proxy of it.
    """

    def __init__(self, recording: CallRecording) -> None:
        self._recording = recording

    @property
    def is_open(self) -> bool:
        """Whether calls are recorded: the body runs, and this is not within another call, which is an effect already."""
        try:
            return not self._recording.is_closed and current_call_or_none() is None
        except ReferenceError:  # nothing of the run is kept any more
            return False

    def run(self, call: ToolCall, origin: Origin) -> Any:
        """See `ToolCall.run`."""
        handed = _Handed()
        node_id, driver = self._recorded(call, origin, handed), self._recording.driver
        handed.wake = driver.wake
        with handed.abandoned_by_errors():
            driver.wait((node_id,), or_if=handed.is_requested.is_set)
        if handed.is_requested.is_set():
            with within_call(handed.context):
                handed.run(call.run_here)
        return self._outcome(call, node_id, handed)

    async def arun(self, call: ToolCall, origin: Origin) -> Any:
        """See `ToolCall.arun`."""
        handed = _Handed()
        node_id, driver = self._recorded(call, origin, handed), self._recording.driver
        handed.wake = driver.wake
        with handed.abandoned_by_errors():
            await driver.wait_async((node_id,), or_if=handed.is_requested.is_set)
        if handed.is_requested.is_set():
            with within_call(handed.context):
                await handed.run_async(call.arun_here)
            await driver.wait_async((node_id,))
        return self._outcome(call, node_id, handed)

    def _recorded(self, call: ToolCall, origin: Origin, handed: _Handed) -> int:
        recording, location = self._recording, user_location()
        path = recording.nodes.new_path(*origin.place_of(segment(call.name)))
        arguments = (Const(plain_of(call.arguments)),)
        policy = policy_of(call.function, None, None)
        what, reason = f"the value of {call.name}()", "a call of a tool"
        recording.check_waiting((), location, what, reason)
        recording.note_break(location, what, reason)
        return recording.add_call(call.name, arguments, lambda plain: handed.outcome(call), path, policy)

    def _outcome(self, call: ToolCall, node_id: int, handed: _Handed) -> Any:
        recording = self._recording
        recording.driver.wait((node_id,))
        if handed.error is not None:
            with suppress(RtlangError):  # the body has seen it
                recording.plain_value(node_id)
            raise handed.error
        plain, reader = recording.plain_value(node_id), return_reader(call.function)
        return plain if reader is None else reader(plain)


class _Handed:
    """A call that the graph wants to be made, handed to the body, which waits for it."""

    def __init__(self) -> None:
        self.is_requested, self._is_done = threading.Event(), threading.Event()
        self.wake: Callable[[], None] = lambda: None
        self.context: CallContext | None = None
        self.error: BaseException | None = None
        self._value: Any = None

    def outcome(self, call: ToolCall) -> Any:
        """Let the body make the call; returns its value, on the thread that answers the graph. Raises as the call."""
        self.context = current_call_or_none()
        self.is_requested.set()
        self.wake()
        self._is_done.wait()
        if self.error is not None:
            raise self.error
        try:
            return checked_answer(plain_of(self._value))
        except Exception as error:
            raise CallError(
                call.name,
                f"it returned {self._value!r:.100}, which a run cannot keep: return plain data, a dataclass or a model, or call "
                "call.function(**call.args), which is no part of the run",
            ) from error

    @contextmanager
    def abandoned_by_errors(self) -> Iterator[None]:
        """Context manager: if the block raises, the body makes the call no more."""
        try:
            yield
        except BaseException:
            self.error = AbortedError("the program ended before it made the call")
            self._is_done.set()
            raise

    def run(self, work: Callable[[], Any]) -> None:
        """Make the call in this thread."""
        try:
            self._value = work()
        except ToolError as error:
            self.error = error
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._is_done.set()

    async def run_async(self, work: Callable[[], Any]) -> None:
        """Make the call in this event loop."""
        try:
            self._value = await work()
        except ToolError as error:
            self.error = error
        except asyncio.CancelledError as error:
            self.error = CallError("", "the program was cancelled")
            raise error
        finally:
            self._is_done.set()
