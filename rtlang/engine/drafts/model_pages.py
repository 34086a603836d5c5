"""The KV pages of draft models and draft heads.

A draft model has a pool and a prefix cache of its own, with the sequences that it has computed. It follows the rules of the main cache: a
request finds what its namespace may find, and a request that has ended leaves its pages to later ones. Sequences are dropped in the order
of their last use when pages are needed. A draft head uses the pages of the model, and scratch pages for drafts beyond them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.params import SamplingParams
from rtlang.engine.requests.request import Request
from rtlang.model.draft_heads.head_runner import HeadRunner


@dataclass(slots=True)
class ComputedSequence:
    """What the draft model has computed for a request.

    Attributes:
        token_ids: the tokens whose K and V are in `page_ids`; the last ones may be drafts that turned out wrong.
        node, num_tree_tokens: the deepest tree node that it locks, and the number of tokens on the path to it.
        params: sampling parameters of its drafts: those of the request without what it only reports.
        num_agreed: the number of tokens that are known to be those of the request.
    """

    token_ids: list[int]
    page_ids: list[int]
    node: RadixNode
    num_tree_tokens: int
    params: SamplingParams
    num_agreed: int

    def agree_with(self, token_ids: list[int]) -> None:
        """Drop the tokens from the first one on that is not in `token_ids`, and the last token: its logits are needed again."""
        own = self.token_ids
        at, end = self.num_agreed, min(len(own), len(token_ids) - 1)
        while at < end and own[at] == token_ids[at]:
            at += 1
        self.num_agreed = min(at, end)
        del own[self.num_agreed :]


class DraftPages(Protocol):
    """Where a draft model has what it computed of each request. Used on the engine thread."""

    @property
    def num_pages(self) -> int:
        """Pages of its own."""

    @property
    def num_cached(self) -> int:
        """Pages that only its prefix cache uses."""

    def open(self, request: Request) -> ComputedSequence:
        """What is computed of a request, without its last token."""

    def reopen(self, request: Request) -> ComputedSequence:
        """As `open`; also finds what the cache has got since, unless the request has pages of its own."""

    def reserve(self, request: Request, num_tokens: int, kept: Collection[Request]) -> bool:
        """Give an open request pages for `num_tokens` tokens in all, those of others outside `kept` if needed; False if it gets none."""

    def store(self, request: Request) -> None:
        """Let others find what is computed of an open request."""

    def close(self, request: Request) -> None:
        """Leave the pages of a request to later ones. Does nothing if it is not open."""

    def rest(self, *, is_long: bool) -> Sequence[tuple[int, int]]:
        """Prepare for a time without work, and drop what is cached if it is long; returns the unused pages, as (first, number)."""

    def check(self) -> None:
        """Verify the accounting of pages."""


class ModelPages:
    """The sequences of a draft model. Used on the engine thread; implements `DraftPages`.

    Args:
        num_pages, page_size: of its KV pool.
        sharing: whether sequences share the pages of common prefixes.
    """

    def __init__(self, num_pages: int, page_size: int, *, sharing: bool) -> None:
        self.cache = PrefixCache(num_pages, page_size, sharing=sharing)
        self._page_size = page_size
        self._sequences: OrderedDict[Request, ComputedSequence] = OrderedDict()  # the one used last at the end

    @property
    def num_pages(self) -> int:
        """See `DraftPages`: the pool."""
        return self.cache.num_pages

    @property
    def num_cached(self) -> int:
        """See `DraftPages`."""
        return self.cache.num_cached

    def rest(self, *, is_long: bool) -> Sequence[tuple[int, int]]:
        """See `DraftPages`."""
        if is_long:
            self.cache.clear()
        return self.cache.free_runs

    def open(self, request: Request) -> ComputedSequence:
        """What is computed of a request, without its last token. Begins with what the cache has of it."""
        sequence = self._sequences.get(request)
        if sequence is None:
            match = self.cache.match(request.token_ids, len(request.token_ids) - 1, request.scope)
            self.cache.lock(match.node)
            num_tokens = match.num_tokens
            params = replace(request.spec.params, logprobs=None, prompt_logprobs=None, distortion=False)
            sequence = self._sequences[request] = ComputedSequence(
                request.token_ids[:num_tokens], list(match.page_ids), match.node, num_tokens, params, num_tokens
            )
        else:
            sequence.agree_with(request.token_ids)
            self._sequences.move_to_end(request)
        return sequence

    def reopen(self, request: Request) -> ComputedSequence:
        """As `open`; also finds what the cache has got since, unless the request has pages of its own."""
        sequence = self._sequences.get(request)
        if sequence is not None and len(sequence.page_ids) * self._page_size == sequence.num_tree_tokens:
            self.close(request)
        return self.open(request)

    def reserve(self, request: Request, num_tokens: int, kept: Collection[Request]) -> bool:
        """Give an open request pages for `num_tokens` tokens in all, those of others outside `kept` if needed; False if it gets none."""
        sequence = self._sequences[request]
        missing = -(-num_tokens // self._page_size) - len(sequence.page_ids)
        if missing <= 0:
            return True
        while (pages := self.cache.allocate(missing)) is None:
            victim = next((each for each in self._sequences if each not in kept), None)
            if victim is None:
                return False
            self.close(victim)
        sequence.page_ids += pages
        return True

    def store(self, request: Request) -> None:
        """Put the full pages of an open request into the tree, as far as they have tokens of the request, all but its last."""
        sequence, size = self._sequences[request], self._page_size
        end = min(sequence.num_agreed, len(request.token_ids) - 1) // size * size
        start = sequence.num_tree_tokens
        if not self.cache.sharing or end <= start:
            return
        first, last = start // size, end // size
        sequence.node, page_ids = self.cache.extend(
            sequence.node, request.token_ids[start:end], sequence.page_ids[first:last], request.scope, start
        )
        sequence.page_ids[first:last] = page_ids
        sequence.num_tree_tokens = end
        self.cache.commit()

    def close(self, request: Request) -> None:
        """Leave the pages of a request to later ones. Does nothing if it is not open."""
        sequence = self._sequences.pop(request, None)
        if sequence is None:
            return
        sequence.agree_with(request.token_ids)
        start = sequence.num_tree_tokens
        pages = sequence.page_ids[start // self._page_size :]
        self.cache.finish(sequence.node, sequence.token_ids[start:], pages, request.scope, start)

    def check(self) -> None:
        """Verify the accounting of pages."""
        self.cache.check()
        for sequence in self._sequences.values():
            assert sequence.num_tree_tokens <= sequence.num_agreed <= len(sequence.token_ids)
            assert len(sequence.token_ids) <= len(sequence.page_ids) * self._page_size


class HeadPages:
    """What a draft head has computed of each request: as much as the model. Used on the engine thread; implements `DraftPages`.

    Args:
        runner: of the head.
        page_size: tokens of a page.
    """

    def __init__(self, runner: HeadRunner, page_size: int) -> None:
        self._runner, self._page_size = runner, page_size
        self._free = list(runner.scratch_pages)
        self._scratch: OrderedDict[Request, list[int]] = OrderedDict()
        self._sequences: dict[Request, ComputedSequence] = {}

    @property
    def num_pages(self) -> int:
        """See `DraftPages`: the scratch pages."""
        return len(self._runner.scratch_pages)

    @property
    def num_cached(self) -> int:
        """See `DraftPages`: none."""
        return 0

    def open(self, request: Request) -> ComputedSequence:
        """See `DraftPages`."""
        known, pages = len(request.token_ids) - 1, request.pages
        sequence = self._sequences.get(request)
        if sequence is None:
            params = replace(request.spec.params, logprobs=None, prompt_logprobs=None, distortion=False)
            assert pages.node is not None, "a request that drafts is running"
            sequence = ComputedSequence([], [], pages.node, 0, params, 0)
            self._sequences[request] = sequence
        own = sequence.token_ids
        if sequence.num_agreed < known:
            own[sequence.num_agreed :] = request.token_ids[sequence.num_agreed : known]
        else:
            del own[known:]
        sequence.num_agreed = known
        sequence.page_ids = [*pages.page_ids, *self._scratch.get(request, ())]
        return sequence

    def reopen(self, request: Request) -> ComputedSequence:
        """See `DraftPages`."""
        return self.open(request)

    def reserve(self, request: Request, num_tokens: int, kept: Collection[Request]) -> bool:
        """See `DraftPages`; False also if the states before the last token are not known."""
        if not self._runner.knows(request.request_id, len(request.token_ids) - 2):
            return False
        sequence = self._sequences[request]
        missing = -(-num_tokens // self._page_size) - len(sequence.page_ids)
        while missing > len(self._free):
            victim = next((each for each in self._scratch if each not in kept), None)
            if victim is None:
                return False
            self._free += self._scratch.pop(victim)
        if missing > 0:
            self._scratch.setdefault(request, []).extend(self._free.pop() for _ in range(missing))
            sequence.page_ids = [*request.pages.page_ids, *self._scratch[request]]
        return True

    def store(self, request: Request) -> None:
        """See `DraftPages`; the model's cache has them."""

    def close(self, request: Request) -> None:
        """See `DraftPages`."""
        self._sequences.pop(request, None)
        self._free += self._scratch.pop(request, ())
        self._runner.forget(request.request_id)

    def rest(self, *, is_long: bool) -> Sequence[tuple[int, int]]:
        """See `DraftPages`."""
        return ()

    def check(self) -> None:
        """See `DraftPages`."""
        held = [page for pages in self._scratch.values() for page in pages]
        assert sorted([*self._free, *held]) == list(self._runner.scratch_pages)
