"""Learns the acceptance rate of draft tokens while requests run.

Each source has, for each amount of evidence, a share of accepted tokens with a prior, which forgets slowly. Each request has a factor,
since some texts are more predictable than others.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_EVIDENCE = 16
_MEMORY = 1 - 1 / 128
_PRIOR_WEIGHT = 4.0
_OWN_MEMORY = 0.9  # of a request's own factor: about ten tokens
_OWN_WEIGHT = 2.0
_HIGHEST = 0.99
_PRIORS = {"own_text": 0.55, "stored_text": 0.7, "call_site": 0.55, "structure": 0.3, "draft_model": 0.5}
_OTHER_PRIOR = 0.5


@dataclass(slots=True)
class _Share:
    num_right: float
    num_seen: float


class Acceptance:
    """Shares of right tokens. Used on the engine thread."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, int], _Share] = {}

    def probability(self, source: str, evidence: int) -> float:
        """Expected share of right tokens among those of a source with as much evidence, given that all before are right."""
        share = self._share(source, evidence)
        return share.num_right / share.num_seen

    def learn(self, source: str, evidence: int, *, is_right: bool) -> None:
        """Take in whether a token was right; all before it were."""
        share = self._share(source, evidence)
        share.num_right = share.num_right * _MEMORY + is_right
        share.num_seen = share.num_seen * _MEMORY + 1

    def _share(self, source: str, evidence: int) -> _Share:
        key = source, min(evidence, _MOST_EVIDENCE)
        share = self._shares.get(key)
        if share is None:
            prior = _PRIORS.get(source, _OTHER_PRIOR)
            prior += (0.95 - prior) * (key[1] - 1) / _MOST_EVIDENCE  # more evidence, more certainty
            share = self._shares[key] = _Share(prior * _PRIOR_WEIGHT, _PRIOR_WEIGHT)
        return share


@dataclass(slots=True)
class OwnAcceptance:
    """The acceptance rate of one request relative to the one that `Acceptance` expects."""

    num_right: float = 0.0
    num_expected: float = 0.0

    def learn(self, expected: float, *, is_right: bool) -> None:
        """Take in whether a token was right that was expected to be with this probability."""
        self.num_right = self.num_right * _OWN_MEMORY + is_right
        self.num_expected = self.num_expected * _OWN_MEMORY + expected

    def adjusted(self, probability: float) -> float:
        """A probability of `Acceptance` for this request."""
        factor = (self.num_right + _OWN_WEIGHT) / (self.num_expected + _OWN_WEIGHT)
        return min(_HIGHEST, probability * factor)
