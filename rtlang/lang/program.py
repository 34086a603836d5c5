"""Runnable programs.

A `Program` holds a function whose first parameter is a `State`, and its bound arguments; it can be run, streamed, run over many inputs,
recorded as a graph ahead of time, or called inside another program.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, Self, Unpack, overload

from rtlang.compiler.context import Context
from rtlang.compiler.pipeline import Passes, chosen_passes, compile_graph
from rtlang.contract.errors import GraphError, TraceError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import RequestGraph
from rtlang.lang.execution import run
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.stream import Stream
from rtlang.lang.lazy_values.identity_tests import check_tests
from rtlang.lang.lazy_values.static_types import P, R_co
from rtlang.lang.lazy_values.values import user_frame, user_location
from rtlang.lang.program_state.body import Body, current_state, signature_of
from rtlang.lang.program_state.references import FunctionReference, is_by_value, reference_to
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.rows import batch
from rtlang.lang.rows.completed_rows import MAX_IN_FLIGHT, CompletedRows
from rtlang.lang.rows.jsonl import JsonlRun, JsonlSummary, KeyOf
from rtlang.lang.rows.progress import Report
from rtlang.lang.rows.row_runs import MAX_THREADS
from rtlang.lang.rows.row_source import Rows
from rtlang.lang.sessions.program_options import (
    KEYWORDS,
    ProgramOptions,
    RunKeywords,
    RunMethod,
    arguments_in,
    given_options,
    with_keywords,
)


class Program(Generic[P, R_co]):
    """A function that records a request graph, with zero or more bound arguments.

    The keywords `KEYWORDS` of `run` and similar methods are options of the run, see `ProgramOptions`. A parameter of the function with such
    a name gets the keyword, unless it was given by position or with `bind`; `with_options` sets the option then.

    `Program[[str], int]` takes a string and returns an integer. Type checkers check the arguments of a run that has no options; with
    options beside them only the options are checked, because no signature can hold both. `with_options(...)` keeps both checked.
    """

    def __init__(self, body: Body, options: Mapping[str, Any] | None = None) -> None:
        self._body, self._options = body, dict(options or {})
        functools.update_wrapper(self, body.function)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._body.name

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine function."""
        return self._body.is_async

    @property
    def run(self) -> RunMethod[P, Result[R_co]]:
        """Run the program and wait for its result: `program.run(*args, **kwargs)` with the arguments of the function.

        Further keywords are options of the run; None leaves an option as it is.

            runtime: the runtime to use; the default runtime if not given.
            params: sampling parameters of every generation without its own `params`. A seed among them is that of the run, if `seed` is not
                given.
            priority: lower values run first under the priority policy; 0 if not given.
            deadline_s: seconds after which the run fails with DeadlineError.
            seed: determines what the generations sample: each has its own noise, which follows from the seed and from its path, so
                that forks differ, and a run that is repeated gives the same texts, anywhere.
            passes: the passes of the compiler: True (the default) for all, False for none, or names, where `-name` leaves one out.
            outputs: names of the variables to generate, or paths of nodes or of places such as `fork[1]`, besides the returned value and
                what the body reads; default: all.
            base: the result of an earlier run, of this program or of one that was edited: nodes whose inputs are the same take over its
                outcomes, calls of functions included, and only the others are computed. Without `seed` the run has the seed of that one.
            budget: what all nodes of the run may spend together.
            cache_salt: cached prefixes are shared only with runs of the same salt; see `rt.RunOptions`.
            on_error: "raise" (the default) raises the error of the run; "result" returns a partial result with `Result.error` set.
            ask: answers the questions of `rt.ask`: a function of an `rt.Question` that returns the answer; called on a thread of its own.

        Raises:
            TypeError: an argument is missing.
            TraceError: no runtime is given and there is no default runtime.
            With on_error="raise", also an exception of the body, the error that ended the graph, or the error of the first failed
            node that the body did not handle.
        """
        return self._run

    @property
    def arun(self) -> RunMethod[P, Coroutine[Any, Any, Result[R_co]]]:
        """`run` for coroutines. A plain program occupies a thread until its body ends, an `async def` program does not."""
        return self._arun

    @property
    def stream(self) -> RunMethod[P, Stream[R_co]]:
        """Start the program and iterate over its events: `for event in ...` or `async for event in ...`.

        Arguments are those of `run`. The last event is an `EndEvent` with the result, also if the run fails; with on_error="raise" its
        error is raised after that.
        """
        return self._stream

    def run_batch(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        progress: bool | Report = False,
        max_threads: int = MAX_THREADS,
        **keywords: Unpack[RunKeywords],
    ) -> list[Result[R_co]]:
        """Run the program once per input, concurrently; results are in the order of the inputs.

        Args:
            inputs: keyword arguments, one mapping per run.
            progress: True shows a progress bar; a function is called with (number of finished runs, number of runs).
            max_threads: maximum number of bodies that wait at graph breaks at the same time. Bodies without graph breaks and `async def`
                programs occupy no thread.
            keywords: options of each run, see `run`. `base` is a list of results of an earlier batch: each row takes over the one with
                its arguments, or else the one at its index. A deadline counts from the start of its run. on_error is "result" if it is
                not given, which sets `Result.error` of failed runs; "raise" raises the first failure and cancels the other runs.
        Raises:
            TypeError: a keyword is no option.
            ParameterError: an input is not a mapping. With on_error="raise", also the errors of `run`.
        """
        options = self._made(_only_options("run_batch", keywords), on_error="result")
        return list(batch.run_batch(self._body, inputs, options, progress=progress, max_threads=max_threads))

    def as_completed(
        self,
        rows: Rows,
        *,
        in_order: bool = False,
        max_in_flight: int = MAX_IN_FLIGHT,
        progress: bool | Report = False,
        max_threads: int = MAX_THREADS,
        **keywords: Unpack[RunKeywords],
    ) -> CompletedRows[R_co]:
        """Run the program once per row and iterate over the results as they come: `for result in ...` or `async for result in ...`.

        Each result has the `index` of its row and the `row`. Memory does not depend on the number of rows, which may be endless: rows are
        read while there is room for them, and as many run as the runtime takes.

        Args:
            rows: keyword arguments, one mapping per run: any iterable or generator, which is read on a thread of its own, or an
                asynchronous one. An error that it raises cancels the runs, and is raised after the results that are there.
            in_order: results come in the order of the rows instead of the order of their ends.
            max_in_flight: rows that are read and whose results were not taken yet, at most.
            progress, max_threads: as for `run_batch`; the number of all runs is None while it is not known.
            keywords: as for `run_batch`. A row with missing or unknown arguments is a failed run.
        Raises:
            TypeError: a keyword is no option.
            ParameterError: an option is invalid; while iterating, a row is not a mapping.
        """
        options = self._made(_only_options("as_completed", keywords), on_error="result")
        return CompletedRows(
            self._body,
            rows,
            options,
            in_order=in_order,
            max_in_flight=max_in_flight,
            max_threads=max_threads,
            progress=progress,
        )

    def run_to_jsonl(
        self,
        rows: Rows,
        path: str | os.PathLike[str],
        *,
        key: KeyOf = None,
        retry_errors: bool = True,
        in_order: bool = False,
        max_in_flight: int = MAX_IN_FLIGHT,
        progress: bool | Report = False,
        max_threads: int = MAX_THREADS,
        **keywords: Unpack[RunKeywords],
    ) -> JsonlSummary:
        """Run the program once per row and write each result to a file as it comes, as a line of JSON.

        If the file exists, the rows that it has are not run again, so that the same call goes on after an interruption; a torn last line
        is removed. A line has the `index` of its row, its `key`, the `row`, the returned `value`, the `variables`, the `usage`, and the
        `error` (null, or `type` and `message`).

        Args:
            rows: as for `as_completed`.
            key: identifies a row: the name of a field, or a function of the row. By default, the name of the program and all arguments,
                which must be JSON data, so that an edited row runs again.
            retry_errors: whether rows run again whose lines have an error; these lines are removed.
            in_order, max_in_flight, progress, max_threads, keywords: as for `as_completed`.
        Raises:
            ParameterError: the file has other lines, or another process writes to it, or a row has no key; otherwise as `as_completed`.
            OSError: the file cannot be written.
        """
        options = self._made(_only_options("run_to_jsonl", keywords), on_error="result")
        run.resolve_runtime(options.runtime)
        work = JsonlRun(self._body, rows, path, key, retry_errors=retry_errors)
        return work.write(
            CompletedRows(
                self._body,
                work.left(),
                options,
                in_order=in_order,
                max_in_flight=max_in_flight,
                max_threads=max_threads,
                progress=progress,
            )
        )

    @overload
    def graph(self, *args: P.args, **kwargs: P.kwargs) -> RequestGraph: ...
    @overload
    def graph(self, *args: Any, params: SamplingParams | None, **others: Any) -> RequestGraph: ...
    @overload
    def graph(self, *args: Any, passes: Passes, **others: Any) -> RequestGraph: ...
    def graph(  # type: ignore[misc]
        self, *args: Any, params: SamplingParams | None = None, passes: Passes | None = None, **kwargs: Any
    ) -> RequestGraph:
        """Record the program as one graph, without a runtime. Arguments passed as `rt.arg(name)` become inputs of the graph.

        Args:
            passes: as for `run`; no pass drops a named generation here.
        Raises:
            TraceError: the body uses a generated value (a graph break); names the line.
        """
        given = {"params": params, "passes": passes}
        body, own = self._with_own(args, kwargs, given)
        options = self._made(given_options(given, own))
        signature_of(body.function).bind(*body.receiver, None, *body.args, **body.kwargs)
        recording = Recording(AheadOfTime(body.is_async), options.params, options.run.seed)
        state = State(StateRecord(recording))
        try:
            if body.is_async:
                _drive(body, state)
            else:
                body.call(state)
        finally:
            recording.close()
        context = Context(
            keep=recording.branch_points, ended=recording.ended, free=recording.free_texts, keeps_names=True
        )
        graph, _ = compile_graph(recording.graph(), chosen_passes(options.passes), context)
        try:
            graph.validate()
        except GraphError as wrong:
            raise recording.outcomes.run_error(wrong) from None
        return graph

    @overload
    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Program[[], R_co]: ...
    @overload
    def bind(self, *args: Any, **kwargs: Any) -> Program[..., R_co]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Program[..., R_co]:
        """The program with these arguments bound.

        Raises:
            TypeError: the function does not accept these arguments.
        """
        made: Program[..., R_co] = make_program(self._body.bound(args, kwargs), self._options)
        return made

    def with_options(self, **keywords: Unpack[RunKeywords]) -> Self:
        """The program with these options for its runs; options of a run itself override them. See `run`.

        Raises:
            TypeError: a keyword is no option.
            ParameterError: an option is invalid; names it.
        """
        options = self._options | _only_options("with_options", keywords)
        ProgramOptions.of(options)
        if "runtime" in options:
            run.resolve_runtime(options["runtime"])
        return type(self)(self._body, options)

    @overload
    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
        """Call this program inside another, as part of the same graph, and return its (possibly lazy) return value.

        With a state as first argument it continues the sequence of that state, otherwise it starts a new one. Its variables appear in the
        calling state as `name.variable`. An `async def` program must be awaited. Outside a program this is `bind`, and to use what it
        returns as a result is refused.

        Raises:
            TraceError: an `async def` program is called from a plain one, or the program has options of a run.
        """
        if args and isinstance(args[0], State):
            return self._call_on(args[0], self._body.bound(args[1:], kwargs), on_same_sequence=True)
        caller = current_state()
        if caller is None:
            bound = self.bind(*args, **kwargs)
            return bound if self.is_async else _BoundByCall(bound._body, bound._options)
        return self._call_on(caller, self._body.bound(args, kwargs), on_same_sequence=False)

    def _rt_call(self, state: State) -> None:
        """`s += program.bind(...)`."""
        if self.is_async:
            raise TraceError(f"{self.name} is async: write `await {self.name}(s, ...)`", user_location())
        self._call_on(state, self._body, on_same_sequence=True)

    def _rt_judge(self, state: StateRecord, value: Any) -> Any:
        """Judge a value as a check of a generation, on a state that continues it; returns the verdict."""
        return self._call_on(State(state), self._body.bound((value,), {}), on_same_sequence=True)

    def _call_on(self, caller: State, body: Body, *, on_same_sequence: bool) -> Any:
        if self._options:
            raise TraceError(
                f"run options apply to a whole run; call {body.name} without with_options({', '.join(self._options)}) "
                "inside another program",
                user_location(),
            )
        record = record_of(caller)
        callee = State(record.callee(body.name, on_same_sequence=on_same_sequence))
        if body.is_async:
            if not record.recording.is_async:
                raise TraceError(f"{body.name} is async and cannot be called from a plain program", user_location())
            return _call_async(record, body, callee) if on_same_sequence else body.call_async(callee)
        if on_same_sequence:
            with record.step():
                returned = body.call(callee)
        else:
            returned = body.call(callee)
        if (frame := user_frame()) is not None:
            check_tests(returned, frame)
        return returned

    @with_keywords
    def _run(self, *args: Any, **keywords: Any) -> Result[R_co]:
        return run.run(*self._divided(args, keywords))

    @with_keywords
    async def _arun(self, *args: Any, **keywords: Any) -> Result[R_co]:
        return await run.arun(*self._divided(args, keywords))

    @with_keywords
    def _stream(self, *args: Any, **keywords: Any) -> Stream[R_co]:
        return Stream(*self._divided(args, keywords))

    def _with_own(
        self, args: tuple[Any, ...], arguments: Mapping[str, Any], given: Mapping[str, Any]
    ) -> tuple[Body, frozenset[str]]:
        """The body with its arguments, those among `given` that are its own included; and their names."""
        own = self._body.open_names(args, given)
        more = {name: given[name] for name in own if given[name] is not None}
        return self._body.bound(args, {**arguments, **more}), own

    def _divided(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Body, ProgramOptions]:
        """The body with its arguments, and the options of the run."""
        own = self._body.open_names(args, KEYWORDS)
        return self._body.bound(args, arguments_in(keywords, own)), self._made(given_options(keywords, own))

    def _made(self, given: Mapping[str, Any], **defaults: Any) -> ProgramOptions:
        """The options of a run: those given, or else those of `with_options`, or else the defaults."""
        return ProgramOptions.of({**defaults, **self._options, **given})

    def __repr__(self) -> str:
        return f"<program {self.name}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as the name of its function, its bound arguments and its options.

        Raises:
            TypeError: the function is not at the top level of a module or a class, or the program has the option `runtime`.
        """
        if is_by_value():
            return super().__reduce_ex__(protocol)
        if "runtime" in self._options:
            raise TypeError(
                f"program {self.name} has the option runtime, which belongs to this process; pass runtime= where the program runs"
            )
        body = self._body
        return _unpickled, (
            type(self),
            reference_to(body.function),
            body.args,
            dict(body.kwargs),
            body.receiver,
            self._options,
        )

    def __copy__(self) -> Self:
        return type(self)(self._body, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        body = self._body
        args, kwargs, receiver = copy.deepcopy((body.args, dict(body.kwargs), body.receiver), memo)
        return type(self)(Body(body.function, args, kwargs, receiver), self._options)

    if not TYPE_CHECKING:  # checkers refuse these without help

        def __getitem__(self, name: object) -> Never:
            raise self._not_run(f"[{name!r}] reads a result")

        def __iter__(self) -> Never:
            raise self._not_run("iteration needs its value")

        def __getattr__(self, name: str) -> Never:
            if name in _OF_RESULTS and "_body" in vars(self):
                raise self._not_run(f".{name} belongs to a result")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _not_run(self, reason: str) -> TraceError:
        return TraceError(
            f"{reason}, but {self.name} has not been run: outside of a program, {self.name}(...) only binds its arguments. "
            f"Write {self.name}.run(...)",
            user_location(),
        )


_OF_RESULTS = frozenset(("value", "text", "meta", "tree", "messages", "names", "error", "usage", "breaks"))


class _BoundByCall(Program[P, R_co]):
    """A program that was called outside of a program: its arguments are bound, and uses of it as a value are refused."""

    def __str__(self) -> str:
        raise self._not_run("str() or an f-string needs its value")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __bool__(self) -> bool:
        raise self._not_run("a truth test needs its value")

    def __len__(self) -> int:
        raise self._not_run("len() needs its value")

    def __eq__(self, other: object) -> bool:
        raise self._not_run("a comparison needs its value")

    __hash__ = object.__hash__


class AsyncProgram(Program[P, R_co]):
    """A program made from an `async def` function. A call of it inside another program must be awaited."""

    @overload  # type: ignore[override]
    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
        """As `Program.__call__`; returns a coroutine."""
        return super().__call__(*args, **kwargs)


async def _call_async(record: StateRecord, body: Body, callee: State) -> Any:
    with record.step():
        return await body.call_async(callee)


def _unpickled(
    kind: type[Program[..., Any]],
    function: FunctionReference | Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    receiver: tuple[Any, ...],
    options: dict[str, Any],
) -> Program[..., Any]:
    found = function.function() if isinstance(function, FunctionReference) else function
    return kind(Body(found, args, kwargs, receiver), options)


def _only_options(method: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments_in(keywords):
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
    return given_options(keywords)


def make_program(body: Body, options: Mapping[str, Any] | None = None) -> Any:
    """A program, or an `AsyncProgram` if the function is a coroutine function."""
    return AsyncProgram(body, options) if body.is_async else Program(body, options)


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
