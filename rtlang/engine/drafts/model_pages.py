"""The KV pages of a draft model: the sequences that it has computed, and a prefix cache of its own.

It follows the rules of the main cache: a request finds what its namespace may find, and a request that has ended leaves its pages to later
ones. Sequences are dropped in the order of their last use when pages are needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.params import SamplingParams
from rtlang.engine.requests.request import Request


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


class ModelPages:
    """The sequences of a draft model. Used on the engine thread.

    Args:
        num_pages, page_size: of its KV pool.
        sharing: whether sequences share the pages of common prefixes.
    """

    def __init__(self, num_pages: int, page_size: int, *, sharing: bool) -> None:
        self.cache = PrefixCache(num_pages, page_size, sharing=sharing)
        self._page_size = page_size
        self._sequences: OrderedDict[Request, ComputedSequence] = OrderedDict()  # the one used last at the end

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
