"""A condition variable for threads and coroutines whose waits can be interrupted by Ctrl-C at any point."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

# An interrupt just before a thread falls asleep is noticed when it wakes, so threads wake regularly.
SLICE_S = 1.0


class InterruptibleCondition:
    """A reentrant lock for shared state, with notification of its changes.

    Attributes:
        lock: guards compound reads and changes of the shared state.

    A `threading.Condition` that is interrupted at the wrong moment stays locked or is released twice. Here the lock is only taken by
    `with condition.lock`, which an interrupt cannot split, and no thread sleeps while holding it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._sleepers: deque[threading.Lock] = deque()
        self._futures: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    def notify_all(self) -> None:
        """Wake all waiting threads and coroutines. Call this after a change."""
        for _ in range(len(self._sleepers)):  # those that sleep again in the meantime have seen the change
            try:
                sleeper = self._sleepers.popleft()
            except IndexError:
                break
            sleeper.release()
        for _ in range(len(self._futures)):
            try:
                loop, future = self._futures.popleft()
            except IndexError:
                break
            _wake(loop, future)

    def wait(self, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Block until `is_ready`, which is called at the start, after each notification and at the end; returns its result.

        Args:
            is_ready: called without the lock.
            timeout_s: seconds after which to give up; None waits forever.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            sleeper = threading.Lock()
            sleeper.acquire()
            self._sleepers.append(sleeper)
            if is_ready():
                self._forget(sleeper)
                return True
            left = SLICE_S if end is None else min(end - time.monotonic(), SLICE_S)
            if left <= 0:
                self._forget(sleeper)
                return False
            if not sleeper.acquire(timeout=left):
                self._forget(sleeper)

    async def wait_async(self, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """`wait` for a coroutine; holds no thread."""
        loop = asyncio.get_running_loop()
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not is_ready():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                await asyncio.sleep(0)  # a caller that polls must not starve the event loop
                return is_ready()
            future: asyncio.Future[None] = loop.create_future()
            entry = (loop, future)
            self._futures.append(entry)
            timer = None if left is None else loop.call_later(left, _settle, future)
            try:
                if is_ready():
                    return True
                await future
            finally:
                if timer is not None:
                    timer.cancel()
                if entry in self._futures:
                    self._futures.remove(entry)
        return True

    def _forget(self, sleeper: threading.Lock) -> None:
        try:
            self._sleepers.remove(sleeper)
        except ValueError:  # it was just notified
            return


class _Waker:
    """Settles futures of one event loop, from any thread. Waking a loop is a system call, and events arrive in bursts."""

    __slots__ = ("_futures", "_is_called", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: list[asyncio.Future[None]] = []
        self._is_called = False

    def settle_soon(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        with self._lock:
            self._futures.append(future)
            is_called, self._is_called = self._is_called, True
        if is_called:
            return
        try:
            loop.call_soon_threadsafe(self._settle_all)
        except RuntimeError:  # the loop is closed: nothing waits there any more
            self._futures.clear()

    def _settle_all(self) -> None:
        with self._lock:
            futures, self._futures, self._is_called = self._futures, [], False
        for future in futures:
            _settle(future)


_wakers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waker] = WeakKeyDictionary()


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    waker = _wakers.get(loop)
    if waker is None:
        waker = _wakers.setdefault(loop, _Waker())
    waker.settle_soon(loop, future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
