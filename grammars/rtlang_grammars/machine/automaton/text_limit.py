"""Bound on the length of completions: an array may require a billion elements.

No generation has that many tokens, so a completion beyond the bound counts as none and must be rejected before it is assembled.
"""

from __future__ import annotations

MAX_BYTES = 8 << 20
"""Maximum bytes of one completion: more tokens than the longest generation has, even at one token per byte."""
MAX_CACHED_BYTES = 8 * MAX_BYTES
"""Maximum bytes of all completions that a grammar caches."""


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
