"""`@program`: a function that records a graph, as something that can be run.

The decorated function takes a `State` first. A `Program` holds the function and the arguments bound so far; it can be run, streamed,
run over many inputs, turned into a graph ahead of time, or called inside another program.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rtlang.compiler.fold_text import fold_text
from rtlang.contract.errors import TraceError
from rtlang.contract.graph import RequestGraph
from rtlang.contract.params import SamplingParams
from rtlang.contract.target import Target
from rtlang.lang.body import Body, current_state
from rtlang.lang.execution import batch, run
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.run import OnError
from rtlang.lang.execution.stream import Stream
from rtlang.lang.recording import AheadOfTime, Break, Recording
from rtlang.lang.state import State
from rtlang.lang.values import user_location


class Program:
    """A program, possibly with some of its arguments.

    Keywords of `run` and its like (runtime, params, priority, deadline_s, on_error) are options of the run. A parameter of the function
    with such a name is given by position or with `bind`.
    """

    def __init__(self, body: Body) -> None:
        self._body = body
        functools.update_wrapper(self, body.function)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._body.name

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine function."""
        return self._body.is_async

    def run(
        self,
        *args: Any,
        runtime: Target | None = None,
        params: SamplingParams | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        **kwargs: Any,
    ) -> Result:
        """Run the program and wait for its end.

        Args:
            args, kwargs: arguments of the function.
            runtime: where; the default runtime if not given.
            params: options of every generation that has no `params` of its own.
            priority: lower is served first, under the priority policy.
            deadline_s: seconds until everything ends with DeadlineError.
            on_error: "raise" what `Result.error` would hold, or give back the "result" with what there is.
        Raises:
            With on_error="raise": an exception of the body, the error that ended the graph, or that of the first failed node which
            the body did not handle. TypeError: an argument is missing. TraceError: there is no runtime.
        """
        return run.run(
            self._body.bound(args, kwargs),
            runtime,
            params=params,
            priority=priority,
            deadline_s=deadline_s,
            on_error=on_error,
        )

    async def arun(
        self,
        *args: Any,
        runtime: Target | None = None,
        params: SamplingParams | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        **kwargs: Any,
    ) -> Result:
        """`run` for coroutines. An `async def` program holds no thread; a plain one holds one until its body ends."""
        return await run.arun(
            self._body.bound(args, kwargs),
            runtime,
            params=params,
            priority=priority,
            deadline_s=deadline_s,
            on_error=on_error,
        )

    def run_batch(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        runtime: Target | None = None,
        params: SamplingParams | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        on_error: OnError = "result",
        progress: bool | Callable[[int, int], None] = False,
        max_threads: int = batch.MAX_THREADS,
    ) -> list[Result]:
        """Run the program once per input, all together; results come in the order of the inputs.

        Args:
            inputs: keyword arguments, one mapping per run.
            deadline_s: seconds for each run, from its own start.
            on_error: "result" sets `Result.error` where a run failed; "raise" raises the first failure and cancels the others.
            progress: show a progress bar, or call this with (runs that ended, all runs).
            max_threads: most bodies that wait at graph breaks at a time. A body that does not break holds no thread, and an
                `async def` program never does.
        Raises:
            As `run`, with on_error="raise". ParameterError: an input is no mapping.
        """
        return batch.run_batch(
            self._body,
            inputs,
            runtime,
            params=params,
            priority=priority,
            deadline_s=deadline_s,
            on_error=on_error,
            progress=progress,
            max_threads=max_threads,
        )

    def stream(
        self,
        *args: Any,
        runtime: Target | None = None,
        params: SamplingParams | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        **kwargs: Any,
    ) -> Stream:
        """Start the program and hand out its events as they come: `for event in ...` or `async for event in ...`.

        Arguments as for `run`. With on_error="raise" the error ends the iteration; with "result" the last event has it.
        """
        return Stream(
            self._body.bound(args, kwargs),
            runtime,
            params=params,
            priority=priority,
            deadline_s=deadline_s,
            on_error=on_error,
        )

    def graph(self, *args: Any, params: SamplingParams | None = None, **kwargs: Any) -> RequestGraph:
        """The program as one graph, ahead of time: no runtime is needed. Arguments given as `rt.arg(name)` become its inputs.

        Raises:
            TraceError: the body needs a generated value (a graph break); names the line.
        """
        graph, _, error = self.bind(*args, **kwargs).record(params)
        if error is not None:
            raise error
        graph.validate()
        return graph

    def record(self, params: SamplingParams | None = None) -> tuple[RequestGraph, tuple[Break, ...], Exception | None]:
        """Record ahead of time, as far as it goes: the graph, the break that ended recording if one did, and what was raised."""
        body = self._body
        inspect.signature(body.function).bind(None, *body.args, **body.kwargs)
        recording = Recording(AheadOfTime(body.is_async), params)
        state, error = State(recording), None
        try:
            if body.is_async:
                _drive(body, state)
            else:
                body.call(state)
        except Exception as caught:
            error = caught
        recording.close()
        return fold_text(recording.graph()), tuple(recording.breaks), error

    def bind(self, *args: Any, **kwargs: Any) -> Program:
        """The program with these arguments given.

        Raises:
            TypeError: the function takes no such arguments.
        """
        return Program(self._body.bound(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside a program: call this one, as part of the same graph, and give back what it returns (lazily, if generated).

        With a state as the first argument it continues that state's sequence, else it begins a new sequence. Its variables show up
        in the calling state as `name.variable`. Outside of any program this is `bind`. An `async def` program is awaited.

        Raises:
            TraceError: an `async def` program is called from a plain one.
        """
        if args and isinstance(args[0], State):
            return self._call_on(args[0], self._body.bound(args[1:], kwargs), on_same_sequence=True)
        caller = current_state()
        if caller is None:
            return self.bind(*args, **kwargs)
        return self._call_on(caller, self._body.bound(args, kwargs), on_same_sequence=False)

    def _rt_call(self, state: State) -> None:
        """`s += program.bind(...)`."""
        if self.is_async:
            raise TraceError(f"{self.name} is async: write `await {self.name}(s, ...)`", user_location())
        self._call_on(state, self._body, on_same_sequence=True)

    def _call_on(self, caller: State, body: Body, *, on_same_sequence: bool) -> Any:
        callee = caller._callee(body.name, on_same_sequence=on_same_sequence)
        if not body.is_async:
            return body.call(callee)
        if not caller._recording.driver.is_async:
            raise TraceError(f"{body.name} is async and cannot be called from a plain program", user_location())
        return body.call_async(callee)

    def __repr__(self) -> str:
        return f"<program {self.name}>"


def program(function: Callable[..., Any]) -> Program:
    """Make a program of a function, plain or `async`, whose first parameter is the state.

    Raises:
        TraceError: the function takes no positional parameter.
    """
    if not callable(function) or isinstance(function, Program):
        raise TraceError("@rt.program decorates a function", user_location())
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.kind not in kinds:
        raise TraceError(f"{function.__name__}() needs a first parameter: the state", user_location())
    return Program(Body(function))


def _drive(body: Body, state: State) -> None:
    """Run a coroutine body that may not wait for anything."""
    coroutine: Any = body.call_async(state)
    try:
        coroutine.send(None)
    except StopIteration:
        return
    waiting = coroutine.cr_await
    frame = getattr(waiting, "cr_frame", None)
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None
    coroutine.close()
    raise TraceError(
        f"{body.name} awaits something outside of the graph, which cannot be recorded ahead of time", where
    )
