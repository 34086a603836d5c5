"""The work of each flow in one step, in the order in which it is served."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rtlang.engine.requests.flow import Flow
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.scheduling.policy import REORDER_WINDOW, Key, by_longest_prefix


@dataclass(slots=True, eq=False)
class Turn:
    """The work of one flow in a step.

    Attributes:
        decodes: running requests with one missing token, the next one last.
        prefills: the other running requests, the next one last.
        is_decode_served: whether the last of `decodes` has its token; until the turn goes on, its size is that of a decode.
        has_started_all: whether no waiting request can start any more.
        num_looked_up: work of looking for prompts of waiting requests in the cache.
    """

    flow: Flow
    decodes: list[Request] = field(default_factory=list)
    prefills: list[Request] = field(default_factory=list)
    is_decode_served: bool = False
    has_started_all: bool = False
    num_looked_up: int = 0

    @property
    def has_work(self) -> bool:
        """Whether something is left to serve or to try."""
        num_decodes = len(self.decodes) - self.is_decode_served
        return bool(num_decodes or self.prefills or (self.flow.waiting and not self.has_started_all))

    @property
    def size(self) -> int:
        """Tokens that are missing before the next one: of flows that have had the same, the smallest goes first."""
        if self.decodes:
            return 1
        if self.prefills:
            return self.prefills[-1].num_target_tokens - self.prefills[-1].num_computed_tokens
        return len(self.flow.waiting[0][-1].token_ids) if self.flow.waiting else 0


class Prompt(NamedTuple):
    """A prompt of which `num_before` tokens are computed, and `num_missing` are not."""

    num_before: int
    num_missing: int


def turns_of(running: Iterable[Request], active: Iterable[Flow]) -> list[Turn]:
    """The turns of the flows that have work: running requests that can go on, or waiting ones."""
    turns: dict[Flow, Turn] = {}
    for request in running:
        if request.is_ending or request.is_awaiting_mask or request.pending.num_drafts:
            continue
        assert request.flow is not None
        turn = turns.get(request.flow)
        if turn is None:
            turn = turns[request.flow] = Turn(request.flow)
        num_missing = request.num_target_tokens - request.num_computed_tokens
        is_prefill = num_missing > 1 and not request.is_replaying_drafts
        (turn.prefills if is_prefill else turn.decodes).append(request)
    for flow in active:
        if flow.waiting and flow not in turns:
            turns[flow] = Turn(flow)
    return list(turns.values())


def order_turns(
    turns: Iterable[Turn],
    key: Callable[[Request], Key],
    max_rows: int,
    *,
    may_start: bool,
    is_plentiful: bool = False,
) -> int:
    """Sort the running requests of each flow by policy; if not all decodes can have a row, by the time since they had one.

    Args:
        is_plentiful: all decodes get what they need: their order does not matter unless rows are few, and 512 keys take 0.8 ms.
        key: of the policy; the smallest goes first.
        max_rows: maximum number of rows of the step.
        may_start: whether waiting requests may start.
    Returns:
        The number of rows that decodes may take before requests are started: an eighth if they could take all, because those that wait
        have had nothing yet.
    """
    num_decodes = 0
    for turn in turns:
        num_decodes += len(turn.decodes)
    for turn in turns:
        if num_decodes >= max_rows or not is_plentiful:
            turn.decodes.sort(key=key, reverse=True)
        if num_decodes > max_rows:
            turn.decodes.sort(key=_last_step_id, reverse=True)
        turn.prefills.sort(key=key, reverse=True)
    is_kept = may_start and num_decodes >= max_rows and any(turn.flow.waiting for turn in turns)
    return max_rows // 8 if is_kept else max_rows


def next_prompts(turns: Sequence[Turn], key: Callable[[Request], Key]) -> list[Prompt]:
    """The prompts of sorted turns in the order in which a step computes them.

    Of the waiting ones, those count that go first. Several flows take turns: then the prompts that are computed furthest are first, since
    they cost most.
    """
    found: list[Prompt] = []
    for turn in turns:
        waiting = turn.flow.waiting
        if waiting and (not turn.prefills or waiting[0][0] < key(turn.prefills[-1])):
            found.append(Prompt(0, waiting[0][-1].num_target_tokens))
        for request in reversed(turn.prefills):
            found.append(Prompt(request.num_computed_tokens, request.num_target_tokens - request.num_computed_tokens))
    if len(turns) > 1:
        found.sort(reverse=True)
    return found


def reorder_head(flow: Flow, num_cached: Callable[[Request], int]) -> None:
    """Reorder the head of the queue of a flow by cached prefix; see `policy.by_longest_prefix`."""
    live = [entry for entry in flow.waiting if entry[-1].status is not RequestStatus.FINISHED]
    head = heapq.nsmallest(REORDER_WINDOW, live)
    moved = {entry[1] for entry in head}
    ordered = by_longest_prefix([entry[-1] for entry in head], num_cached)
    flow.waiting = [entry for entry in live if entry[1] not in moved]
    flow.waiting += [(key, number, request) for (key, number, _), request in zip(head, ordered, strict=True)]
    heapq.heapify(flow.waiting)


def _last_step_id(request: Request) -> int:
    return request.last_step_id
