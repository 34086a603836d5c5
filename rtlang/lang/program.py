"""The `@program` decorator, which turns a function into a runnable program.

The first parameter of the function is a `State`. A `Program` holds the function and its bound arguments; it can be run, streamed, run over
many inputs, recorded as a graph ahead of time, or called inside another program.
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
    """A function that records a request graph, with zero or more bound arguments.

    The keywords runtime, params, priority, deadline_s and on_error of `run` and similar methods are options of the run. Pass parameters of
    the function with these names by position or with `bind`.
    """

    def __init__(self, body: Body) -> None:
        self._body = body
        functools.update_wrapper(self, body.function)

    @property
    def name(self) -> str:
        """The name of the function."""
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
        """Run the program and wait for its result.

        Args:
            args, kwargs: arguments of the function.
            runtime: the runtime to use; the default runtime if not given.
            params: sampling parameters of every generation without its own `params`.
            priority: lower values run first under the priority policy.
            deadline_s: seconds after which the run fails with DeadlineError.
            on_error: "raise" raises the error of the run; "result" returns a partial result with `Result.error` set.
        Raises:
            TypeError: an argument is missing.
            TraceError: no runtime is given and there is no default runtime.
            With on_error="raise", also an exception of the body, the error that ended the graph, or the error of the first failed
            node that the body did not handle.
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
        """`run` for coroutines. A plain program occupies a thread until its body ends, an `async def` program does not."""
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
        """Run the program once per input, concurrently; results are in the order of the inputs.

        Args:
            inputs: keyword arguments, one mapping per run.
            deadline_s: seconds for each run, from its start.
            on_error: "result" sets `Result.error` of failed runs; "raise" raises the first failure and cancels the other runs.
            progress: True shows a progress bar; a function is called with (number of finished runs, number of runs).
            max_threads: maximum number of bodies that wait at graph breaks at the same time. Bodies without graph breaks and `async def`
                programs occupy no thread.
        Raises:
            ParameterError: an input is not a mapping. With on_error="raise", also the errors of `run`.
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
        """Start the program and iterate over its events: `for event in ...` or `async for event in ...`.

        Arguments are those of `run`. With on_error="raise" an error is raised at the end of the iteration; with "result" the last event
        contains it.
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
        """Record the program as one graph, without a runtime. Arguments passed as `rt.arg(name)` become inputs of the graph.

        Raises:
            TraceError: the body uses a generated value (a graph break); names the line.
        """
        graph, _, error = self.bind(*args, **kwargs).record(params)
        if error is not None:
            raise error
        graph.validate()
        return graph

    def record(self, params: SamplingParams | None = None) -> tuple[RequestGraph, tuple[Break, ...], Exception | None]:
        """Record without a runtime up to the first graph break. Returns the graph, the break and the exception of the body, if any."""
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
        """The program with these arguments bound.

        Raises:
            TypeError: the function does not accept these arguments.
        """
        return Program(self._body.bound(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call this program inside another, as part of the same graph, and return its (possibly lazy) return value.

        With a state as first argument it continues the sequence of that state, otherwise it starts a new one. Its variables appear in the
        calling state as `name.variable`. An `async def` program must be awaited. Outside a program this is `bind`.

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
    """Turn a plain or `async` function whose first parameter is the state into a program.

    Raises:
        TraceError: the function has no positional parameter.
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
        raise TraceError(
            f"{function.__name__}() has no parameter; the first parameter must be the state", user_location()
        )
    return Program(Body(function))


def _drive(body: Body, state: State) -> None:
    """Run a coroutine body that must not wait."""
    coroutine: Any = body.call_async(state)
    try:
        coroutine.send(None)
    except StopIteration:
        return
    waiting = coroutine.cr_await
    frame = getattr(waiting, "cr_frame", None)
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None
    coroutine.close()
    raise TraceError(f"{body.name} awaits an object outside the graph, which cannot be recorded ahead of time", where)
