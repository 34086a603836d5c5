"""Drives a `PrefixCache` as an engine would, with a memory of its own and a dictionary of all stored prefixes as the oracle.

The oracle maps every stored prefix (a tuple of tokens ending at a page border, or in a partial page) to its page. It learns from the
calls made, and from the allocator only which pages left the tree. Page memory is simulated token by token, so what a match
hands out is compared with what was really written there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from rtlang.cache.node import RadixNode, pack
from rtlang.cache.pages import PageOwner
from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from rtlang.cache.retention import Hold

GARBAGE = -1


@dataclass(eq=False)
class SimulatedRequest:
    """One running sequence: what it holds of the cache, and how far it has come."""

    tokens: list[int]
    node: RadixNode
    page_ids: list[int]
    num_computed: int
    num_in_tree: int  # tokens up to the end of `node`
    num_before_step: int  # what was computed when the step being built began
    is_in_step: bool = False  # has a row or a copy in it
    has_row: bool = False


@dataclass
class SimulatedStep:
    """What the step being built will do to memory."""

    copies: list[tuple[int, int, list[int]]] = field(default_factory=list)  # source, destination, tokens expected there
    writes: list[tuple[int, int, int]] = field(default_factory=list)  # page, offset, token


@dataclass
class SimulatedHold:
    """A granted hold, and the stored prefixes that it covers by the dictionary: whole pages in order, then a partial one."""

    hold: Hold
    prefixes: list[tuple[int, ...]]


class CacheSimulation:
    """Random operations with full verification after each."""

    def __init__(self, seed: int, *, num_pages: int, page_size: int, num_tokens: int, sharing: bool) -> None:
        self.random = random.Random(seed)
        self.cache = PrefixCache(num_pages, page_size, sharing=sharing, retention_share=0.3)
        self.page_size, self.num_pages, self.num_tokens, self.sharing = page_size, num_pages, num_tokens, sharing
        self.memory = [[GARBAGE] * page_size for _ in range(num_pages)]
        self.requests: list[SimulatedRequest] = []
        self.holds: list[SimulatedHold] = []  # by order
        self.step = SimulatedStep()
        self.stored: dict[tuple[int, ...], int] = {}
        self.pending: set[tuple[int, ...]] = set()
        self.history: list[list[int]] = [[]]
        self.num_operations: dict[str, int] = {}
        self.num_tail_hits = self.num_whole_hits = 0
        self.num_kept_requests = 0  # allocations refused because of holds that they might not revoke

    def run(self, num_operations: int) -> None:
        """Do so many random operations, each followed by `verify`."""
        operations = {
            self.admit: 6,
            self.advance: 12,
            self.succeed: 4,
            self.fail: 1,
            self.finish: 4,
            self.abandon: 1,
            self.squeeze: 1,
            self.probe: 3,
            self.hold: 4,
            self.release: 1,
            self.demote: 2,
            self.clear: 0.05,
        }
        for _ in range(num_operations):
            (operation,) = self.random.choices(list(operations), weights=list(operations.values()))
            operation()
            self.num_operations[operation.__name__] = self.num_operations.get(operation.__name__, 0) + 1
            self.verify()

    def admit(self) -> None:
        """A request arrives: match, lock, allocate, copy the tail."""
        tokens = self._random_sequence()
        if not tokens or len(self.requests) >= 8:
            return
        match = self._match(tokens, len(tokens) - 1)
        self.cache.lock(match.node)
        page_ids = self._allocate(-(-len(tokens) // self.page_size) - len(match.page_ids), match.page_ids)
        if page_ids is None:
            self.cache.unlock(match.node)
            return
        num_matched = match.num_tokens
        request = SimulatedRequest(
            tokens, match.node, match.page_ids + page_ids, num_matched, num_matched, num_before_step=num_matched
        )
        if match.tail_page_id is not None:
            expected = tokens[match.num_tokens : match.num_tokens + match.num_tail_tokens]
            self.step.copies.append((match.tail_page_id, page_ids[0], expected))
            request.num_computed += match.num_tail_tokens
            request.is_in_step = True
        self.requests.append(request)

    def advance(self) -> None:
        """A request not yet in the step computes some tokens in it, growing past its prompt if it is at its end."""
        idle = [request for request in self.requests if not request.has_row]
        if not idle:
            return
        request = self.random.choice(idle)
        if request.num_computed == len(request.tokens):
            if len(request.tokens) % self.page_size == 0:
                page_ids = self._allocate(1)
                if page_ids is None:
                    return
                request.page_ids += page_ids
            request.tokens.append(self.random.randrange(self.num_tokens))
        end = self.random.randint(request.num_computed + 1, len(request.tokens))
        start = request.num_computed
        request.is_in_step, request.has_row, request.num_computed = True, True, end
        whole = end // self.page_size * self.page_size
        if whole > request.num_in_tree:
            self._extend(request, whole)
        for position in range(start, end):
            page_id = request.page_ids[position // self.page_size]
            self.step.writes.append((page_id, position % self.page_size, request.tokens[position]))

    def _extend(self, request: SimulatedRequest, whole: int) -> None:
        first, last = request.num_in_tree // self.page_size, whole // self.page_size
        given = request.page_ids[first:last]
        added = request.tokens[request.num_in_tree : whole]
        request.node, used = self.cache.extend(request.node, added, given, start=request.num_in_tree)
        if not self.sharing:
            assert used == given
            return
        for index, page_id in enumerate(used, start=first):
            prefix = tuple(request.tokens[: (index + 1) * self.page_size])
            if prefix in self.stored:
                assert page_id == self.stored[prefix], "extend returned another page than the stored one"
                assert self._owner(given[index - first]) is PageOwner.FREE, "a duplicate page was not freed"
            else:
                assert page_id == given[index - first]
                self.stored[prefix] = page_id
                self.pending.add(prefix)
        request.page_ids[first:last] = used
        request.num_in_tree = whole

    def succeed(self) -> None:
        """The step runs: copies, writes, commit. Some of its requests may be cancelled just before."""
        for request in [request for request in self.requests if request.is_in_step]:
            if self.random.random() < 0.1:
                self._finish(request, max(request.num_before_step, request.num_in_tree))
        self._apply(is_good=True)
        self.cache.commit()
        self.pending.clear()
        self._end_step()
        for request in self.requests:
            for position in range(request.num_computed):
                held = self.memory[request.page_ids[position // self.page_size]][position % self.page_size]
                assert held == request.tokens[position], "a request's page does not hold its tokens"

    def fail(self) -> None:
        """The step fails half-way: what it wrote is garbage, its requests are given up before or after the pages are."""
        self._apply(is_good=False)
        for prefix in self.pending:
            del self.stored[prefix]
        for simulated in self.holds:
            simulated.prefixes = [prefix for prefix in simulated.prefixes if prefix not in self.pending]
        is_first = self.random.random() < 0.5
        if is_first:
            self._abandon_lost(in_step_only=True)
        self.cache.discard_pending()
        self.pending.clear()
        self._abandon_lost(in_step_only=False)
        self._end_step()

    def finish(self) -> None:
        """A request outside the step ends."""
        idle = [request for request in self.requests if not request.is_in_step]
        if idle:
            request = self.random.choice(idle)
            self._finish(request, request.num_computed)

    def abandon(self) -> None:
        """A request outside the step is given up."""
        idle = [request for request in self.requests if not request.is_in_step]
        if idle:
            self._abandon(self.random.choice(idle))

    def squeeze(self) -> None:
        """Take some pages and give them back, so that others are evicted."""
        page_ids = self._allocate(self.random.randint(0, self.num_pages // 2))
        if page_ids is not None:
            self.cache.free(page_ids)

    def probe(self) -> None:
        """Ask without consequences; the answers must be those of the dictionary."""
        tokens = self._random_sequence()
        num_found = self.cache.peek(tokens)
        assert num_found == self._num_spared(tokens)
        lookup = self.cache.lookup(pack(tokens), 3)
        position, stored = lookup.position, list(lookup.next_keys)
        assert lookup.num_cached == num_found
        num_in_pages = len(self._expected(tokens, len(tokens))[0]) * self.page_size
        assert lookup.num_in_pages == num_in_pages == self.cache.num_in_pages(tokens)
        assert position >= num_found
        behind = [
            each[position:]
            for each in self.stored
            if len(each) > position and list(each[:position]) == tokens[:position]
        ]
        assert bool(stored) == bool(behind)
        assert not stored or any(list(each[: len(stored)]) == stored[: len(each)] for each in behind)
        assert not stored or position == len(tokens) or stored[0] != tokens[position]
        self._match(tokens, self.random.randint(0, len(tokens)))

    def clear(self) -> None:
        """Drop all that nobody locks."""
        self.cache.clear()
        assert not any(each.hold.is_granted for each in self.holds)

    def hold(self) -> None:
        """A program asks for a hold; it gets one if those of earlier programs leave enough of the share."""
        tokens, rank = self._random_sequence(), self.random.randrange(6)
        prefixes = [
            tuple(tokens[: end * self.page_size]) for end in range(1, 1 + len(self._expected(tokens, len(tokens))[0]))
        ]
        start = len(prefixes) * self.page_size
        tails = [tuple(tokens[:end]) for end in range(start + 1, start + self.page_size)]
        tails = [tail for tail in tails[: len(tokens) - start] if tail in self.stored]
        prefixes += tails[-1:]
        earlier = self._held_prefixes(rank)
        hold = self.cache.hold(tokens, rank)
        assert (hold is not None) == bool(prefixes and len(earlier.union(prefixes)) <= self.cache.retention.max_pages)
        self._forget_revoked(rank)
        if hold is not None:
            assert hold.num_tokens == len(prefixes[-1])
            self.holds.append(SimulatedHold(hold, prefixes))
            self.holds.sort(key=lambda each: each.hold.order)

    def release(self) -> None:
        """A program gives up a hold."""
        if self.holds:
            simulated = self.holds.pop(self.random.randrange(len(self.holds)))
            self.cache.release(simulated.hold)
            self.cache.release(simulated.hold)

    def demote(self) -> None:
        """Nothing will continue a sequence."""
        tokens = self._random_sequence()
        self.cache.demote(tokens, self.random.randint(0, len(tokens)))

    def verify(self) -> None:
        """The cache's own check, and what must hold between its account and the oracle's."""
        self.cache.check()
        self._forget_evicted()
        self._forget_revoked(None)
        for simulated in self.holds:
            gone = [prefix for prefix in simulated.prefixes if prefix not in self.stored]
            if gone:
                (tail,) = gone
                assert len(tail) % self.page_size, "a held page left the tree"
                assert any(known[: len(tail)] == tail for known in self.stored), "a held tail was lost"
                simulated.prefixes.remove(tail)
        assert self.cache.num_held == len(self._held_prefixes(None))
        assert self.pending <= self.stored.keys(), "a pending page left the tree"
        for prefix in self.stored:
            parent = prefix[: (len(prefix) - 1) // self.page_size * self.page_size]
            assert not parent or parent in self.stored, "a page left the tree before what follows it"
        for request in self.requests:
            for index, page_id in enumerate(request.page_ids):
                in_tree = index * self.page_size < request.num_in_tree
                assert self._owner(page_id) is (PageOwner.TREE if in_tree else PageOwner.PRIVATE)
                if in_tree:
                    assert self.stored[tuple(request.tokens[: (index + 1) * self.page_size])] == page_id
        assert len(set(self.stored.values())) == len(self.stored), "a page is stored under two prefixes"
        locked = {page for request in self.requests for page in request.page_ids if self._owner(page) is PageOwner.TREE}
        private = sum(self._owner(page) is PageOwner.PRIVATE for request in self.requests for page in request.page_ids)
        assert self.cache.num_cached == len(self.stored) - len(locked)
        assert self.cache.num_in_use == len(locked) + private
        assert self.cache.num_free == self.num_pages - len(self.stored) - private

    def _random_sequence(self) -> list[int]:
        """Part of an earlier sequence with something new behind it."""
        known = self.random.choice(self.history[-40:])
        kept = known[: self.random.randint(0, len(known))] if self.random.random() < 0.7 else list(known)
        new = [self.random.randrange(self.num_tokens) for _ in range(self.random.randint(0, 2 * self.page_size))]
        return (kept + new)[: self.num_pages * self.page_size // 2]

    def _expected(self, tokens: list[int], limit: int) -> tuple[list[int], int]:
        """What must match, by the dictionary: pages, and the length of the best tail."""
        pages: list[int] = []
        while (end := (len(pages) + 1) * self.page_size) <= limit and tuple(tokens[:end]) in self.stored:
            pages.append(self.stored[tuple(tokens[:end])])
        start = len(pages) * self.page_size
        best = 0
        for prefix in self.stored:
            if prefix in self.pending or not start < len(prefix) <= start + self.page_size:
                continue
            common = 0
            while common < min(len(prefix), limit) and prefix[common] == tokens[common]:
                common += 1
            best = max(best, common - start)
        return pages, best

    def _num_spared(self, tokens: list[int]) -> int:
        """Tokens of a sequence that need not be computed, by the dictionary."""
        pages, num_tail_tokens = self._expected(tokens, len(tokens))
        return len(pages) * self.page_size + num_tail_tokens

    def _match(self, tokens: list[int], limit: int) -> PrefixMatch:
        expected, num_tail_tokens = self._expected(tokens, limit)
        match = self.cache.match(tokens, limit)
        assert match.page_ids == expected
        assert match.num_tokens == len(expected) * self.page_size
        assert match.num_tail_tokens == num_tail_tokens
        assert match.num_stored_tokens == match.num_tokens + num_tail_tokens
        assert (match.tail_page_id is None) == (num_tail_tokens == 0)
        for index, page_id in enumerate(match.page_ids):
            end = (index + 1) * self.page_size
            if tuple(tokens[:end]) not in self.pending:
                assert self.memory[page_id] == tokens[end - self.page_size : end], "a matched page holds other tokens"
        if match.tail_page_id is not None:
            wanted = tokens[match.num_tokens : match.num_tokens + num_tail_tokens]
            assert self.memory[match.tail_page_id][:num_tail_tokens] == wanted, "a tail page holds other tokens"
        self.num_whole_hits += bool(expected)
        self.num_tail_hits += bool(num_tail_tokens)
        return match

    def _allocate(self, num_pages: int, matched: Sequence[int] = ()) -> list[int] | None:
        """Allocate on behalf of a request that has locked the pages `matched`."""
        rank = self.random.choice([None, 0, 1, 2, 3, 4, 5])
        num_available = self._num_available(self._held_prefixes(-1 if rank is None else rank), matched)
        num_unheld = self._num_available(self._held_prefixes(None), matched)
        assert num_available == self.cache.num_available_to(rank)
        assert self.cache.can_allocate(num_pages, rank) == (num_pages <= num_available)
        before = dict.fromkeys(self.stored)
        page_ids = self.cache.allocate(num_pages, rank=rank)
        if num_available < num_pages:
            assert page_ids is None
            assert all(self._owner(self.stored[prefix]) is PageOwner.TREE for prefix in before), "evicted in vain"
            assert all(each.hold.is_granted for each in self.holds), "revoked in vain"
            self.num_kept_requests += num_pages <= self.cache.num_available
            return None
        assert page_ids is not None, "num_available promised more than allocate could give"
        assert len(set(page_ids)) == len(page_ids) == num_pages
        assert page_ids == sorted(page_ids)
        for request in self.requests:
            assert not set(page_ids) & set(request.page_ids), "a page in use was handed out"
        self._forget_evicted()
        assert num_unheld < num_pages or all(each.hold.is_granted for each in self.holds), "revoked without need"
        self._forget_revoked(rank)
        return page_ids

    def _held_prefixes(self, rank: float | None) -> set[tuple[int, ...]]:
        """Stored prefixes under holds of programs that did not arrive after `rank`; None: of all programs."""
        holds = [each for each in self.holds if rank is None or each.hold.order[0] <= rank]
        return {prefix for each in holds for prefix in each.prefixes if prefix in self.stored}

    def _num_available(self, spared: set[tuple[int, ...]], matched: Sequence[int]) -> int:
        """Free pages, and stored ones that nothing prevents from being evicted, by the dictionary."""
        locked = {page for request in self.requests for page in request.page_ids}.union(matched)
        above = {each[:end] for each in self.pending for end in range(self.page_size, len(each), self.page_size)}
        blocked = self.stored.keys() & (above | self.pending)
        kept = {prefix for prefix, page in self.stored.items() if page in locked} | blocked | spared
        return self.cache.num_free + len(self.stored) - len(kept)

    def _forget_revoked(self, rank: float | None) -> None:
        """Drop revoked holds, which must be those of the programs that arrived last, all of them after `rank`."""
        num_granted = sum(each.hold.is_granted for each in self.holds)
        revoked = self.holds[num_granted:]
        assert not any(each.hold.is_granted for each in revoked), "an older hold was revoked before a newer one"
        assert rank is None or all(each.hold.order[0] > rank for each in revoked)
        del self.holds[num_granted:]

    def _finish(self, request: SimulatedRequest, num_tokens: int) -> None:
        """End a request of which `num_tokens` tokens are valid."""
        first = request.num_in_tree // self.page_size
        self._give_back(request, request.tokens[request.num_in_tree : num_tokens], request.page_ids[first:])
        self.requests.remove(request)
        self.history.append(request.tokens)
        if not self.sharing:
            return
        is_pending = tuple(request.tokens[: request.num_in_tree]) in self.pending
        for index in range(first, -(-num_tokens // self.page_size)):
            prefix = tuple(request.tokens[: min(num_tokens, (index + 1) * self.page_size)])
            page_id = request.page_ids[index]
            if self._owner(page_id) is PageOwner.TREE:
                assert prefix not in self.stored
                self.stored[prefix] = page_id
                is_pending = is_pending or prefix[: index * self.page_size] in self.pending
                if is_pending:
                    self.pending.add(prefix)
            else:
                covers = [known for known in self.stored if known[: len(prefix)] == prefix]
                assert covers, "a finished page was neither kept nor a duplicate"
        for prefix in [prefix for prefix, page_id in self.stored.items() if self._owner(page_id) is PageOwner.FREE]:
            assert len(prefix) % self.page_size, "finishing dropped a whole page"
            assert any(len(known) > len(prefix) and known[: len(prefix)] == prefix for known in self.stored)
            del self.stored[prefix]

    def _give_back(self, request: SimulatedRequest, tokens: list[int], page_ids: list[int]) -> None:
        """The call that ends a request, with the tokens and pages behind its node."""
        self.cache.finish(request.node, tokens, page_ids, start=request.num_in_tree)

    def _abandon(self, request: SimulatedRequest) -> None:
        self.cache.abandon(request.node, request.page_ids[request.num_in_tree // self.page_size :])
        self.requests.remove(request)

    def _abandon_lost(self, *, in_step_only: bool) -> None:
        for request in list(self.requests):
            if request.is_in_step or (not in_step_only and not request.node.is_attached):
                self._abandon(request)

    def _apply(self, *, is_good: bool) -> None:
        copied = [(target, self.memory[source][: len(wanted)], wanted) for source, target, wanted in self.step.copies]
        for target, tokens, wanted in copied:
            assert not is_good or tokens == wanted, "the source of a copy was overwritten before the step"
            self.memory[target][: len(tokens)] = tokens if is_good else [GARBAGE] * len(tokens)
        # Where `extend` replaced a page by a stored one, the row writes the same values again, which is harmless in a failed step too.
        stored = {page_id for prefix, page_id in self.stored.items() if prefix not in self.pending}
        for page_id, offset, token in self.step.writes:
            if is_good or page_id not in stored:
                self.memory[page_id][offset] = token if is_good else GARBAGE

    def _end_step(self) -> None:
        self.step = SimulatedStep()
        for request in self.requests:
            request.is_in_step = request.has_row = False
            request.num_before_step = request.num_computed

    def _forget_evicted(self) -> None:
        for prefix in [prefix for prefix, page_id in self.stored.items() if self._owner(page_id) is not PageOwner.TREE]:
            del self.stored[prefix]

    def _owner(self, page_id: int) -> PageOwner:
        return self.cache._pages.owner(page_id)
