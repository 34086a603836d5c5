"""The pool of states: who owns a slot, which checkpoint is evicted, and what a lock keeps."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest

from rtlang.cache.node import RadixNode
from rtlang.cache.states import MAX_COUNTED_USES, Checkpoint, SlotOwner, StatePool


def make_pool(num_slots: int, num_kept: int) -> tuple[StatePool, list[Checkpoint]]:
    """A pool whose first slots are checkpoints, each of one token more than the one before."""
    pool = StatePool(num_slots)
    node = RadixNode(array("q", range(1000)), [0], None)
    return pool, [pool.keep(allocated(pool), node, offset) for offset in range(1, num_kept + 1)]


def allocated(pool: StatePool) -> int:
    slot = pool.allocate()
    assert slot is not None
    pool.check()
    return slot


def test_slots_are_handed_out_once_and_none_is_left_when_all_are_private() -> None:
    pool = StatePool(3)
    slots = [allocated(pool) for _ in range(3)]
    assert sorted(slots) == [0, 1, 2]
    assert pool.allocate() is None
    assert (pool.num_free, pool.num_private, pool.num_kept, pool.num_available) == (0, 3, 0, 0)
    pool.free(slots[1])
    assert allocated(pool) == slots[1]


def test_the_checkpoint_that_spares_fewest_tokens_makes_room() -> None:
    pool, (one, two, three) = make_pool(3, 3)
    assert allocated(pool) == one.slot
    assert not one.is_attached
    assert allocated(pool) == two.slot
    assert three.is_attached
    assert (pool.num_private, pool.num_kept, pool.stats.num_evicted, pool.stats.num_dropped) == (2, 1, 2, 0)


def test_uses_count_up_to_a_limit() -> None:
    pool, (one, two, three) = make_pool(3, 3)
    for _ in range(3):
        pool.touch(one)
    assert allocated(pool) == two.slot
    assert allocated(pool) == three.slot
    for _ in range(100):
        pool.touch(one)
    assert one.value - one.last_access == MAX_COUNTED_USES


def test_a_checkpoint_that_is_not_used_is_evicted_in_the_end() -> None:
    pool, (_, big) = make_pool(2, 2)
    pool.count_spared = lambda checkpoint: 20 if checkpoint is big else 1
    pool.touch(big)
    for round_number in range(100):
        pool.keep(allocated(pool), big.node, 10 + round_number)
        if not big.is_attached:
            break
    assert 30 < round_number < 50, "as the clock rises by 1 an eviction"


def test_a_checkpoint_below_an_evicted_one_spares_more() -> None:
    pool, (first, second, third) = make_pool(3, 3)
    pool.demote(first)
    assert allocated(pool) == first.slot
    pool.count_spared = lambda checkpoint: 5 if checkpoint is second else checkpoint.offset
    assert allocated(pool) == third.slot
    assert second.num_spared == 5


def test_demoted_checkpoints_are_evicted_first_and_held_ones_last() -> None:
    pool, (held, small, large, demoted) = make_pool(4, 4)
    pool.hold(held)
    pool.demote(demoted)
    pool.demote(held)  # a program will continue it
    assert [allocated(pool) for _ in range(4)] == [demoted.slot, small.slot, large.slot, held.slot]
    pool.release(held)
    pool.check()


def test_a_checkpoint_without_its_last_hold_is_evicted_by_its_value_again() -> None:
    pool, (first, _) = make_pool(2, 2)
    pool.hold(first)
    pool.hold(first)
    pool.release(first)
    pool.check()
    pool.release(first)
    pool.check()
    assert allocated(pool) == first.slot


def test_a_demoted_checkpoint_that_is_used_again_keeps_its_place() -> None:
    pool, (first, second) = make_pool(2, 2)
    pool.demote(second)
    pool.touch(second)
    assert allocated(pool) == first.slot


def test_eviction_never_takes_a_locked_checkpoint() -> None:
    pool, (first, second) = make_pool(2, 2)
    pool.lock(first.slot)
    pool.lock(first.slot)
    assert pool.num_available == 1
    assert allocated(pool) == second.slot
    assert pool.allocate() is None
    pool.unlock(first.slot)
    assert pool.allocate() is None
    pool.unlock(first.slot)
    assert allocated(pool) == first.slot


@pytest.mark.parametrize("is_checkpoint", [True, False])
def test_a_slot_that_is_given_up_while_a_step_reads_it_is_free_after_the_last_lock(is_checkpoint: bool) -> None:
    pool, kept = make_pool(1, int(is_checkpoint))
    slot = kept[0].slot if is_checkpoint else allocated(pool)
    pool.lock(slot)
    pool.lock(slot)
    if is_checkpoint:
        pool.drop(kept[0])
    else:
        pool.free(slot)
    pool.check()
    assert pool.owner(slot) is SlotOwner.DROPPED
    assert (pool.num_dropped, pool.num_private, pool.num_free) == (1, 0, 0)
    assert pool.allocate() is None
    pool.unlock(slot)
    pool.check()
    assert pool.allocate() is None
    pool.unlock(slot)
    assert allocated(pool) == slot


@pytest.mark.parametrize(
    "misuse",
    [
        lambda pool, private, kept, free: pool.free(kept),
        lambda pool, private, kept, free: pool.free(free),
        lambda pool, private, kept, free: pool.lock(free),
        lambda pool, private, kept, free: pool.unlock(private),
        lambda pool, private, kept, free: pool.keep(kept, pool.checkpoint(kept).node, 5),
        lambda pool, private, kept, free: pool.release(pool.checkpoint(kept)),
    ],
)
def test_other_transitions_fail(misuse: Callable[[StatePool, int, int, int], None]) -> None:
    pool, (kept,) = make_pool(3, 1)
    private = allocated(pool)
    (free,) = {0, 1, 2} - {kept.slot, private}
    with pytest.raises(AssertionError):
        misuse(pool, private, kept.slot, free)
    pool.check()


def test_a_held_checkpoint_may_be_dropped_before_its_hold_ends() -> None:
    pool, (held, other) = make_pool(2, 2)
    pool.hold(held)
    assert allocated(pool) == other.slot
    pool.keep(other.slot, other.node, 7)
    pool.check()
    pool.drop(held)
    pool.release(held)
    pool.check()
    assert [allocated(pool) for _ in range(2)] == [held.slot, other.slot]


def test_drop_all_spares_locked_checkpoints_and_held_ones_on_request() -> None:
    pool, (locked, held, plain) = make_pool(3, 3)
    pool.lock(locked.slot)
    pool.hold(held)
    pool.drop_all(spares_held=True)
    assert [each.is_attached for each in (locked, held, plain)] == [True, True, False]
    pool.drop_all()
    assert [each.is_attached for each in (locked, held)] == [True, False]
    pool.release(held)
    pool.check()


def test_the_eviction_queue_does_not_outgrow_the_pool() -> None:
    generator = random.Random(0)
    pool, kept = make_pool(8, 8)
    for offset in range(9, 900):
        victim = kept.pop(generator.randrange(len(kept)))
        pool.drop(victim)
        kept.append(pool.keep(allocated(pool), victim.node, offset))
        assert len(pool._queue) <= 2 * 8 + 65
    pool.check()


def test_the_number_of_slots_must_not_be_negative() -> None:
    assert StatePool(0).allocate() is None
    with pytest.raises(ValueError, match="num_slots = -1"):
        StatePool(-1)


def test_checkpoints_wait_for_the_tiers_below_until_they_are_taken_or_leave() -> None:
    pool = StatePool(3)
    pool.tracks_new = True
    node = RadixNode(array("q", range(10)), [0], None)
    one, two = (pool.keep(allocated(pool), node, offset) for offset in (1, 2))
    assert list(pool.new) == [one, two]
    del pool.new[one]
    pool.touch(one)
    assert list(pool.new) == [two, one], "it is looked at again when it is used"
    del pool.new[one]
    one.digest = b"digest"
    pool.touch(one)
    epoch = pool.epoch(two.slot)
    pool.drop(two)
    assert not pool.new
    assert pool.epoch(two.slot) == epoch + 1
    pool.check()


def test_a_slot_may_be_kept_if_no_hold_must_lose_its_checkpoint() -> None:
    pool, (one, two) = make_pool(2, 2)
    assert pool.may_keep()
    pool.hold(one)
    assert pool.may_keep()
    pool.hold(two)
    assert not pool.may_keep()
    pool.release(two)
    pool.lock(two.slot)
    pool.lock(one.slot)
    assert not pool.may_keep()
