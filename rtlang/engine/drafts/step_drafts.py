"""Adds drafts to a step: who may draft, how much, and in which pages; and decides before which steps rows wait to draft.

On a pipelined runner, a row with drafts needs all tokens before them, and is launched again only when its results are there. Rows without
drafts need neither: they are launched ahead, unless more tokens per second are expected if they wait too.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.engine.drafts.drafter import MAX_DRAFT_TOKENS, Candidate, Drafter
from rtlang.engine.planning.step_cost import StepSize, num_row_scores
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import Request


def add_drafts(
    drafter: Drafter,
    cache: PrefixCache,
    scheduled: Mapping[Request, int],
    allowances: MutableMapping[Credit, int],
    num_running: int,
    room: int,
    *,
    only_live: bool = False,
) -> dict[Request, Sequence[int]]:
    """The drafts of the rows that sample; gives their requests the pages for them.

    Drafts take free pages only, as far as each running request can still grow by one: nothing is evicted or preempted for them.

    Args:
        scheduled: tokens of the step by request.
        allowances: tokens that the step may sample by credit; falls by the drafts.
        num_running: number of running requests.
        room: tokens that the step may still have.
        only_live: background work has no drafts: live work waits for the step.
    """
    if not drafter.is_due(len(scheduled)):
        return {}
    candidates: list[Candidate] = []
    num_samples = num_scores = num_keys = 0
    num_free = max(0, cache.num_free - num_running)
    for request, num_tokens in scheduled.items():
        end = request.num_computed_tokens + num_tokens
        num_scores += end if num_tokens == 1 else num_row_scores(num_tokens, end - num_tokens)
        num_keys += end
        if not request.spec.score_only and end == request.num_target_tokens:
            num_samples += 1
            num_slots = (len(request.pages.page_ids) + num_free) * cache.page_size - end
            limit = min(num_slots, request.max_tokens - request.num_output_tokens - 1)
            may_draft = request.may_draft and not (only_live and request.spec.principal.is_background)
            if limit > 0 and not request.pending.num_tokens and may_draft:
                candidates.append(Candidate(request, limit, end))
    if not candidates:
        return {}
    size = StepSize(sum(scheduled.values()), num_samples, num_scores, num_keys)
    drafts = drafter.choose(candidates, size, len(scheduled), room)
    for request in list(drafts):
        limit = MAX_DRAFT_TOKENS
        if request.spec.credit is not None:
            limit = allowances[request.spec.credit]
        end = request.num_target_tokens
        missing = -(-(end + min(limit, len(drafts[request]))) // cache.page_size) - len(request.pages.page_ids)
        if 0 < missing <= cache.num_free - num_running:
            request.pages.page_ids += cache.allocate(missing) or ()
        limit = min(limit, len(request.pages.page_ids) * cache.page_size - end)
        drafts[request] = drafts[request][: max(0, limit)]
        if not drafts[request]:
            del drafts[request]
        elif request.spec.credit is not None:
            allowances[request.spec.credit] -= len(drafts[request])
    drafter.note(drafts)
    return drafts


def held_back(
    drafter: Drafter,
    running: Sequence[Request],
    allowances: Mapping[Credit, int],
    page_size: int,
    num_free_pages: int,
    *,
    max_rows: int,
) -> set[Request] | None:
    """The requests that sit out the next step; None if all rows should wait for the results of the launched one.

    Args:
        running: requests, some of which have tokens that are being sampled.
        allowances: tokens that the next step may sample, by credit.
        num_free_pages: pages for drafts.
        max_rows: maximum number of rows of a step.
    """
    decodes = [
        request
        for request in running
        if not (request.is_ending or request.is_awaiting_mask)
        and (request.num_target_tokens - request.num_computed_tokens == 1 or request.is_replaying_drafts)
    ]
    num_drafting = 0
    ready: list[Request] = []
    for request in decodes:
        if request.pending.num_drafts:
            num_drafting += 1
        elif len(ready) < max_rows:
            ready.append(request)
    num_keys = sum(request.num_computed_tokens + 1 for request in ready)
    size = StepSize(len(ready), len(ready), num_keys, num_keys)
    if num_drafting:
        is_waiting = drafter.overlap is None or drafter.overlap.is_wait_better(size, len(ready))
        return None if is_waiting else set()
    candidates: list[Candidate] = []
    for request in ready:
        if not request.pending.num_tokens:
            continue
        end = request.num_target_tokens
        num_slots = (len(request.pages.page_ids) + num_free_pages) * page_size - end
        limit = min(num_slots, request.max_tokens - request.num_output_tokens - request.pending.num_tokens - 1)
        if request.spec.credit is not None:
            limit = min(limit, allowances[request.spec.credit] - 1)
        if limit > 0 and request.may_draft:
            candidates.append(Candidate(request, limit, end))
    return drafter.held_back(candidates, size, len(ready)) if candidates else set()
