"""The state of a program: its text, variables and forks.

A `ProgramState` records into a state of this language (`inner`) and keeps the rest beside it: names may be used again, the later value
wins; reading waits and gives plain Python values; a fork has the variables of its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from rtlang.compat.sglang.execution import Execution
from rtlang.compat.sglang.expressions import (
    Expression,
    RoleBegin,
    RoleEnd,
    Series,
    as_expression,
)
from rtlang.compat.sglang.pieces import (
    Generated,
    Many,
    Own,
    Piece,
    Span,
    Variable,
    check,
    messages_of,
    meta_info_of,
    needs,
    text_of,
    value_of,
)
from rtlang.compat.sglang.recorder import Recorder
from rtlang.compat.sglang.text_reader import MissingVariableError, PiecesReader, TextReader, VariableReader
from rtlang.contract.errors import ParameterError, RtlangError, TraceError
from rtlang.lang.lazy_values.values import Value, user_location


class ProgramState:
    """The text and the variables of a program: `s += ...` appends, `s[name]` waits for a value."""

    def __init__(self, recorder: Recorder, *, is_outside: bool = False) -> None:
        self._recorder = recorder
        self._is_outside = is_outside  # whether this is the handle of a streamed run, whose reads wait for the body

    def outside(self) -> ProgramState:
        """The handle of a streamed run for its caller: reading waits for what the body has not appended yet."""
        return ProgramState(self._recorder, is_outside=True)

    @property
    def _execution(self) -> Execution:
        return self._recorder.execution

    @property
    def _pieces(self) -> list[Piece]:
        return self._recorder.pieces

    @property
    def _variables(self) -> dict[str, Variable]:
        return self._recorder.variables

    # Growing

    def __iadd__(self, other: object) -> ProgramState:
        """Append text, token ids or an expression. Returns at once."""
        self._recorder.append(as_expression(other))
        return self

    def system(self, expr: object = None) -> Any:
        """Append a system message; without an argument a context manager, in which it is written."""
        return self._message("system", expr)

    def user(self, expr: object = None) -> Any:
        """Append a user message; without an argument a context manager, in which it is written."""
        return self._message("user", expr)

    def assistant(self, expr: object = None) -> Any:
        """Append an assistant message; without an argument a context manager, in which it is written."""
        return self._message("assistant", expr)

    def _message(self, role: str, expr: object) -> Any:
        if expr is None:
            return self._role_scope(role)
        message = Series((RoleBegin(role), as_expression(expr), RoleEnd(role)))
        self._recorder.append(message)
        return message

    @contextmanager
    def _role_scope(self, role: str) -> Iterator[None]:
        self._recorder.append(RoleBegin(role))
        try:
            yield
        except BaseException:
            self._recorder.drop_role()
            raise
        self._recorder.append(RoleEnd(role))

    @contextmanager
    def var_scope(self, name: str) -> Iterator[None]:
        """All text that is appended inside becomes the variable `name`."""
        start = len(self._pieces)
        yield
        self._recorder.define(name, Span(self._execution, tuple(self._pieces[start:])))

    def fork(self, size: int = 1, position_ids_offset: list[int] | None = None) -> ProgramStateGroup:
        """Continue `size` states from here.

        Raises:
            ParameterError: `position_ids_offset` is given; positions follow from the text.
        """
        if position_ids_offset is not None:
            raise ParameterError("position_ids_offset", position_ids_offset, "expected None; positions follow the text")
        return ProgramStateGroup(
            [ProgramState(self._recorder.branch(inner)) for inner in self._recorder.inner.fork(size)], self
        )

    @contextmanager
    def copy(self, position_ids_offset: list[int] | None = None) -> Iterator[ProgramState]:
        """A single fork, which is joined at the end of the block."""
        group = self.fork(1, position_ids_offset)
        try:
            yield group[0]
        finally:
            group.join()

    # Reading

    @property
    def ret_value(self) -> Any:
        """The return value of the body."""
        self._wait_for_body()
        return self._execution.ret_value

    def get_var(self, name: str) -> Any:
        """Wait for the value of a variable. A list for the variables of joined forks, and with n > 1.

        Raises:
            MissingVariableError: it does not exist. RtlangError: its generation failed.
        """
        return self._value(self._variable(name))

    def set_var(self, name: str, value: Any) -> None:
        """Set a variable."""
        self._recorder.define(name, Own(value))

    def __getitem__(self, name: str) -> Any:
        return self.get_var(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_var(name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def get_meta_info(self, name: str) -> Any:
        """Wait for the meta information of a variable: a dict, or a list of dicts where the value is a list.

        It is None for a variable that was not generated.
        """
        return meta_info_of(self._variable(name))

    def text(self) -> str:
        """Wait for the whole text."""
        return text_of(self._finished_pieces(), self._execution)

    def messages(self) -> list[dict[str, str]]:
        """Wait for the messages so far: dicts with role and content."""
        return messages_of(self._finished_pieces(), self._execution)

    def sync(self) -> None:
        """Wait until everything that was appended has run. Errors are not raised; see `error`."""
        if self._is_outside:
            self._reader(None).wait_for_body()
        items: list[Piece | Variable] = [*self._pieces, *self._variables.values()]
        node_ids = list(dict.fromkeys(node_id for item in items for node_id in needs(item)))
        if node_ids:
            self._execution.wait(node_ids, "sync()", "all of the state")

    def error(self) -> BaseException | None:
        """Wait until everything that was appended has run; returns the first error, or None."""
        self.sync()
        if self._execution.error is not None:
            return self._execution.error
        for item in (*self._pieces, *self._variables.values()):
            try:
                check(item)
            except RtlangError as error:
                return error
        return None

    def text_iter(self, var_name: str | None = None) -> Iterator[str]:
        """Iterate over the text of the state, or of a variable, as it appears. Without `stream=True` it is one piece.

        Raises:
            MissingVariableError: the program has ended without this variable. Also the error of a generation, or of the body.
        """
        if not self._execution.is_streamed:
            yield self.text() if var_name is None else self.get_var(var_name)
            return
        reader = self._reader(var_name)
        while True:
            chunk = reader.next()
            if chunk:
                yield chunk
            if reader.is_over:
                return
            if not chunk:
                reader.wait()

    async def text_async_iter(self, var_name: str | None = None, return_meta_data: bool = False) -> AsyncIterator[Any]:
        """`text_iter` for coroutines.

        Args:
            return_meta_data: yield pairs of text and the meta information so far; needs a variable. The last pair has all of it.
        """
        if return_meta_data and var_name is None:
            raise ParameterError("return_meta_data", True, "expected var_name beside it")
        if not self._execution.is_streamed:
            text = await asyncio.to_thread(lambda: self.text() if var_name is None else self.get_var(var_name))
            yield (text, self.get_meta_info(str(var_name))) if return_meta_data else text
            return
        reader = self._reader(var_name)
        while True:
            chunk = reader.next()
            if return_meta_data and (chunk or reader.is_over):
                yield chunk, reader.meta_so_far()
            elif chunk:
                yield chunk
            if reader.is_over:
                return
            if not chunk:
                await reader.wait_async()

    def _reader(self, var_name: str | None) -> TextReader:
        arrivals = self._execution.arrivals
        assert arrivals is not None
        is_growing = (lambda: not self._execution.is_over) if self._is_outside else lambda: False
        if var_name is None:
            return PiecesReader(self._execution, arrivals, is_growing, self._recorder.log)
        return VariableReader(self._execution, arrivals, is_growing, self._variables, var_name)

    def __str__(self) -> str:
        return f"ProgramState({self.text()})"

    def __repr__(self) -> str:
        return f"<ProgramState with variables {sorted(self._variables)}>"

    def _finished_pieces(self) -> list[Piece]:
        self._wait_for_body()
        self.sync()
        return self._pieces

    def _wait_for_body(self) -> None:
        """Outside of a streamed run, wait until its body has ended. Raises the exception of the body."""
        if self._is_outside:
            self._reader(None).wait_for_body()
            if self._execution.error is not None:
                raise self._execution.error

    def _variable(self, name: str) -> Variable:
        if name not in self._variables and self._is_outside:
            self._reader(name).wait_for_body(unless=lambda: name in self._variables)
            if name not in self._variables and self._execution.error is not None:
                raise self._execution.error
        if name not in self._variables:
            raise MissingVariableError(name, self._variables)
        return self._variables[name]

    def _value(self, variable: Variable) -> Any:
        if self._execution.is_traced:
            if isinstance(variable, Many):
                return [self._value(each) for each in variable.items]
            if isinstance(variable, Generated):
                return variable.value
        return value_of(variable)


class ProgramStateGroup:
    """The forks of a state: `forks[i]`, iteration, `forks += ...`, and `join`."""

    def __init__(self, states: list[ProgramState], src_state: ProgramState) -> None:
        self.states, self.src_state = states, src_state

    def join(self, mode: str = "gather_variable") -> None:
        """Bring the forks together.

        Args:
            mode: "gather_variable": variables that the state did not have before the fork become lists, of the forks that have them.
                "concate_and_append": the texts of the forks are appended to the state, one after the other.
        Raises:
            ParameterError: the mode is another.
        """
        parent = self.src_state
        if mode == "gather_variable":
            before = set(parent._variables)
            names = dict.fromkeys(name for state in self.states for name in state._variables if name not in before)
            for name in names:
                found = tuple(state._variables[name] for state in self.states if name in state._variables)
                parent._recorder.define(name, Many(found))
        elif mode == "concate_and_append":
            for state in self.states:
                for piece in state._pieces[state._recorder.fork_start :]:
                    parent._recorder.append_piece(piece)
        else:
            raise ParameterError("mode", mode, 'expected "gather_variable" or "concate_and_append"')

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[ProgramState]:
        return iter(self.states)

    def __getitem__(self, index: int) -> ProgramState:
        return self.states[index]

    def __setitem__(self, index: int, value: ProgramState) -> None:
        """Supports `forks[i] += ...`."""
        if self.states[index] is not value:
            raise TraceError("a fork cannot be replaced by another state", user_location())

    def __iadd__(self, other: Any) -> ProgramStateGroup:
        """Append to all forks: the same expression or text, a list item by item, or what a function of the index returns."""
        if isinstance(other, (list, tuple)):
            if len(other) != len(self.states):
                raise TraceError(
                    f"{len(other)} items for {len(self.states)} forks; expected one for each", user_location()
                )
            items = list(other)
        elif callable(other) and not isinstance(other, (Expression, Value)):
            items = [other(index) for index in range(len(self.states))]
        else:
            items = [other] * len(self.states)
        for state, item in zip(self.states, items, strict=True):
            state += item
        return self
