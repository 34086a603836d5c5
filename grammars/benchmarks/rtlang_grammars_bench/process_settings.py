"""Process settings under which masks are timed: those of a serving runtime (`rtlang.runtime.process`).

The library can be measured without rtlang, so the values are repeated here.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
MIDDLE_AFTER = 3
FULL_AFTER = 600


@contextmanager
def serving() -> Iterator[None]:
    """Switch threads every half millisecond, freeze the objects that live, and collect old garbage rarely; restored on exit."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    young, middle, old = thresholds
    sys.setswitchinterval(min(interval, SWITCH_INTERVAL_S))
    gc.set_threshold(young, min(middle, MIDDLE_AFTER), max(old, FULL_AFTER))
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
