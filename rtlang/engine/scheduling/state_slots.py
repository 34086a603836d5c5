"""The states of running requests: which slot each row reads and writes, and which states are kept as checkpoints.

A request goes on from the deepest checkpoint of its prefix, which it locks and never writes: siblings start from the same one. Its rows
write its own slots. On the way the rows also write the positions that `checkpoints.py` chose and those that waiting neighbours asked for;
after the step these slots become checkpoints of the tree. When the request stops, the slot with its last known state becomes one, too.

A failed step may have written any slot of its rows, so all of them are freed, and the requests start again from the tree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from rtlang.cache.prefix_cache import PrefixCache, PrefixMatch
from rtlang.contract.errors import ConfigError
from rtlang.contract.step import Row, RowStates
from rtlang.engine.checkpoints import StateSizes, choose, common_position
from rtlang.engine.requests.held_states import HeldStates
from rtlang.engine.requests.request import Request
from rtlang.model.runner import Runner

logger = logging.getLogger(__name__)

CHECKPOINT_SHARE = 4
"""A quarter of the slots, at least one, is left to checkpoints: so many fewer requests run."""
PROMPT_SHARE = 8
"""The checkpoints of one prompt take at most an eighth of the slots, or `MIN_PROMPT_STATES` if that is more."""
MIN_PROMPT_STATES = 3
MAX_ASKED = 4
"""Maximum number of positions that neighbours may ask a request to keep."""


class StateSlots:
    """Gives slots to requests and rows. Owned by the scheduler.

    Args:
        cache: with states.
        sizes: bytes of a state and of the K and V of a token.
        is_pipelined: whether requests need two slots; see `HeldStates`.

    Attributes:
        max_running: maximum number of requests that hold slots.
        num_reserved: slots that running requests leave to checkpoints.
    """

    def __init__(self, cache: PrefixCache, sizes: StateSizes, *, is_pipelined: bool) -> None:
        """Raises ConfigError if the slots are too few for one request."""
        assert cache.states is not None
        self._cache, self._pool, self._sizes, self._is_pipelined = cache, cache.states, sizes, is_pipelined
        self._page_size = cache.page_size
        self._num_own = 2 if is_pipelined else 1
        num_slots = self._pool.num_slots
        if num_slots < self._num_own:
            raise ConfigError(
                "cache_bytes",
                None,
                f"expected room for at least {self._num_own} states of {sizes.state_bytes:,} bytes, not {num_slots}",
            )
        num_kept = max(1, num_slots // CHECKPOINT_SHARE)
        self.max_running = max(1, (num_slots - num_kept) // self._num_own)
        self.num_reserved = num_slots - self.max_running * self._num_own
        # More would evict each other.
        num_wished = max(1, min(self.num_reserved, max(MIN_PROMPT_STATES, num_slots // PROMPT_SHARE)))
        self._budget_bytes = num_wished * sizes.state_bytes
        self._has_warned = False

    # -- start and end of requests

    def start(
        self, request: Request, match: PrefixMatch, queued: Iterable[Request], make_room: Callable[[], bool]
    ) -> bool:
        """Give slots to a request that starts from a match; False if there are none.

        Its state is the deepest checkpoint, or the start of the sequence where the pool is too small to read one beside its own slots.

        Args:
            queued: waiting requests; a state is worth keeping where one of them parts from this one.
            make_room: takes the slots of another request; False if there is none that gives them up.
        """
        source = match.state_slot
        if source is not None:
            self._pool.lock(source)
        slots = self._allocate(self._num_own)
        while slots is None and make_room():
            slots = self._allocate(self._num_own)
        if slots is None and source is not None and not self._pool.num_private:
            self._pool.unlock(source)  # nothing else runs, so nothing else will free one
            source = None
            slots = self._allocate(self._num_own)
        if slots is None:
            if source is not None:
                self._pool.unlock(source)
            return False
        num_computed = match.num_state_tokens if source is not None else 0
        request.num_computed_tokens = num_computed
        held = request.states = HeldStates(slots, source, max(match.num_tokens, num_computed))
        if self._cache.sharing:
            wishes = choose(
                request.num_prompt_tokens,
                self._page_size,
                self._sizes,
                self._budget_bytes,
                branch_points=(*request.spec.branch_points, *self._junctions(request, num_computed, queued)),
                num_in_pages=match.num_tokens,
                num_state_tokens=num_computed,
                keeps_end=not request.spec.score_only,
            )
            held.wishes.update(wishes)
        return True

    def restart(self, request: Request, match: PrefixMatch) -> None:
        """Let a request that has computed nothing go on from another match, whose pages it has."""
        held = _states_of(request)
        if match.state_slot is not None:
            self._pool.lock(match.state_slot)
        self._unlock(held, held.source)
        held.source, request.num_computed_tokens = match.state_slot, match.num_state_tokens
        held.num_kv_tokens = max(match.num_tokens, match.num_state_tokens)

    def release(self, request: Request, num_known: int) -> tuple[int, int] | None:
        """Take the slots from a request.

        Args:
            num_known: number of computed tokens that are known to be right.
        Returns:
            Position and slot of its last known state, which the caller gives to the cache; None if no state is worth keeping.
        """
        held, request.states = _states_of(request), None
        known, position = held.source, request.num_computed_tokens
        if position > num_known and held.has_before:
            known, position = held.before, held.num_before
        is_kept = (
            known in held.slots
            and 0 < position <= num_known
            and held.is_sound
            and self._cache.sharing
            and not request.spec.score_only
        )
        self._free(held, spared=known if is_kept else None)
        return (position, known) if is_kept and known is not None else None

    def abandon(self, request: Request) -> None:
        """Free the slots of a request whose last step was lost."""
        held, request.states = _states_of(request), None
        self._free(held, spared=None)

    # -- rows

    def row(self, request: Request, num_tokens: int) -> RowStates:
        """The states of a row of so many tokens, without drafts: where it begins and what it writes."""
        held = _states_of(request)
        start = request.num_computed_tokens
        end = start + num_tokens
        num_stored = request.pages.num_tree_tokens
        passed = sorted(wish for wish in held.wishes if wish <= end)
        if passed:
            held.wishes.difference_update(passed)
            held.marks += [
                (wish, slot)
                for wish in passed
                # Inside a page that is not full the state waits for the page, unless the row goes on from there.
                if start < wish <= (num_stored if wish == end else max(num_stored, request.num_prompt_tokens))
                and (slot := self._allocate_wished()) is not None
            ]
        marks = [(position - start, slot) for position, slot in held.marks if position > start]
        if not marks or marks[-1][0] < num_tokens:
            marks.append((num_tokens, held.target))
        return RowStates(held.source, tuple(marks))

    def computed(self, request: Request, row: Row) -> None:
        """Account for a computed row: its last state is the request's, the others become checkpoints."""
        held = _states_of(request)
        assert row.states is not None
        last = row.states.marks[-1][1]
        if held.has_before:
            self._unlock(held, held.before)
        if last not in held.slots:  # the request goes on from a checkpoint
            self._pool.lock(last)
        if held.marks:
            node, num_stored = request.pages.node, request.pages.num_tree_tokens
            assert node is not None
            for position, slot in held.marks:
                if position <= num_stored:
                    self._cache.keep_state(node, position, slot)
            held.marks = [mark for mark in held.marks if mark[0] > num_stored]
        if self._is_pipelined:
            held.before, held.num_before, held.has_before = held.source, row.num_computed_tokens, True
        else:
            self._unlock(held, held.source)
        held.source = last
        held.num_kv_tokens = max(held.num_kv_tokens, request.num_computed_tokens)

    # -- neighbours

    def awaited(self, request: Request, match: PrefixMatch, others: Iterable[Request]) -> tuple[Request, int] | None:
        """The running request, one of `others`, that will keep a deeper state for a waiting one than is stored, and its position.

        A request that is at that place or before it need not be slower to get there than the waiting one would be. It is asked to keep a
        state where their sequences part, in whole pages.
        """
        begin = match.num_state_tokens // self._page_size * self._page_size
        limit, own = request.match_limit, request.token_ids
        if not self._cache.sharing or begin + self._page_size > limit:
            return None
        first_page = own[begin : begin + self._page_size]
        for other in others:
            held = other.states
            if held is None or other.scope != request.scope or other.num_computed_tokens < match.num_state_tokens:
                continue
            if other.token_ids[begin : begin + self._page_size] != first_page:
                continue
            position = common_position(own, other.token_ids, limit, self._page_size)
            at_least = max(match.num_state_tokens, other.num_computed_tokens)
            if position not in held.wishes and len(held.wishes) >= MAX_ASKED + MIN_PROMPT_STATES:
                position = max((wish for wish in held.wishes if wish <= position), default=0)
            if position <= at_least or not self._pool.may_keep():
                continue
            held.wishes.add(position)
            return other, position
        return None

    def _junctions(self, request: Request, start: int, queued: Iterable[Request]) -> list[int]:
        """Where waiting requests part from one that starts, in whole pages."""
        begin = start // self._page_size * self._page_size
        first_page = request.token_ids[begin : begin + self._page_size]
        return [
            common_position(request.token_ids, other.token_ids, other.match_limit, self._page_size)
            for other in queued
            if other is not request
            and other.token_ids[begin : begin + self._page_size] == first_page
            and other.scope == request.scope
        ]

    def check(self, requests: Iterable[Request]) -> None:
        """Verify that every private slot belongs to one request, between steps."""
        own: list[int] = []
        for request in requests:
            held = request.states
            if held is None:
                continue
            own += held.slots
            assert len(held.slots) == self._num_own
            own += [slot for _, slot in held.marks]
            assert held.num_kv_tokens >= request.num_computed_tokens
            assert (held.source is None) == (request.num_computed_tokens == 0)
        num_held = self._pool.num_private - self._pool.num_loading
        assert len(own) == len(set(own)) == num_held, "a slot belongs to two requests, or to none"

    # -- slots

    def _allocate(self, count: int) -> tuple[int, ...] | None:
        slots: list[int] = []
        while len(slots) < count:
            slot = self._pool.allocate()
            if slot is None:
                for each in slots:
                    self._pool.free(each)
                return None
            slots.append(slot)
        return tuple(slots)

    def _allocate_wished(self) -> int | None:
        slot = self._pool.allocate() if self._pool.may_keep() else None
        if slot is None and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the pool of %d states has no room for a checkpoint: %d are held by requests and programs; sequences that share a prefix "
                "compute it again. Raise cache_bytes or state_fraction, or lower max_rows",
                self._pool.num_slots,
                self._pool.num_slots - self._pool.num_free,
            )
        return slot

    def _unlock(self, held: HeldStates, slot: int | None) -> None:
        """Unlock a checkpoint that a request has read."""
        if slot is not None and slot not in held.slots:
            self._pool.unlock(slot)

    def _free(self, held: HeldStates, spared: int | None) -> None:
        self._unlock(held, held.source)
        if held.has_before:
            self._unlock(held, held.before)
        for slot in (*held.slots, *(slot for _, slot in held.marks)):
            if slot != spared:
                self._pool.free(slot)


def state_slots_for(runner: Runner, cache: PrefixCache) -> StateSlots | None:
    """The slots of a runner; None if its model has no states.

    Raises:
        ConfigError: they are too few for one request.
    """
    if not runner.num_states:
        return None
    pages, states = runner.page_memory, runner.state_memory
    token_bytes = 0.0 if pages is None else pages.page_bytes / cache.page_size
    sizes = StateSizes(1 if states is None else states.state_bytes, 0.0 if states is None else token_bytes)
    slots = StateSlots(cache, sizes, is_pipelined=runner.is_pipelined)
    logger.info(
        "%d states: at most %d running requests, and at least %d checkpoints of shared prefixes",
        runner.num_states,
        slots.max_running,
        slots.num_reserved,
    )
    return slots


def _states_of(request: Request) -> HeldStates:
    assert request.states is not None, f"request {request.request_id} has no states"
    return request.states
