"""Fair shares between principals and their clients: start-time fair queueing on computed tokens.

A *flow* is one client of one principal. Each flow has a virtual time, which grows by the tokens computed for it, divided by its weight;
the flow with the smallest virtual time is served next. The clients of a principal that have work divide its weight by their shares, which
are usually equal, so more connections give a principal no larger share. A flow that was idle begins at the virtual time of the flow served
last: it neither saves up service nor forgets what it had beyond its share.

Background flows, whose clients have a share below 1, have a virtual time of their own: they divide the time that live ones leave, and a
live flow is not charged for tokens that they got from idle steps. While any live flow has requests, a background flow weighs its share
only.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import replace

from rtlang.contract.runs.principal import Principal
from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request

_MAX_IDLE = 1024


class FairShares:
    """The flows of a scheduler. Used on the engine thread.

    Attributes:
        now: the virtual time of the flow served last among live ones.
        background_now: the same among background ones.
        active: the flows that have requests, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.now = self.background_now = 0.0
        self.active: list[Flow] = []
        self._flows: dict[tuple[str, str, bool], Flow] = {}
        self._num_live = self._num_background = 0  # flows with requests
        self._num_clients: Counter[str] = Counter()  # flows with work, by name of the principal
        self._client_shares: dict[str, float] = {}  # the sum of their shares
        self._num_running: Counter[str] = Counter()  # by name of the principal
        self._num_prompt_tokens: Counter[str] = Counter()  # of running requests
        self._num_flows = 0

    @property
    def num_idle(self) -> int:
        """Number of flows that are remembered without requests."""
        return len(self._flows) - sum(self._num_clients.values())

    @property
    def has_background(self) -> bool:
        """Whether a background flow has requests."""
        return self._num_background > 0

    @property
    def has_live(self) -> bool:
        """Whether a live flow has requests that run or wait; parked ones do neither."""
        return self._num_live > 0 and any(
            (flow.num_running or flow.waiting) and not flow.is_background for flow in self.active
        )

    def enter(self, principal: Principal) -> Flow:
        """The flow of a principal's client, with one more request."""
        name = (*principal.client_id, principal.is_background)
        flow = self._flows.get(name)
        if flow is None:
            self._forget_settled()
            self._num_flows += 1
            flow = self._flows[name] = Flow(principal, self._num_flows)
        if (
            flow.num_open and principal.share != flow.principal.share
        ):  # the sum of the shares counts that of its arrival
            principal = replace(principal, share=flow.principal.share)
        flow.principal = principal
        if not flow.num_open:
            flow.virtual_time = max(flow.virtual_time, self._now_of(flow))
            self._count_open(flow, 1)
            self._num_clients[principal.name] += 1
            self._client_shares[principal.name] = self._client_shares.get(principal.name, 0.0) + principal.share
            insort(self.active, flow, key=lambda each: each.number)
        flow.num_open += 1
        return flow

    def leave(self, flow: Flow) -> None:
        """A request of the flow has ended."""
        flow.num_open -= 1
        if not flow.num_open:
            flow.waiting.clear()
            self.active.remove(flow)
            self._count_open(flow, -1)
            name = flow.principal.name
            self._num_clients[name] -= 1
            self._client_shares[name] -= flow.principal.share
            if not self._num_clients[name]:
                del self._num_clients[name], self._client_shares[name]

    def weight(self, flow: Flow) -> float:
        """The share of the flow relative to others."""
        principal = flow.principal
        whole = max(principal.share, self._client_shares.get(principal.name, 0.0))
        if flow.is_background and self._num_live:
            whole = max(1.0, whole)
        return principal.weight * principal.share / whole

    def serve(self, flow: Flow, num_tokens: int) -> None:
        """Charge tokens to a flow, which had the smallest virtual time of those that could be served."""
        if flow.is_background:
            self.background_now = max(self.background_now, flow.virtual_time)
        else:
            self.now = max(self.now, flow.virtual_time)
        flow.virtual_time += num_tokens / self.weight(flow)

    def start(self, flow: Flow, request: Request) -> None:
        """A request of the flow takes pages."""
        self._count(flow, request, 1)

    def stop(self, flow: Flow, request: Request) -> None:
        """A request of the flow has given its pages up."""
        self._count(flow, request, -1)

    def may_start(self, flow: Flow, request: Request) -> bool:
        """Whether the limits of the principal let one more of its requests take pages now. A single one always may."""
        name, limits = flow.principal.name, flow.principal.limits
        if not self._num_running[name]:
            return True
        if limits.max_rows is not None and self._num_running[name] >= limits.max_rows:
            return False
        after = self._num_prompt_tokens[name] + request.num_prompt_tokens
        return limits.max_prompt_tokens is None or after <= limits.max_prompt_tokens

    def _count(self, flow: Flow, request: Request, sign: int) -> None:
        name = flow.principal.name
        flow.num_running += sign
        self._num_running[name] += sign
        self._num_prompt_tokens[name] += sign * request.num_prompt_tokens
        if not self._num_running[name]:
            del self._num_running[name], self._num_prompt_tokens[name]

    def _count_open(self, flow: Flow, sign: int) -> None:
        if flow.is_background:
            self._num_background += sign
        else:
            self._num_live += sign

    def _now_of(self, flow: Flow) -> float:
        return self.background_now if flow.is_background else self.now

    def _forget_settled(self) -> None:
        """Drop idle flows that have no more than their share."""
        if self.num_idle >= _MAX_IDLE:
            self._flows = {
                name: flow
                for name, flow in self._flows.items()
                if flow.num_open or flow.virtual_time > self._now_of(flow)
            }
