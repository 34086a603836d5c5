"""Who is served first, and who gives way when pages run out. Pure functions of requests.

A policy gives each waiting request a key; the smallest is served first. Keys do not change while a request waits, so the queue is a
heap; `longest_prefix` also reorders the head of the queue by what the cache holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtlang.engine.request import Request

AGEING_S = 10.0
"""Under `priority`, one level of priority is worth this much waiting time."""

REORDER_WINDOW = 64
"""How many requests from the head of the queue `longest_prefix` looks at in a step."""

Key = tuple[float, float, int]


def fcfs(request: Request) -> Key:
    """First come, first served, by the request's own arrival."""
    return (request.arrival_time, 0.0, request.request_id)


def program(request: Request) -> Key:
    """First come, first served, by the arrival of the program: the later calls of an old program go before the first of a new one."""
    return (request.program_time, request.arrival_time, request.request_id)


def priority(request: Request) -> Key:
    """Lower priority numbers first; waiting makes up for AGEING_S seconds a level, so nobody starves."""
    return (request.program_time + AGEING_S * request.priority, request.arrival_time, request.request_id)


KEYS: dict[str, Callable[[Request], Key]] = {
    "program": program,
    "fcfs": fcfs,
    "longest_prefix": fcfs,
    "priority": priority,
}


def by_longest_prefix(head: Sequence[Request], num_cached: Callable[[Request], int]) -> list[Request]:
    """The head of the queue, longest cached prefix first; the oldest keeps its place, so that it cannot starve."""
    if len(head) < 2:
        return list(head)
    return [head[0], *sorted(head[1:], key=num_cached, reverse=True)]


def victim(candidates: Sequence[Request], key: Callable[[Request], Key]) -> Request:
    """Who is preempted: the one that would be served last."""
    return max(candidates, key=key)
