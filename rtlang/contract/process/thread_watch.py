"""A debug timer for the two threads that serve all clients: the event loop of a server and the engine thread.

No call may hold one of them for long, since all streams wait for it. With RTLANG_WATCH_MS set, every callback and command there is timed;
one that takes more milliseconds is logged with its name and the place of the thread when the limit was reached. Only processor time of the
thread counts, so a busy machine causes no reports; the model's computation is left out. Without the variable nothing is timed.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)

VARIABLE = "RTLANG_WATCH_MS"
default_limit_ms: float | None = None
"""The limit without the variable; for tests. None times nothing."""
_MAX_KEPT = 1000
_STACK_FRAMES = 6
_UNKNOWN = "an unknown place"
_THREAD = re.compile(r"(?i:thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that took too long.

    Attributes:
        thread: the watched thread.
        what: the function.
        seconds: time that the thread computed, without the collection of garbage.
        place: where the thread was when the limit was over; empty if the call was over before anybody looked.
    """

    thread: str
    what: str
    seconds: float
    place: str


class ThreadWatch:
    """Times the calls of one thread. `call` is used on that thread only.

    Args:
        thread: its name in reports.
        limit_s: the time above which a call is reported.

    Attributes:
        slow_calls: the last reports.
        num_calls: number of timed calls.
    """

    def __init__(self, thread: str, limit_s: float) -> None:
        self.thread, self.limit_s = thread, limit_s
        self.slow_calls: deque[SlowCall] = deque(maxlen=_MAX_KEPT)
        self.num_calls = 0
        self._excluded_s = 0.0
        self._gc_began = 0.0
        self._ident: int | None = None
        self._since: float | None = None  # wall time at which the running call began
        self._place = ""
        self._is_over = threading.Event()
        self._observer: threading.Thread | None = None

    def call(self, act: Callable[[], Any], what: object = None) -> None:
        """Call a function; reports it if it takes long."""
        if self._ident is None:
            self._begin()
        self.num_calls += 1
        self._excluded_s, self._place = 0.0, ""
        started, self._since = time.thread_time(), time.perf_counter()
        try:
            act()
        finally:
            seconds = time.thread_time() - started - self._excluded_s
            self._since = None
            if seconds > self.limit_s:
                self._report(act if what is None else what, seconds)

    def excluding(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose time does not count."""

        def run(*args: Any, **options: Any) -> Any:
            started, since = time.thread_time(), self._since
            self._since = None
            try:
                return function(*args, **options)
            finally:
                self._excluded_s += time.thread_time() - started
                self._since = None if since is None else time.perf_counter()

        return run

    def close(self) -> None:
        """Stop observing. Idempotent."""
        self._is_over.set()
        if self._on_gc in gc.callbacks:
            gc.callbacks.remove(self._on_gc)

    def _begin(self) -> None:
        self._ident = threading.get_ident()
        gc.callbacks.append(self._on_gc)
        self._observer = threading.Thread(target=self._observe, name="thread-watch", daemon=True)
        self._observer.start()

    def _on_gc(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._ident:
            return
        if phase == "start":
            self._gc_began = time.thread_time()
        else:
            self._excluded_s += time.thread_time() - self._gc_began

    def _observe(self) -> None:
        while not self._is_over.wait(self.limit_s / 2):
            since = self._since
            if since is None or self._place or time.perf_counter() - since < self.limit_s:
                continue
            place = " < ".join(stack_of(self._ident or 0)[:_STACK_FRAMES])
            if self._since == since:
                self._place = place or _UNKNOWN

    def _report(self, what: object, seconds: float) -> None:
        found = SlowCall(self.thread, name_of(what), seconds, self._place)
        self.slow_calls.append(found)
        logger.warning(
            "the %s was held for %.1f ms by %s; at %s",
            self.thread,
            seconds * 1000,
            found.what,
            found.place or "its end",
        )


def exclude_computation(watch: ThreadWatch | None, runner: object) -> None:
    """Leave out the model's own computation."""
    if watch is not None:
        for name in ("launch", "sample", "collect"):
            setattr(runner, name, watch.excluding(getattr(runner, name)))


def watch_of(thread: str) -> ThreadWatch | None:
    """The watch of a thread if RTLANG_WATCH_MS asks for one, else None.

    Raises:
        ValueError: the variable is not a positive number.
    """
    value = os.environ.get(VARIABLE, "")
    if not value and default_limit_ms is None:
        return None
    limit_ms = float(value) if value else float(default_limit_ms or 0)
    if not limit_ms > 0:
        raise ValueError(f"{VARIABLE} = {value!r}: expected a positive number of milliseconds")
    return ThreadWatch(thread, limit_ms / 1000)


def stack_of(ident: int) -> list[str]:
    """Where a thread is: "function (file:line)", the innermost first; empty if that is not known: it has ended, it is not one of the
    100 newest, or there is no temporary file.

    Frame objects of another thread (`sys._current_frames`) are not safe in Python 3.11: making one can begin a garbage collection, whose
    callbacks let that thread leave the frame, and the object is then written over whatever took its place. `faulthandler` makes none.
    """
    try:
        with tempfile.TemporaryFile("w+", encoding="ascii", errors="replace") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            return stack_in(file.read(), ident)
    except OSError:
        return []


def stack_in(text: str, ident: int) -> list[str]:
    """The last stack of a thread in the output of `faulthandler`; see `stack_of`."""
    for lines in reversed(text.split("\n\n")):
        head = _THREAD.search(lines)
        if head is not None and int(head[1], 16) == ident:
            return [f"{name} ({path}:{line})" for path, line, name in _FRAME.findall(lines)]
    return []


class WatchedLoop:
    """Times the callbacks of an event loop of asyncio, until `close`.

    Args:
        loop: the loop, on whose thread this is created.
        watch: receives the times.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, watch: ThreadWatch) -> None:
        self._watch = watch
        self._original = original = asyncio.Handle._run

        def run(handle: asyncio.Handle) -> None:
            if getattr(handle, "_loop", None) is loop:
                watch.call(lambda: original(handle), handle)
            else:
                original(handle)

        self._run = run
        asyncio.Handle._run = run  # type: ignore[method-assign, assignment]

    def close(self) -> None:
        """Time no more callbacks. Idempotent."""
        if asyncio.Handle._run is self._run:
            asyncio.Handle._run = self._original  # type: ignore[method-assign]
        self._watch.close()


def name_of(what: object) -> str:
    """The name of a function, of the function of a handle, or of the coroutine of a task."""
    if isinstance(what, str):
        return what
    if isinstance(what, asyncio.Handle):
        what = getattr(what, "_callback", what)
    owner = getattr(what, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {getattr(owner.get_coro(), '__qualname__', owner.get_name())}"
    what = getattr(what, "func", what)  # of a partial
    return str(getattr(what, "__qualname__", None) or type(what).__qualname__)
