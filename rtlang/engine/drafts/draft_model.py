"""Drafts from a smaller model that samples with the noise keys, masks, bans and history of the request.

A sampled token is a function of the logits and the noise key, so where both models have the same distribution they sample the same token.
Several rows are drafted together, a token of each in one step of the draft model. What it has not computed of a request comes before that.

Nothing here may fail a request: after an error the draft model rests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.step import Row, SampledRow, Step
from rtlang.engine.drafts.model_pages import ComputedSequence, DraftPages, ModelPages
from rtlang.engine.planning.calibration import clock_of
from rtlang.engine.planning.step_cost import StepCost, StepSize, size_of
from rtlang.engine.requests.request import Request
from rtlang.model.runner import Runner

logger = logging.getLogger(__name__)

MIN_CHUNK = 32
"""Tokens that `catch_up` computes in any case."""
FIRST_REST = 256
"""Number of steps without the draft model after its first error; doubled with each further one."""
_MAX_REST = 1 << 16
_OBSERVE_EVERY = 4  # steps; to observe one costs 13 us


class DraftModel:
    """Samples drafts. Used on the engine thread.

    Args:
        config: the settings of the runtime.
        runner: of the draft model, loaded; no other step may run on it.
        target_vocab_size: width of the model's logits.
        cost: of its steps, as far as it was measured before.
        clock: seconds; default: `clock_of` the runner.
        pages: what is computed of each request; default: pages of its own.

    Attributes:
        seconds: time taken by everything that it computed.
        num_steps: its forward passes.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        runner: Runner,
        target_vocab_size: int,
        *,
        cost: StepCost | None = None,
        clock: Callable[[], float] | None = None,
        pages: DraftPages | None = None,
    ) -> None:
        self.cost = StepCost() if cost is None else cost
        self.pages = pages or ModelPages(runner.num_pages, config.page_size, sharing=config.prefix_sharing)
        self.seconds = 0.0
        self.num_steps = self.num_failures = 0
        self._runner, self._clock = runner, clock_of(runner) if clock is None else clock
        self._max_step_tokens, self._page_size = config.step_limit, config.page_size
        self._max_tokens = min(runner.max_model_len, runner.num_pages * config.page_size)
        self._target_vocab_size, self._vocab_size = target_vocab_size, runner.model_config.vocab_size
        self._rest = 0

    @property
    def num_pages(self) -> int:
        """Pages of its own."""
        return self.pages.num_pages

    def is_resting(self) -> bool:
        """Whether it is to be left out of this step; counts the steps."""
        self._rest = max(0, self._rest - 1)
        return self._rest > 0

    def limit(self, request: Request) -> int:
        """Most tokens that it can draft for a request; 0 or less if none."""
        return self._max_tokens - len(request.token_ids)

    def num_missing(self, request: Request) -> int:
        """Number of tokens, the last one included, that it computes before it knows what may follow."""
        return len(request.token_ids) - len(self.pages.open(request).token_ids)

    def catch_up(self, requests: Iterable[Request], seconds: float) -> None:
        """Compute the missing tokens of requests up to their last one, as far as that is expected to take so many seconds in all.

        Of requests with the same next page, one computes it and the others then find it in the cache.
        """
        waiting = dict.fromkeys(requests)
        while waiting:
            started = self._clock()
            rows: list[tuple[Request, ComputedSequence, Row]] = []
            size, seen = StepSize(0), set[tuple[object, ...]]()
            for request in tuple(waiting):
                sequence = self.pages.reopen(request)
                start, end = len(sequence.token_ids), len(request.token_ids) - 1
                if start >= end:
                    del waiting[request]
                    continue
                page = tuple(request.token_ids[start : start + self._page_size])
                if start == sequence.num_tree_tokens and (sequence.node, request.scope, page) in seen:
                    continue
                most = min(end - start, self._max_step_tokens - size.num_tokens)
                least = min(most, 0 if size.num_tokens else MIN_CHUNK)
                num_tokens = self.cost.most_tokens(size, start, seconds, least=least, most=most)
                if num_tokens <= 0:
                    break
                token_ids = request.token_ids[start : start + num_tokens]
                if not self._has(token_ids) or not self.pages.reserve(request, start + num_tokens, waiting):
                    del waiting[request]
                    continue
                seen.add((sequence.node, request.scope, page))
                row = self._row(request, sequence, token_ids, needs_sample=False)
                size = size.with_row(num_tokens, start)
                rows.append((request, sequence, row))
            if not rows or self._run([row for *_, row in rows], None, started) is None:
                return
            for request, sequence, row in rows:
                sequence.token_ids += row.token_ids
                sequence.num_agreed = len(sequence.token_ids)
                self.pages.store(request)
            seconds -= self._clock() - started
            if seconds <= 0:
                return

    def draft(self, limits: Mapping[Request, int]) -> dict[Request, list[int]]:
        """Sample up to `limits` tokens that may follow each request; fewer, or none, where the text may end or a token is refused."""
        drafts: dict[Request, list[int]] = {}
        sequences: dict[Request, ComputedSequence] = {}
        is_first = True
        left = list(limits)
        while left:
            started = self._clock()
            rows: list[Row] = []
            masks: list[NDArray[np.int32]] = []
            drafted: list[Request] = []
            for request in left:
                draft = drafts.setdefault(request, [])
                if is_first:
                    sequence = sequences[request] = self.pages.open(request)
                    token_ids = request.token_ids[len(sequence.token_ids) :]
                    num_tokens = len(request.token_ids) + limits[request] - 1
                    if not self._has(token_ids) or not self.pages.reserve(request, num_tokens, limits):
                        continue
                else:
                    sequence, token_ids = sequences[request], draft[-1:]
                mask_row, temperatures = None, tuple[float | None, ...]()
                if request.session is not None:
                    mask = np.zeros(-(-self._target_vocab_size // 32), dtype=np.int32)
                    if not request.session.mask_after(draft, mask):
                        continue
                    mask_row = len(masks)
                    masks.append(mask)
                    temperatures = request.session.temperatures
                row = self._row(request, sequence, token_ids, draft, mask_row=mask_row)
                rows.append(row._replace(temperatures=temperatures))
                drafted.append(request)
            bitmask = self._bitmask(masks)
            results = self._run(rows, bitmask, started) if rows else None
            if results is None:
                break
            left = []
            for request, row, result in zip(drafted, rows, results, strict=True):
                sequence, draft = sequences[request], drafts[request]
                sequence.token_ids += row.token_ids
                if is_first:
                    sequence.num_agreed = len(sequence.token_ids)
                    self.pages.store(request)
                token_id = result.token_id
                if token_id is None or token_id >= self._target_vocab_size or self._may_end(request, token_id):
                    continue
                draft.append(token_id)
                if len(draft) < limits[request]:
                    left.append(request)
            is_first = False
        return {request: draft for request, draft in drafts.items() if draft}

    def forget(self, request: Request) -> None:
        """Leave the pages of a request that has ended to later ones."""
        self.pages.close(request)

    def rest(self, *, is_long: bool) -> None:
        """Give memory back, because there is nothing to do; after a long time also that of cached pages."""
        free = self.pages.rest(is_long=is_long)
        if self._runner.page_memory is not None:
            self._runner.page_memory.release(free)

    def _row(
        self,
        request: Request,
        sequence: ComputedSequence,
        token_ids: list[int],
        draft: list[int] | None = None,
        *,
        mask_row: int | None = None,
        needs_sample: bool = True,
    ) -> Row:
        num_more = len(draft or ())
        has_history = needs_sample and request.needs_history
        return Row(
            request_id=request.request_id,
            token_ids=token_ids,
            num_computed_tokens=len(sequence.token_ids),
            page_ids=sequence.page_ids,
            num_shared_tokens=0,
            needs_sample=needs_sample,
            params=sequence.params,
            seed=request.spec.seed,
            choice=request.spec.choice,
            num_output_tokens=request.num_output_tokens + num_more,
            mask_row=mask_row,
            banned_token_ids=request.bans_after(num_more) if needs_sample else (),
            prompt_token_ids=request.token_ids[: request.num_prompt_tokens] if has_history else (),
            output_token_ids=[*request.output_token_ids, *(draft or ())] if has_history else (),
            filters=request.filters if needs_sample else None,
        )

    def _bitmask(self, masks: list[NDArray[np.int32]]) -> NDArray[np.int32] | None:
        """The masks in the width of the draft model's logits."""
        if not masks:
            return None
        bitmask = np.zeros((len(masks), -(-self._vocab_size // 32)), dtype=np.int32)
        width = min(bitmask.shape[1], len(masks[0]))
        bitmask[:, :width] = np.stack(masks)[:, :width]
        return bitmask

    def _has(self, token_ids: list[int]) -> bool:
        """Whether the draft model has these tokens: the model may have more ids without text, and sample them."""
        return self._vocab_size >= self._target_vocab_size or max(token_ids) < self._vocab_size

    def _may_end(self, request: Request, token_id: int) -> bool:
        session = request.session
        if session is None:
            return token_id in request.stop_ids
        return token_id in session.end_token_ids and not session.takes(token_id)

    def _run(self, rows: list[Row], bitmask: NDArray[np.int32] | None, started: float) -> tuple[SampledRow, ...] | None:
        """Run a step; None if it fails."""
        self.num_steps += 1
        step = Step(self.num_steps, tuple(rows), num_mask_rows=0 if bitmask is None else len(bitmask))
        try:
            flight = self._runner.launch(step)
            self._runner.sample(flight, step.rows, bitmask)
            launched = self._clock()
            found = self._runner.collect(flight)
        except Exception as error:
            self._fail(error)
            self.seconds += self._clock() - started
            return None
        seconds = self._clock() - started
        if found.device_s is not None:  # else it counts that the device had a step of the model before it
            seconds = min(seconds, launched - started + found.device_s)
        self.seconds += seconds
        if not self.cost.is_settled or self.num_steps % _OBSERVE_EVERY == 0:
            self.cost.observe(size_of(step), seconds)
        return found.rows

    def _fail(self, error: Exception) -> None:
        self._rest = min(_MAX_REST, FIRST_REST << min(self.num_failures, 16))
        if not self.num_failures:
            text = "the draft model failed; it is not used for %d steps, and for twice as many after each further error"
            logger.error(text, self._rest, exc_info=error)
        else:
            logger.debug("the draft model failed again", exc_info=error)
        self.num_failures += 1
