"""Scheduling policies: the order of waiting requests, and the victim of preemption. Pure functions.

A policy assigns a key to each waiting request; the smallest key is served first. Keys are constant while a request waits, so the queue is a
heap; `longest_prefix` also reorders the head of the queue by the current cache content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtlang.engine.request import Request

AGEING_S = 10.0
"""Under the priority policy, seconds of waiting equal to one priority level."""

REORDER_WINDOW = 64
"""Number of requests at the head of the queue that `longest_prefix` considers per step."""

Key = tuple[float, bool, int, float, int]


def fcfs(request: Request) -> Key:
    """First come, first served, by arrival of the request."""
    return (request.arrival_time, False, 0, 0.0, request.request_id)


def program(request: Request) -> Key:
    """First come, first served, by arrival of the program: later calls of an older program precede the first call of a newer one.

    Within a program, calls that its code waits for precede those behind them, and calls with the longest path of others behind them
    precede shorter ones. A program makes a bounded number of calls, so none of them starves.
    """
    return (
        request.program_time,
        not request.is_urgent,
        -request.remaining_tokens,
        request.arrival_time,
        request.request_id,
    )


def priority(request: Request) -> Key:
    """Lower priority numbers first; AGEING_S seconds of waiting outweigh one level, so no request starves. Else as `program`."""
    return (program_rank("priority", request.program_time, request.priority), *program(request)[1:])


def program_rank(policy_name: str, program_time: float, priority: int) -> float:
    """The place of a program among others: of two programs, the one with the smaller rank keeps its pages longer."""
    return program_time + AGEING_S * priority if policy_name == "priority" else program_time


KEYS: dict[str, Callable[[Request], Key]] = {
    "program": program,
    "fcfs": fcfs,
    "longest_prefix": fcfs,
    "priority": priority,
}


def by_longest_prefix(head: Sequence[Request], num_cached: Callable[[Request], int]) -> list[Request]:
    """Sort the head of the queue by cached prefix, longest first; the oldest request keeps its place, so it cannot starve."""
    if len(head) < 2:
        return list(head)
    return [head[0], *sorted(head[1:], key=num_cached, reverse=True)]


def victim(candidates: Sequence[Request], key: Callable[[Request], Key]) -> Request:
    """The request to preempt: the one served last."""
    return max(candidates, key=key)
