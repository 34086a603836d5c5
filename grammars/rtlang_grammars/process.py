"""Settings of the whole Python process that decide how long a mask may have to wait: whose turn it is, and when garbage is sought.

- Threads change places after half a millisecond instead of five. A thread that compiles a large grammar in Python keeps the interpreter
  for that long whenever a step needs it, several times in a step: masks of others then took up to 16 ms beside hostile inputs.
- Full collections of garbage look through every object that lives. Python begins one whenever a quarter more objects have survived than
  at the last, in the middle of whatever runs then: 5-10 ms in a mask. What is loaded when the process begins to serve is set aside
  (`gc.freeze`); young objects are looked through as ever, those of the middle generation sooner and so fewer at a time (1 ms was usual),
  old ones when nobody waits (`tidy`), or after several times as many allocations.

While something is loaded (`loading`), none is sought at all: what modules and models make stays.

The settings are of the process, so they are counted: they hold from the first `begin` to the last `end`, which puts back what was there.
Where someone has turned the collecting of garbage off, or set objects aside, nothing is collected or set aside here: there is no telling
whose objects are whose afterwards. A fork of the process, in which nobody serves, begins with what was there before.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
MIDDLE_AFTER = 3
"""Collections of the young generation between two of the middle one (Python: 10)."""
FULL_AFTER = 600
"""Collections of the middle generation between two full ones (Python: 10): some 1.7 million objects more than were freed."""
TIDY_AFTER = 30
"""Where nobody waits, such collections after which a full one is worth its time."""

_lock = threading.Lock()
_num_users = 0
_before: tuple[float, tuple[int, int, int]] | None = None
_set: tuple[float, tuple[int, int, int]] | None = None
_freezes = False
"""Whether what is frozen is so by this module."""
_num_loading = 0
_collected = False
"""Whether garbage was collected before something was loaded, and will be."""
_is_registered = False


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage meanwhile, for a time in which much is made that stays: a cold start takes a tenth less. May be nested.

    Where someone turns collecting off meanwhile, it is on afterwards: there is no telling by whom it was.
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
            if _num_loading:  # not in a fork
                _num_loading -= 1
                if _num_loading == 0 and _collected:
                    gc.enable()


def begin() -> None:
    """Set the process up for serving, once everything is loaded. Takes a full collection of garbage. Without effect where it raises."""
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
        except BaseException:  # an interrupt
            end()
            raise


def end() -> None:
    """Take back one `begin`. The last puts the settings back, but for those that someone else has changed meanwhile."""
    global _num_users
    with _lock:
        assert _num_users > 0, "begin comes first"
        _num_users -= 1
        if _num_users == 0:
            _put_back()


def tidy() -> None:
    """Look for garbage among the older objects, if that is due. For moments in which nobody waits for this process."""
    if _num_users and gc.isenabled() and gc.get_count()[2] >= TIDY_AFTER:
        gc.collect()


def _collects() -> bool:
    return _collected if _num_loading else gc.isenabled()


def _register() -> None:
    global _is_registered
    if not _is_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_anew)
        _is_registered = True


def _put_back() -> None:
    assert _before is not None
    assert _set is not None
    interval, thresholds = _now()
    if interval == _set[0] != _before[0]:
        sys.setswitchinterval(_before[0])
    if thresholds == _set[1]:
        gc.set_threshold(*_before[1])
    if _freezes:
        gc.unfreeze()


def _begin_anew() -> None:
    """In the child of a fork: those who serve or load did not come along, nor did whoever holds the lock."""
    global _lock, _num_users, _num_loading
    _lock = threading.Lock()
    if _num_users:
        _num_users = 0
        _put_back()
    if _num_loading:
        _num_loading = 0
        if _collected:
            gc.enable()


def _now() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()
