"""Limits the tokens of a step, so that decoding requests do not wait long for their next token.

The time of a step that computes a long prompt is the gap between two tokens for all rows that decode in it. The planner gives it as many
tokens as the cost model expects to fit into the target. Without decoding rows a step takes as many tokens as it can.

Beside live work, background work gets at most an eighth of the rows and tokens of a step, and as many as make it a tenth longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.planning.step_cost import StepCost, StepSize
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.turns import Prompt, Turn

GAP_IN_STEPS = 4.0
"""The default target: the time of so many steps that only decode."""

MIN_CHUNK = 8
"""Prompt tokens that a step may compute beside decoding rows in any case, so that prompts always go on."""

BACKGROUND_PART = 8
"""In a step with live work, background work gets at most one of this many rows and tokens."""

BACKGROUND_TIME = 0.1
"""Maximum share by which background work lengthens a step beyond the expected time of its live work; one token is always allowed."""

_RATE_TOKENS = 256  # size of the step from which the time of a prompt token is taken


class StepPlanner:
    """Decides the number of tokens of a step. Used on the engine thread.

    Args:
        cost: is fitted elsewhere, while steps run.
        max_step_tokens, max_shared_step_tokens: limits of one step, the second if several flows have work.
        max_rows: maximum number of rows of a step.
        target_gap_s: maximum time of a step with decoding rows, in seconds; None for `GAP_IN_STEPS` plain steps.
    """

    def __init__(
        self,
        cost: StepCost,
        *,
        max_step_tokens: int,
        max_shared_step_tokens: int,
        max_rows: int,
        target_gap_s: float | None = None,
    ) -> None:
        self.cost = cost
        self._max_step_tokens, self._max_shared_step_tokens = max_step_tokens, max_shared_step_tokens
        self._max_rows, self._target_gap_s = max_rows, target_gap_s
        self._token_s, self._num_observed = 0.0, 0  # the time of a token, and the number of steps that it is known from

    @property
    def token_s(self) -> float:
        """Expected time of one prompt token in a long prompt, in seconds; 0 while it is not known."""
        if self._num_observed != self.cost.num_observed:
            self._num_observed = self.cost.num_observed
            self._token_s = self.cost.predict(StepSize(_RATE_TOKENS)) / _RATE_TOKENS if self.cost.is_settled else 0.0
        return self._token_s

    def limit(self, turns: Sequence[Turn]) -> int:
        """Maximum number of tokens of the next step if no row decodes in it; a step of background work is as short as a shared one."""
        is_shared = len(turns) > 1 or any(turn.flow.is_background for turn in turns)
        return self._max_shared_step_tokens if is_shared else self._max_step_tokens

    def num_tokens(self, turns: Sequence[Turn], prompts: Iterable[Prompt]) -> int:
        """Maximum number of tokens of the next step.

        Args:
            turns: the work of all flows.
            prompts: that the step will compute beside decoding rows, in this order.
        """
        limit = self.limit(turns)
        if not self.cost.is_settled:
            return limit
        decodes = [request for turn in turns for request in turn.decodes][: self._max_rows]
        if not decodes or not any(turn.prefills or turn.flow.waiting for turn in turns):
            return limit
        num_scores = sum(request.num_computed_tokens + 1 for request in decodes)
        # Accepted drafts are computed again: all of them, else their rows would not get on.
        num_replayed = sum(each.num_kv_tokens - each.num_computed_tokens for each in decodes if each.states is not None)
        size = StepSize(len(decodes) + num_replayed, len(decodes), num_scores, num_scores)
        target = self._target_gap_s or GAP_IN_STEPS * self.cost.predict(size)
        for prompt in chain(prompts, [Prompt(0, limit)]):  # the last one stands for those that wait behind them
            most = min(prompt.num_missing, limit - size.num_tokens)
            fitting = self.cost.most_tokens(size, prompt.num_before, target, least=0, most=most)
            size = size.with_row(fitting, prompt.num_before, fitting == prompt.num_missing)
            if fitting < prompt.num_missing:
                break
        return min(limit, max(size.num_tokens, len(decodes) + num_replayed + MIN_CHUNK))

    def num_background_tokens(self, live: Mapping[Request, int], turns: Iterable[Turn]) -> int:
        """Maximum number of tokens of background work in a step with live work, at least 1.

        Args:
            live: the tokens of the step by request.
            turns: the work of background flows.
        """
        most = max(1, self._max_step_tokens // BACKGROUND_PART)
        if not self.cost.is_settled:
            return most
        size = StepSize(0)
        for request, num_tokens in live.items():
            is_sampled = request.num_computed_tokens + num_tokens == request.num_target_tokens
            size = size.with_row(num_tokens, request.num_computed_tokens, is_sampled)
        seconds, num_tokens = (1 + BACKGROUND_TIME) * self.cost.predict(size), 0
        decodes = [request for turn in turns for request in turn.decodes]
        for request in decodes[: min(most, self.max_background_rows)]:
            size = size.with_row(1, request.num_computed_tokens, 1)
            if self.cost.predict(size) > seconds:
                return max(1, num_tokens)
            num_tokens += 1
        return max(1, num_tokens + self.cost.most_tokens(size, 0, seconds, least=0, most=most - num_tokens))

    @property
    def max_background_rows(self) -> int:
        """Maximum number of rows of background work in a step with live work."""
        return max(1, self._max_rows // BACKGROUND_PART)


def planner_for(config: RuntimeConfig, cost: StepCost) -> StepPlanner:
    """The planner of an engine with these settings."""
    return StepPlanner(
        cost,
        max_step_tokens=config.step_limit,
        max_shared_step_tokens=config.shared_step_limit,
        max_rows=config.row_limit,
        target_gap_s=None if config.target_gap_ms is None else config.target_gap_ms / 1e3,
    )
