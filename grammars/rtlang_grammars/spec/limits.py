"""Limits of a compile, and the budget that enforces them.

`Limits` are plain numbers, chosen once per process or request. A `Budget` meters one compile: every step that may take long charges what it
creates and is stopped by a `GrammarError` when a limit is reached or the compile is cancelled. Nothing else bounds the work, so every loop
over input must call `spend` or `check`.
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
        max_source_bytes: UTF-8 bytes of the source text. Read as JSON, so much takes at most about 300 MB.
        max_states: number of states (of automata and grammars) and syntax nodes together.
        max_depth: nesting of groups, brackets, schemas.
        max_seconds: CPU time of the thread that compiles. Time in which it waits for others does not count.
        max_bytes: estimated memory of the tables of one grammar.
    """

    max_source_bytes: int = 4 << 20
    max_states: int = 200_000
    max_depth: int = 200
    max_seconds: float = 2.0
    max_bytes: int = 256 << 20


_CHECK_EVERY = 64
"""Number of calls of `spend` between two checks of the clock; each stands for about 10 us of work."""
_LATER_SECONDS = 1.0
"""Limit on the time of one lazy step while a text is followed."""


class Budget:
    """Counts what one compile has used. Owned by that compile; the cancel flag may be set from any thread."""

    __slots__ = (
        "_cancelled",
        "_cpu_deadline",
        "_deadline",
        "_left",
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
        """Start with nothing used.

        Args:
            max_seconds: replaces the value of the limits.
            begins: True: time is counted from now; False: from the first check of the clock.
        """
        self.limits = limits or Limits()
        self._max_seconds = self._left = self.limits.max_seconds if max_seconds is None else max_seconds
        self.num_states = self.num_bytes = 0
        self._cancelled = cancelled
        self._until_check = _CHECK_EVERY
        self._deadline = self._cpu_deadline = 0.0
        self._thread = 0
        if begins:
            self._begin()

    def _begin(self) -> None:
        """Count the time that is left, on the calling thread from now on."""
        self._deadline = time.monotonic() + self._left  # the CPU time cannot end before
        self._cpu_deadline = time.thread_time() + self._left
        self._thread = threading.get_ident()

    def restart(self) -> None:
        """Count anew, for another attempt of the same compile."""
        self.num_states = self.num_bytes = 0
        self._until_check, self._left = _CHECK_EVERY, self._max_seconds
        self._begin()

    def raise_if_cancelled(self) -> None:
        """Check the cancel flag alone.

        Raises:
            GrammarError: the compile was cancelled.
        """
        if self._cancelled is not None and self._cancelled.is_set():
            raise GrammarError("the compile was cancelled")

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        try:
            self.spend()
            self.check()
        except GrammarError:
            return True
        return False

    def renewed(self) -> Budget:
        """A fresh budget with the same cancel flag, for work done lazily while a text is followed.

        Its time is counted from the first check of the clock: most lazy work takes less time than reading a thread's clock.
        """
        return Budget(self.limits, self._cancelled, min(self._max_seconds, _LATER_SECONDS), begins=False)

    def detach(self) -> None:
        """Ignore the cancel flag from now on, here and in budgets later derived from this one.

        The compile is done and its result is shared.
        """
        self._cancelled = None

    def spend(self, states: int = 0, num_bytes: int = 0) -> None:
        """Count states and bytes; check the clock from time to time.

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
        """Check the CPU time and the cancel flag.

        Reading a thread's clock takes as long as some work, so it is read only when as much wall time has passed.

        Raises:
            GrammarError: the time is up, or the compile was cancelled.
        """
        self._until_check = _CHECK_EVERY
        self.raise_if_cancelled()
        is_same = self._thread == threading.get_ident()
        if is_same and time.monotonic() <= self._deadline:
            return
        if is_same:
            self._left = self._cpu_deadline - time.thread_time()
        if self._left <= 0:
            raise GrammarError(f"too complex: it takes more than {self._max_seconds:g} s")
        self._begin()

    def check_source(self, source: str) -> None:
        """Refuse a source text that is too long.

        Raises:
            GrammarError: it has more than `max_source_bytes`.
        """
        limit = self.limits.max_source_bytes
        if len(source) > limit or (len(source) * 4 > limit and len(source.encode("utf-8", "surrogatepass")) > limit):
            raise GrammarError(f"too long: the source has more than {limit} bytes")

    def check_depth(self, depth: int, location: str | None = None) -> None:
        """Refuse nesting that is too deep.

        Raises:
            GrammarError: it is deeper than `max_depth`.
        """
        if depth > self.limits.max_depth:
            raise GrammarError(f"nested too deeply: more than {self.limits.max_depth} levels", location)
