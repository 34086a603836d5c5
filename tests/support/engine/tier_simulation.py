"""A `CacheSimulation` with a tier below it: a dictionary from digests to the tokens that were copied.

Pages are copied now and stored later, as the threads of an engine do it, with any operations in between. The oracle computes the digest of
every prefix itself, so a digest always means one sequence of tokens, and what a fetch brings back is compared with these tokens.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rtlang.cache.pages import PageOwner
from rtlang.cache.prefix_cache import NewPage, PrefixCache
from tests.support.engine.cache_simulation import CacheSimulation

ROOT = b"root"


def naive_digest(tokens: tuple[int, ...], page_size: int) -> bytes:
    """The digest of the page that ends a public sequence, from the definition."""
    before = ROOT
    for start in range(0, len(tokens), page_size):
        packed = b"".join(token.to_bytes(8, "little") for token in tokens[start : start + page_size])
        content = before + bytes(4) + packed
        before = hashlib.blake2b(content, digest_size=16, person=b"rtlang page").digest()
    return before


def naive_end_digest(
    kind: bytes, tokens: tuple[int, ...], page_size: int, namespace: str, num_public: int, name: str
) -> bytes:
    """The digest of the state after these tokens, or of its tail, from the definition.

    Args:
        namespace, num_public: the tokens from position `num_public` on belong to the namespace.
        name: of the namespace of the last token behind the whole pages.
    """
    before, whole = ROOT, len(tokens) // page_size * page_size

    def digest(kind: bytes, name: str, content: tuple[int, ...]) -> bytes:
        packed = b"".join(token.to_bytes(8, "little") for token in content)
        data = before + len(name).to_bytes(4, "little") + name.encode() + packed
        return hashlib.blake2b(data, digest_size=16, person=kind).digest()

    for end in range(page_size, whole + 1, page_size):
        before = digest(b"rtlang page", namespace if end > num_public else "", tokens[end - page_size : end])
    return digest(kind, name, tokens[whole:])


class TierSimulation(CacheSimulation):
    """Random operations with transfers among them. `below` has the tokens of whole sequences by digest."""

    def __init__(self, seed: int, **settings: Any) -> None:
        super().__init__(seed, **settings)
        self.cache = PrefixCache(
            self.num_pages,
            self.page_size,
            retention_share=0.3,
            namespace_of=lambda number: "",
            root_digest=ROOT,
            tracks_new_pages=True,
        )
        self.below: dict[bytes, list[int]] = {}
        self.prefix_of: dict[bytes, tuple[int, ...]] = {}
        self.copied: list[tuple[NewPage, list[int]]] = []
        self.num_fetched_pages = self.num_dropped = 0

    def run(self, num_operations: int) -> None:
        for _ in range(num_operations):
            super().run(1)
            self.random.choice([self.copy, self.store, self.fetch, lambda: None])()
            self.verify()

    def copy(self) -> None:
        """A thread reads new pages."""
        pages = self.cache.take_new_pages(self.random.randint(1, 6))
        self.copied += [(page, list(self.memory[page.page_id])) for page in pages]

    def store(self) -> None:
        """What was read is stored, if the pages are still what they were."""
        for page, tokens in self.copied:
            if not self.cache.is_unchanged(page):
                self.num_dropped += 1
                continue
            prefix = self.prefix_of[page.digest]
            assert tokens == list(prefix[-self.page_size :]), "a digest names another page"
            self.below[page.digest] = tokens
        self.copied.clear()

    def fetch(self) -> None:
        """A request's pages come back from below."""
        tokens = self._random_sequence()
        node, first = self.cache.lock_prefix(
            tokens,
            len(tokens),
        )
        whole = len(tokens) // self.page_size
        assert tuple(tokens[: first * self.page_size]) in {*self.stored, ()}
        assert tuple(tokens[: (first + 1) * self.page_size]) not in self.stored or first == whole
        found = 0
        while first + found < whole and self._digest(tokens, first + found + 1) in self.below:
            found += 1
        page_ids = self.cache.allocate(found) if found else None
        self._forget_evicted()
        self._forget_revoked(None)
        if not page_ids:
            self.cache.unlock(node)
            return
        for index, page_id in enumerate(page_ids, start=first):
            self.memory[page_id] = list(self.below[self._digest(tokens, index + 1)])
        num_loaded = self.random.randint(0, found)  # the others were damaged
        start, end = first * self.page_size, (first + num_loaded) * self.page_size
        self.cache.finish(node, tokens[start:end], page_ids, start=start)
        self.num_fetched_pages += num_loaded
        for index in range(first, first + num_loaded):
            prefix = tuple(tokens[: (index + 1) * self.page_size])
            self.stored[prefix] = page_ids[index - first]
            if prefix[: index * self.page_size] in self.pending:
                self.pending.add(prefix)
        for prefix in [each for each in self.stored if len(each) % self.page_size]:  # partial pages that these repeat
            is_repeated = any(len(known) > len(prefix) and known[: len(prefix)] == prefix for known in self.stored)
            if is_repeated and self._owner(self.stored[prefix]) is PageOwner.FREE:
                del self.stored[prefix]

    def verify(self) -> None:
        for prefix in self.stored:
            if len(prefix) % self.page_size == 0:
                self.prefix_of.setdefault(naive_digest(prefix, self.page_size), prefix)
        super().verify()

    def _digest(self, tokens: list[int], num_pages: int) -> bytes:
        return naive_digest(tuple(tokens[: num_pages * self.page_size]), self.page_size)
