"""What a compile may cost, and the meter that stops it.

`Limits` are plain numbers, chosen once per process or per request. A `Budget` is one compile's meter over them: everything that may take
long gets it, spends what it makes, and is stopped by a `GrammarError` when something runs out or the compile is cancelled. Nothing else
bounds the work, so whoever loops over input must spend or check.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from rtlang_grammars.spec.errors import GrammarError


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one compile.

    Attributes:
        max_source_bytes: UTF-8 bytes of the source text.
        max_states: states (of automata, of grammars) and syntax nodes together.
        max_depth: nesting of groups, brackets, schemas.
        max_seconds: time of one compile: of its thread on the CPU, and on a busy machine at most four times as much in all.
        max_bytes: memory of the tables of one grammar, as estimated.
    """

    max_source_bytes: int = 1 << 20
    max_states: int = 200_000
    max_depth: int = 200
    max_seconds: float = 2.0
    max_bytes: int = 256 << 20


_CHECK_EVERY = 64
"""Spends between two looks at the clock; a spend stands for some 10 us of work."""
_LATER_SECONDS = 1.0
"""Wall time of one step of what is made while a text is followed."""


class Budget:
    """Counts what one compile has used. Owned by that compile; the cancel flag may be set from any thread."""

    __slots__ = (
        "_cancelled",
        "_cpu_deadline",
        "_deadline",
        "_max_seconds",
        "_thread",
        "_until_check",
        "limits",
        "num_bytes",
        "num_states",
    )

    def __init__(
        self,
        limits: Limits | None = None,
        cancelled: threading.Event | None = None,
        max_seconds: float | None = None,
        *,
        begins: bool = True,
    ) -> None:
        """Nothing used yet.

        Args:
            max_seconds: in place of that of the limits.
            begins: the time begins now; else with the first look at the clock.
        """
        self.limits = limits or Limits()
        self._max_seconds = self.limits.max_seconds if max_seconds is None else max_seconds
        self.num_states = self.num_bytes = 0
        self._cancelled = cancelled
        self._until_check = _CHECK_EVERY
        self._deadline = self._cpu_deadline = 0.0
        self._thread = 0
        if begins:
            self._begin()

    def _begin(self) -> None:
        self._deadline = time.monotonic() + self._max_seconds
        self._cpu_deadline = time.thread_time() + self._max_seconds
        self._thread = threading.get_ident()

    def renewed(self) -> Budget:
        """A fresh budget with the same cancel flag, for what is made while a text is followed.

        Its time begins with the first look at the clock: most of what it is for takes less than reading the clocks of a thread.
        """
        return Budget(self.limits, self._cancelled, min(self._max_seconds, _LATER_SECONDS), begins=False)

    def detach(self) -> None:
        """Listen to the cancel flag no more, nor let budgets made from this one: the compile is done, others go on with its result."""
        self._cancelled = None

    def spend(self, states: int = 0, num_bytes: int = 0) -> None:
        """Count states and bytes that were made; now and then look at the clock.

        Raises:
            GrammarError: more states, bytes or time than allowed, or the compile was cancelled.
        """
        self.num_states += states
        self.num_bytes += num_bytes
        if self.num_states > self.limits.max_states:
            raise GrammarError(f"too complex: more than {self.limits.max_states} states are needed")
        if self.num_bytes > self.limits.max_bytes:
            raise GrammarError(f"too large: the tables need more than {self.limits.max_bytes} bytes")
        self._until_check -= 1
        if self._until_check <= 0:
            self.check()

    def check(self) -> None:
        """Look at the clock and the cancel flag.

        Raises:
            GrammarError: the time is over, or the compile was cancelled.
        """
        self._until_check = _CHECK_EVERY
        if self._cancelled is not None and self._cancelled.is_set():
            raise GrammarError("the compile was cancelled")
        if not self._thread:
            self._begin()
        late = time.monotonic() - self._deadline
        if late > 0 and (late > 3 * self._max_seconds or self._has_worked_as_long()):
            raise GrammarError(f"too complex: it takes more than {self._max_seconds:g} s")

    def _has_worked_as_long(self) -> bool:
        """Whether the thread has had its time on the CPU; another thread than the one that began is judged by the clock."""
        return threading.get_ident() != self._thread or time.thread_time() > self._cpu_deadline

    def check_source(self, source: str) -> None:
        """Refuse a source text that is too long.

        Raises:
            GrammarError: more than `max_source_bytes`.
        """
        limit = self.limits.max_source_bytes
        if len(source) > limit or (len(source) * 4 > limit and len(source.encode("utf-8", "surrogatepass")) > limit):
            raise GrammarError(f"too long: the source has more than {limit} bytes")

    def check_depth(self, depth: int, location: str | None = None) -> None:
        """Refuse nesting that is too deep.

        Raises:
            GrammarError: deeper than `max_depth`.
        """
        if depth > self.limits.max_depth:
            raise GrammarError(f"nested too deeply: more than {self.limits.max_depth} levels", location)
