"""Arranges the scheduled requests of a step as rows, in the order of the prefix tree.

Rows in depth-first order of the tree share their pages with their neighbors, so one number per row (`Row.num_shared_tokens`) describes
sharing at every depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rtlang.contract.step import Row
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.state_slots import StateSlots


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of a step, their requests in the same order, and the number of rows that need a mask."""

    rows: tuple[Row, ...]
    requests: tuple[Request, ...]
    num_mask_rows: int


class BatchLayout:
    """Orders running requests and builds rows. Owned by the scheduler.

    Args:
        states: gives state slots to rows; None for a model without states.
    """

    def __init__(self, page_size: int, states: StateSlots | None = None) -> None:
        self._page_size, self._states = page_size, states
        self._order: list[Request] = []
        self._shared: dict[Request, int] = {}  # tokens shared with the previous request in the order
        self._is_stale = True

    def invalidate(self) -> None:
        """Recompute the order for the next step, because a request has started or stopped running."""
        self._is_stale = True

    def lay_out(
        self,
        running: Sequence[Request],
        scheduled: Mapping[Request, int],
        drafts: Mapping[Request, Sequence[int]] = MappingProxyType({}),
    ) -> Layout:
        """Build the rows of a step.

        Args:
            running: all running requests.
            scheduled: number of tokens to compute for each request of the step, without drafts.
            drafts: tokens that are expected to follow those of a request that samples.
        """
        if self._is_stale:
            self._sort(running)
        rows: list[Row] = []
        requests: list[Request] = []
        num_masks, num_skipped_shared = 0, None
        for request in self._order:
            shared = self._shared[request]
            num_tokens = scheduled.get(request)
            if num_tokens is None:
                # Not in this step: the rows around it share at most what both share with the skipped request.
                num_skipped_shared = shared if num_skipped_shared is None else min(num_skipped_shared, shared)
                continue
            if num_skipped_shared is not None:
                shared, num_skipped_shared = min(shared, num_skipped_shared), None
            if self._states is not None and rows and shared:  # a row that replays tokens may end inside shared pages
                before = rows[-1]
                end = min(request.num_computed_tokens + num_tokens, before.num_computed_tokens + len(before.token_ids))
                shared = min(shared, end // self._page_size * self._page_size)
            row = _row(request, num_tokens, shared if rows else 0, num_masks)
            if self._states is not None:
                row = _with_states(row, request, self._states)
            if (draft := drafts.get(request)) is not None:
                row = _with_draft(row, request, draft)
            if row.mask_row is not None:
                num_masks += row.num_sampled
            rows.append(row)
            requests.append(request)
        return Layout(tuple(rows), tuple(requests), num_masks)

    def _sort(self, running: Sequence[Request]) -> None:
        """Sort by page ids, a depth-first order of the tree, and record what neighbors share.

        Needed only when requests start or stop running: shared pages stay shared while both run.
        """
        self._order = sorted(running, key=lambda request: request.pages.page_ids)
        self._shared = {}
        previous: Sequence[int] = ()
        for request in self._order:
            pages = request.pages.page_ids[: request.pages.num_tree_tokens // self._page_size]
            self._shared[request] = _num_common(previous, pages) * self._page_size
            previous = pages
        self._is_stale = False


def _row(request: Request, num_tokens: int, num_shared: int, mask_row: int) -> Row:
    token_ids, spec = request.token_ids, request.spec
    start, num_known = request.num_computed_tokens, len(token_ids)
    end = start + num_tokens
    num_output = num_known - request.num_prompt_tokens + request.pending.num_tokens
    needs_sample = not spec.score_only and end == request.num_target_tokens
    input_is_pending = end > num_known
    score_offset, num_score_top, score_ids = 0, 0, tuple[int, ...]()
    if spec.score_from is not None and (index := request.next_score) is not None and end >= index:
        score_offset, num_score_top = index - 1 - start, request.num_score_top
        score_ids = tuple(token_ids[index : min(end + 1, request.num_scorable_tokens)])
    has_history = needs_sample and request.needs_history
    may_ban = needs_sample and (not num_output or num_output < spec.params.min_tokens)
    row = Row(  # by position, since there is one for every token
        request.request_id,
        [0] if input_is_pending else token_ids[start:end],
        start,
        request.pages.page_ids,
        num_shared,
        needs_sample,
        spec.params,
        spec.seed,
        spec.choice,
        num_output,
        mask_row if needs_sample and request.session is not None else None,
        request.bans_after(0) if may_ban else (),
        token_ids[: request.num_prompt_tokens] if has_history else (),
        request.output_token_ids if has_history else (),
        score_offset,
        score_ids,
        num_score_top,
        input_is_pending,
    )
    if request.filters is None or not needs_sample:
        return row
    return row._replace(filters=request.filters, max_surprise=request.max_surprise)


def _with_states(row: Row, request: Request, states: StateSlots) -> Row:
    start, num_tokens = row.num_computed_tokens, len(row.token_ids)
    num_replayed = max(0, min(request.num_kv_tokens - start, num_tokens))
    return row._replace(states=states.row(request, num_tokens), num_replayed_tokens=num_replayed)


def _with_draft(row: Row, request: Request, draft: Sequence[int]) -> Row:
    bans = [request.bans_after(index + 1) for index in range(len(draft))]
    return row._replace(
        token_ids=[*row.token_ids, *draft],
        num_draft_tokens=len(draft),
        draft_bans=tuple(bans) if any(bans) else (),
    )


def _num_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix, by bisection on slices, which compare at C speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
