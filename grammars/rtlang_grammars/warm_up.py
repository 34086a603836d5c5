"""Everything that numba compiles for grammars, ahead of time: the code is kept on disk, for this and later processes."""

from __future__ import annotations

import time

from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.vocabulary import Vocabulary


def warm_up() -> float:
    """Have all code ready; the seconds that took. Up to a minute where nothing is on disk, a fraction of a second where it is."""
    started = time.perf_counter()
    letters = tuple(bytes([byte]) for byte in range(256))
    EngineBackend.create(Vocabulary(letters, frozenset((256,)), frozenset((256,)), 257))
    return time.perf_counter() - started
