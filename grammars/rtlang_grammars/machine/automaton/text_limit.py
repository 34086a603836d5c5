"""Bound on the length of completions: an array may require a billion elements.

No generation takes so many tokens, so a completion beyond the bound counts as none; it must be rejected before it is assembled.
"""

from __future__ import annotations

MAX_BYTES = 8 << 20
"""Of one completion; with one token per byte, more than the longest generation."""
MAX_CACHED_BYTES = 8 * MAX_BYTES
"""Of all completions that a grammar caches."""


class LongTextError(Exception):
    """A completion is longer than MAX_BYTES."""


class Room:
    """Bytes left of MAX_BYTES for one completion. Owned by the code that assembles it."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def take(self, num_bytes: int) -> None:
        """Use up some bytes.

        Raises:
            LongTextError: not enough bytes are left.
        """
        self._left -= num_bytes
        if self._left < 0:
            raise LongTextError
