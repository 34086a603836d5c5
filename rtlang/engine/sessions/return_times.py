"""How soon clients continue a session after a reply: a histogram that starts from a prior and forgets slowly.

Replies that end in tool calls are continued once the tools have run, mostly within a minute; final answers are continued when a person
has read them, or never. The histograms of a principal start from these priors and count its own sessions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

FIRST_S = 0.125
"""The end of the first bucket, in seconds; each further one ends at twice the time."""
NUM_BUCKETS = 14
HORIZON_S = FIRST_S * (1 << (NUM_BUCKETS - 1))
"""The end of the last bucket, 17 minutes; later returns count as none."""
MAX_COUNT = 512.0
"""Replies in one histogram; then all counts are halved."""


class ReplyKind(Enum):
    """How a reply ends, which tells when the next turn is likely to come."""

    CALLS = auto()  # the client is to send results of tool calls
    FINAL = auto()  # an answer for a person, or a text that was cut

    @property
    def prior(self) -> Sequence[float]:
        """Weight of each bucket, then the weight of replies that are never continued."""
        return _PRIORS[self]


# Weights count replies: observed replies outweigh the prior once there are more. Tools: log-normal, median 4 s; people: half return.
_PRIORS = {
    ReplyKind.CALLS: (0.1, 0.2, 0.5, 0.8, 1.1, 1.3, 1.3, 1.1, 0.8, 0.4, 0.2, 0.1, 0.05, 0.02, 0.1),
    ReplyKind.FINAL: (0.0, 0.0, 0.0, 0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.7, 0.6, 0.4, 0.2, 4.0),
}


class ReturnTimes:
    """The times between replies of one kind and the requests that continue them. Owned by one owner of a `SessionTable`."""

    __slots__ = ("_counts",)

    def __init__(self, kind: ReplyKind) -> None:
        self._counts = list(kind.prior)

    def note_return(self, seconds: float) -> None:
        """A reply was continued after this time."""
        self._add(_bucket(seconds))

    def note_end(self) -> None:
        """A reply was not continued within `HORIZON_S`."""
        self._add(NUM_BUCKETS)

    def overdue_s(self, share: float) -> float:
        """Time within which this share of all returns have come, in seconds, rounded up to the end of a bucket; at most `HORIZON_S`."""
        counts, passed = self._counts, 0.0
        wanted = share * sum(counts[:NUM_BUCKETS])
        for index in range(NUM_BUCKETS):
            passed += counts[index]
            if passed >= wanted:
                return FIRST_S * (1 << index)
        return HORIZON_S

    def _add(self, index: int) -> None:
        counts = self._counts
        counts[index] += 1.0
        if sum(counts) > MAX_COUNT:
            self._counts = [each / 2 for each in counts]


def _bucket(seconds: float) -> int:
    index, end = 0, FIRST_S
    while seconds >= end and index < NUM_BUCKETS:
        index, end = index + 1, 2 * end
    return index
