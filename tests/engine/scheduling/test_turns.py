"""Turns: which requests of a flow go first, and how many rows are kept for those that wait."""

from __future__ import annotations

from rtlang.contract.runs.principal import Principal
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling import policy
from rtlang.engine.scheduling.turns import Prompt, next_prompts, order_turns, turns_of
from tests.support.requests import make_request


def request(flow: Flow, number: int, *, missing: int = 1, last_step_id: int = 0) -> Request:
    made = make_request(number, [1] * 10, arrival_time=float(number))
    made.status, made.flow, made.last_step_id = RequestStatus.RUNNING, flow, last_step_id
    made.num_computed_tokens = 10 - missing
    return made


def test_decodes_go_by_policy_and_by_time_if_there_are_more_than_rows() -> None:
    flow = Flow(Principal(), 1)
    running = [request(flow, number, last_step_id=10 - number) for number in (2, 1, 3)]
    running.append(request(flow, 4, missing=5))
    (turn,) = turns_of(running, [flow])
    assert order_turns([turn], policy.fcfs, 3, may_start=True) == 3
    assert [each.request_id for each in reversed(turn.decodes)] == [1, 2, 3]
    assert [each.request_id for each in turn.prefills] == [4]
    order_turns([turn], policy.fcfs, 2, may_start=True)
    assert [each.request_id for each in reversed(turn.decodes)] == [3, 2, 1]


def test_decodes_that_all_get_what_they_need_are_not_sorted() -> None:
    flow = Flow(Principal(), 1)
    running = [request(flow, number) for number in (2, 1, 3)]
    (turn,) = turns_of(running, [flow])
    order_turns([turn], policy.fcfs, 4, may_start=True, is_plentiful=True)
    assert [each.request_id for each in turn.decodes] == [2, 1, 3]
    order_turns([turn], policy.fcfs, 3, may_start=True, is_plentiful=True)
    assert [each.request_id for each in reversed(turn.decodes)] == [1, 2, 3]


def test_rows_are_kept_for_requests_that_wait_if_decodes_could_take_all() -> None:
    flow, idle = Flow(Principal(), 1), Flow(Principal("b"), 2)
    waiting = request(flow, 99)
    flow.waiting.append((policy.fcfs(waiting), 1, waiting))
    turns = turns_of([request(flow, number) for number in range(8)], [flow, idle])
    assert [turn.flow for turn in turns] == [flow]
    assert order_turns(turns, policy.fcfs, 8, may_start=True) == 1
    assert order_turns(turns, policy.fcfs, 8, may_start=False) == 8
    assert order_turns(turns, policy.fcfs, 9, may_start=True) == 9


def test_the_size_of_a_turn_is_the_work_before_its_next_token() -> None:
    flow = Flow(Principal(), 1)
    prefill, decode = request(flow, 1, missing=7), request(flow, 2)
    assert [turn.size for turn in (*turns_of([prefill], []), *turns_of([prefill, decode], []))] == [7, 1]
    flow.waiting.append((policy.fcfs(prefill), 1, prefill))
    assert [turn.size for turn in turns_of([], [flow])] == [10]


def test_prompts_are_listed_in_the_order_of_service() -> None:
    flow, other = Flow(Principal(), 1), Flow(Principal("b"), 2)
    turns = turns_of([request(flow, 1, missing=7), request(flow, 2), request(flow, 3, missing=4)], [flow])
    order_turns(turns, policy.fcfs, 9, may_start=True)
    assert next_prompts(turns, policy.fcfs) == [Prompt(3, 7), Prompt(6, 4)]
    first, last = request(flow, 0, missing=10), request(flow, 9, missing=10)
    flow.waiting.append((policy.fcfs(last), 1, last))
    assert next_prompts(turns, policy.fcfs) == [Prompt(3, 7), Prompt(6, 4)]
    flow.waiting.insert(0, (policy.fcfs(first), 2, first))
    assert next_prompts(turns, policy.fcfs) == [Prompt(0, 10), Prompt(3, 7), Prompt(6, 4)]
    turns += turns_of([request(other, 4, missing=5)], [other])
    assert next_prompts(turns, policy.fcfs) == [Prompt(6, 4), Prompt(5, 5), Prompt(3, 7), Prompt(0, 10)]
