"""Drafts from the prefix cache: the tokens that followed the same whole sequence when it was computed before.

Exact when a greedy or seeded request is asked again, or resumed after its pages were given up. The cache shows a request only what its
namespace may find.
"""

from __future__ import annotations

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.requests.request import Request


class StoredText:
    """Continuations in the radix tree. See `Source`."""

    name = "stored_text"

    def __init__(self, cache: PrefixCache) -> None:
        self._cache = cache
        self._expected: dict[
            Request, tuple[int, int, int]
        ] = {}  # place and token expected there, and how many came true

    def propose(self, request: Request, limit: int) -> Proposal | None:
        """See `Source`."""
        if request.pages.node is None:
            return None
        start, end = request.pages.num_tree_tokens, len(request.token_ids)
        found = self._cache.continuation(request.pages.node, request.token_ids[start:], limit, request.scope, start)
        place, expected, streak = self._expected.get(request, (0, 0, 0))
        if 0 < place < end:
            # Of tokens that came together only the first is compared.
            streak = streak + end - place if request.token_ids[place] == expected else 0
        if found:
            self._expected[request] = end, found[0], streak
        return Proposal(self.name, found, streak + 1) if found else None

    def forget(self, request: Request) -> None:
        """See `Source`."""
        self._expected.pop(request, None)
