"""Decides when the draft model runs, for which rows and how many tokens.

A step of the draft model takes time that other drafts do not need. For each number of tokens the policy compares the expected tokens per
second of both models together with those of the step without them. What the draft model has not computed of a request yet must be paid back
by the rest of its text. Where nothing is expected to be gained, the draft model rests, and is tried from time to time in a small share of
the steps' time, since its acceptance rate is known from its drafts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtlang.engine.drafts.draft_model import MIN_CHUNK, DraftModel
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.drafts.proposal import Cost
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.request import Request

MIN_GAIN = 1.03
"""Tokens a second that drafts must gain: less is within the error of the cost."""
TRIAL_SHARE = 0.01
"""Share of the steps' time that trials may take."""
TRIAL_TOKENS = 4
MAX_PAUSE = 16
"""Steps until the next decision, if nothing was to be gained."""

_MAX_CREDIT = 32.0  # of trials, in steps
_MAX_TAIL = 32  # tokens that the first step of a draft may compute; more are caught up before
_CATCH_UP_SHARE = 1.0  # time of catching up in one step, relative to it
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_USUAL_LENGTH, _LENGTH_WEIGHT = 64.0, 0.1


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A row that the draft model may draft for.

    Attributes:
        num_tokens: tokens of the request that are computed after the step.
        probabilities: for each draft token, that it and all before it are right.
    """

    request: Request
    num_tokens: int
    probabilities: Sequence[float]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A step with other drafts: its size, and the tokens and tokens per second that are expected of it."""

    size: StepSize
    num_tokens: float
    rate: float


class ModelPolicy:
    """Runs the draft model. Used on the engine thread.

    Args:
        cost: predicts the time of steps of the model.
        overlap: the price of drafts on a pipelined runner; None for a runner that computes one step after the other.
    """

    def __init__(self, model: DraftModel, cost: Cost, overlap: Overlap | None = None) -> None:
        self.model, self._cost, self._overlap = model, cost, overlap
        self._credit_s = 0.0
        self._pause = self._num_paused = 0
        self._mean_length = _USUAL_LENGTH

    def is_due(self, step_s: float) -> bool:
        """Whether there is something to decide in a step of so many seconds. Called once for each step."""
        self._credit_s = min(_MAX_CREDIT * step_s, self._credit_s + TRIAL_SHARE * step_s)
        if self.model.is_resting():
            return False
        self._num_paused += 1
        return self._num_paused > self._pause

    def draft(self, rows: Sequence[ModelRow], others: Expectation, rate: float) -> dict[Request, list[int]]:
        """Draft for rows, compute what is missing of others, or try.

        Args:
            others: the step in which the other rows have other drafts, and `rows` none.
            rate: expected tokens per second of the best step without the draft model.
        """
        self._num_paused = 0
        missing = {row.request: self.model.num_missing(row.request) for row in rows}
        ready = [row for row in rows if missing[row.request] <= _MAX_TAIL]
        length, best, _ = self._best(ready, missing, others)
        drafts: dict[Request, list[int]] = {}
        is_gaining = best > MIN_GAIN * rate
        if is_gaining:
            drafts = self.model.draft({row.request: min(length, len(row.probabilities)) for row in ready})
        if self._catches_up(rows, missing, others, rate) or is_gaining:
            self._pause = 0
            return drafts
        self._pause = min(MAX_PAUSE, 2 * self._pause + 1)
        return self._try(min(rows, key=lambda row: missing[row.request]), missing)

    def awaited(self, rows: Sequence[ModelRow], others: Expectation) -> tuple[set[Request], bool]:
        """The rows that should wait for their next token, because drafting after it is expected to pay.

        Args:
            rows: whose next token is being sampled.
            others: the next step, if none waits.
        Returns:
            The rows, and whether all other rows of the step should wait too.
        """
        self._num_paused = 0
        missing = {row.request: self.model.num_missing(row.request) + 1 for row in rows}
        ready = [row for row in rows if missing[row.request] <= _MAX_TAIL]
        _, best, is_wait_better = self._best(ready, missing, others, num_rests=2)
        is_gaining = best > MIN_GAIN * others.rate
        if self._catches_up(rows, missing, others, others.rate, num_rests=2) or is_gaining:
            self._pause = 0
            return ({row.request for row in ready}, is_wait_better) if is_gaining else (set(), False)
        self._pause = min(MAX_PAUSE, 2 * self._pause + 1)
        row = min(rows, key=lambda row: missing[row.request])
        return ({row.request} if sum(self._trial_s(row, missing)) <= self._credit_s else set()), False

    def forget(self, request: Request) -> None:
        """Drop the state of a request that has ended."""
        self.model.forget(request)
        self._mean_length += _LENGTH_WEIGHT * (request.num_output_tokens - self._mean_length)

    def _best(
        self, rows: Sequence[ModelRow], missing: dict[Request, int], others: Expectation, num_rests: int = 1
    ) -> tuple[int, float, bool]:
        """The best number of draft tokens of each row, and the expected tokens per second with it; 0.0 without rows.

        Args:
            num_rests: as in `Overlap.expect`.
        Returns:
            Also whether all other rows should wait for the step.
        """
        if not rows:
            return 0, 0.0, False
        draft_cost = self.model.cost
        first, later = StepSize(0), StepSize(0)
        for row in rows:
            first = first.with_row(missing[row.request], len(row.request.token_ids) - missing[row.request], 1)
            later = later.with_row(1, len(row.request.token_ids), 1)
        first_s, later_s = draft_cost.predict(first), draft_cost.predict(later)
        longest = max(len(row.probabilities) for row in rows)
        best_length, best, is_wait_better = 0, 0.0, False
        for length in _LENGTHS:
            if length > longest:
                break
            expected = others.num_tokens
            num_more = num_scores = 0
            for row in rows:
                count = min(length, len(row.probabilities))
                expected += sum(row.probabilities[:count])
                num_more += count
                num_scores += count * row.num_tokens
            size = others.size.with_drafts(num_more, num_scores)
            seconds, waits = first_s + (length - 1) * later_s + self._cost.predict(size), False
            if self._overlap is not None:
                expected, seconds, waits = self._overlap.expect(others.size, expected, seconds, len(rows), num_rests)
            if expected / seconds > best:
                best_length, best, is_wait_better = length, expected / seconds, waits
        return best_length, best, is_wait_better

    def _catches_up(
        self,
        rows: Sequence[ModelRow],
        missing: dict[Request, int],
        others: Expectation,
        rate: float,
        num_rests: int = 1,
    ) -> bool:
        """Compute the missing tokens of rows if that is expected to pay; returns whether it is."""
        behind = [row for row in rows if missing[row.request] > _MAX_TAIL]
        paid_back = self._worth_catching_up(rows, behind, missing, others, rate, num_rests) if behind else []
        if paid_back:
            self.model.catch_up(paid_back, _CATCH_UP_SHARE * self._cost.predict(others.size))
        return bool(paid_back)

    def _worth_catching_up(
        self,
        rows: Sequence[ModelRow],
        behind: Sequence[ModelRow],
        missing: dict[Request, int],
        others: Expectation,
        rate: float,
        num_rests: int,
    ) -> list[Request]:
        """The requests whose remaining drafts are expected to save more time than computing their missing tokens takes."""
        _, best, _ = self._best(rows, dict.fromkeys(missing, 1), others, num_rests)
        if best <= MIN_GAIN * rate:
            return []
        saved_s = 1 / rate - 1 / best  # for each token
        found: list[Request] = []
        for row in behind:
            request = row.request
            num_left = min(self._mean_length, request.max_tokens - request.num_output_tokens)
            num_missing = missing[request]
            size = StepSize(0).with_row(num_missing, len(request.token_ids) - num_missing)
            if num_left * saved_s > self.model.cost.predict(size):
                found.append(request)
        return found

    def _try(self, row: ModelRow, missing: dict[Request, int]) -> dict[Request, list[int]]:
        """Draft for the row of which the least is missing, or catch up with it, as far as the time for trials allows."""
        request, model = row.request, self.model
        length = min(TRIAL_TOKENS, len(row.probabilities))
        chunk_s, draft_s = self._trial_s(row, missing)
        if chunk_s + draft_s > self._credit_s:
            return {}
        before = model.seconds
        drafts: dict[Request, list[int]] = {}
        if missing[request] > _MAX_TAIL:
            model.catch_up([request], self._credit_s - draft_s)
        if model.num_missing(request) <= _MAX_TAIL and draft_s <= self._credit_s - (model.seconds - before):
            drafts = model.draft({request: length})
        self._credit_s -= model.seconds - before
        return drafts

    def _trial_s(self, row: ModelRow, missing: dict[Request, int]) -> tuple[float, float]:
        """The expected time of a trial: for the first of the missing tokens, and for the draft."""
        request, cost = row.request, self.model.cost
        length = min(TRIAL_TOKENS, len(row.probabilities))
        chunk = StepSize(0).with_row(min(missing[request], MIN_CHUNK), len(request.token_ids))
        return cost.predict(chunk), length * cost.predict(StepSize(0).with_row(1, len(request.token_ids), 1))
