"""The digests of pages in a radix tree, computed when they are first needed and kept with their nodes; and the times of evictions."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice, pairwise

from rtlang.cache.node import RadixNode
from rtlang.cache.scope import TOKEN_MASK, unpacked
from rtlang.cache.tiers.digest import page_digest, state_digest, tail_digest, without_namespace

MAX_EVICTED = 1 << 16
"""Evicted pages that are remembered."""


class PageDigests:
    """Computes the digests of nodes. Owned by one `PrefixCache`.

    Args:
        root: the digest before the first page.
        namespace_of: the name of a namespace by its number.
    """

    def __init__(self, root: bytes, page_size: int, namespace_of: Callable[[int], str]) -> None:
        self.root = root
        self._page_size, self._namespace_of = page_size, namespace_of

    def of(self, node: RadixNode, num_pages: int | None = None) -> list[bytes]:
        """The digests of the first pages of a node, by default of all; without that of a partial page. 1 us a page, once for each."""
        path = list(node.path())[::-1]  # from the root on
        for above, each in pairwise(path):
            wanted = len(each.key) // self._page_size
            if each is node and num_pages is not None:
                wanted = min(wanted, num_pages)
            if len(each.digests) < wanted:
                self._complete(each, wanted, above.digests[-1] if above.parent is not None else self.root)
        return node.digests if num_pages is None else node.digests[:num_pages]

    def of_state(self, node: RadixNode, offset: int) -> tuple[bytes, bytes | None]:
        """The digests of the state after `offset` tokens of a node, and of the page up to there; None at the end of a page."""
        num_pages, num_rest = divmod(offset, self._page_size)
        own = self.of(node, num_pages)
        above = node.parent
        before = own[-1] if own else self.root if above is None or above.parent is None else above.digests[-1]
        if not num_rest:
            return state_digest(before, "", b""), None
        key = node.key[offset - num_rest : offset]
        number = unpacked(key[-1])[0]
        place = before, self._namespace_of(number), without_namespace(key, TOKEN_MASK) if number else key.tobytes()
        return state_digest(*place), tail_digest(*place)

    def _complete(self, node: RadixNode, num_pages: int, before: bytes) -> None:
        size = self._page_size
        if node.digests:
            before = node.digests[-1]
        for page in range(len(node.digests), num_pages):
            key = node.key[page * size : (page + 1) * size]
            number = unpacked(key[-1])[0]
            tokens = without_namespace(key, TOKEN_MASK) if number else key.tobytes()
            before = page_digest(before, self._namespace_of(number), tokens)
            node.digests.append(before)


class EvictionHistory:
    """When the last evicted pages were evicted. Owned by one `PrefixCache`.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[bytes, float] = OrderedDict()
        self._new: list[bytes] = []

    def note(self, digests: Iterable[bytes]) -> None:
        """These pages are evicted now."""
        now = self._clock()
        for digest in digests:
            self._times.pop(digest, None)
            self._times[digest] = now
            self._new.append(digest)
        for digest in list(islice(self._times, max(0, len(self._times) - MAX_EVICTED))):
            del self._times[digest]
        del self._new[:-MAX_EVICTED]

    def take_new(self) -> list[bytes]:
        """The pages that were evicted since the last call."""
        found, self._new = self._new, []
        return found

    def seconds_since(self, digest: bytes) -> float | None:
        """Seconds since a page was evicted last; None if it was not, or long ago."""
        when = self._times.get(digest)
        return None if when is None else self._clock() - when
