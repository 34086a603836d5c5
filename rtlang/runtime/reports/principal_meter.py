"""Counts tokens, waits and work of the engine by principal while requests run.

The time of a step is divided between its rows by their tokens, one addition a row. On the host it is the time of the engine thread, which
does its share of the forward pass: a principal does not pay for waiting while work of others holds the processor. All other counts are read
from the requests when they end and every few seconds, as differences from the last reading, so a long request counts while it runs and a
token costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rtlang.contract.accounts.request_account import RequestAccount, WorkKind
from rtlang.contract.service.principal_metrics import PrincipalMetrics
from rtlang.engine.engine import Engine
from rtlang.engine.requests.request import Request, RequestOutput, RequestStatus

INTERVAL_S = 2.0
"""Seconds between two looks at the running requests."""


class PrincipalMeter:
    """Feeds the metrics by principal of one engine. Used on the engine thread."""

    def __init__(self, metrics: PrincipalMetrics) -> None:
        self._metrics = metrics
        self._counted: dict[Request, RequestAccount] = {}  # of requests that run
        self._looked_at = 0.0

    def after_step(self, engine: Engine, outputs: Sequence[RequestOutput], started: float, ended: float) -> None:
        """Take in a step that ran from `started` to `ended`, in seconds of the engine's clock."""
        rows = engine.scheduler.last_rows
        if rows:
            seconds = ended - started if engine.step_thread_s is None else engine.step_thread_s
            token_s = seconds / max(1, sum([row[1] for row in rows]))
            for request, num_tokens, _ in rows:
                request.stats.step_s += num_tokens * token_s
                if request.status is RequestStatus.FINISHED:  # its account was closed within the step
                    request.program.account.add_work(WorkKind.STEPS, num_tokens * token_s)
        for output in outputs:
            if output.is_last:
                self._count(output.request)
                self._counted.pop(output.request, None)
        if ended - self._looked_at >= INTERVAL_S:
            self._looked_at = ended
            self._look(engine.scheduler.running)

    def _look(self, running: Iterable[Request]) -> None:
        for request in running:
            self._counted[request] = self._count(request)

    def _count(self, request: Request) -> RequestAccount:
        """Count what was not counted before; returns all of it."""
        account = request.account
        new = account.since(self._counted.get(request))
        self._metrics.count_engine(request.spec.principal.name, new)
        return account
