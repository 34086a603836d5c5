"""Requests without credit: computed up to their next token, out of the way of others, continued where they were."""

from __future__ import annotations

from random import Random

from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import RequestStatus
from tests.engine.scheduling.test_scheduler import World, sizes


def test_without_credit_the_prompt_is_computed_and_nothing_is_sampled() -> None:
    world = World()
    credit = Credit(0)
    request = world.add(list(range(9)), credit=credit)
    step = world.step()
    assert sizes(step) == {1: 8}
    assert not step.rows[0].needs_sample
    assert world.scheduler.schedule(0.0) is None
    assert request.status is RequestStatus.PARKED
    assert world.scheduler.num_waiting == 0
    assert not world.scheduler.running
    credit.num_tokens = 1
    world.scheduler.resume(credit)
    step = world.step()
    assert sizes(step) == {1: 1}
    assert step.rows[0].needs_sample


def test_credit_is_shared_by_the_requests_of_a_graph() -> None:
    world = World()
    credit = Credit(2)
    requests = [world.add([n, n, n], credit=credit) for n in range(3)]
    step = world.step()
    assert sum(row.needs_sample for row in step.rows) == 2
    credit.num_tokens -= 2
    assert world.scheduler.schedule(0.0) is None
    assert {request.status for request in requests} == {RequestStatus.PARKED}
    credit.num_tokens += 5
    world.scheduler.resume(credit)
    assert sum(row.needs_sample for row in world.step().rows) == 3


def test_parked_requests_take_no_row() -> None:
    world = World(max_rows=2)
    credit = Credit(0)
    for n in range(2):
        world.add([n, n, n, n, n], credit=credit)
    world.step()
    other = world.add([9, 9])
    assert world.step().rows[0].request_id == other.request_id
    assert len(world.scheduler.parked) == 2


def test_parked_requests_give_their_pages_to_one_that_has_none() -> None:
    world = World(num_pages=4, max_step_tokens=100)
    credit = Credit(0)
    parked = world.add(list(range(12)), credit=credit)
    world.step()
    assert world.scheduler.schedule(0.0) is None
    assert len(parked.pages.page_ids) == 3
    world.add(list(range(50, 60)))
    assert sizes(world.step()) == {2: 10}
    assert parked.pages.page_ids == []
    assert parked.status is RequestStatus.PARKED
    world.scheduler.check()
    credit.num_tokens = 4
    world.scheduler.resume(credit)
    assert parked.status is RequestStatus.PREEMPTED


def test_a_parked_request_does_not_hold_back_one_with_its_prefix() -> None:
    world = World()
    world.add(list(range(8)), credit=Credit(0))
    world.step()  # all but the last token, which would fill the second page
    world.add([*range(8), 20, 21])
    assert any(row.request_id == 2 for row in world.step().rows)


def test_removing_a_parked_request_frees_its_pages() -> None:
    world = World()
    request = world.add(list(range(9)), credit=Credit(0))
    world.step()
    assert world.scheduler.schedule(0.0) is None
    world.scheduler.remove(request)
    world.scheduler.check()
    assert world.cache.num_in_use == 0
    assert not world.scheduler.parked


def test_random_grants_never_lose_a_token_or_a_page() -> None:
    """Requests of several graphs on few pages, with grants, removals and preemptions in a random order."""
    random = Random(5)
    world = World(num_pages=12, max_rows=3)
    credits = [Credit(0) for _ in range(4)]
    requests = [
        world.add([n % 5] * random.randrange(1, 9), credit=credits[n % 4] if n % 5 else None) for n in range(12)
    ]
    delivered = dict.fromkeys(credits, 0)
    granted = dict.fromkeys(credits, 0)
    for _ in range(400):
        credit = random.choice(credits)
        if random.random() < 0.3:
            was_spent, more = credit.is_spent, random.randrange(3)
            credit.num_tokens += more
            granted[credit] += more
            if was_spent and not credit.is_spent:
                world.scheduler.resume(credit)
        step = world.scheduler.schedule(0.0)
        if step is None:
            continue
        for request, row in zip(world.scheduler.computed(step), step.rows, strict=True):
            if row.needs_sample:
                request.token_ids.append(50 + request.request_id)
                if request.spec.credit is not None:
                    request.spec.credit.num_tokens -= 1
                    delivered[request.spec.credit] += 1
            if request.num_output_tokens >= 12:
                world.scheduler.remove(request)
        world.scheduler.check()
        assert all(delivered[each] <= granted[each] for each in credits)
    for credit in credits:
        credit.num_tokens += 1000
        world.scheduler.resume(credit)
    while (step := world.scheduler.schedule(0.0)) is not None:
        for request, row in zip(world.scheduler.computed(step), step.rows, strict=True):
            if row.needs_sample:
                request.token_ids.append(50 + request.request_id)
            if request.num_output_tokens >= 12:
                world.scheduler.remove(request)
    world.scheduler.check()
    assert all(request.status is RequestStatus.FINISHED for request in requests)
    assert world.cache.num_in_use == 0


def test_a_prompt_that_is_cached_up_to_its_last_token_is_computed_from_its_last_full_page() -> None:
    world = World()  # pages of 4 tokens
    first = world.add(list(range(7)))
    world.step()
    world.scheduler.remove(first)
    credit = Credit(0)
    request = world.add(list(range(7)), credit=credit)
    step = world.step()
    # A tail that is copied from another page needs a step that makes the copy: here there would be none.
    assert sizes(step) == {request.request_id: 2}
    assert not step.copies
    assert world.scheduler.schedule(0.0) is None
    assert request.status is RequestStatus.PARKED
    credit.num_tokens = 1
    world.scheduler.resume(credit)
    assert sizes(world.step()) == {request.request_id: 1}
