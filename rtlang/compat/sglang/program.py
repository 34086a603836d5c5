"""Programs: the functions that `@function` makes, and their runs."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Literal, overload

from rtlang.compat.sglang.backends import Backend, resolve_backend, running_on
from rtlang.compat.sglang.execution import Arrivals, Execution, new_session
from rtlang.compat.sglang.options import OPTION_NAMES, run_options
from rtlang.compat.sglang.recorder import Recorder
from rtlang.compat.sglang.state import ProgramState
from rtlang.compat.sglang.tracing import Trace, call_in_trace, compute_prefix, is_tracing, trace
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.service.target import Target
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.program_state.body import Body
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.rows import batch
from rtlang.lang.rows.progress import reporter
from rtlang.lang.rows.row_runs import MAX_THREADS
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import Session

_WINDOW = 200
"""Runs of a batch of the generator style that have started and that the caller has not taken."""


class SglFunction:
    """A program: a function whose first parameter is the state `s`.

    Keywords of a run that are sampling options (`max_new_tokens`, `temperature`, `stop`, ...) hold for generations that do not have their
    own; all others, and those that the function has itself, are arguments of the function.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        num_api_spec_tokens: int | None = None,
        bind_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        name = getattr(func, "__name__", "program")
        if inspect.iscoroutinefunction(func):
            raise TraceError(f"{name} is an async function; programs of that kind are for @rt.program", user_location())
        signature = inspect.signature(func)
        if not signature.parameters:
            raise TraceError(f"{name} has no parameter; the first one is the state s", user_location())
        if num_api_spec_tokens is not None:
            warnings.warn(
                "num_api_spec_tokens has no effect: it saves calls of a remote API, and the model runs here",
                stacklevel=3,
            )
        self.func, self.num_api_spec_tokens = func, num_api_spec_tokens
        self.bind_arguments = dict(bind_arguments or {})
        self.arg_names = list(signature.parameters)[1:]
        self.__name__, self.__doc__ = name, func.__doc__

    def bind(self, **kwargs: Any) -> SglFunction:
        """The program with these arguments bound. They win over those of a run.

        Raises:
            TypeError: the function has no such parameter.
        """
        for name in kwargs:
            if name not in self.arg_names:
                known = ", ".join(self.arg_names) or "none"
                raise TypeError(f"{self.__name__}() has no parameter {name!r}; its parameters: {known}")
        return SglFunction(self.func, bind_arguments={**self.bind_arguments, **kwargs})

    def run(
        self,
        *args: Any,
        stream: bool = False,
        backend: Backend | Target | None = None,
        use_thread: bool = True,
        **kwargs: Any,
    ) -> ProgramState:
        """Run the program. Returns its state once the body has ended, with `stream=True` at once; reading the state waits.

        Args:
            use_thread: no effect; no thread executes statements.
        Raises:
            TypeError: an argument is missing or unknown. TraceError: there is no backend. An exception of the body, unless
                `stream=True`: then it is raised by reading. An error of a generation is raised by reading it, and is in `error()`.
        """
        options, arguments = self._divided(kwargs)
        self._check(args, arguments)
        found = resolve_backend(backend)
        if not stream:
            return self._finished(new_session(found.target, None), found, options, args, arguments)
        arrivals = Arrivals()
        session = new_session(found.target, arrivals)
        execution = Execution(session.recording, found, options, arrivals)
        state = ProgramState(Recorder(execution, State(StateRecord(session.recording))))

        def work() -> None:
            try:
                with session.ended_by_errors(), running_on(found):
                    self._call(state, execution, args, arguments)
                    session.finish()
            except BaseException as error:  # raised by reading the state
                execution.end(error)

        threading.Thread(target=work, name="rtlang-sglang", daemon=True).start()
        return state.outside()

    def _finished(
        self,
        session: Session,
        backend: Backend,
        options: dict[str, Any],
        args: tuple[Any, ...],
        arguments: Mapping[str, Any],
    ) -> ProgramState:
        """Run the body in this thread; its graph may go on. Raises an exception of the body."""
        execution = Execution(session.recording, backend, options, None)
        state = ProgramState(Recorder(execution, State(StateRecord(session.recording))))
        with session.ended_by_errors(), running_on(backend):
            self._call(state, execution, args, arguments)
            session.finish()
        return state

    @overload
    def run_batch(
        self,
        batch_kwargs: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
        *,
        backend: Backend | Target | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        generator_style: Literal[False] = False,
        **options: Any,
    ) -> list[ProgramState]: ...
    @overload
    def run_batch(
        self,
        batch_kwargs: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
        *,
        backend: Backend | Target | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        generator_style: Literal[True],
        **options: Any,
    ) -> Iterator[ProgramState]: ...
    def run_batch(
        self,
        batch_kwargs: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
        *,
        backend: Backend | Target | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        generator_style: bool = False,
        **options: Any,
    ) -> list[ProgramState] | Iterator[ProgramState]:
        """Run the program once for each item and wait for all; the states are in the order of the items.

        Args:
            batch_kwargs: for each run a dict of arguments, or a list or tuple of them by position.
            num_threads: how many bodies may wait for values at the same time; bodies that read nothing need no thread.
            generator_style: return an iterator that gives each state as soon as it and those before it have ended, and starts at most 200
                runs ahead of the caller. The exception of a body is raised in its place.
            options: sampling options of all runs.
        Raises:
            TypeError: an item does not fit the parameters of the function. The first exception of a body, once all have ended.
        """
        for name in options:
            if name not in OPTION_NAMES:
                raise TypeError(f"run_batch() got an unexpected keyword argument {name!r}")
        is_count = isinstance(num_threads, int) and not isinstance(num_threads, bool) and num_threads >= 1
        if num_threads != "auto" and not is_count:
            raise ParameterError("num_threads", num_threads, 'expected "auto" or an integer of at least 1')
        if not isinstance(batch_kwargs, (list, tuple)):
            raise ParameterError("batch_kwargs", batch_kwargs, "expected a list of dicts or of tuples of arguments")
        inputs = [self._arguments(number, item) for number, item in enumerate(batch_kwargs)]
        found = resolve_backend(backend)
        threads = MAX_THREADS if isinstance(num_threads, str) else num_threads
        defaults = run_options(options)

        def run(part: list[dict[str, Any]]) -> list[ProgramState]:
            return self._run_part(part, found, defaults, threads, progress_bar)

        if not generator_style:
            return run(inputs)
        return self._each(inputs, found, defaults, threads, progress_bar)

    def _each(
        self, inputs: list[dict[str, Any]], backend: Backend, options: dict[str, Any], threads: int, progress: bool
    ) -> Iterator[ProgramState]:
        """The states in order, each as soon as its run and those before it have ended; `_WINDOW` runs are ahead of the caller."""

        def start(arguments: dict[str, Any]) -> ProgramState:
            session = new_session(backend.target, None)
            return self._finished(session, backend, options, (), arguments)

        with reporter(progress, self.__name__) as report, ThreadPoolExecutor(threads) as pool:
            running: deque[Future[ProgramState]] = deque()
            rest = iter(inputs)
            try:
                for number in range(len(inputs)):
                    running.extend(pool.submit(start, each) for each in islice(rest, _WINDOW - len(running)))
                    state = running.popleft().result()
                    state.sync()
                    report(number + 1, len(inputs))
                    yield state
            finally:  # the caller may leave early
                for each in running:
                    each.cancel()

    def _run_part(
        self,
        inputs: list[dict[str, Any]],
        backend: Backend,
        defaults: dict[str, Any],
        max_threads: int,
        progress: bool,
    ) -> list[ProgramState]:
        states: dict[int, ProgramState] = {}
        errors: dict[int, Exception] = {}

        def body(inner: State, number: int) -> None:
            execution = Execution(record_of(inner).recording, backend, defaults)
            states[number] = ProgramState(Recorder(execution, inner))
            try:
                with running_on(backend):
                    self._call(states[number], execution, (), inputs[number])
            except Exception as error:
                errors[number] = error
                raise

        body.__name__ = self.__name__  # shown by the progress bar
        numbers = [{"number": number} for number in range(len(inputs))]
        batch.run_batch(
            Body(body),
            numbers,
            ProgramOptions(backend.target, on_error="result"),
            progress=progress,
            max_threads=max_threads,
        )
        if errors:
            raise errors[min(errors)]
        return [states[number] for number in range(len(inputs))]

    def trace(self, *, backend: Backend | Target | None = None, **kwargs: Any) -> Trace:
        """Record the program without running it. Arguments that are not given are inputs, which have no text.

        Raises:
            TraceError: the body needs the text of a value or of an input; names the line.
        """
        arguments = {**kwargs, **self.bind_arguments}
        return trace(self.func, self.arg_names, arguments, backend)

    def cache(self, backend: Backend | Target | None = None) -> None:
        """Cache the common prefix of all runs: the text appended before the first argument or value."""
        compute_prefix(self.func, self.arg_names, self.bind_arguments, resolve_backend(backend))

    def __call__(self, *args: Any, **kwargs: Any) -> ProgramState:
        """`run`; within a trace, a part of the trace."""
        if not is_tracing():
            return self.run(*args, **kwargs)
        return call_in_trace(self.func, args, {**kwargs, **self.bind_arguments})

    def __repr__(self) -> str:
        return f"<SglFunction {self.__name__}>"

    def _call(
        self, state: ProgramState, execution: Execution, args: tuple[Any, ...], arguments: Mapping[str, Any]
    ) -> None:
        try:
            execution.ret_value = self.func(state, *args, **arguments)
        except BaseException as error:
            execution.end(error)
            raise
        execution.end()

    def _divided(self, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The options of a run, defaults included, and its arguments."""
        names = OPTION_NAMES.difference(self.arg_names)
        options = {name: value for name, value in kwargs.items() if name in names}
        arguments = {name: value for name, value in kwargs.items() if name not in names}
        return run_options(options), {**arguments, **self.bind_arguments}

    def _arguments(self, number: int, item: object) -> dict[str, Any]:
        if isinstance(item, Mapping):
            found = dict(item)
        elif isinstance(item, (list, tuple)) and len(item) <= len(self.arg_names):
            found = dict(zip(self.arg_names, item, strict=False))
        else:
            raise TypeError(
                f"batch_kwargs[{number}] = {item!r}: expected a dict, or a tuple of at most {len(self.arg_names)} arguments"
            )
        found |= self.bind_arguments
        self._check((), found, f"batch_kwargs[{number}]: ")
        return found

    def _check(self, args: tuple[Any, ...], arguments: Mapping[str, Any], where: str = "") -> None:
        try:
            inspect.signature(self.func).bind(None, *args, **arguments)
        except TypeError as error:
            raise TypeError(f"{where}{self.__name__}(): {error}") from None


@overload
def function(func: Callable[..., Any]) -> SglFunction: ...
@overload
def function(
    func: None = None, num_api_spec_tokens: int | None = None
) -> Callable[[Callable[..., Any]], SglFunction]: ...
def function(func: Callable[..., Any] | None = None, num_api_spec_tokens: int | None = None) -> Any:
    """Make a program of a function, as `@function` or `@function(...)`.

    Raises:
        TraceError: the function has no parameter for the state, or is async.
    """
    if func is not None:
        return SglFunction(func, num_api_spec_tokens)
    return lambda given: SglFunction(given, num_api_spec_tokens)
