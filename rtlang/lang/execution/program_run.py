"""One run of a program body: calls the body, submits its nodes, and builds the result.

`run`, `arun`, batches and streams all execute bodies through this class; they differ in how they wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.service.target import Target
from rtlang.lang.execution.node_view import Origin
from rtlang.lang.execution.outputs import asked_nodes, needed_nodes
from rtlang.lang.execution.result import Result, RowResult
from rtlang.lang.program_state.body import Body
from rtlang.lang.program_state.state import State
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import Session


class ProgramRun:
    """A body on its session.

    Attributes:
        session: submits the recording and receives events.
        error: the exception that ended the body, or None.
    """

    def __init__(
        self,
        body: Body,
        target: Target,
        options: ProgramOptions,
        *,
        origin: Origin[Result] | None = None,
        **driving: Any,
    ) -> None:
        """Create a run of `body` on `target`.

        Args:
            origin: how its result can be computed again.
            driving: further arguments of `Session`.
        """
        self._origin = origin
        self.session = Session(target, options, is_async=body.is_async, identity=body.identity, **driving)
        self.error: BaseException | None = None
        self._body, self._state = body, StateRecord(self.session.recording)
        self._returned: Any = None

    def check(self) -> bool:
        """Whether the function takes the arguments of the body. Otherwise the run ends with the error."""
        try:
            self._body.check_complete()
        except (TypeError, TraceError) as error:
            self.error = error
            self.session.cancel()
            return False
        return True

    def execute(self) -> None:
        """Call a plain body and submit the rest of its graph. An exception cancels the graph and is kept in `error`."""
        try:
            with self.session.ended_by_errors():
                self._returned = self._body.call(State(self._state))
                self.session.finish(*self._read_nodes())
        except BaseException as error:
            self.error = error

    async def execute_async(self) -> None:
        """Await a coroutine body and submit the rest of its graph. An exception cancels the graph and is kept in `error`."""
        try:
            with self.session.ended_by_errors():
                self._returned = await self._body.call_async(State(self._state))
                await self.session.finish_async(*self._read_nodes())
        except BaseException as error:
            self.error = error

    def _read_nodes(self) -> tuple[set[int] | None, set[int]]:
        state, returned, outputs = self._state, self._returned, self.session.outputs
        if state.recording.outcomes.num_seen:
            for sequence in (state.sequence, *state.recording.fork_sequences):
                sequence.leave_failed()
        return needed_nodes(state, returned, outputs), asked_nodes(state, returned, outputs)

    def raise_error(self, *, even_exceptions: bool) -> None:
        """Raise `error` if there is one; with `even_exceptions` False only an interrupt or a cancellation."""
        if self.error is not None and (even_exceptions or not isinstance(self.error, Exception)):
            raise self.error

    def result(self) -> Result:
        """The result, once body and graph have ended."""
        result: Result = Result(self.session, self._state, self._returned, self.error, self._origin)
        self.session.release()
        return result

    def row_result(self, index: int, row: Mapping[str, Any]) -> RowResult:
        """The result of one row of several, once body and graph have ended."""
        result: RowResult = RowResult(self.session, self._state, self._returned, self.error, index, row, self._origin)
        self.session.release()
        self.error = self._returned = None  # they refer to frames, and these to this object
        return result
