"""Choices between kernels by measurement: made when a model is loaded, kept on disk for this machine.

`Tuning.choose` times the candidates of a choice in turns and returns the fastest. All measurements of a process take at most `BUDGET_S`
together, one warming call of each candidate aside; a choice that finds the time spent gets its first candidate and is measured by a later
process. Choices change speed only, never results; the exception is the one between vectors and matrix tiles (`linear_tuning`).

A file holds the choices of one kind of machine: its name is a digest of the processor, its features and the sources of the kernels. A
file that is damaged is ignored and replaced. Without a writable cache directory, choices live as long as the process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from rtlang_kernels.host.processor import Processor, processor

logger = logging.getLogger(__name__)

BUDGET_S = 1.0  # of measuring in one process
_ROUNDS = 5
_MIN_GAIN = 0.03  # by which a candidate must be faster than an earlier one
_SOURCES = Path(__file__).parents[1] / "cpu"


@dataclass(frozen=True, slots=True)
class TuningChoice:
    """One choice.

    Attributes:
        name: subject, such as "prefetch of a linear layer".
        shape: the case, such as "bfloat16, 1 to 2 rows".
        chosen: the name of the candidate.
        seconds: least seconds of each candidate, since other load only adds to them; empty if none was measured.
    """

    name: str
    shape: str
    chosen: str
    seconds: dict[str, float] = field(default_factory=dict)


class Tuning:
    """The choices of a process. Safe for several threads, one measurement at a time."""

    def __init__(self, directory: Path | None = None, machine: Processor | None = None) -> None:
        """Read the choices of earlier processes.

        Args:
            directory: where choices are kept; default: `cache_dir`.
        """
        self._lock = threading.RLock()
        self._left_s = BUDGET_S
        self._path = (directory or cache_dir()) / f"{machine_digest(machine or processor())}.json"
        self._stored = _read(self._path)
        self._made: dict[tuple[str, str], TuningChoice] = {}

    def choose(self, name: str, shape: str, candidates: Sequence[str], measure: Callable[[str], float]) -> str:
        """Return the fastest of `candidates`.

        Args:
            name, shape: what is chosen, and for which case; the same in every process that should share the choice.
            candidates: names; the first is taken where nothing can be measured.
            measure: runs a candidate once and returns its seconds. Called several times for each, in turns.
        """
        with self._lock:
            made = self._made.get((name, shape)) or self._stored.get((name, shape))
            if made is None or made.chosen not in candidates:
                made = self._measured(name, shape, candidates, measure)
            self._made[name, shape] = made
            return made.chosen

    def note(self, name: str, shape: str, chosen: str) -> None:
        """Record a choice that follows from the machine and needs no measurement, for `choices`."""
        with self._lock:
            self._made[name, shape] = TuningChoice(name, shape, chosen)

    def value(self, name: str, shape: str, measure: Callable[[], float]) -> float | None:
        """Return a measured figure in seconds, such as the cost of one score; None if there is no time left to measure it."""
        with self._lock:
            self.choose(name, shape, (_FIGURE,), lambda candidate: measure())
            return self._made[name, shape].seconds.get(_FIGURE)

    def choices(self) -> tuple[TuningChoice, ...]:
        """The choices that this process has made or read, in the order of use."""
        with self._lock:
            return tuple(self._made.values())

    def _measured(
        self, name: str, shape: str, candidates: Sequence[str], measure: Callable[[str], float]
    ) -> TuningChoice:
        times: dict[str, list[float]] = {candidate: [] for candidate in candidates}
        if self._left_s <= 0:
            logger.debug("no time to measure %s for %s", name, shape)
            return TuningChoice(name, shape, candidates[0])
        for candidate in candidates:  # compiles, and fills the caches
            measure(candidate)
        begun = time.perf_counter()
        for _ in range(_ROUNDS):
            for candidate in candidates:
                if time.perf_counter() - begun > self._left_s:
                    break
                times[candidate].append(measure(candidate))
        self._left_s -= time.perf_counter() - begun
        if not all(len(found) >= 2 for found in times.values()):
            logger.debug("no time to measure %s for %s", name, shape)
            return TuningChoice(name, shape, candidates[0])
        seconds_of = {candidate: min(found) for candidate, found in times.items()}
        chosen = candidates[0]
        for candidate in candidates[1:]:
            if seconds_of[candidate] < seconds_of[chosen] * (1 - _MIN_GAIN):
                chosen = candidate
        made = TuningChoice(name, shape, chosen, seconds_of)
        self._stored[name, shape] = made
        self._write()
        return made

    def _write(self) -> None:
        """Replace the file by all choices known, those of other processes included."""
        self._stored = _read(self._path) | self._stored
        text = json.dumps([asdict(choice) for choice in self._stored.values()], indent=1)
        with suppress(OSError):  # no writable directory: the choices live as long as the process
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, suffix=".tmp")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(temporary, self._path)
            except OSError:
                os.unlink(temporary)


_FIGURE = "measured"


@cache
def tuning() -> Tuning:
    """The choices of this process."""
    return Tuning()


def cache_dir() -> Path:
    """Where choices are kept: `kernels` in $RTLANG_CACHE_DIR, or in rtlang's folder of the user's cache."""
    given = os.environ.get("RTLANG_CACHE_DIR")
    if given:
        return Path(given) / "kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~")) / ".cache") / "rtlang" / "kernels"


def machine_digest(machine: Processor) -> str:
    """Name of the choices of a kind of machine, with the sources that are installed."""
    digest = hashlib.sha256(repr(machine).encode())
    for path in sorted(_SOURCES.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read(path: Path) -> dict[tuple[str, str], TuningChoice]:
    """The choices in a file; nothing of one that is missing or damaged."""
    try:
        found = [TuningChoice(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    return {(choice.name, choice.shape): choice for choice in found if _is_sound(choice)}


def _is_sound(choice: TuningChoice) -> bool:
    names = all(isinstance(text, str) for text in (choice.name, choice.shape, choice.chosen))
    if not names or not isinstance(choice.seconds, dict) or choice.chosen not in choice.seconds:
        return False
    return all(isinstance(each, float) and math.isfinite(each) and each >= 0 for each in choice.seconds.values())
