"""Tracks the owner of each page of the KV pool, and the runs of free pages.

A page is free, private to one request, or in the radix tree; the allocator keeps that state for every page id and refuses any
other transition. Free pages are kept as maximal runs, grouped by length (segregated fits, as in Wilson et al. 1995), so that a
request for several pages gets one ascending run if there is one: attention kernels read a run as one strided matrix. This module deals
with page ids only; `pool.py` holds their memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum

# Number of runs tried in the one length class whose runs may or may not fit; all runs of higher classes fit.
_MAX_FIT_PROBES = 8


class PageOwner(IntEnum):
    """The owner of a page."""

    FREE = 0
    PRIVATE = 1
    TREE = 2


class PageAllocator:
    """Page ids 0 .. num_pages-1, each with exactly one owner. Owned by one `PrefixCache`; not thread-safe."""

    def __init__(self, num_pages: int) -> None:
        """Create an allocator whose pages are all free.

        Raises:
            ValueError: num_pages is below 1.
        """
        if num_pages < 1:
            raise ValueError(f"num_pages = {num_pages}: expected at least 1")
        self.num_pages = num_pages
        self._owners = bytearray(num_pages)
        self._counts = [num_pages, 0, 0]
        self._epochs = array("L", bytes(array("L").itemsize * num_pages))
        self._length_of: dict[int, int] = {}  # first page of a free run -> its length
        self._start_of: dict[int, int] = {}  # page after a free run -> first page of the run
        self._classes: list[dict[int, None]] = [
            {} for _ in range(num_pages.bit_length())
        ]  # indexed by bit_length - 1 of the run's length
        self._insert(0, num_pages)

    @property
    def num_free(self) -> int:
        """Number of free pages."""
        return self._counts[PageOwner.FREE]

    @property
    def num_private(self) -> int:
        """Number of pages that were handed out and not given to the tree."""
        return self._counts[PageOwner.PRIVATE]

    @property
    def num_in_tree(self) -> int:
        """Number of pages that belong to the radix tree."""
        return self._counts[PageOwner.TREE]

    def owner(self, page_id: int) -> PageOwner:
        """The owner of one page."""
        return PageOwner(self._owners[page_id])

    @property
    def free_runs(self) -> list[tuple[int, int]]:
        """The maximal runs of free pages, as (first page, number of pages)."""
        return list(self._length_of.items())

    def epoch(self, page_id: int) -> int:
        """Number of times that the page was freed. Content read from a page of the tree is valid if the epoch is the same afterwards."""
        return self._epochs[page_id]

    def allocate(self, num_pages: int) -> list[int] | None:
        """Make `num_pages` free pages private, in as few runs as can be found cheaply.

        Returns:
            Page ids in ascending order, or None (without any change) if fewer are free.
        """
        assert num_pages >= 0, f"allocate({num_pages})"
        if num_pages > self.num_free:
            return None
        if num_pages == 1:
            page_ids = [self._take_one()]
        else:
            page_ids = self._take(num_pages)
        self._move(page_ids, PageOwner.FREE, PageOwner.PRIVATE)
        return page_ids

    def give_to_tree(self, page_ids: Sequence[int]) -> None:
        """Transfer private pages to the radix tree."""
        self._move(page_ids, PageOwner.PRIVATE, PageOwner.TREE)

    def free(self, page_ids: Sequence[int], owner: PageOwner = PageOwner.PRIVATE) -> None:
        """Free pages of `owner`. Freeing a page twice, or a page of another owner, fails an assertion."""
        self._move(page_ids, owner, PageOwner.FREE)
        if len(page_ids) == 1:
            self._insert(page_ids[0], 1)
            return
        for start, length in _runs(sorted(page_ids)):
            self._insert(start, length)

    def check(self) -> None:
        """Verify that owners, counts and free runs are consistent."""
        for owner in PageOwner:
            assert self._counts[owner] == self._owners.count(owner), f"count of {owner.name} pages is off"
        num_free = 0
        for start, length in self._length_of.items():
            assert length > 0
            assert self._start_of[start + length] == start
            assert start in self._classes[length.bit_length() - 1]
            assert not any(self._owners[start : start + length]), f"an owned page lies in the free run at {start}"
            assert start + length not in self._length_of, f"free runs at {start} and {start + length} are not merged"
            num_free += length
        assert num_free == self.num_free
        assert len(self._start_of) == len(self._length_of) == sum(map(len, self._classes))

    def _move(self, page_ids: Sequence[int], source: PageOwner, target: PageOwner) -> None:
        for page_id in page_ids:
            assert self._owners[page_id] == source, (
                f"page {page_id} is {PageOwner(self._owners[page_id]).name}, expected {source.name}"
            )
            self._owners[page_id] = target
            if target is PageOwner.FREE:
                self._epochs[page_id] += 1
        self._counts[source] -= len(page_ids)
        self._counts[target] += len(page_ids)

    def _take_one(self) -> int:
        """Take one page from the class of the shortest runs, so that long runs stay intact."""
        start = next(iter(next(filter(None, self._classes))))
        self._cut(start, 1)
        return start

    def _take(self, num_pages: int) -> list[int]:
        page_ids: list[int] = []
        is_one_run = True
        while num_pages:
            start = self._find(num_pages)
            if start is None:  # no run is long enough: use up one of the longest class, then look again for the rest
                is_one_run = False
                start = next(iter(next(filter(None, reversed(self._classes)))))
            length = min(num_pages, self._length_of[start])
            self._cut(start, length)
            page_ids.extend(range(start, start + length))
            num_pages -= length
        return page_ids if is_one_run else sorted(page_ids)

    def _find(self, num_pages: int) -> int | None:
        """First page of a free run of at least `num_pages`."""
        index = num_pages.bit_length() - 1
        for start, _ in zip(self._classes[index], range(_MAX_FIT_PROBES), strict=False):
            if self._length_of[start] >= num_pages:
                return start
        for runs in self._classes[index + 1 :]:
            if runs:
                return next(iter(runs))
        return None

    def _cut(self, start: int, length: int) -> None:
        """Remove the first `length` pages of the free run at `start`."""
        rest = self._remove(start) - length
        if rest:
            self._add(start + length, rest)

    def _insert(self, start: int, length: int) -> None:
        """Add a free run and merge it with its free neighbors."""
        end = start + length
        if end in self._length_of:
            length += self._remove(end)
        before = self._start_of.get(start)
        if before is not None:
            length += self._remove(before)
            start = before
        self._add(start, length)

    def _add(self, start: int, length: int) -> None:
        self._length_of[start] = length
        self._start_of[start + length] = start
        self._classes[length.bit_length() - 1][start] = None

    def _remove(self, start: int) -> int:
        length = self._length_of.pop(start)
        del self._start_of[start + length]
        del self._classes[length.bit_length() - 1][start]
        return length


def _runs(page_ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first page, length) of each run of consecutive ids in an ascending list."""
    start = previous = None
    for page_id in page_ids:
        if start is None or previous is None:
            start = page_id
        elif page_id != previous + 1:
            yield start, previous - start + 1
            start = page_id
        previous = page_id
    if start is not None and previous is not None:
        yield start, previous - start + 1
