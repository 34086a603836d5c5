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
from typing import NamedTuple

from rtlang.contract.process.current_work import CurrentWork
from rtlang.engine.drafts.acceptance import Acceptance, OwnAcceptance
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.model_policy import MIN_GAIN, Expectation, ModelPolicy, ModelRow
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.drafts.proposal import DRAFT_MODEL, Cost, DraftSource, Proposal
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.request import MAX_REPLAYED_DRAFTS, Request

MAX_DRAFT_TOKENS = MAX_REPLAYED_DRAFTS
"""Most draft tokens of a row."""
MAX_PAUSE = 16
"""Tokens after which a request asks its sources again, if they had nothing that was worth its cost."""

_LOOK_AHEAD = 16  # draft tokens tried beyond the best step so far: cost may be flat behind a jump
MAX_SKIPS = 15
"""Most steps that are skipped after one whose rows no draft could speed up, unless the rows become fewer by a quarter."""
GAPS = ((8, 0, 0), (64, 3, 1), (1 << 30, 7, 3))
"""For steps of fewer rows than the first number: most tokens until a request without proposals asks its sources again, and most steps to
skip after one without drafts. With many rows only nearly certain drafts pay, and looking for them took 5 us per row."""
_MISSES = 4  # times that sources are asked in vain for each token of such a gap
_COMPARED = 4  # draft tokens by which sources are compared with the draft model


class Candidate(NamedTuple):
    """A row that may draft up to `limit` tokens after the `num_tokens` that it has computed after the step."""

    request: Request
    limit: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """The draft of a row, and for each of its tokens the probability that it and all before it are right."""

    candidate: Candidate
    token_ids: Sequence[int]
    probabilities: Sequence[float]


@dataclass(slots=True)
class _State:
    """The drafts of one request: its last proposals and when to ask for more.

    Attributes:
        proposals: what its sources said last, when it had `num_tokens` tokens; `num_drafted` tokens of the first were computed.
        pause: tokens to wait after a proposal that was not worth its cost.
        num_misses: times that its sources were asked in vain, since they last had a proposal.
        next_at: number of tokens from which its sources are asked again.
    """

    own: OwnAcceptance = field(default_factory=OwnAcceptance)
    proposals: list[Proposal] = field(default_factory=list)
    num_tokens: int = 0
    num_drafted: int = 0
    pause: int = 0
    num_misses: int = 0
    next_at: int = 0

    def wait_longer(self) -> None:
        """Ask the sources later, since they had nothing that was worth its cost."""
        self.pause = min(MAX_PAUSE, 2 * self.pause + 1)
        self.next_at = self.num_tokens + self.pause


class Drafter:
    """Proposes, chooses and learns. Used on the engine thread.

    Args:
        sources: of tokens; the one that is surest of its first token counts.
        cost: predicts the time of a step.
        max_draft_tokens: limit for a row.
        model: a draft model, whose drafts count where more of them are expected to be right than of those of the sources.
        overlap: the price of drafts on a pipelined runner; None for a runner that computes one step after the other.
        replays_drafts: whether right drafts are computed again with the next step, as for a model with states; it counts as their cost.

    Attributes:
        num_drafted, num_accepted: draft tokens that were computed and that were right, by source.
        work: the record of the engine thread's work.
    """

    def __init__(
        self,
        sources: Iterable[DraftSource],
        cost: Cost,
        *,
        max_draft_tokens: int = MAX_DRAFT_TOKENS,
        model: ModelPolicy | None = None,
        overlap: Overlap | None = None,
        replays_drafts: bool = False,
    ) -> None:
        self._replays_drafts = replays_drafts
        self._sources, self._cost, self._max_draft_tokens = list(sources), cost, max_draft_tokens
        self._model_policy, self.overlap = model, overlap
        self.work = CurrentWork()  # an engine sets its own
        self._acceptance = Acceptance()
        self._states: dict[Request, _State] = {}
        self._taken_s = 0.0
        self._max_gap = 0
        self._promised: set[Request] = set()  # rows that wait to be drafted for by the draft model
        self._num_skips = self._skip_length = self._hopeless_rows = 0
        self.num_drafted: Counter[str] = Counter()
        self.num_accepted: Counter[str] = Counter()

    def is_due(self, num_rows: int) -> bool:
        """Whether to look for drafts in a step of so many rows, or to skip it after steps without drafts. Called once for each step."""
        if self.overlap is not None or self._num_skips <= 0 or num_rows < self._hopeless_rows:
            return True
        self._num_skips -= 1
        return False

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
        if not cost or room <= 0:
            return {}
        if not self._may_gain(candidates, size, cost, num_rows):
            self._skip(num_rows, MAX_SKIPS)
            return {}
        max_skips = 0
        if self.overlap is None:  # else rows have waited to draft in this step
            self._max_gap, max_skips = next(gaps for limit, *gaps in GAPS if num_rows < limit)
        proposed: list[_Draft] = []
        states = self._states
        for candidate in candidates:
            state = states.get(candidate.request)
            if state is not None and not state.proposals and len(candidate.request.token_ids) < state.next_at:
                continue
            found = self._propose(candidate, min(candidate.limit, self._max_draft_tokens, room))
            if found is not None:
                proposed.append(found)
        self.work.begin(0)
        spent = 0.0
        if self._model_policy is not None and (self._is_promised(candidates) or self._model_policy.is_due(cost)):
            proposed, spent = self._add_model_drafts(self._model_policy, candidates, proposed, size, num_rows, room)
        if not proposed:
            self._skip(num_rows, max_skips)
            return {}
        counts, best = self._best_counts(proposed, size, num_rows, room, spent)
        if self.overlap is not None and any(counts):
            self.overlap.note(best.num_tokens, self._cost.predict(best.size))
        chosen: dict[Request, Sequence[int]] = {}
        for draft, count in zip(proposed, counts, strict=True):
            request = draft.candidate.request
            state = states[request]
            if count:
                chosen[request] = draft.token_ids[:count]
            elif state.proposals[0].source != DRAFT_MODEL:
                state.wait_longer()
        self._skip(num_rows, 0 if chosen else max_skips)
        return chosen

    def held_back(self, candidates: Sequence[Candidate], size: StepSize, num_rows: int) -> set[Request] | None:
        """The rows that should sit out the next step, since they are expected to draft once the token is known that they sample now.

        The first token that a source proposes stands for that one.

        Args:
            candidates, size, num_rows: as in `choose`, of the next step if no row sat it out.
        Returns:
            None if all rows should wait for the results of the launched step.
        """
        cost = self._cost.predict(size)
        if self.overlap is None or not cost or not self._may_gain(candidates, size, cost, num_rows):
            return set()
        proposed: list[_Draft] = []
        for candidate in candidates:
            draft = self._propose(candidate, min(candidate.limit, self._max_draft_tokens) + 1)
            if draft is not None and len(draft.token_ids) > 1:
                proposed.append(_Draft(candidate, draft.token_ids[1:], draft.probabilities[1:]))
        self.work.begin(0)
        room = len(proposed) * self._max_draft_tokens
        counts, best = self._best_counts(proposed, size, num_rows, room, num_rests=2)
        held: set[Request] = set()
        for draft, count in zip(proposed, counts, strict=True):
            if count:
                held.add(draft.candidate.request)
            else:
                self._states[draft.candidate.request].wait_longer()
        step_s = self._cost.predict(best.size)
        if held and self.overlap.expect(size, best.num_tokens, step_s, len(held), 2)[2]:
            return None
        if self._model_policy is not None and self._model_policy.is_due(cost):
            left = [candidate for candidate in candidates if candidate.request not in held]
            rows = self._model_rows(self._model_policy, left, (), MAX_DRAFT_TOKENS)
            if rows:
                others = Expectation(size, num_rows, num_rows / cost)
                awaited, is_wait_better = self._model_policy.awaited(rows, others)
                self._promised |= awaited
                if awaited and is_wait_better:
                    return None
                held |= awaited
        return held

    def note(self, drafts: Mapping[Request, Sequence[int]]) -> None:
        """A step with these drafts, which may be shorter than the chosen ones, is about to run."""
        for request, draft in drafts.items():
            self._states[request].num_drafted = len(draft)

    def forget(self, request: Request) -> None:
        """Learn from the end of a request, and drop its state."""
        self._promised.discard(request)
        state = self._states.pop(request, None)
        if state is not None:
            self._learn(request, state)
        for source in self._sources:
            source.forget(request)
        if self._model_policy is not None:
            self._model_policy.forget(request)

    @property
    def model(self) -> DraftModel | None:
        """The draft model; None if there is none."""
        return None if self._model_policy is None else self._model_policy.model

    def take_seconds(self) -> float:
        """Time that the draft model has taken since the last call."""
        before, self._taken_s = self._taken_s, 0.0 if self.model is None else self.model.seconds
        return self._taken_s - before

    def rest(self, *, is_long: bool) -> None:
        """Give memory back, because there is nothing to do; after a long time also that of cached pages."""
        if self.model is not None:
            self.model.rest(is_long=is_long)

    def _skip(self, num_rows: int, max_skips: int) -> None:
        """Leave out the next steps with about as many rows, more of them if the last step had no drafts either; see `is_due`."""
        self._num_skips = self._skip_length = min(max_skips, 2 * self._skip_length + 1)
        self._hopeless_rows = num_rows - num_rows // 4

    def _propose(self, candidate: Candidate, limit: int) -> _Draft | None:
        """The draft of the surest source."""
        request = candidate.request
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
        self.work.begin(request.program.graph_id)
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
            state.num_misses += 1
            state.next_at = num_tokens + 1 + min(self._max_gap, state.num_misses // _MISSES)
            return None
        state.num_misses = 0
        token_ids = self._allowed(request, best.token_ids)
        if not token_ids:
            return None
        return _Draft(candidate, token_ids, self._probabilities(state.own, best.source, best.evidence, len(token_ids)))

    def _probabilities(self, own: OwnAcceptance, source: str, evidence: int, num_tokens: int) -> list[float]:
        """For each token of a draft, the probability that it and all before it are right."""
        probabilities: list[float] = []
        likely = 1.0
        for each in range(evidence, evidence + num_tokens):
            likely *= own.adjusted(self._acceptance.probability(source, each))
            probabilities.append(likely)
        return probabilities

    def _add_model_drafts(
        self,
        policy: ModelPolicy,
        candidates: Sequence[Candidate],
        proposed: list[_Draft],
        size: StepSize,
        num_rows: int,
        room: int,
    ) -> tuple[list[_Draft], float]:
        """The drafts with those of the draft model in place of others that are less sure, and the time that they took."""
        rows = self._model_rows(policy, candidates, proposed, room)
        if not rows:
            return proposed, 0.0
        drafting = {row.request for row in rows}
        candidate_of = {each.request: each for each in candidates if each.request in drafting}
        _, best = self._best_counts(proposed, size, num_rows, room)
        others = [draft for draft in proposed if draft.candidate.request not in candidate_of]
        _, rest = self._best_counts(others, size, num_rows, room) if len(others) < len(proposed) else (None, best)
        before = policy.model.seconds
        drafts = policy.draft(rows, rest, best.rate)
        if not drafts:
            return proposed, 0.0
        spent = policy.model.seconds - before
        merged = [draft for draft in proposed if draft.candidate.request not in drafts]
        for row in rows:
            request = row.request
            token_ids = drafts.get(request)
            if token_ids is None:
                continue
            state = self._states[request]
            state.proposals.insert(0, Proposal(DRAFT_MODEL, token_ids, 1))
            state.num_tokens = len(request.token_ids)
            allowed = self._allowed(request, token_ids)
            if allowed:
                merged.append(_Draft(candidate_of[request], allowed, row.probabilities[: len(allowed)]))
        return merged, spent

    def _model_rows(
        self, policy: ModelPolicy, candidates: Sequence[Candidate], proposed: Sequence[_Draft], room: int
    ) -> list[ModelRow]:
        """The rows for which the draft model is surer than the sources."""
        of_sources = {draft.candidate.request: draft for draft in proposed}
        rows: list[ModelRow] = []
        for candidate in candidates:
            request = candidate.request
            limit = min(candidate.limit, self._max_draft_tokens, room, policy.model.limit(request))
            if limit <= 0:
                continue
            probabilities = self._probabilities(self._states[request].own, DRAFT_MODEL, 1, limit)
            other = of_sources.get(request)
            if other is None or sum(other.probabilities[:_COMPARED]) < sum(probabilities[:_COMPARED]):
                rows.append(ModelRow(request, candidate.num_tokens, probabilities))
        return rows

    def _is_promised(self, candidates: Sequence[Candidate]) -> bool:
        """Whether a row has waited for the draft model; asked once."""
        found = {candidate.request for candidate in candidates} & self._promised
        self._promised -= found
        return bool(found)

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
            larger = size.with_drafts(num_more, length * num_scores)
            num_expected, seconds = self._expect(size, num_rows + num_more, num_more, larger, len(candidates))
            if num_expected * cost > MIN_GAIN * num_rows * seconds:
                return True
        return False

    def _expect(
        self,
        size: StepSize,
        num_expected: float,
        num_right: float,
        larger: StepSize,
        num_drafting: int,
        num_rests: int = 1,
    ) -> tuple[float, float]:
        """The tokens and seconds by which to judge a step of size `larger` with drafts; see `Overlap.expect`.

        Args:
            num_right: drafts of the step that are expected to be right.
        """
        step_s = self._cost.predict(larger)
        if self._replays_drafts:
            replay = StepSize(size.num_tokens + round(num_right), size.num_samples, size.num_scores, size.num_keys)
            step_s += self._cost.predict(replay) - self._cost.predict(size)
        if self.overlap is None:
            return num_expected, step_s
        return self.overlap.expect(size, num_expected, step_s, num_drafting, num_rests)[:2]

    def _best_counts(
        self,
        proposed: Sequence[_Draft],
        size: StepSize,
        num_rows: int,
        room: int,
        spent: float = 0.0,
        num_rests: int = 1,
    ) -> tuple[list[int], Expectation]:
        """The number of tokens of each draft to compute, and what is expected of the step with them.

        Args:
            spent: time that the drafts have taken, in seconds.
            num_rests: as in `Overlap.expect`.
        """
        counts = [0] * len(proposed)
        heap = [(-draft.probabilities[0], index) for index, draft in enumerate(proposed)]
        heapq.heapify(heap)
        order: list[int] = []
        expected = float(num_rows)
        rate = num_rows / (spent + self._cost.predict(size))
        least, best_length, best = MIN_GAIN * rate, 0, Expectation(size, expected, rate)
        num_drafting = num_scores = 0
        while heap and len(order) < min(room, best_length + _LOOK_AHEAD):
            likely, index = heap[0]
            draft = proposed[index]
            order.append(index)
            num_drafting += not counts[index]
            counts[index] += 1
            expected -= likely
            num_scores += draft.candidate.num_tokens + counts[index]
            length = len(order)
            larger = size.with_drafts(length, num_scores)
            num_tokens, seconds = self._expect(size, expected, expected - num_rows, larger, num_drafting, num_rests)
            rate = num_tokens / (spent + seconds)
            if rate > max(least, best.rate):
                best_length, best = length, Expectation(larger, expected, rate)
            if counts[index] < len(draft.probabilities):
                heapq.heapreplace(heap, (-draft.probabilities[counts[index]], index))
            else:
                heapq.heappop(heap)
        counts = [0] * len(proposed)
        for index in order[:best_length]:
            counts[index] += 1
        return counts, best

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
            source, num_accepted = state.proposals[0].source, min(num_right, state.num_drafted)
            self.num_drafted[source] += state.num_drafted
            self.num_accepted[source] += num_accepted
            drafted, accepted = request.stats.drafts.get(source, (0, 0))
            request.stats.drafts[source] = drafted + state.num_drafted, accepted + num_accepted
            if num_right:
                state.pause = 0
