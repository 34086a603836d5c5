"""A thread pool for compiled kernels: chunks of one call on several threads, without spinning.

numba's own parallel loops are not used: their compilation takes several times as long, and two threads must not enter their default pool
at once. Waking a sleeping thread costs some 30 us, so callers only split calls that take longer.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

Item = TypeVar("Item")
_Task = tuple[Future[None], Callable[..., None], tuple[object, ...]]


class _Pool:
    """Daemon threads that run tasks in order.

    The standard library's executor refuses tasks as soon as the interpreter begins to exit, when steps may still be running. Its threads
    also start on demand: a task whose thread cannot be started stays queued, and would run in the middle of a later team.

    Raises:
        RuntimeError: a thread cannot be started.
    """

    def __init__(self, num_threads: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._putting = Lock()  # so that no two teams get a part of the threads each
        for index in range(num_threads):
            try:
                Thread(target=self._work, name=f"rtlang-kernels-{index}", daemon=True).start()
            except BaseException:
                for _ in range(index):
                    self._tasks.put(None)
                raise

    def put(self, tasks: Sequence[_Task]) -> None:
        """Run the tasks. As many as there are threads run at the same time, once those before them are done."""
        try:
            with self._putting:
                for task in tasks:
                    self._tasks.put(task)
        except BaseException:  # an interrupt
            for future, *_ in tasks:
                future.cancel()
            raise

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function, arguments = task
            if future.set_running_or_notify_cancel():
                try:
                    function(*arguments)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del task, future, function, arguments  # an idle thread must not keep memory alive


@cache
def _pool(num_threads: int) -> _Pool:
    return _Pool(num_threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_chunks(function: Callable[..., None], chunks: Sequence[tuple[object, ...]]) -> None:
    """Call function(*chunk) for every chunk, the first in this thread. Returns when all are done; re-raises the first exception."""
    run_team(function, chunks, lambda: None)


def run_team(
    function: Callable[..., None], calls: Sequence[tuple[object, ...]], end_waiting: Callable[[], None]
) -> None:
    """Call function(*call) for every call, all at the same time, since they wait for each other; the first in this thread.

    Returns when all are done; re-raises the first exception.

    Args:
        end_waiting: makes the calls return without waiting; called if one of them raises.
    """
    if len(calls) == 1:
        function(*calls[0])
        return

    def run(*call: object) -> None:
        try:
            function(*call)
        except BaseException:
            end_waiting()
            raise

    pool = _pool(len(calls) - 1)
    futures = [Future[None]() for _ in calls[1:]]
    try:
        pool.put([(future, run, call) for future, call in zip(futures, calls[1:], strict=True)])
        run(*calls[0])
    except BaseException:  # perhaps an interrupt between two calls
        end_waiting()
        raise
    finally:
        for future in futures:
            if not future.cancelled():
                future.exception()  # waits: no thread may write to the caller's memory after this
    for future in futures:
        future.result()


def share_out(function: Callable[[Item], None], items: Iterable[Item], num_threads: int) -> None:
    """Call function(item) for every item on up to `num_threads` threads, this one among them, which take the items in order.

    The threads are new ones, so that work that takes seconds holds up no chunks. After an exception no further item is taken; the first
    one is raised once all threads have ended.
    """
    left, errors = deque(items), list[BaseException]()

    def work() -> None:
        try:
            while True:
                try:
                    item = left.popleft()
                except IndexError:
                    return
                function(item)
        except BaseException as error:
            left.clear()
            errors.append(error)

    helpers = [
        Thread(target=work, name=f"rtlang-shared-{index}", daemon=True)
        for index in range(min(num_threads, len(left)) - 1)
    ]
    started = []
    try:
        for helper in helpers:
            helper.start()
            started.append(helper)
        work()
    except BaseException:  # no thread can be started, or an interrupt
        left.clear()
        raise
    finally:
        for helper in started:
            helper.join()
    if errors:
        raise errors[0]
