"""What a step contains: order, budget, sharing, waiting. (Whole runs against naive generation are in test_engine.)"""

from __future__ import annotations

from typing import Any

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Step
from rtlang.engine.planning.step_cost import StepCost
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling.scheduler import LOOK_UP, MAX_LOOKED_UP, Scheduler
from rtlang.engine.scheduling.step_planner import StepPlanner
from tests.support.requests import make_request


class World:
    def __init__(self, num_pages: int = 64, **limits: Any) -> None:
        self.cache = PrefixCache(num_pages, 4)
        max_rows = limits.pop("max_rows", 8)
        max_step_tokens = limits.pop("max_step_tokens", 16)
        self.cost = StepCost()
        planner = StepPlanner(
            self.cost, max_step_tokens=max_step_tokens, max_shared_step_tokens=max_step_tokens, max_rows=max_rows
        )
        self.scheduler = Scheduler(self.cache, planner, max_rows=max_rows, **({"policy_name": "fcfs"} | limits))
        self.count = 0

    def add(self, tokens: list[int], **rest: Any) -> Request:
        self.count += 1
        program, params = ProgramAccount(rest.pop("program_time", 0.0)), SamplingParams(max_tokens=50)
        request = make_request(self.count, tokens, params, arrival_time=self.count, program=program, **rest)
        self.scheduler.add(request)
        return request

    def step(self) -> Step:
        """One good step; every sampling row draws token 50 + its id."""
        step = self.scheduler.schedule(float(self.count))
        assert step is not None
        for request, row in zip(self.scheduler.computed(step), step.rows, strict=True):
            if row.needs_sample:
                request.token_ids.append(50 + request.request_id)
        self.scheduler.check()
        return step


def sizes(step: Step) -> dict[int, int]:
    return {row.request_id: len(row.token_ids) for row in step.rows}


def test_a_long_prompt_is_computed_in_chunks_and_samples_with_the_last() -> None:
    world = World()
    world.add(list(range(40)))
    steps = [world.step() for _ in range(4)]
    assert [sizes(step) for step in steps] == [{1: 16}, {1: 16}, {1: 8}, {1: 1}]
    assert [step.rows[0].needs_sample for step in steps] == [False, False, True, True]


def test_running_decodes_go_before_prompts() -> None:
    world = World()
    world.add([1, 2, 3])
    world.step()
    world.add(list(range(100, 140)))
    assert sizes(world.step()) == {1: 1, 2: 15}
    assert sizes(world.step()) == {1: 1, 2: 15}


def test_the_budget_and_the_row_limit_hold() -> None:
    world = World(max_rows=3, max_step_tokens=10)
    for i in range(6):
        world.add([i, i, i, i])
    step = world.step()
    assert sizes(step) == {1: 4, 2: 4, 3: 2}
    assert world.scheduler.num_waiting == 3


def test_neighbours_share_whole_pages_in_tree_order() -> None:
    world = World(max_step_tokens=100)
    prefix = list(range(8))
    for suffix in ([50, 51, 52, 53, 1], [60, 61], [50, 51, 52, 53, 2], [60, 62]):
        world.add(prefix + suffix)
    step = world.step()
    pages = [list(row.page_ids) for row in step.rows]
    assert pages == sorted(pages)
    shared = {row.request_id: row.num_shared_tokens for row in step.rows}
    first = step.rows[0].request_id
    assert shared.pop(first) == 0
    assert sorted(shared.values()) == [8, 8, 12]


def test_rows_left_out_of_a_step_do_not_hide_or_invent_sharing() -> None:
    world = World(max_step_tokens=3)
    prefix = list(range(8))
    for i in range(5):
        world.add([*prefix, 20 + i])
    for _ in range(12):
        step = world.step()
        for before, row in zip(step.rows, step.rows[1:], strict=False):
            n = row.num_shared_tokens // 4
            assert list(row.page_ids[:n]) == list(before.page_ids[:n])


def test_who_needs_a_page_that_is_being_computed_waits_for_it() -> None:
    world = World(max_step_tokens=16)
    prefix = list(range(32))
    world.add([*prefix, 50])
    waiting = world.add([*prefix, 60])
    other = world.add([99, 98])
    assert sizes(world.step()) == {1: 16}
    assert sizes(world.step()) == {1: 16}
    assert waiting.status is RequestStatus.WAITING
    assert sizes(world.step()) == {1: 1, 2: 1, 3: 2}
    assert waiting.stats.num_cached_tokens == 32
    assert other.stats.num_cached_tokens == 0


def test_admission_leaves_a_page_of_growth_for_those_who_run() -> None:
    world = World(num_pages=4, max_step_tokens=100)
    first = world.add([1] * 4)
    second = world.add([2] * 8)
    third = world.add([3] * 8)
    step = world.step()
    assert set(sizes(step)) == {first.request_id, second.request_id}
    assert third.status is RequestStatus.WAITING


def test_preemption_takes_the_last_and_its_pages_stay_findable() -> None:
    world = World(num_pages=5, max_step_tokens=100)
    first, second = world.add([1] * 7), world.add([2] * 7)
    for _ in range(6):
        world.step()
    assert second.stats.num_preemptions >= 1
    assert first.stats.num_preemptions == 0
    assert world.scheduler.num_preemptions == second.stats.num_preemptions


def hold(world: World, tokens: list[int], rank: float) -> None:
    """A program that has computed `tokens` keeps them."""
    done = world.add(tokens)
    world.step()
    world.scheduler.remove(done)
    assert world.cache.hold(tokens, rank) is not None
    world.scheduler.check()


def test_a_request_beside_others_takes_only_pages_that_later_programs_keep() -> None:
    world = World(num_pages=16, max_step_tokens=100)
    hold(world, [7] * 16, 5.0)
    hold(world, [8] * 16, 2.0)
    first = world.add([1] * 12, program_time=3.0)
    world.step()
    second = world.add([2] * 24, program_time=3.0)
    step = world.step()
    assert sizes(step) == {first.request_id: 1, second.request_id: 24}
    assert world.cache.retention.num_revoked == 1
    assert world.cache.peek([8] * 16) == 16
    third = world.add([3] * 16, program_time=3.0)
    assert set(sizes(world.step())) == {first.request_id, second.request_id}
    assert third.status is RequestStatus.WAITING
    assert world.cache.num_held == 4


def test_an_urgent_request_takes_what_an_older_program_keeps() -> None:
    for policy_name, num_revoked in (("program", 1), ("fcfs", 0)):
        world = World(num_pages=12, max_step_tokens=100, policy_name=policy_name)
        hold(world, [7] * 20, 1.0)
        world.add([1] * 12, program_time=0.0)
        world.step()
        urgent = world.add([2] * 16, program_time=2.0, priority=-1)
        assert (urgent.request_id in sizes(world.step())) == bool(num_revoked)
        assert world.cache.retention.num_revoked == num_revoked


def test_a_request_that_is_alone_takes_all_it_needs() -> None:
    world = World(num_pages=16, max_step_tokens=100)
    hold(world, [7] * 16, 1.0)
    hold(world, [8] * 16, 2.0)
    only = world.add([1] * 40, program_time=9.0)
    assert sizes(world.step()) == {only.request_id: 40}
    assert (world.cache.num_held, world.cache.retention.num_revoked) == (4, 1)
    while len(only.token_ids) < 60:
        world.step()
    assert only.stats.num_preemptions == 0
    assert (world.cache.num_held, world.cache.retention.num_revoked) == (0, 2)


def test_a_request_is_preempted_before_an_older_program_loses_what_it_keeps() -> None:
    world = World(num_pages=16, max_step_tokens=100)
    hold(world, [7] * 32, 1.0)
    first, second = (world.add([each] * 10, program_time=2.0) for each in (1, 2))
    while second.stats.num_preemptions == 0:
        world.step()
    assert world.cache.num_held == 8
    world.scheduler.remove(first)
    while len(second.token_ids) < 40:
        world.step()
    assert (second.stats.num_preemptions, world.cache.num_held) == (1, 0)


def test_removing_a_waiting_request_needs_no_pages() -> None:
    world = World(max_rows=1)
    world.add([1, 2])
    waiting = world.add([3, 4])
    world.step()
    world.scheduler.remove(waiting)
    assert world.scheduler.num_waiting == 0
    world.scheduler.check()


def test_scoring_needs_no_page_for_its_last_token() -> None:
    world = World()
    request = world.add([1, 2, 3, 4, 5], score_from=3, score_only=True)
    step = world.step()
    row = step.rows[0]
    assert (list(row.token_ids), row.needs_sample, row.score_offset, list(row.score_token_ids)) == (
        [1, 2, 3, 4],
        False,
        2,
        [4, 5],
    )
    assert request.num_computed_tokens == request.num_target_tokens == 4


def test_nothing_to_do_gives_no_step() -> None:
    assert World().scheduler.schedule(0.0) is None


def test_a_step_looks_for_prompts_with_limited_work() -> None:
    """Hundreds of requests wait for the same long prompt: each step looks for as many as it has time for."""
    world = World(2000, max_step_tokens=64)
    prompt = list(range(400, 2400))
    requests = [world.add([*prompt, i]) for i in range(300)]
    looked_up: list[int] = []
    original = world.cache.match

    def match(token_ids: Any, *rest: Any) -> Any:
        looked_up.append(LOOK_UP + len(token_ids))
        return original(token_ids, *rest)

    world.cache.match = match  # type: ignore[method-assign]
    assert sizes(world.step()) == {1: 64}
    looked_up.clear()
    assert world.scheduler.schedule(2.0, requests[1:]) is None  # the first one has more of the prompt to compute
    assert 1 < len(looked_up) < len(requests) - 1
    assert sum(looked_up[:-1]) < MAX_LOOKED_UP
    while requests[0].num_output_tokens == 0:
        world.step()
    assert sizes(world.step()) == dict.fromkeys(range(1, 9), 1)
    assert requests[7].stats.num_cached_tokens == len(prompt)
