"""Sources of drafts, and the tokens that they propose for one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.request import Request

DRAFT_MODEL = "draft_model"
"""The name of the draft model among the sources."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens that may follow those of a request.

    Attributes:
        source: the name of its source.
        evidence: how much speaks for the first token, in tokens: as many have agreed before it. Each further token has one more.
    """

    source: str
    token_ids: Sequence[int]
    evidence: int


class DraftSource(Protocol):
    """A source of drafts. Used on the engine thread."""

    @property
    def name(self) -> str:
        """Its name in metrics."""

    def propose(self, request: Request, limit: int) -> Proposal | None:
        """The tokens that it expects next, from 1 to `limit`; None if it knows nothing."""

    def forget(self, request: Request) -> None:
        """Drop the state of a request that has ended; its text may be kept for later requests."""


class Cost(Protocol):
    """Predicts the time of a step; see `StepCost`."""

    def predict(self, size: StepSize) -> float:
        """Expected time in seconds; 0 if nothing is known."""
