"""Process-wide Python settings that keep step latency low: the thread switch interval and garbage collection.

- The thread switch interval is 0.5 ms instead of 5 ms. Otherwise a thread that compiles a large grammar in Python holds the interpreter
  lock several times per step; masks of other requests then took up to 16 ms while adversarial inputs were compiled.
- A full garbage collection visits every live object. Python starts one, in the middle of other work, whenever the number of surviving
  objects has grown by a quarter since the last one; this adds 5-10 ms to a mask. Therefore the objects that exist when serving starts are
  frozen (`gc.freeze`), the young generation is collected as usual, the middle one more often and so in smaller portions (1 ms was
  common), and the old one at idle moments (`tidy`) or after several times as many allocations.

The settings are shared by all runtimes of the process, and restored when the last one closes, except those that other code has changed
meanwhile. If other code has frozen objects already, nothing more is frozen: the two could not be told apart later. A forked process, in
which nothing runs, starts with the original settings.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
MIDDLE_AFTER = 3
"""Collections of the young generation per collection of the middle one (Python's default: 10)."""
FULL_AFTER = 600
"""Collections of the middle generation per full one (Python's default: 10), about 1.7 million net allocations."""
TIDY_AFTER = 30
"""Collections of the middle generation after which an idle moment is used for a full one."""

TIDY_REST = 200.0
"""Time between two such collections, as a multiple of the duration of the first one."""

_lock = threading.Lock()
_num_users = 0
_next_tidy = 0.0
"""The time of `time.monotonic` before which no idle moment is used."""
_before: tuple[float, tuple[int, int, int]] | None = None
_set: tuple[float, tuple[int, int, int]] | None = None
_freezes = False
"""Whether this module froze objects."""
_num_loading = 0
_collected = False
"""Whether garbage collection was enabled before loading started."""
_is_registered = False


@contextmanager
def loading() -> Iterator[None]:
    """Disable garbage collection while long-lived objects are created; shortens a cold start by a tenth. May be nested.

    Collection is enabled afterwards even if other code disabled it in between.
    """
    global _num_loading, _collected
    with _lock:
        _num_loading += 1
        if _num_loading == 1:
            _collected = gc.isenabled()
            gc.disable()
            _register()
    try:
        yield
    finally:
        with _lock:
            if _num_loading:  # False in a forked child
                _num_loading -= 1
                if _num_loading == 0 and _collected:
                    gc.enable()


def begin() -> None:
    """Apply the settings, after everything is loaded. Runs a full garbage collection. Has no effect if it raises."""
    global _num_users, _before, _set, _freezes
    with _lock:
        _num_users += 1
        if _num_users == 1:
            interval, (young, middle, old) = _before = _now()
            if interval > SWITCH_INTERVAL_S:
                sys.setswitchinterval(SWITCH_INTERVAL_S)
            gc.set_threshold(young, min(middle, MIDDLE_AFTER), max(old, FULL_AFTER))
            _set = _now()
            _freezes = _collects() and not gc.get_freeze_count()
        _register()
        freezes = _freezes and _collects()
    if freezes:
        try:
            gc.collect()
            gc.freeze()
        except BaseException:  # KeyboardInterrupt
            end()
            raise


def end() -> None:
    """Undo one `begin`. The last one restores the settings, except those that other code has changed."""
    global _num_users
    with _lock:
        assert _num_users > 0, "end without begin"
        _num_users -= 1
        if _num_users == 0:
            _restore()


def tidy() -> None:
    """Run a full garbage collection if one is due. Call this at idle moments.

    One that visits millions of values of a graph takes a second, in which nothing else runs; the next one then waits for minutes.
    """
    global _next_tidy
    if _num_users and gc.isenabled() and gc.get_count()[2] >= TIDY_AFTER and time.monotonic() >= _next_tidy:
        started = time.monotonic()
        gc.collect()
        ended = time.monotonic()
        _next_tidy = ended + TIDY_REST * (ended - started)


def _collects() -> bool:
    return _collected if _num_loading else gc.isenabled()


def _register() -> None:
    global _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_reset_after_fork)
        _is_registered = True


def _restore() -> None:
    assert _before is not None
    assert _set is not None
    interval, thresholds = _now()
    if interval == _set[0] != _before[0]:
        sys.setswitchinterval(_before[0])
    if thresholds == _set[1]:
        gc.set_threshold(*_before[1])
    if _freezes:
        gc.unfreeze()


def _reset_after_fork() -> None:
    """Reset after fork, in the child: the threads that serve, load or hold the lock do not exist here."""
    global _lock, _num_users, _num_loading
    _lock = threading.Lock()
    if _num_users:
        _num_users = 0
        _restore()
    if _num_loading:
        _num_loading = 0
        if _collected:
            gc.enable()


def _now() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()
