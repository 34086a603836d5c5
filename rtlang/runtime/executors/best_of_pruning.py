"""The candidates of one generation, of which the likeliest wins. Used on the engine thread only."""

from __future__ import annotations

from collections.abc import Sequence

from rtlang.contract.events import TokenLogprob


class BestOfPruning:
    """Sums of log-probabilities of candidates. A sum only falls, so a candidate behind a finished one has lost for certain.

    Attributes:
        lost: candidates that were stopped.
        winner: the best finished candidate; the first at a tie in the order in which they ended.
    """

    def __init__(self, num_candidates: int) -> None:
        self.lost: set[int] = set()
        self.winner = -1
        self._best = float("-inf")
        self._sums = [0.0] * num_candidates
        self._num_seen = [0] * num_candidates

    def is_lost(self, candidate: int, logprobs: Sequence[TokenLogprob], *, has_ended: bool) -> bool:
        """Account for what a candidate has so far; returns whether it has lost, which stays.

        Args:
            logprobs: of all of its tokens so far.
        """
        if len(logprobs) < self._num_seen[candidate]:  # another attempt, because a value was invalid
            self._sums[candidate], self._num_seen[candidate] = 0.0, 0
        for each in logprobs[self._num_seen[candidate] :]:
            self._sums[candidate] += each.logprob
        self._num_seen[candidate] = len(logprobs)
        total = self._sums[candidate]
        if self.winner >= 0 and total <= self._best:
            self.lost.add(candidate)
            return True
        if has_ended:
            self.winner, self._best = candidate, total
        return False
