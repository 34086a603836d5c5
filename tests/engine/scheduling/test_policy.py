"""Orders and victims, as pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling import policy
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import LEAD_S, SessionTable
from tests.support.requests import make_request


def request(request_id: int, *, arrival: float = 0.0, program: float = 0.0, **asked: Any) -> Request:
    return make_request(request_id, [1], arrival_time=arrival, program=ProgramAccount(program), **asked)


def order(name: str, requests: list[Request]) -> list[int]:
    return [r.request_id for r in sorted(requests, key=policy.KEYS[name])]


def test_fcfs_orders_by_the_requests_own_arrival() -> None:
    assert order("fcfs", [request(1, arrival=2, program=0), request(2, arrival=1, program=1)]) == [2, 1]


def test_program_finishes_old_programs_first() -> None:
    assert order("program", [request(1, arrival=2, program=0), request(2, arrival=1, program=1)]) == [1, 2]


def test_priority_goes_first_but_waiting_makes_up_for_it() -> None:
    early = request(1, program=0, priority=1)
    assert order("program", [early, request(2, program=policy.AGEING_S - 1, priority=0)]) == [2, 1]
    assert order("program", [early, request(3, program=policy.AGEING_S + 1, priority=0)]) == [1, 3]


def test_service_and_a_long_prompt_move_a_program_back_by_a_bounded_time() -> None:
    served, long, late = request(1), request(2), request(3, program=5.0)
    served.program.service_s, long.prompt_s = 2.0, 2.0
    assert order("program", [served, late]) == [1, 3]
    assert order("program", [long, late]) == [2, 3]
    late.program.arrival_time = 3.9
    assert order("program", [served, late]) == [3, 1]
    assert order("program", [long, late]) == [3, 2]
    served.program.service_s = long.prompt_s = 1.99  # counts as 1 s until it is 2 s
    assert order("program", [served, late]) == [1, 3]
    served.program.service_s = policy.SERVICE_QUANTUM_S * 0.99
    late.program.arrival_time = 0.001
    assert order("program", [served, late]) == [1, 3]


def test_a_near_deadline_counts_as_an_earlier_arrival() -> None:
    early, urgent = request(1, program=10.0), request(2, program=12.0)
    assert order("program", [early, urgent]) == [1, 2]
    urgent.program.deadline = 12.0 + policy.DEADLINE_S
    assert order("program", [early, urgent]) == [1, 2]
    urgent.program.deadline = 9.0 + policy.DEADLINE_S
    assert order("program", [early, urgent]) == [2, 1]


def test_the_deadline_of_a_request_counts_for_it_alone() -> None:
    early, urgent, sibling = request(1, program=10.0), request(2, program=12.0), request(3, program=12.0)
    sibling.program = urgent.program
    urgent.spec = replace(urgent.spec, deadline=9.0 + policy.DEADLINE_S)
    assert order("program", [early, sibling, urgent]) == [2, 1, 3]
    urgent.program.deadline = 8.0 + policy.DEADLINE_S
    assert order("program", [early, sibling]) == [3, 1]


def test_longest_prefix_keeps_the_oldest_in_front() -> None:
    requests = [request(i) for i in range(4)]
    cached = {0: 0, 1: 5, 2: 50, 3: 10}
    ordered = policy.by_longest_prefix(requests, lambda r: cached[r.request_id])
    assert [r.request_id for r in ordered] == [0, 2, 3, 1]
    assert policy.by_longest_prefix([], lambda r: 0) == []


def test_the_victim_is_who_would_be_served_last() -> None:
    requests = [request(1, program=3), request(2, program=9), request(3, program=5)]
    assert policy.victim(requests, policy.program).request_id == 2


def test_within_a_program_what_is_waited_for_and_what_others_wait_for_goes_first() -> None:
    def call(request_id: int, remaining_tokens: int, *, is_urgent: bool = True, program: float = 0.0) -> Request:
        return request(
            request_id, arrival=request_id, program=program, remaining_tokens=remaining_tokens, is_urgent=is_urgent
        )

    calls = [call(1, 0), call(2, 50), call(3, 90, is_urgent=False), call(4, 90), call(5, 50), call(6, 999, program=1.0)]
    assert order("program", calls) == order("program", calls) == [4, 2, 5, 1, 3, 6]
    assert order("fcfs", calls) == [1, 2, 3, 4, 5, 6]
    assert policy.victim(calls[:5], policy.program).request_id == 3


def test_calls_of_newer_programs_do_not_overtake_however_long_their_paths() -> None:
    oldest = request(0, program=0.0, is_urgent=False)
    newer = [request(number, program=number, remaining_tokens=10_000) for number in range(1, 50)]
    assert order("program", [*newer, oldest])[0] == 0


def test_a_session_that_comes_back_goes_before_new_ones_for_a_bounded_time() -> None:
    table = SessionTable()

    def chat(request_id: int, prompt: list[int], now: float) -> Request:
        made = request(request_id, arrival=now, program=now)
        made.turn = table.begin("a", "", prompt, len(prompt), now)
        made.turn.is_of_chat = True
        return made

    first = chat(1, [5], 0.0)
    assert first.turn is not None
    table.end(first.turn, [6], ReplyKind.CALLS, 1.0)
    back = chat(2, [5, 6, 7], 100.0)
    assert back.turn is not None
    assert order("program", [chat(3, [8], 100.0 - LEAD_S + 1), back]) == [2, 3]
    assert order("program", [chat(4, [9], 100.0 - LEAD_S - 1), back]) == [4, 2]
    back.turn.service_s = 2.0
    assert order("program", [chat(5, [10], 100.0 - LEAD_S + 1), back]) == [5, 2]
    back.turn.service_s = 1e9
    assert order("program", [chat(6, [11], 101.0), back]) == [2, 6], (
        "however much it had, new ones do not pass for good"
    )
    assert order("fcfs", [chat(7, [12], 99.0), back]) == [7, 2]
