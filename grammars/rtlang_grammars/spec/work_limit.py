"""Bounds the search for a completion path, so that a thread that serves others is not held by one text."""

from __future__ import annotations

from rtlang_grammars.spec.limits import Budget


class WorkLimitError(Exception):
    """The work of a call exceeds its limit. Nothing was changed; the call can be repeated with a larger limit, or without one."""


class WorkLimit:
    """The work that some calls may do together. Counted and not timed, so that equal calls end alike.

    Args:
        units: of about 10 microseconds.

    Attributes:
        left: units that are left; negative once the limit was exceeded.
        waits: whether calls may wait for other threads and do work of an unknown amount.
    """

    __slots__ = ("left",)
    waits = False

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, units: int = 1) -> None:
        """Count work that follows.

        Raises:
            WorkLimitError: too little is left.
        """
        self.left -= units
        if self.left < 0:
            raise WorkLimitError

    def stop(self) -> None:
        """Refuse work whose amount is not known.

        Raises:
            WorkLimitError: always.
        """
        raise WorkLimitError


class StoppableWork(WorkLimit):
    """Work that may take as long as its budget: it checks the clock and the cancel flag, and stops for nothing else."""

    __slots__ = ("_budget",)
    waits = True

    def __init__(self, budget: Budget) -> None:
        super().__init__(0)
        self._budget = budget

    def spend(self, units: int = 1) -> None:
        """Check the budget before work that follows.

        Raises:
            GrammarError: the time is up, or the compile was cancelled.
        """
        self._budget.check()

    def stop(self) -> None:
        """Allow work whose amount is not known."""
