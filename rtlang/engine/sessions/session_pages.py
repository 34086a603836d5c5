"""The pages of sessions in the prefix cache: soft holds on sequences that clients are expected to continue.

A hold of a session is weaker than every hold of a program, and no request ever waits for it: a request that needs pages takes them, first
from sessions with a final answer, then from the youngest sessions.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.retention import SOFT_RANK, Hold
from rtlang.cache.scope import CacheScope
from rtlang.engine.sessions.session_table import Session

MAX_HOLDS = 1024
"""Maximum number of holds. A model with states looks at all of them for each new checkpoint."""
FINAL_RANK = 2 * SOFT_RANK
"""Ranks of sessions with a final answer begin here."""


class SessionPages:
    """Holds on behalf of sessions. Used on the engine thread."""

    def __init__(self, cache: PrefixCache) -> None:
        self._cache = cache
        self._holds: dict[
            Session, tuple[Hold, int]
        ] = {}  # with the tokens that other sessions have too; the last one at the end

    def is_held(self, session: Session) -> bool:
        """Whether the pages of a session are held."""
        found = self._holds.get(session)
        return found is not None and found[0].is_granted

    def keep(self, session: Session, token_ids: Sequence[int], scope: CacheScope, *, is_certain: bool) -> None:
        """Hold the stored part of a sequence, in place of the earlier hold of its session.

        Args:
            is_certain: whether the client is expected to continue it.
        """
        rank = (SOFT_RANK if is_certain else FINAL_RANK) + session.first_seen_s
        hold = self._cache.hold(token_ids, rank, scope)
        if hold is None:  # others have the share: it can only be given up later
            hold = self._cache.end_of(token_ids, scope)
        self.let_go(session)
        self._holds[session] = hold, session.num_shared_tokens
        if len(self._holds) > MAX_HOLDS:
            self.let_go(next(iter(self._holds)))

    def let_go(self, session: Session, *, gives_up: bool = False) -> None:
        """End the hold of a session.

        Args:
            gives_up: whether its own pages are evicted before all others.
        """
        found = self._holds.pop(session, None)
        if found is None:
            return
        hold, num_shared = found
        self._cache.release(hold)
        if gives_up:
            self._cache.demote_end(hold, num_shared)
