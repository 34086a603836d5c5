"""Runs one program: implements `Program.run` and `Program.arun`, and holds the default runtime.

A plain body runs in the caller's thread (`run`) or in its own thread (`arun`) and blocks it at graph breaks; a coroutine body runs in an
event loop and blocks no thread. A body without graph breaks returns at once, and only its graph is waited for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.process.coroutines import run_coroutine
from rtlang.contract.service.target import Target
from rtlang.lang.execution.node_view import Origin
from rtlang.lang.execution.program_run import ProgramRun
from rtlang.lang.execution.result import Result
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.program_state.body import Body
from rtlang.lang.sessions.program_options import OnError, ProgramOptions

_T = TypeVar("_T")


class _Default:
    """The process-wide default runtime, set by `set_default_runtime`."""

    target: Target | None = None


def set_default_runtime(runtime: Target | None) -> None:
    """Set the runtime for programs that are run without one; None removes it."""
    _Default.target = runtime


def default_runtime() -> Target | None:
    """The runtime set by `set_default_runtime`."""
    return _Default.target


def resolve_runtime(runtime: Target | None) -> Target:
    """`runtime`, or the default one.

    Raises:
        TraceError: neither exists. ParameterError: `runtime` is not a runtime.
    """
    found = runtime if runtime is not None else _Default.target
    if found is None:
        raise TraceError("no runtime: pass runtime=... or call rt.set_default_runtime(...) first", user_location())
    if isinstance(found, type) or not callable(getattr(found, "submit", None)):
        raise ParameterError("runtime", found, "expected an rt.Runtime(...) or rt.connect(...)")
    return found


def run(body: Body, options: ProgramOptions) -> Result:
    """Run to the end. See `Program.run`."""
    target = resolve_runtime(options.runtime)
    body.check_complete()
    if body.is_async:
        return run_coroutine(lambda: run_async(body, target, options))
    program_run = ProgramRun(body, target, options, origin=origin_of(body, options))
    program_run.execute()
    program_run.raise_error(even_exceptions=options.on_error == "raise")
    with program_run.session.ended_by_errors():
        program_run.session.wait_final()
    return settle(program_run.result(), options.on_error)


async def arun(body: Body, options: ProgramOptions) -> Result:
    """Run to the end without blocking the event loop. See `Program.arun`."""
    target = resolve_runtime(options.runtime)
    body.check_complete()
    return await run_async(body, target, options)


async def run_async(body: Body, target: Target, options: ProgramOptions, **driving: Any) -> Result:
    """Run to the end; `driving` are further arguments of `Session`."""
    program_run = ProgramRun(body, target, options, origin=origin_of(body, options), **driving)
    with program_run.session.ended_by_errors():  # a cancelled caller cancels the graph
        if body.is_async:
            await program_run.execute_async()
        else:
            await _in_thread(program_run.execute)
        program_run.raise_error(even_exceptions=options.on_error == "raise")
        await program_run.session.wait_final_async()
    return settle(program_run.result(), options.on_error)


def origin_of(body: Body, options: ProgramOptions) -> Origin[Result]:
    """How the result of a run with these options can be computed again."""
    return Origin(body, options, run, arun)


def settle(result: Result, on_error: OnError) -> Result:
    """Return the result, or raise its error if `on_error` is "raise"."""
    if on_error == "raise" and result.error is not None:
        raise result.error
    return result


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Call `work` in a new thread. Bodies may wait for each other, so none may queue for a free worker."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle_future(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)

    def call() -> None:
        value, error = None, None
        try:
            value = work()
        except BaseException as caught:
            error = caught
        try:
            loop.call_soon_threadsafe(settle_future, value, error)
        except RuntimeError:  # the loop is closed: no caller waits any more
            return

    threading.Thread(target=call, name="rtlang-body", daemon=True).start()
    return await done
