"""A running program as the scheduler sees it: when it arrived, by when it must end, and how much of the machine it has had."""

from __future__ import annotations


class ProgramAccount:
    """Shared by the requests of one graph. Used on the engine thread.

    Attributes:
        arrival_time: in seconds of the engine's clock.
        deadline: time at which it fails if it has not ended, in seconds of the engine's clock; None for no such time.
        service_s: expected time of everything that was computed for it, in seconds.
    """

    __slots__ = ("arrival_time", "deadline", "service_s")

    def __init__(self, arrival_time: float, deadline: float | None = None) -> None:
        self.arrival_time, self.deadline = arrival_time, deadline
        self.service_s = 0.0
