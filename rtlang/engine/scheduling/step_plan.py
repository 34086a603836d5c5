"""A step while the scheduler fills it: what is scheduled so far, and what was tried in vain."""

from __future__ import annotations

from dataclasses import dataclass, field

from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.flow import Entry, Flow
from rtlang.engine.requests.request import Request


@dataclass(slots=True, eq=False)
class StepPlan:
    """One step in the making. Owned by the scheduler.

    Attributes:
        scheduled: number of tokens by request.
        allowances: tokens that the step may still sample, by credit.
        copies: (from, to) pages that the step copies before it computes.
        is_limited: whether background work is bounded, since there is live work.
        max_rows: rows that the step may have so far.
        num_decode_rows, max_decode_rows: rows of decodes, and how many there may be before waiting requests start.
        max_looked_up: work of looking for waiting prompts in the cache, by each flow.
        passed_over: waiting requests that cannot start in this step; they go back to their queues.
        blocked, num_blocked: waiting requests that found no pages, and their number, in which one that waited too long counts for all.
        refused: the owners of sessions that wait for room, and whether the session is new.
        unfinished: running requests in prefill; None until somebody asks.
        largest: the flow with the most rows for its weight; None until somebody asks.
    """

    scheduled: dict[Request, int] = field(default_factory=dict)
    allowances: dict[Credit, int] = field(default_factory=dict)
    copies: list[tuple[int, int]] = field(default_factory=list)
    is_limited: bool = False
    max_rows: int = 0
    num_decode_rows: int = 0
    max_decode_rows: int = 0
    max_looked_up: int = 0
    passed_over: list[tuple[Flow, Entry]] = field(default_factory=list)
    blocked: list[Request] = field(default_factory=list)
    num_blocked: int = 0
    refused: set[tuple[str, bool]] = field(default_factory=set)
    unfinished: list[Request] | None = None
    largest: Flow | None = None

    def num_next(self, request: Request, already: int, limit: int) -> int:
        """Number of tokens to compute next, after those that the step computes already; without credit, all but the one that samples."""
        num_missing = request.num_target_tokens - request.num_computed_tokens - already
        credit = request.spec.credit
        if credit is not None and not request.spec.score_only and 0 < num_missing <= limit:
            left = self.allowances.setdefault(credit, credit.num_tokens)
            if left <= 0:
                return num_missing - 1
            self.allowances[credit] = left - 1
        return min(num_missing, limit)
