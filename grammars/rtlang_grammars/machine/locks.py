"""Questions about the locks of compiled grammars."""

from __future__ import annotations

from threading import RLock


def is_held(lock: RLock) -> bool:
    """Whether another thread holds a lock at this moment."""
    if not lock.acquire(blocking=False):
        return True
    lock.release()
    return False
