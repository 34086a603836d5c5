"""Bounds the search for a completion path, so that a thread that serves others is not held by one text."""

from __future__ import annotations


class WorkLimitError(Exception):
    """The work of a call exceeds its limit. Nothing was changed; the call can be repeated with a larger limit, or without one."""


class WorkLimit:
    """The work that some calls may do together. Counted and not timed, so that equal calls end alike.

    Args:
        units: of about 10 microseconds.

    Attributes:
        left: units that are left; negative once the limit was exceeded.
    """

    __slots__ = ("left",)

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
