"""Drafts from the structure of a constraint: text that must come next, spelled as the model's tokenizer would.

Forced text can be cut into tokens in many ways, so the model may spell it otherwise; the draft is verified like any other.
"""

from __future__ import annotations

from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.requests.request import Request

_SHORTEST = 2  # bytes of forced text worth a draft


class Structure:
    """Forced text. See `Source`."""

    name = "structure"

    def propose(self, request: Request, limit: int) -> Proposal | None:
        """See `Source`."""
        found = [] if request.session is None else request.session.forced_tokens(_SHORTEST)[:limit]
        return Proposal(self.name, found, len(found)) if found else None

    def forget(self, request: Request) -> None:
        """See `Source`; keeps nothing."""
