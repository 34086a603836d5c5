"""Decides by measurement whether the outputs of a step are delivered beside the next step or before it.

Delivering beside a step takes the time of the listeners from the engine thread. It may also cost time: the second thread has to be woken,
both share the interpreter lock and, without a spare core, the processor. All of that shows as time in which the engine thread does not run
during the step. So steps of both kinds are measured all the time, and the kind that was faster recently is used.
"""

from __future__ import annotations

from dataclasses import dataclass

TRY_EVERY = 32
"""One step in so many is of the other kind."""
_MARGIN = 1.1
"""The work must take this many times the cost of doing it beside a step."""
_RATE = 0.06
"""Change of a median by one measurement, as a share of its value."""
_LEAST_S = 1e-6


@dataclass(slots=True)
class Median:
    """A running estimate of a median that single long measurements hardly change; it follows a change within some 50 measurements."""

    seconds: float | None = None

    def note(self, seconds: float) -> None:
        """Take in a measurement."""
        if self.seconds is None:
            self.seconds = seconds
        else:
            change = min(abs(seconds - self.seconds), max(self.seconds, _LEAST_S) * _RATE)
            self.seconds += change if seconds > self.seconds else -change


class OverlapChoice:
    """The choice for one engine. Used on the engine thread.

    Args:
        is_forced: always beside the next step.

    Attributes:
        is_beside: whether the outputs of the last step are delivered beside the step that is computed now.
    """

    def __init__(self, *, is_forced: bool = False) -> None:
        self.is_beside = is_forced
        self._is_forced = is_forced
        self._work, self._idle_beside, self._idle_before = Median(), Median(), Median()
        self._num_steps = 0

    @property
    def is_worthwhile(self) -> bool:
        """Whether work beside steps takes less time from the engine thread than it costs, as far as both were measured."""
        work, beside, before = self._work.seconds, self._idle_beside.seconds, self._idle_before.seconds
        if work is None or beside is None or before is None:
            return False
        return work > _MARGIN * (beside - before)

    def note(self, work_s: float, idle_s: float) -> None:
        """Take in a step.

        Args:
            work_s: processor time that it took to deliver the outputs of the step before.
            idle_s: time in which the engine thread did not run while it computed this step.
        """
        if work_s:
            self._work.note(work_s)
            (self._idle_beside if self.is_beside else self._idle_before).note(idle_s)

    def choose(self) -> bool:
        """Choose for the outputs of the step that was just computed; sets `is_beside`."""
        self._num_steps += 1
        self.is_beside = self._is_forced or self.is_worthwhile != (self._num_steps % TRY_EVERY == 0)
        return self.is_beside
