"""One request's way through its constraint: masks, tokens, and the promise that the text is complete when its tokens are used up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import ConstraintError
from rtlang_grammars.budget import BudgetKeeper
from rtlang_grammars.schema.report import Report
from rtlang_grammars.spec import GrammarError, GrammarMatcher
from rtlang_grammars.value_checks import ValueCheck

SLOW_FILL_S = 0.05
"""CPU time of a mask beyond which those after it are made before their step, which others would wait in."""
NUM_QUICK_AFTER_SLOW = 32
"""So many masks in a row have to take less until they are made in the steps again."""


class Pace:
    """How long the masks of a grammar take; its sessions share one.

    Attributes:
        is_slow: a mask took longer than `SLOW_FILL_S`: the next ones are to be made by `prepare`, out of the steps.
    """

    __slots__ = ("_num_quick", "is_slow")

    def __init__(self) -> None:
        self.is_slow, self._num_quick = False, 0

    def note(self, seconds: float) -> None:
        """A mask was made."""
        took_long = seconds > SLOW_FILL_S
        self._num_quick = 0 if took_long else self._num_quick + 1
        self.is_slow = took_long or (self.is_slow and self._num_quick < NUM_QUICK_AFTER_SLOW)


class ConstraintSession:
    """One request's way through its constraint. Used by one thread at a time.

    Attributes:
        end_token_ids: tokens that end the text. They are allowed exactly where it is complete, and not to be given to `accept`.
        value_check: what the finished text must still pass; None where the masks hold everything.
        report: what became of every keyword of a schema; None for other constraints.
    """

    __slots__ = (
        "_error",
        "_is_closed",
        "_keeper",
        "_matcher",
        "_on_failure",
        "_pace",
        "_prepared",
        "end_token_ids",
        "report",
        "value_check",
    )

    def __init__(
        self,
        matcher: GrammarMatcher,
        keeper: BudgetKeeper,
        end_token_ids: frozenset[int],
        on_failure: Callable[[], None],
        value_check: ValueCheck | None = None,
        report: Report | None = None,
        *,
        pace: Pace | None = None,
    ) -> None:
        self._pace, self._is_closed = pace or Pace(), False
        self._prepared: Future[NDArray[np.int32]] | None = None
        self.value_check, self.report = value_check, report
        self._matcher, self._keeper, self.end_token_ids, self._on_failure = matcher, keeper, end_token_ids, on_failure
        self._error: ConstraintError | None = None

    @property
    def matcher(self) -> GrammarMatcher:
        """What follows the text; to be looked at, not moved."""
        return self._matcher

    @property
    def is_accepting(self) -> bool:
        """The text so far is complete."""
        return self._matcher.is_accepting

    @property
    def is_complete(self) -> bool:
        """The text so far is complete and nothing can follow."""
        return self._matcher.is_terminated

    def fill(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens into a row of the bitmask, [ceil(vocab_size / 32)] int32.

        Does not raise: where the matcher fails the row is left empty and `raise_if_failed` tells.
        """
        if self._prepared is not None:
            row[:] = self._prepared.result()
            self._prepared = None
            return
        self._fill(row)

    def _fill(self, row: NDArray[np.int32]) -> None:
        started = thread_time()
        try:
            self._matcher.fill_bitmask(row)
        except BaseException as error:  # a foreign library may panic, which is no Exception; other rows must not suffer
            self._fail(error)
            row.fill(0)
        self._pace.note(thread_time() - started)

    @property
    def is_slow(self) -> bool:
        """Masks of this grammar take long: the next is to be made by `prepare`."""
        return self._pace.is_slow

    @property
    def is_preparing(self) -> bool:
        """The next mask is being made: nothing else of this may be used."""
        return self._prepared is not None and not self._prepared.done()

    def prepare(self, num_words: int, submit: Callable[[Callable[[], None]], None], wake: Callable[[], None]) -> None:
        """Make the mask that the next `fill` writes, by a job.

        Args:
            num_words: width of the mask, ceil(vocab_size / 32).
            submit: has the job run on another thread.
            wake: called when the mask is there, from that thread.
        """
        row = np.zeros(num_words, dtype=np.int32)

        def make() -> None:
            if not self._is_closed:
                self._fill(row)
            prepared.set_result(row)
            wake()

        prepared: Future[NDArray[np.int32]] = Future()
        self._prepared = prepared
        submit(make)

    def close(self) -> None:
        """The request has ended: a mask that is not begun is not made."""
        self._is_closed = True

    def raise_if_failed(self) -> None:
        """Raise what made the last `fill` fail.

        Raises:
            ConstraintError: the matcher gave up.
        """
        if self._error is not None:
            raise self._error

    def accept(self, token_id: int, remaining: int) -> int:
        """Take in a drawn token, or a better one where it would leave no way to complete the text in time.

        Args:
            token_id: a token that the last mask allowed, not an end token.
            remaining: tokens that may still be generated, this one included.
        Returns:
            The token to append to the sequence; an end token where the text has to end here, which completes the session.
        Raises:
            ConstraintError: the token is not allowed, or the matcher gave up.
        """
        try:
            token = self._keeper.advance(self._matcher, token_id, remaining)
            if token is not None:
                return token
            for end_token_id in sorted(self.end_token_ids):
                if self._matcher.accept_token(end_token_id):
                    return end_token_id
            raise GrammarError("the text has to end here, and the model has no end token")
        except BaseException as error:
            raise self._fail(error) from error

    def _fail(self, error: BaseException) -> ConstraintError:
        self._error = as_constraint_error(error)
        self._on_failure()
        return self._error


def as_constraint_error(error: BaseException) -> ConstraintError:
    """Whatever went wrong with a constraint, as the error of the requests that asked for it."""
    if isinstance(error, ConstraintError):
        return error
    if isinstance(error, GrammarError):
        return ConstraintError(error.reason, error.location)
    return ConstraintError(f"{type(error).__name__}: {error}")
