"""Drafts from a request's own text: the tokens that followed the same ones in its prompt or output."""

from __future__ import annotations

from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.drafts.token_index import TokenIndex
from rtlang.engine.requests.request import Request

MAX_PROMPT_TOKENS = 8192
"""Tokens at the end of a prompt that are searched: about 2 ms to index, and 2 MB."""


class OwnText:
    """The indexes of requests. See `Source`."""

    name = "own_text"

    def __init__(self) -> None:
        self._indexes: dict[Request, tuple[TokenIndex, int]] = {}  # and the tokens at the start that are left out

    def propose(self, request: Request, limit: int) -> Proposal | None:
        """See `Source`."""
        found = self._indexes.get(request)
        if found is None:
            found = self._indexes[request] = TokenIndex(), max(0, request.num_prompt_tokens - MAX_PROMPT_TOKENS)
        index, start = found
        index.extend(request.token_ids[start + len(index.tokens) :])
        place = index.find(index.tokens)
        return None if place is None else Proposal(self.name, index.following(place[0], limit), place[1])

    def forget(self, request: Request) -> None:
        """See `Source`."""
        self._indexes.pop(request, None)
