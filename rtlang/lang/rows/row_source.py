"""Reads rows for runs: from any iterable, on a thread of its own, or from an asynchronous iterable, in an event loop.

An iterator may block for as long as it likes, also until a result was read: neither the runs nor the reader of the results wait for it.
It is read on one thread, and closed there once no more rows are wanted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.lang.rows.row_runs import RowRuns

Rows = Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]


def check_rows(rows: object) -> None:
    """Check that `rows` can be read.

    Raises:
        ParameterError: it is neither an iterable nor an asynchronous one, or it is text, bytes or a single mapping.
    """
    is_iterable = hasattr(rows, "__iter__") or hasattr(rows, "__aiter__")
    if not is_iterable or isinstance(rows, (str, bytes, Mapping, type)):
        raise ParameterError(
            "rows", rows, "expected an iterable of mappings of argument names to values, or an asynchronous one"
        )


def is_asynchronous(rows: object) -> bool:
    """Whether rows are read with `async for`."""
    return hasattr(rows, "__aiter__") and not hasattr(rows, "__iter__")


def start_reading(rows: Rows, runs: RowRuns) -> None:
    """Read rows on a new thread."""
    work = partial(asyncio.run, read_async(rows, runs)) if is_asynchronous(rows) else partial(_read, rows, runs)
    threading.Thread(target=partial(copy_context().run, work), name="rtlang-rows", daemon=True).start()


def _read(rows: Any, runs: RowRuns) -> None:
    iterator: Any = None
    try:
        iterator = iter(rows)
        while runs.wait_for_room():
            try:
                row = next(iterator)
            except StopIteration:
                break
            runs.add(checked(row, runs.num_read))
    except BaseException as error:
        runs.fail(error)
    else:
        runs.end_rows()
    finally:
        _close(iterator, runs)


async def read_async(rows: Any, runs: RowRuns) -> None:
    """Read rows of an asynchronous iterable in the running event loop."""
    iterator: Any = None
    reading = asyncio.current_task()
    assert reading is not None
    end = asyncio.ensure_future(_cancelled_at_stop(reading, runs))
    try:
        iterator = aiter(rows)
        while await runs.wait_for_room_async():
            try:
                row = await anext(iterator)
            except StopAsyncIteration:
                break
            runs.add(checked(row, runs.num_read))
    except BaseException as error:  # also the cancellation
        runs.fail(error)
    else:
        runs.end_rows()
    finally:
        end.cancel()
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


async def _cancelled_at_stop(reading: asyncio.Task[Any], runs: RowRuns) -> None:
    """Interrupt an iterator that waits for its next row when no more rows are wanted."""
    await runs.wait_stopped_async()
    reading.cancel()


def checked(row: object, index: int) -> Mapping[str, Any]:
    """A row that was read.

    Raises:
        ParameterError: it is not a mapping of names to values.
    """
    if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
        raise ParameterError(f"rows[{index}]", row, "expected a mapping of argument names to values")
    return row


def _close(iterator: Any, runs: RowRuns) -> None:
    close = getattr(iterator, "close", None)
    if close is None or not hasattr(iterator, "throw"):  # not a generator: it belongs to the caller, like an open file
        return
    try:
        close()
    except BaseException as error:  # raised by its `finally`
        runs.fail(error)
