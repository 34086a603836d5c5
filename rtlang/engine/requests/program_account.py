"""A running program as the scheduler sees it: when it arrived, by when it must end, and how much of the machine it has had."""

from __future__ import annotations

from rtlang.contract.accounts.request_account import RequestAccount


class ProgramAccount:
    """Shared by the requests of one graph. Used on the engine thread.

    Attributes:
        arrival_time: in seconds of the engine's clock.
        deadline: time at which it fails if it has not ended, in seconds of the engine's clock; None for no such time.
        service_s: expected time of everything that was computed for it, in seconds.
        graph_id: its graph; 0 for requests of no graph.
        account: what its ended requests, and other work for it, have cost.
    """

    __slots__ = ("account", "arrival_time", "deadline", "graph_id", "service_s")

    def __init__(self, arrival_time: float, deadline: float | None = None, *, graph_id: int = 0) -> None:
        self.arrival_time, self.deadline, self.graph_id = arrival_time, deadline, graph_id
        self.service_s = 0.0
        self.account = RequestAccount()
