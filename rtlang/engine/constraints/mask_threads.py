"""The threads that fill masks and accept tokens.

They are apart from the compile lanes, so that a step never queues after a compilation; and slow masks have threads of their own, because a
step waits for all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from itertools import accumulate
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.service.metrics import Metrics
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.work.fair_executor import FairExecutor, run_or_cancel
from rtlang.work.fair_queue import Owner
from rtlang_grammars.machine.token_index.mask import Mask, write_rows

NUM_SLOW = 4
"""Number of threads for slow masks, so that one very slow mask does not block the others."""


class MaskThreads:
    """Fills masks and accepts tokens on other threads. Safe to use from several threads.

    Args:
        num_threads: threads for the masks of a step.
        vocab_size: width of the model's logits.
        metrics: receives the times of masks.
        executor: runs all jobs instead; for tests.
    """

    def __init__(self, num_threads: int, vocab_size: int, metrics: Metrics, executor: Executor | None = None) -> None:
        self._num_threads, self._vocab_size, self._metrics = num_threads, vocab_size, metrics
        self._own_threads = executor is None
        self._fill_pool = executor or FairExecutor(num_threads, "constraint-fill")
        self._prepare_pool = executor or FairExecutor(NUM_SLOW, "constraint-prepare")
        self._lock = threading.Lock()

    def fill(
        self, sessions: Sequence[ConstraintSession], bitmask: NDArray[np.int32], drafts: Sequence[Sequence[int]] = ()
    ) -> Future[None]:
        """Fill row i of `bitmask` for sessions[i].

        Args:
            bitmask: int32, [at least the number of rows, ceil(vocab_size / 32)]; do not read it before the future is done.
            drafts: one for each session, or none at all. A session then has a row for its next token and one after each draft token.
        Returns:
            A future that completes when all rows are written. It does not fail if a session fails; see `raise_if_failed`.
        """
        num_parts = max(1, min(self._num_threads, len(sessions)))
        ends = list(accumulate((len(draft) + 1 for draft in drafts), initial=0)) if drafts else range(len(sessions) + 1)
        done: Future[None] = Future()
        left = [num_parts]
        started = perf_counter()

        def fill_part(part: int) -> None:
            own = range(len(sessions) * part // num_parts, len(sessions) * (part + 1) // num_parts)
            masks: list[Mask | None] = []
            for at in own:
                draft = drafts[at] if drafts else ()
                if draft:
                    masks += sessions[at].masks_along(draft, bitmask[ends[at] : ends[at + 1]])
                else:
                    masks.append(sessions[at].find_mask(bitmask[ends[at]]))
            try:
                write_rows(masks, bitmask[ends[own.start] : ends[own.stop]])
            except BaseException as error:  # the step waits for `done`, whatever happens
                for session in sessions[own.start : own.stop]:
                    session.fail(error)
            with self._lock:
                left[0] -= 1
                is_last = left[0] == 0
            if is_last:
                self._metrics.mask.observe(perf_counter() - started)
                done.set_result(None)

        for part in range(num_parts):
            run_or_cancel(self._fill_pool.submit, lambda part=part: fill_part(part))  # type: ignore[misc]
        return done

    def prepare(self, session: ConstraintSession, wake: Callable[[], None], owner: Owner) -> None:
        """Compute the next mask of a slow session, for a client; do not use the session while `session.is_preparing`.

        `wake` is called on that thread when the mask is ready.
        """

        def submit(make: Callable[[], None]) -> None:
            def job() -> None:
                started = perf_counter()
                make()
                self._metrics.mask.observe(perf_counter() - started)

            run_or_cancel(lambda run: self._submit_for(owner, run), job)

        session.prepare(-(-self._vocab_size // 32), submit, wake)

    def accept_beside(
        self, session: ConstraintSession, token_id: int, remaining: int, wake: Callable[[], None], owner: Owner
    ) -> None:
        """Accept a token of a client; do not use the session while `session.is_preparing`. `wake` is called on that thread at the end."""

        def submit(accept: Callable[[], None]) -> None:
            run_or_cancel(lambda run: self._submit_for(owner, run), accept)

        session.accept_beside(token_id, remaining, submit, wake)

    def _submit_for(self, owner: Owner, job: Callable[[], None]) -> Future[None]:
        if isinstance(self._prepare_pool, FairExecutor):
            return self._prepare_pool.submit_for(owner, 0.0, job, kind=WorkKind.CONSTRAINT)
        return self._prepare_pool.submit(job)

    def close(self) -> None:
        """Stop the threads. Idempotent."""
        if self._own_threads:
            self._fill_pool.shutdown(wait=True)
            self._prepare_pool.shutdown(wait=False, cancel_futures=True)
