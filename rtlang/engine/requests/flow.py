"""The requests of one client of one principal, between which and other flows the engine divides its time; see `fair_shares.py`."""

from __future__ import annotations

from typing import Any

from rtlang.contract.runs.principal import Principal

Entry = tuple[Any, int, Any]
"""A waiting request: its key under the policy, the number of its arrival, and the request."""


class Flow:
    """One client of one principal. Owned by `FairShares`.

    Attributes:
        principal: with its present settings.
        is_background: whether its requests run in the time that others leave.
        number: order of arrival among flows.
        virtual_time: computed tokens by weight.
        waiting: heap of waiting requests in policy order; those that have left the queue are skipped when popped.
        num_open: requests that wait or run.
        num_running: requests that run.
    """

    __slots__ = (
        "is_background",
        "num_open",
        "num_running",
        "number",
        "principal",
        "virtual_time",
        "waiting",
    )

    def __init__(self, principal: Principal, number: int) -> None:
        self.principal, self.number = principal, number
        self.is_background = principal.is_background
        self.virtual_time = 0.0
        self.waiting: list[Entry] = []
        self.num_open = self.num_running = 0
