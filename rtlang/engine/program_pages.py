"""The pages of one program in the prefix cache: those that it will continue are held, those that nothing continues are given up first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.retention import Hold
from rtlang.cache.scope import PUBLIC, CacheScope

__all__ = ["Hold", "ProgramPages"]


class ProgramPages:
    """Holds and gives up sequences on behalf of a program. Used on the engine thread.

    Args:
        cache: the cache of the engine.
        rank: the place of the program among others: holds of programs with the largest rank are revoked first.
        is_lost: whether the engine has failed; then nothing is done.
        scope_of: returns the scope of a sequence; see `rtlang.cache.scope`.
    """

    def __init__(
        self,
        cache: PrefixCache,
        rank: float,
        is_lost: Callable[[], bool] = lambda: False,
        scope_of: Callable[[Sequence[int]], CacheScope] = lambda token_ids: PUBLIC,
    ) -> None:
        self._cache, self._rank, self._is_lost, self._scope_of = cache, rank, is_lost, scope_of

    @property
    def page_size(self) -> int:
        """Tokens per page."""
        return self._cache.page_size

    def hold(self, token_ids: Sequence[int]) -> Hold | None:
        """Keep the stored part of a sequence; None if nothing of it is stored, or if older programs have the share of the pool."""
        return None if self._is_lost() else self._cache.hold(token_ids, self._rank, self._scope_of(token_ids))

    def release(self, hold: Hold) -> None:
        """End a hold; does nothing if it was revoked."""
        if not self._is_lost():
            self._cache.release(hold)

    def give_up(self, token_ids: Sequence[int], start: int) -> None:
        """Let the stored pages of a sequence be evicted before all others, from token `start` on, as far as nothing needs them."""
        if not self._is_lost():
            self._cache.demote(token_ids, start, self._scope_of(token_ids))
