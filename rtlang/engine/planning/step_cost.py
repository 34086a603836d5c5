"""The measured cost of a step: a model of its time, fitted from the steps that ran.

Time grows with the number of tokens in a way that depends on the machine: flat while the weights are read from memory, then proportional to
the arithmetic. The model is a line between knots at powers of two, plus a constant for each score (a query token times a key that it sees),
for each key (which a row reads once for all its tokens) and for each sampled token. Its parameters are the state of a Kalman filter; knots
near those that were observed move with them, so a few steps are enough for a useful prediction, and old observations are forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.step import Step

KNOTS = tuple(1 << power for power in range(14))  # tokens of a step: 1 to 8192
_NUM_KNOTS = len(KNOTS)
_SCORE, _KEY, _SAMPLE = range(_NUM_KNOTS, _NUM_KNOTS + 3)  # places in the state, after the knots
_SIZE = _NUM_KNOTS + 3
_REACH = 4.0  # knots this many doublings apart still move together
_NOISE = 0.1  # spread of a measured time, relative to the time
_FORGETTING = 0.02  # share of the initial uncertainty that returns with each observation
_SURPRISE = 3.0  # standard deviations from which an observation counts less: the machine did something else
_SETTLED = 4  # observations before `is_settled`
_USUAL_ROWS, _USUAL_TOKENS = 16, 512  # of `output_weight`
_SHORTEST_S = 1e-6  # no step is expected to take less: callers divide by its time
_UNIT = 1 << 16  # scores, and keys, per unit of the state
# Uncertainty of the times of units at first, relative to the time of the smallest step.
_SCORE_SPREAD, _KEY_SPREAD = 1.0, 4.0
_ERROR_WEIGHT = 0.05
_HOST_WEIGHT, _LONGEST_HOST = 0.1, 4.0  # weight of a new time of the host, and its limit relative to the mean


@dataclass(frozen=True, slots=True)
class StepSize:
    """The amount of work of a step.

    Attributes:
        num_tokens: tokens of all rows.
        num_samples: tokens that are sampled, whose logits are needed.
        num_scores: sum over the tokens of the number of keys that each sees.
        num_keys: sum over the rows of the number of keys that each reads.
    """

    num_tokens: int
    num_samples: int = 0
    num_scores: int = 0
    num_keys: int = 0

    def with_row(self, num_tokens: int, num_before: int, num_samples: int = 0) -> StepSize:
        """The size of the step with one more row: `num_tokens` tokens after `num_before`."""
        return StepSize(
            self.num_tokens + num_tokens,
            self.num_samples + num_samples,
            self.num_scores + num_row_scores(num_tokens, num_before),
            self.num_keys + num_before + num_tokens,
        )

    def with_drafts(self, num_tokens: int, num_scores: int) -> StepSize:
        """The size of the step with so many draft tokens in its rows, which have `num_scores` scores; each is sampled after."""
        return StepSize(
            self.num_tokens + num_tokens,
            self.num_samples + num_tokens,
            self.num_scores + num_scores,
            self.num_keys + num_tokens,
        )


def num_row_scores(num_tokens: int, num_before: int) -> int:
    """Keys seen by `num_tokens` consecutive tokens that have `num_before` before them."""
    return num_tokens * num_before + num_tokens * (num_tokens + 1) // 2


def size_of(step: Step) -> StepSize:
    """The size of a step."""
    num_tokens = num_samples = num_scores = num_keys = 0
    for row in step.rows:
        length = len(row.token_ids)
        num_tokens += length
        num_samples += row.num_sampled + len(row.score_token_ids)
        num_scores += num_row_scores(length, row.num_computed_tokens)
        num_keys += row.num_computed_tokens + length
    return StepSize(num_tokens, num_samples, num_scores, num_keys)


class StepCost:
    """Predicts the time of steps on this machine. Used on the engine thread.

    Attributes:
        num_observed: number of observed steps.
        error: recent mean of the relative error of predictions, 0 before the first.
        host_s: recent mean of the time between the results of a step and the beginning of the next launch, in seconds; 0 before the first.
            A device rests meanwhile, unless the next step was launched before the results came.
    """

    def __init__(self) -> None:
        self.num_observed = 0
        self.error = self.host_s = 0.0
        self._state: list[float] = []
        self._covariance = self._initial = np.zeros((0, 0))

    @property
    def is_settled(self) -> bool:
        """Whether enough steps were observed to rely on predictions."""
        return self.num_observed >= _SETTLED

    def predict(self, size: StepSize) -> float:
        """Expected time of a step, in seconds: positive, but 0 before the first observation."""
        state = self._state
        if not state:
            return 0.0
        low, share = _place(size.num_tokens)
        seconds = state[low] * (1 - share) + (state[low + 1] * share if share else 0.0)
        seconds += (state[_SCORE] * size.num_scores + state[_KEY] * size.num_keys) / _UNIT
        return max(_SHORTEST_S, seconds + state[_SAMPLE] * size.num_samples)

    def output_weight(self) -> float | None:
        """Tokens of a prompt that take as long as one output token, both in steps of a usual size; None if that is not known yet."""
        if not self.is_settled:
            return None
        rows = StepSize(0)
        for _ in range(_USUAL_ROWS):
            rows = rows.with_row(1, _USUAL_TOKENS, 1)
        prompt_s, output_s = self.predict(StepSize(0).with_row(_USUAL_TOKENS, 0)), self.predict(rows)
        if min(prompt_s, output_s) <= _SHORTEST_S:
            return None
        return (output_s / _USUAL_ROWS) / (prompt_s / _USUAL_TOKENS)

    def most_tokens(self, size: StepSize, num_before: int, seconds: float, *, least: int, most: int) -> int:
        """The largest chunk, of `least` to `most` tokens after `num_before`, with which a step is expected to take at most `seconds`.

        Args:
            size: of the step without the chunk.
        Returns:
            `least` if even that is expected to take longer.
        """
        while least < most:
            middle = (least + most + 1) // 2
            if self.predict(size.with_row(middle, num_before)) <= seconds:
                least = middle
            else:
                most = middle - 1
        return least

    def observe(self, size: StepSize, seconds: float) -> None:
        """Take in the measured time of a step."""
        if size.num_tokens <= 0 or seconds <= 0:
            return
        if not self._state:
            self._begin(size, seconds)
        else:
            self.error += _ERROR_WEIGHT * (abs(self.predict(size) - seconds) / seconds - self.error)
        self.num_observed += 1
        row = features(size)
        state = np.array(self._state)
        residual = seconds - float(row @ state)
        gains = self._covariance @ row
        spread = float(row @ gains)
        noise = (_NOISE * seconds) ** 2
        surprise = abs(residual) / ((spread + noise) ** 0.5 * _SURPRISE)
        if surprise > 1 and self.is_settled:
            noise = (spread + noise) * surprise**2 - spread
        gains /= spread + noise
        self._state = np.maximum(state + gains * residual, 0.0).tolist()
        self._covariance -= np.outer(gains, row @ self._covariance)
        self._covariance += _FORGETTING * (self._initial - self._covariance)

    def observe_host(self, seconds: float) -> None:
        """Take in the time that the host needed between two steps."""
        if not self.host_s:
            self.host_s = seconds
        self.host_s += _HOST_WEIGHT * (min(seconds, _LONGEST_HOST * self.host_s) - self.host_s)

    def _begin(self, size: StepSize, seconds: float) -> None:
        """The state before the first observation: a shape that suits most machines, scaled to the observed time."""
        shape = np.array([1 + knot / 16 for knot in KNOTS])
        scale = seconds / float(np.interp(size.num_tokens, KNOTS, shape))
        spread = 0.5 * scale * shape
        distance = np.abs(np.subtract.outer(np.arange(_NUM_KNOTS), np.arange(_NUM_KNOTS)))
        covariance = np.zeros((_SIZE, _SIZE))
        covariance[:_NUM_KNOTS, :_NUM_KNOTS] = np.outer(spread, spread) * np.exp(-distance / _REACH)
        covariance[_SCORE, _SCORE] = (_SCORE_SPREAD * scale) ** 2
        covariance[_KEY, _KEY] = (_KEY_SPREAD * scale) ** 2
        covariance[_SAMPLE, _SAMPLE] = (0.1 * scale) ** 2
        self._state = [*(scale * shape).tolist(), 0.0, 0.0, 0.0]
        self._initial, self._covariance = covariance, covariance.copy()


def _place(num_tokens: int) -> tuple[int, float]:
    """The knot at or below a number of tokens, and the share of the way to the next; beyond the last knot the last line goes on."""
    low = min(bisect_right(KNOTS, max(1, num_tokens)) - 1, _NUM_KNOTS - 2)
    return low, (max(1, num_tokens) - KNOTS[low]) / KNOTS[low]


def features(size: StepSize) -> NDArray[np.float64]:
    """The factors of the model's parameters: of the time at each knot, and of that of a unit of scores and keys, and of a sample."""
    row = np.zeros(_SIZE)
    low, share = _place(size.num_tokens)
    row[low], row[low + 1] = 1 - share, share
    row[_SCORE], row[_KEY] = size.num_scores / _UNIT, size.num_keys / _UNIT
    row[_SAMPLE] = size.num_samples
    return row
