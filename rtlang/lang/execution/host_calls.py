"""Runs the functions of host calls, each in a thread of its own, and answers the graph."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable
from typing import Any

from rtlang.contract.errors import ParameterError, RtlangError, ToolError, ValueParseError, described
from rtlang.contract.events import CallRequested
from rtlang.contract.target import GraphRun, checked_answer
from rtlang.lang.control import to_plain
from rtlang.lang.recorded_blocks import HostFunction


def answer_call(event: CallRequested, function: HostFunction | None, run: Callable[[], GraphRun]) -> None:
    """Start a thread that calls `function` and resolves or rejects the call.

    Args:
        function: None if the program does not know the call.
        run: returns the running graph.
    """

    def work() -> None:
        try:
            _answer(event, function, run())
        except RtlangError:  # the graph has ended
            return

    threading.Thread(target=work, name=f"rtlang-call-{event.function[:40]}", daemon=True).start()


def _answer(event: CallRequested, function: HostFunction | None, run: GraphRun) -> None:
    if function is None:
        run.reject(event.node_id, "call", "the program has no function for this call")
        return
    try:
        value = function(event.args)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except (ToolError, ValueParseError) as error:
        run.reject(event.node_id, error.code, error.message, error.facts)
        return
    except BaseException as error:
        run.reject(event.node_id, "call", f"{described(error)} (at {_place(error)})")
        return
    try:
        plain = checked_answer(to_plain(value))
    except Exception as error:  # a value that contains itself, or a model that cannot be written
        reason = error.allowed if isinstance(error, ParameterError) else described(error)
        run.reject(event.node_id, "call", f"it returned no plain data: {reason}")
        return
    run.resolve(event.node_id, plain)


async def _awaited(value: Any) -> Any:
    return await value


def _place(error: BaseException) -> str:
    """`file:line` of the innermost frame outside of this package that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    package = __file__.rpartition("/lang/")[0]
    outside = [frame for frame in frames if not frame.filename.startswith(package)]
    frame = (outside or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"
