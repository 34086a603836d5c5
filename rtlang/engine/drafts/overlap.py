"""The price of drafts on a pipelined runner, which launches a step before the results of the last one are there.

A row with drafts must wait for results, before and after its step. Either all rows wait, and the runner rests for the time that the host
needs; or the other rows have a step of their own meanwhile. The better of the two counts in the choice of drafts, and
`step_drafts.held_back` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable

from rtlang.engine.drafts.proposal import Cost
from rtlang.engine.planning.step_cost import StepSize


class Overlap:
    """Compares waiting with going on. Used on the engine thread.

    Args:
        cost: predicts the time of a step.
        rest_s: the time for which the runner rests if all rows wait for the results of a step, in seconds.
    """

    def __init__(self, cost: Cost, rest_s: Callable[[], float]) -> None:
        self._cost, self._rest_s = cost, rest_s
        self._num_expected = self._step_s = 0.0

    def expect(
        self, size: StepSize, num_expected: float, step_s: float, num_drafting: int, num_rests: int = 1
    ) -> tuple[float, float, bool]:
        """The tokens and seconds by which to judge a step with drafts, and whether all rows should wait for its results.

        Args:
            size: of the step without drafts.
            num_expected, step_s: expected tokens and time of the step with drafts.
            num_drafting: rows with drafts.
            num_rests: times that the runner rests if all rows wait.
        """
        waiting_s = step_s + num_rests * self._rest_s()
        num_others = size.num_samples - num_drafting
        if num_others <= 0:
            return num_expected, waiting_s, True
        num_keys = size.num_keys * num_others // size.num_samples
        going_s = step_s + self._cost.predict(StepSize(num_others, num_others, num_keys, num_keys))
        if num_expected * going_s >= (num_expected + num_others) * waiting_s:
            return num_expected, waiting_s, True
        return num_expected + num_others, going_s, False

    def note(self, num_expected: float, step_s: float) -> None:
        """A step with drafts is about to run, with its expected tokens and time."""
        self._num_expected, self._step_s = num_expected, step_s

    def is_wait_better(self, size: StepSize, num_rows: int) -> bool:
        """Whether the rows beside those of the last step with drafts should wait for its results too.

        Args:
            size, num_rows: of the step that they would have meanwhile.
        """
        waiting_s, going_s = self._step_s + self._rest_s(), self._step_s + self._cost.predict(size)
        return not num_rows or self._num_expected * going_s >= (self._num_expected + num_rows) * waiting_s
