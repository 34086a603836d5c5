"""Compiles the stop patterns of requests on the compile lanes, and caches them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future

from rtlang.engine.constraints.lanes import CompileLanes, cancelled
from rtlang.engine.constraints.stop_search import StopPattern, compile_stop_patterns
from rtlang.work.fair_executor import run_or_cancel
from rtlang.work.fair_queue import Owner

_MAX_STOPS = 256
"""Number of requests whose compiled stop patterns are cached."""


class StopCompiler:
    """Compiles `stop_regex`. Safe to use from several threads."""

    def __init__(self, lanes: CompileLanes) -> None:
        self._lanes, self._lock = lanes, threading.Lock()
        self._known: OrderedDict[tuple[str, ...], tuple[StopPattern, ...]] = OrderedDict()

    def compile(self, sources: tuple[str, ...], owner: Owner) -> Future[tuple[StopPattern, ...]]:
        """See `ConstraintCompiler.stop_patterns`."""
        future: Future[tuple[StopPattern, ...]] = Future()
        with self._lock:
            known = self._known.get(sources)
            if known is not None:
                self._known.move_to_end(sources)
        if known is not None:
            future.set_result(known)
        else:
            self._compile(future, sources, owner, 0)
        return future

    def _compile(
        self, future: Future[tuple[StopPattern, ...]], sources: tuple[str, ...], owner: Owner, lane: int
    ) -> None:
        """Compile in a lane; a compilation that takes longer than its slice begins again in the next one."""

        def job() -> None:
            if future.cancelled():
                return
            with self._lanes.working(cancelled(future), lane) as flag:
                try:
                    patterns = compile_stop_patterns(sources, flag)
                except BaseException as error:
                    if flag.is_over:
                        self._compile(future, sources, owner, lane + 1)
                    elif future.set_running_or_notify_cancel():
                        future.set_exception(error)
                    return
            with self._lock:
                self._known[sources] = patterns
                if len(self._known) > _MAX_STOPS:
                    self._known.popitem(last=False)
            if future.set_running_or_notify_cancel():
                future.set_result(patterns)

        size = sum(map(len, sources))
        run_or_cancel(lambda run: self._lanes.submit(run, owner=owner, size=size, lane=lane), job, future)
