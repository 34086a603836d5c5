"""Chooses the drafts of a step, and learns from the tokens that were sampled.

A draft token costs time, and saves a step if it is right. The step with the most expected tokens per second is chosen: draft tokens of all
rows are added in the order of their probability, the likeliest first, as long as the expected number of tokens grows faster than the
predicted time of the step. So a single row drafts many tokens, and many rows draft only tokens that are nearly certain.

The text does not depend on drafts: each sampled token is a function of the tokens before it and of the noise key.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rtlang.engine.drafts.acceptance import Acceptance, OwnAcceptance
from rtlang.engine.drafts.proposal import Proposal, Source
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.request import Request

MAX_DRAFT_TOKENS = 16
"""Most draft tokens of a row."""
MIN_GAIN = 1.03
"""Tokens a second that drafts must gain: less is within the error of the cost."""
MAX_PAUSE = 16
"""Tokens after which a request asks its sources again, if they had nothing that was worth its cost."""

_LOOK_AHEAD = 16  # draft tokens tried beyond the best step so far: cost may be flat behind a jump


class Cost(Protocol):
    """Predicts the time of a step; see `StepCost`."""

    def predict(self, size: StepSize) -> float:
        """Expected time in seconds; 0 if nothing is known."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may draft up to `limit` tokens behind the `num_tokens` that it has computed after the step."""

    request: Request
    limit: int
    num_tokens: int


@dataclass(slots=True)
class _State:
    """The drafts of one request: its last proposals and when to ask for more.

    Attributes:
        proposals: what its sources said last, when it had `num_tokens` tokens; `num_drafted` tokens of the first were computed.
        pause: tokens to wait after a proposal that was not worth its cost.
        next_at: number of tokens from which its sources are asked again.
    """

    own: OwnAcceptance = field(default_factory=OwnAcceptance)
    proposals: list[Proposal] = field(default_factory=list)
    num_tokens: int = 0
    num_drafted: int = 0
    pause: int = 0
    next_at: int = 0


class Drafter:
    """Proposes, chooses and learns. Used on the engine thread.

    Args:
        sources: of tokens; the one that is surest of its first token counts.
        cost: predicts the time of a step.
        max_draft_tokens: limit for a row.

    Attributes:
        num_drafted, num_accepted: draft tokens that were computed and that were right, by source.
    """

    def __init__(self, sources: Iterable[Source], cost: Cost, *, max_draft_tokens: int = MAX_DRAFT_TOKENS) -> None:
        self._sources, self._cost, self._max_draft_tokens = list(sources), cost, max_draft_tokens
        self._acceptance = Acceptance()
        self._states: dict[Request, _State] = {}
        self.num_drafted: Counter[str] = Counter()
        self.num_accepted: Counter[str] = Counter()

    def choose(
        self, candidates: Sequence[Candidate], size: StepSize, num_rows: int, room: int
    ) -> dict[Request, Sequence[int]]:
        """The drafts of a step.

        Args:
            candidates: the rows that may draft.
            size: of the step without drafts.
            num_rows: rows of the step.
            room: most draft tokens of the step.
        """
        cost = self._cost.predict(size)
        if not cost or room <= 0 or not self._may_gain(candidates, size, cost, num_rows):
            return {}
        proposed: list[tuple[Candidate, Sequence[int], list[float]]] = []
        for candidate in candidates:
            found = self._propose(candidate.request, min(candidate.limit, self._max_draft_tokens, room))
            if found is not None:
                proposed.append((candidate, *found))
        if not proposed:
            return {}
        counts = self._best_counts(proposed, size, cost, num_rows, room)
        chosen: dict[Request, Sequence[int]] = {}
        for (candidate, token_ids, _), count in zip(proposed, counts, strict=True):
            state = self._states[candidate.request]
            if count:
                chosen[candidate.request] = token_ids[:count]
            else:
                state.pause = min(MAX_PAUSE, 2 * state.pause + 1)
                state.next_at = state.num_tokens + state.pause
        return chosen

    def note(self, drafts: Mapping[Request, Sequence[int]]) -> None:
        """A step with these drafts, which may be shorter than the chosen ones, is about to run."""
        for request, draft in drafts.items():
            self._states[request].num_drafted = len(draft)

    def forget(self, request: Request) -> None:
        """Learn from the end of a request, and drop its state."""
        state = self._states.pop(request, None)
        if state is not None:
            self._learn(request, state)
        for source in self._sources:
            source.forget(request)

    def _propose(self, request: Request, limit: int) -> tuple[Sequence[int], list[float]] | None:
        """The draft of the surest source, and for each of its tokens the probability that it and all before it are right."""
        state = self._states.get(request)
        if state is None:
            state = self._states[request] = _State()
        if state.proposals:
            self._learn(request, state)
            state.proposals.clear()
            state.num_drafted = 0
        num_tokens = len(request.token_ids)
        if limit <= 0 or num_tokens < state.next_at:
            return None
        best: Proposal | None = None
        highest = 0.0
        for source in self._sources:
            proposal = source.propose(request, limit)
            if proposal is None:
                continue
            probability = self._acceptance.probability(proposal.source, proposal.evidence)
            if probability > highest:
                best, highest = proposal, probability
                state.proposals.insert(0, proposal)
            else:
                state.proposals.append(proposal)
        state.num_tokens = num_tokens
        if best is None:
            return None
        token_ids = self._allowed(request, best.token_ids)
        probabilities: list[float] = []
        likely = 1.0
        for evidence in range(best.evidence, best.evidence + len(token_ids)):
            likely *= state.own.adjusted(self._acceptance.probability(best.source, evidence))
            probabilities.append(likely)
        return (token_ids, probabilities) if token_ids else None

    def _allowed(self, request: Request, token_ids: Sequence[int]) -> Sequence[int]:
        """The tokens before one that ends the text or that the constraint refuses."""
        session = request.session
        if session is not None:
            return token_ids[: session.num_allowed(token_ids)]
        stop_ids = request.stop_ids
        for index, token_id in enumerate(token_ids):
            if token_id in stop_ids:
                return token_ids[:index]
        return token_ids

    def _may_gain(self, candidates: Sequence[Candidate], size: StepSize, cost: float, num_rows: int) -> bool:
        """Whether drafts that are all right would gain enough, with one token for each row, or as many as possible."""
        num_scores = sum(candidate.num_tokens for candidate in candidates)
        for length in (1, self._max_draft_tokens):
            num_more = length * len(candidates)
            larger = StepSize(
                size.num_tokens + num_more,
                size.num_samples + num_more,
                size.num_scores + length * num_scores,
                size.num_keys + num_more,
            )
            if (num_rows + num_more) * cost > MIN_GAIN * num_rows * self._cost.predict(larger):
                return True
        return False

    def _best_counts(
        self,
        proposed: Sequence[tuple[Candidate, Sequence[int], list[float]]],
        size: StepSize,
        cost: float,
        num_rows: int,
        room: int,
    ) -> list[int]:
        """The number of tokens of each draft to compute."""
        counts = [0] * len(proposed)
        heap = [(-probabilities[0], index) for index, (_, _, probabilities) in enumerate(proposed)]
        heapq.heapify(heap)
        order: list[int] = []
        expected = float(num_rows)
        best_rate, best_length = MIN_GAIN * num_rows / cost, 0
        num_scores = size.num_scores
        while heap and len(order) < min(room, best_length + _LOOK_AHEAD):
            likely, index = heap[0]
            candidate, _, probabilities = proposed[index]
            order.append(index)
            counts[index] += 1
            expected -= likely
            num_scores += candidate.num_tokens + counts[index]
            length = len(order)
            larger = StepSize(size.num_tokens + length, size.num_samples + length, num_scores, size.num_keys + length)
            rate = expected / self._cost.predict(larger)
            if rate > best_rate:
                best_rate, best_length = rate, length
            if counts[index] < len(probabilities):
                heapq.heapreplace(heap, (-probabilities[counts[index]], index))
            else:
                heapq.heappop(heap)
        counts = [0] * len(proposed)
        for index in order[:best_length]:
            counts[index] += 1
        return counts

    def _learn(self, request: Request, state: _State) -> None:
        """Compare the proposals with the tokens sampled since."""
        if len(request.token_ids) <= state.num_tokens:
            return
        came = request.token_ids[state.num_tokens :]
        num_right = 0
        for place, proposal in enumerate(state.proposals):
            for index, (expected, token_id) in enumerate(zip(proposal.token_ids, came, strict=False)):
                is_right = expected == token_id
                if not place:
                    num_right += is_right
                    probability = self._acceptance.probability(proposal.source, proposal.evidence + index)
                    state.own.learn(probability, is_right=is_right)
                self._acceptance.learn(proposal.source, proposal.evidence + index, is_right=is_right)
                if not is_right:
                    break
        if state.num_drafted:
            source = state.proposals[0].source
            self.num_drafted[source] += state.num_drafted
            self.num_accepted[source] += min(num_right, state.num_drafted)
            if num_right:
                state.pause = 0
