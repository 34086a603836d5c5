"""Ends of texts that are too long to be written out: an array may have to have a billion elements.

No generation takes so many tokens, so an end beyond the bound is as good as none; but it must not be put together to find that out.
"""

from __future__ import annotations

MAX_BYTES = 8 << 20
"""Of one end; with a token for every byte, more than the longest generation may take."""
MAX_KEPT_BYTES = 8 * MAX_BYTES
"""Of all the ends that a grammar keeps."""


class LongTextError(Exception):
    """An end is longer than MAX_BYTES."""


class Room:
    """What is left of MAX_BYTES for one end. Owned by whoever puts that together."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def take(self, num_bytes: int) -> None:
        """So many bytes more.

        Raises:
            LongTextError: they have no room.
        """
        self._left -= num_bytes
        if self._left < 0:
            raise LongTextError
