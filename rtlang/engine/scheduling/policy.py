"""Scheduling policies: the order of waiting requests and of prompts, and the victim of preemption. Pure functions.

A policy assigns a key to each request; the smallest key is served first. Keys are constant while a request waits, so the queue is a heap;
`longest_prefix` also reorders the head of the queue by the current cache content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rtlang.engine.requests.request import Request
from rtlang.engine.sessions.session_table import LEAD_S

AGEING_S = 10.0
"""Seconds of waiting equal to one priority level."""

DEADLINE_S = 60.0
"""A program or request whose deadline is nearer than this goes before others by the difference."""

SERVICE_WEIGHT = 2.0
"""Seconds that a program is moved back for a second of service. In simulations, 1 helped short programs less, and 3 delayed the slowest."""

SERVICE_QUANTUM_S = 0.25
"""Service below this does not count, so that programs that need little are served in the order of their arrival."""

REORDER_WINDOW = 64
"""Number of requests at the head of the queue that `longest_prefix` considers per step."""

Key = tuple[float, bool, int, float, int]


def fcfs(request: Request) -> Key:
    """First come, first served, by arrival of the request."""
    return (request.arrival_time, False, 0, 0.0, request.request_id)


def program(request: Request) -> Key:
    """By arrival of the program, which counts as later the more service the program has had and the longer the prompt is.

    So short programs and short prompts pass long ones. The wait is bounded: a later program passes only if it arrives within
    `SERVICE_WEIGHT` times the service that the earlier one has had and that its prompt needs. Service counts in doubling steps, so that
    equals do not take turns. A lower priority number and a near deadline count as an earlier arrival, so no request starves.

    The requests of a session count as one program, which began at most `LEAD_S` before the request: a session that comes back goes before
    new ones, and the more it has had, the less. So nobody waits longer for sessions than `LEAD_S`.

    Within a program, calls that its code waits for precede those after them, and calls with the longest path of others after them
    precede shorter ones.
    """
    own = request.program
    rank = own.arrival_time
    for deadline in (own.deadline, request.spec.deadline):
        if deadline is not None:
            rank = min(rank, deadline - DEADLINE_S)
    served_s, turn = own.service_s, request.turn
    if turn is not None and turn.is_of_chat:
        rank, served_s = min(rank, turn.arrival_s), max(served_s, min(turn.service_s, LEAD_S / SERVICE_WEIGHT))
    service_s = _in_doubling_steps(served_s) + _in_doubling_steps(request.prompt_s)
    return (
        rank + AGEING_S * request.spec.priority + SERVICE_WEIGHT * service_s,
        not request.spec.is_urgent,
        -request.spec.remaining_tokens,
        request.arrival_time,
        request.request_id,
    )


def program_rank(policy_name: str, program_time: float, priority: int) -> float:
    """The place of a program among others: of two programs, the one with the smaller rank keeps its pages longer."""
    return program_time + AGEING_S * priority if policy_name == "program" else program_time


KEYS: dict[str, Callable[[Request], Key]] = {"program": program, "fcfs": fcfs, "longest_prefix": fcfs}


def by_longest_prefix(head: Sequence[Request], num_cached: Callable[[Request], int]) -> list[Request]:
    """Sort the head of the queue by cached prefix, longest first; the oldest request keeps its place, so it cannot starve."""
    if len(head) < 2:
        return list(head)
    return [head[0], *sorted(head[1:], key=num_cached, reverse=True)]


def victim(candidates: Sequence[Request], key: Callable[[Request], Key]) -> Request:
    """The request to preempt: the one served last."""
    return max(candidates, key=key)


def _in_doubling_steps(seconds: float) -> float:
    """The largest of 0, 1, 2, 4, ... quanta that is not above a time."""
    if seconds < SERVICE_QUANTUM_S:
        return 0.0
    return SERVICE_QUANTUM_S * 2.0 ** math.floor(math.log2(seconds / SERVICE_QUANTUM_S))
