"""A `CacheSimulation` of a model with recurrent layers, with a dictionary from prefixes to their states as the oracle.

The state of a prefix is a hash of its tokens, computed token by token from the state before. It lies in an array at its slot, and whatever
gets a slot overwrites it at once, so a state that is restored wrongly, or read after its slot was handed out, is seen. The dictionary
learns which states are kept from the calls made, predicts which are evicted, and says of every sequence which state a match must return.

Sequences are of several namespaces that share public prefixes. Their tokens are numbers as the tree has them, see `scope.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any

from rtlang.cache.node import RadixNode
from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from rtlang.cache.retention import Hold
from rtlang.cache.scope import PUBLIC, CacheScope, unpacked
from rtlang.cache.states import Checkpoint, SlotOwner
from tests.support.engine.cache_simulation import GARBAGE, CacheSimulation, SimulatedRequest

Prefix = tuple[int, ...]


def follow(state: int, token: int) -> int:
    """The state after one more token."""
    return hash((state, token))


def state_of(tokens: Sequence[int]) -> int:
    """The state after these tokens."""
    return reduce(follow, tokens, 0)


state_of_prefix = lru_cache(1000)(state_of)


def scope_of(keys: Sequence[int], start: int = 0) -> tuple[list[int], CacheScope]:
    """The token ids and the scope of a sequence of the tree's numbers, which begins at position `start`."""
    pairs = [unpacked(key) for key in keys]
    num_public = sum(number == 0 for number, _ in pairs)
    return [token for _, token in pairs], CacheScope(pairs[-1][0] if pairs else 0, start + num_public)


class PackedCache(PrefixCache):
    """Takes sequences of the tree's numbers in place of token ids with a scope."""

    def match(self, token_ids: Sequence[int], limit: int, scope: CacheScope = PUBLIC) -> PrefixMatch:
        plain, scope = scope_of(token_ids)
        return super().match(plain, limit, scope)

    def peek(self, token_ids: Sequence[int], scope: CacheScope = PUBLIC) -> int:
        return super().peek(*scope_of(token_ids))

    def num_in_pages(self, token_ids: Sequence[int], scope: CacheScope = PUBLIC) -> int:
        return super().num_in_pages(*scope_of(token_ids))

    def hold(self, token_ids: Sequence[int], rank: float, scope: CacheScope = PUBLIC) -> Hold | None:
        plain, scope = scope_of(token_ids)
        return super().hold(plain, rank, scope)

    def demote(self, token_ids: Sequence[int], start: int, scope: CacheScope = PUBLIC) -> None:
        plain, scope = scope_of(token_ids)
        super().demote(plain, start, scope)

    def extend(
        self,
        node: RadixNode,
        token_ids: Sequence[int],
        page_ids: Sequence[int],
        scope: CacheScope = PUBLIC,
        start: int = 0,
    ) -> tuple[RadixNode, list[int]]:
        plain, scope = scope_of(token_ids, start)
        return super().extend(node, plain, page_ids, scope, start)

    def finish(
        self,
        node: RadixNode,
        token_ids: Sequence[int],
        page_ids: Sequence[int],
        scope: CacheScope = PUBLIC,
        start: int = 0,
        state: tuple[int, int] | None = None,
    ) -> None:
        plain, scope = scope_of(token_ids, start)
        super().finish(node, plain, page_ids, scope, start, state)


@dataclass(eq=False)
class StatefulRequest(SimulatedRequest):
    """A running sequence. `num_computed` is the position of its state, where its next row starts.

    Attributes:
        slot: its own slot.
        source: the slot from which its next row starts; None at the start of a sequence.
        num_kv_tokens: tokens whose keys and values are in its pages.
        marks: states that it computed on its way, position and slot, which are not in the tree yet.
    """

    slot: int = -1
    source: int | None = None
    num_kv_tokens: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Row:
    """What a step does to the states of one request: it reads `source`, and after some positions it writes slots."""

    tokens: list[int]
    start: int
    source: int | None
    marks: list[tuple[int, int]]


class StateSimulation(CacheSimulation):
    """Random operations with full verification after each."""

    def __init__(self, seed: int, *, num_states: int, **settings: Any) -> None:
        super().__init__(seed, **settings)
        self.cache: PrefixCache = PackedCache(
            self.num_pages, self.page_size, sharing=self.sharing, retention_share=0.3, num_states=num_states
        )
        assert self.cache.states is not None
        self.pool = self.cache.states
        self.state_memory = [GARBAGE] * num_states
        self.states: dict[Prefix, int] = {}
        self.uncommitted: set[Prefix] = set()  # states in pending pages only
        self.used_at: dict[Prefix, int] = {}
        self.uses: dict[Prefix, int] = {}
        self.rows: list[Row] = []
        self.ending: list[int] = []  # slots of requests that ended in the step being built
        self.unlocked_after: list[int] = []
        self.num_restored = self.num_restored_in_pages = self.num_replayed = self.num_held_states = 0
        self.num_kept = self.num_kept_early = self.num_doubles = self.num_evicted_states = self.num_lost_states = 0

    def run(self, num_operations: int) -> None:
        for _ in range(num_operations):
            super().run(1)
            if self.random.random() < 0.03:
                self.squeeze_states()
                self.verify()

    def admit(self) -> None:
        """A request arrives: match, lock, allocate pages and a slot, copy the tail."""
        tokens = self._random_sequence()
        if not tokens or len(self.requests) >= 5:
            return
        match = self._match(tokens, len(tokens) - 1)
        self.cache.lock(match.node)
        if match.state_slot is not None:
            self.pool.lock(match.state_slot)
        page_ids = self._allocate(-(-len(tokens) // self.page_size) - len(match.page_ids), match.page_ids)
        slot = None if page_ids is None else self._allocate_slot()
        if page_ids is None or slot is None:
            self.cache.abandon(match.node, page_ids or [])
            if match.state_slot is not None:
                self.pool.unlock(match.state_slot)
            return
        start = match.num_tokens
        request = StatefulRequest(
            *(tokens, match.node, match.page_ids + page_ids, match.num_state_tokens, start),
            num_before_step=start,
            slot=slot,
            source=match.state_slot,
            num_kv_tokens=start + match.num_tail_tokens,
        )
        if match.tail_page_id is not None:
            expected = tokens[start : start + match.num_tail_tokens]
            self.step.copies.append((match.tail_page_id, page_ids[0], expected))
            request.is_in_step = True
        self.requests.append(request)

    def advance(self) -> None:
        """A request computes some tokens, and states after some of them; those that are in its pages are replayed."""
        idle = [request for request in self._stateful() if not request.has_row]
        if not idle:
            return
        request = self.random.choice(idle)
        if request.num_kv_tokens == len(request.tokens) == request.num_computed:
            if len(request.tokens) % self.page_size == 0:
                page_ids = self._allocate(1)
                if page_ids is None:
                    return
                request.page_ids += page_ids
            number = request.tokens[-1] >> 32
            request.tokens.append(number << 32 | self.random.randrange(self.num_tokens))
        start = request.num_computed
        end = self.random.randint(min(max(start + 1, request.num_kv_tokens), len(request.tokens)), len(request.tokens))
        last = end if self.random.random() < 0.7 else self.random.randint(start + 1, end)  # behind it may be drafts
        positions = self.random.sample(range(start + 1, last), min(last - start - 1, self.random.choice([0, 0, 1, 2])))
        slots = [(position, self._allocate_slot()) for position in sorted(positions)]
        marks = [(position, slot) for position, slot in slots if slot is not None]
        request.marks += marks
        self.rows.append(Row(request.tokens, start, request.source, [*marks, (last, request.slot)]))
        if request.source not in (None, request.slot):
            assert request.source is not None
            self.unlocked_after.append(request.source)
        self.num_replayed += max(0, request.num_kv_tokens - start)
        request.is_in_step = request.has_row = True
        request.source, request.num_computed = request.slot, last
        for position in range(request.num_kv_tokens, end):
            page_id = request.page_ids[position // self.page_size]
            self.step.writes.append((page_id, position % self.page_size, request.tokens[position]))
        request.num_kv_tokens = max(request.num_kv_tokens, end)
        whole = request.num_kv_tokens // self.page_size * self.page_size
        if whole > request.num_in_tree:
            first = request.num_in_tree // self.page_size
            given = request.page_ids[first:]
            self._extend(request, whole)
            replaced = dict(zip(given, request.page_ids[first:], strict=True))
            self.step.writes = [(replaced.get(page, page), *rest) for page, *rest in self.step.writes]  # type: ignore[misc]
        if self.random.random() < 0.4:
            self._keep_marks(request, is_early=True)

    def succeed(self) -> None:
        super().succeed()
        self.uncommitted.clear()
        for request in self._stateful():
            if self.random.random() < 0.7:
                self._keep_marks(request, is_early=False)

    def fail(self) -> None:
        for prefix in self.uncommitted:
            del self.states[prefix]
        self.uncommitted.clear()
        super().fail()

    def finish(self) -> None:
        idle = [request for request in self._stateful() if not request.is_in_step]
        if idle:
            request = self.random.choice(idle)
            self._finish(request, max(request.num_kv_tokens, request.num_in_tree))

    def squeeze_states(self) -> None:
        """Take some slots and give them back, so that checkpoints are evicted."""
        slots = [self._allocate_slot() for _ in range(self.random.randint(0, self.pool.num_slots // 2))]
        for slot in slots:
            if slot is not None:
                self.pool.free(slot)

    def probe(self) -> None:
        super().probe()
        tokens = self._random_sequence()
        known = [end for end in range(1, len(tokens) + 1) if self._is_usable(tuple(tokens[:end]))]
        num_in_pages = self.cache.num_in_pages(tokens)
        positions = self.cache.lookup(b"".join(key.to_bytes(8, "little") for key in tokens), 1).state_positions
        assert list(positions) == [end for end in known if end <= num_in_pages or end == known[-1]]

    def clear(self) -> None:
        super().clear()
        assert all(
            slot in self.pool._locks for slot in self.states.values() if self._slot_owner(slot) is SlotOwner.TREE
        )
        self.states = {p: slot for p, slot in self.states.items() if self._slot_owner(slot) is SlotOwner.TREE}
        self.uncommitted &= self.states.keys()

    def hold(self) -> None:
        before = list(self.holds)
        super().hold()
        for simulated in self.holds:
            if any(each is simulated for each in before):
                continue
            deepest = max(simulated.prefixes, key=len)
            at_page_ends = [len(p) for p in self.states if len(p) % self.page_size == 0 and deepest[: len(p)] == p]
            checkpoint = simulated.hold.state
            held = () if checkpoint is None else self._tokens_of(checkpoint)
            assert deepest[: len(held)] == held
            assert len(held) >= max(at_page_ends, default=0), "a hold keeps a checkpoint above the deepest"
            if checkpoint is not None and self.pool._clock == checkpoint.last_access:
                self.used_at[held] = checkpoint.last_access  # it is no longer demoted
            self.num_held_states += checkpoint is not None

    def verify(self) -> None:
        super().verify()
        self._forget_lost()
        assert self.pool.num_kept == len(self.states)
        checkpoints = {each.slot: each for each in self.pool.checkpoints()}
        assert checkpoints.keys() == set(self.states.values())
        for prefix, slot in self.states.items():
            assert self._tokens_of(checkpoints[slot]) == prefix, "a checkpoint is at other tokens"
            if prefix not in self.uncommitted:
                assert self.state_memory[slot] == state_of_prefix(prefix), "a checkpoint holds another state"
        private = [request.slot for request in self._stateful()]
        private += [slot for request in self._stateful() for _, slot in request.marks] + self.ending
        assert len(private) == len(set(private)) == self.pool.num_private
        assert all(self._slot_owner(slot) is SlotOwner.PRIVATE for slot in private)
        for prefix, slot in self.states.items():
            assert checkpoints[slot].num_uses == self.uses[prefix], "a use of a checkpoint was not noted"
            assert checkpoints[slot].last_access in (0, self.used_at[prefix])

    def _stateful(self) -> list[StatefulRequest]:
        return [request for request in self.requests if isinstance(request, StatefulRequest)]

    def _random_sequence(self) -> list[int]:
        if self.requests and self.random.random() < 0.2:
            return list(self.random.choice(self.requests).tokens)
        known = self.random.choice([*self.history[-10:], *(request.tokens for request in self.requests)])
        kept = known[: self.random.randint(0, len(known))] if self.random.random() < 0.7 else list(known)
        number = (kept[-1] >> 32 if kept else 0) or self.random.choice([0, 0, 1, 2])
        num_new = self.random.randint(0, 2 * self.page_size)
        new = [number << 32 | self.random.randrange(self.num_tokens) for _ in range(num_new)]
        return (kept + new)[: self.num_pages * self.page_size // 2]

    def _num_spared(self, tokens: list[int]) -> int:
        usable = (end for end in range(len(tokens), 0, -1) if self._is_usable(tuple(tokens[:end])))
        return next(usable, 0)

    def _match(self, tokens: list[int], limit: int) -> PrefixMatch:
        pages, num_common = self._expected(tokens, limit)
        num_state_tokens = self._num_spared(tokens[:limit])
        prefix = tuple(tokens[:num_state_tokens])
        before = self.cache.stats.num_hit_tokens
        match = self.cache.match(tokens, limit)
        assert match.page_ids == pages
        assert match.num_tokens == len(pages) * self.page_size
        assert match.num_state_tokens == num_state_tokens
        assert match.num_stored_tokens == match.num_tokens + num_common
        assert match.state_slot == self.states.get(prefix)
        assert match.num_tail_tokens == max(0, num_state_tokens - match.num_tokens)
        assert (match.tail_page_id is None) == (match.num_tail_tokens == 0)
        assert self.cache.stats.num_hit_tokens - before == num_state_tokens
        if match.state_slot is not None:
            assert self.state_memory[match.state_slot] == state_of(prefix)
            self._use(prefix)
            self.num_restored += 1
            self.num_restored_in_pages += num_state_tokens % self.page_size > 0
        if match.tail_page_id is not None:
            wanted = tokens[match.num_tokens : num_state_tokens]
            assert self.memory[match.tail_page_id][: len(wanted)] == wanted
        self.num_whole_hits += bool(pages)
        self.num_tail_hits += match.tail_page_id is not None
        return match

    def _allocate_slot(self) -> int | None:
        """Allocate a slot; the dictionary says which checkpoint must make room."""
        self._forget_lost()
        locked = self.pool._locks
        open_to_eviction = [prefix for prefix, slot in self.states.items() if slot not in locked]
        num_free = self.pool.num_free
        assert self.pool.num_available == num_free + len(open_to_eviction)

        def rank(prefix: Prefix) -> tuple[bool, bool, int]:
            """The order of eviction, where nobody evicted the checkpoints above after the last use."""
            checkpoint = self.pool.checkpoint(self.states[prefix])
            num_spared = max(checkpoint.num_spared, self._count_spared(prefix))
            value = checkpoint.last_access + min(8, self.uses[prefix]) * num_spared
            return checkpoint.last_access > 0, checkpoint.num_holds > 0, value

        victims = {prefix: rank(prefix) for prefix in open_to_eviction}
        slot = self.pool.allocate()
        if not num_free:
            if slot is None:
                assert not victims, "a checkpoint could have been evicted"
                return None
            victim = next(prefix for prefix, kept in self.states.items() if kept == slot)
            best = min(victims.values())
            assert victims[victim] == best or not (victims[victim][0] or best[0]), (
                "another checkpoint was to be evicted"
            )
            assert self.pool._clock >= victims[victim][2] or not best[0]
            self._forget_state(victim)
            self.num_evicted_states += 1
        assert slot is not None
        assert slot not in locked
        assert all(slot != row.source for row in self.rows), "a slot that the step reads was handed out"
        self.state_memory[slot] = GARBAGE
        return slot

    def _keep_marks(self, request: StatefulRequest, *, is_early: bool) -> None:
        """Give the states of a request to the tree, as far as its pages are there."""
        if not request.node.is_attached:
            return
        ready = [
            (position, slot) for position, slot in request.marks if position <= request.num_in_tree or not self.sharing
        ]
        for position, slot in ready:
            prefix = tuple(request.tokens[:position])
            if is_early and (self._is_covered(prefix) or not self.sharing):
                continue  # a match could return it before the step has written it
            if is_early:
                self.pool.lock(slot)
                self.unlocked_after.append(slot)
                self.num_kept_early += 1
            request.marks.remove((position, slot))
            self._expect_kept(prefix, slot, self.cache.keep_state(request.node, position, slot))

    def _expect_kept(self, prefix: Prefix, slot: int, is_kept: bool) -> None:
        """A slot was offered to the tree; the dictionary says whether it became the checkpoint."""
        self._forget_lost()
        if not self.sharing:
            assert not is_kept
            return
        is_double = prefix in self.states and prefix not in self.uncommitted
        assert is_kept == (not is_double)
        self.num_doubles += is_double
        if is_kept:
            self._forget_state(prefix)
            self.uses[prefix] = 0
            self.states[prefix] = slot
            if not self._is_covered(prefix):
                self.uncommitted.add(prefix)
            self.num_kept += 1
        self._use(prefix)

    def _give_back(self, request: SimulatedRequest, tokens: list[int], page_ids: list[int]) -> None:
        assert isinstance(request, StatefulRequest)
        start = request.num_in_tree
        is_in_step, state = request.is_in_step, None
        if not is_in_step and request.source == request.slot and request.num_computed <= start + len(tokens):
            state = (request.num_computed, request.slot)
        if state is not None and self.random.random() < 0.2:
            self.pool.free(state[1])
            state = request.marks.pop() if request.marks and request.marks[-1][0] <= start + len(tokens) else None
        elif state is None:
            self._free_slot(request.slot, is_in_step)
        self._drop_source(request, is_in_step)
        for _, slot in request.marks:
            self._free_slot(slot, is_in_step)
        kept_before = self.pool.stats.num_kept
        self.cache.finish(request.node, tokens, page_ids, start=start, state=state)
        self._ended = (request, state, self.pool.stats.num_kept > kept_before)

    def _finish(self, request: SimulatedRequest, num_tokens: int) -> None:
        super()._finish(request, num_tokens)
        _, state, is_kept = self._ended
        if state is None or not self.sharing:
            return
        prefix = tuple(request.tokens[: state[0]])
        if state[0] > num_tokens // self.page_size * self.page_size and not self._is_covered(prefix):
            assert not is_kept, "a state in a partial page that is pending was kept"
            return
        self._expect_kept(prefix, state[1], is_kept)

    def _abandon(self, request: SimulatedRequest) -> None:
        assert isinstance(request, StatefulRequest)
        self._drop_source(request, request.is_in_step)
        for _, slot in request.marks:
            self._free_slot(slot, request.is_in_step)
        pages = request.page_ids[request.num_in_tree // self.page_size :]
        if request.is_in_step:
            self.ending.append(request.slot)
            self.cache.abandon(request.node, pages)
        else:
            self.cache.abandon(request.node, pages, request.slot)
        self.requests.remove(request)

    def _free_slot(self, slot: int, is_in_step: bool) -> None:
        if is_in_step:  # the step writes it
            self.ending.append(slot)
        else:
            self.pool.free(slot)

    def _drop_source(self, request: StatefulRequest, is_in_step: bool) -> None:
        """Unlock the checkpoint from which a request would have started."""
        if request.source not in (None, request.slot):
            assert request.source is not None
            if is_in_step:
                self.unlocked_after.append(request.source)
            else:
                self.pool.unlock(request.source)

    def _apply(self, *, is_good: bool) -> None:
        super()._apply(is_good=is_good)
        written = [slot for row in self.rows for _, slot in row.marks]
        assert len(written) == len(set(written)), "two rows write a slot"
        for row in self.rows:
            others = [slot for other in self.rows if other is not row for _, slot in other.marks]
            assert row.source not in others, "a row writes the slot from which another one starts"
            state = 0 if row.source is None else self.state_memory[row.source]
            assert not is_good or state == state_of(row.tokens[: row.start]), "a row starts from another state"
        for row in self.rows:
            state = 0 if row.source is None else self.state_memory[row.source]
            slots = dict(row.marks)
            for position in range(row.start, max(slots)):
                state = follow(state, row.tokens[position])
                if position + 1 in slots:
                    self.state_memory[slots[position + 1]] = state if is_good else GARBAGE

    def _end_step(self) -> None:
        super()._end_step()
        self.rows = []
        for slot in self.unlocked_after:
            self.pool.unlock(slot)
        for slot in self.ending:
            self.pool.free(slot)
        self.unlocked_after, self.ending = [], []

    def _use(self, prefix: Prefix) -> None:
        self.used_at[prefix] = self.pool._clock
        self.uses[prefix] += 1

    def _count_spared(self, prefix: Prefix) -> int:
        return len(prefix) - self._num_spared(list(prefix[:-1]))

    def _is_covered(self, prefix: Prefix) -> bool:
        """Whether a written page has the last token of a prefix, behind the pages before it."""
        return any(known[: len(prefix)] == prefix for known in self.stored if known not in self.pending)

    def _is_usable(self, prefix: Prefix) -> bool:
        return prefix in self.states and prefix not in self.uncommitted

    def _slot_owner(self, slot: int) -> SlotOwner:
        return self.pool.owner(slot)

    def _forget_state(self, prefix: Prefix) -> None:
        self.states.pop(prefix, None)
        self.uncommitted.discard(prefix)

    def _forget_lost(self) -> None:
        """Drop states that no page has the tokens of; all others must be there."""
        self._forget_evicted()
        for prefix in [prefix for prefix in self.states if prefix not in self.uncommitted]:
            if not self._is_covered(prefix):
                self._forget_state(prefix)
                self.num_lost_states += 1

    def _tokens_of(self, checkpoint: Checkpoint) -> Prefix:
        """The tokens before a checkpoint, read from the tree."""
        keys = list(checkpoint.node.key[: checkpoint.offset])
        assert checkpoint.node.parent is not None
        for node in checkpoint.node.parent.path():
            keys[:0] = list(node.key)
        return tuple(keys)
