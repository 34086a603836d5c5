"""Times of steps without the noise of the machine: a fit to all measured steps of all settings.

On a machine that other processes use, the same step takes up to half as long again at times. A fit over thousands of steps keeps what a
step costs, and so what a planner did, and leaves out when it ran.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rtlang.engine.planning.step_cost import StepSize, features
from rtlang_bench.arrivals.timed_engine import StepRecord

_ROUNDS = 20  # of reweighting
_CLOSE = 0.01  # relative errors below this weigh the same


class StepTimes:
    """Expected time of steps by their size: the least mean relative error of the measured ones, so half of them take longer."""

    def __init__(self, steps: Iterable[StepRecord]) -> None:
        found = [step for step in steps if step.size.num_tokens]
        self._coefficients: NDArray[np.float64] | None = None
        if not found:
            return
        matrix = np.array([features(step.size) / step.seconds for step in found])
        weights = np.ones(len(found))
        for _ in range(_ROUNDS):
            fitted = np.asarray(np.linalg.lstsq(matrix * weights[:, None], weights, rcond=1e-9)[0], np.float64)
            weights = np.maximum(_CLOSE, np.abs(matrix @ fitted - 1)) ** -0.5
            self._coefficients = fitted

    def seconds(self, size: StepSize) -> float:
        """Time of a step of this size; NaN if nothing was measured."""
        return float("nan") if self._coefficients is None else float(features(size) @ self._coefficients)
