"""Segments of a pool: contiguous ranges that are taken and given back, first fit."""

from __future__ import annotations

from bisect import insort


class Segments:
    """The taken ranges of a pool of `size` elements."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._taken: list[tuple[int, int]] = []  # start and end, sorted

    def take(self, size: int) -> int | None:
        """The start of a free range of this size, which is taken from now on; None if there is none."""
        start = 0
        for begin, end in self._taken:
            if begin - start >= size:
                break
            start = end
        if start + size > self.size:
            return None
        insort(self._taken, (start, start + max(1, size)))
        return start

    def give_back(self, start: int) -> None:
        """Free the range that begins at `start`.

        Raises:
            ValueError: no range begins there.
        """
        index = next((index for index, (begin, _) in enumerate(self._taken) if begin == start), None)
        if index is None:
            raise ValueError(f"start = {start}: no segment begins there")
        del self._taken[index]
