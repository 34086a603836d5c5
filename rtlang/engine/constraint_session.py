"""One request's way through its constraint: masks, tokens, and the promise that the text is complete when its tokens are used up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rtlang.errors import ConstraintError
from rtlang_grammars.budget import BudgetKeeper
from rtlang_grammars.schema.report import Report
from rtlang_grammars.spec import GrammarError, GrammarMatcher
from rtlang_grammars.value_checks import ValueCheck


class ConstraintSession:
    """One request's way through its constraint. Used by one thread at a time.

    Attributes:
        end_token_ids: tokens that end the text. They are allowed exactly where it is complete, and not to be given to `accept`.
        value_check: what the finished text must still pass; None where the masks hold everything.
        report: what became of every keyword of a schema; None for other constraints.
    """

    __slots__ = ("_error", "_keeper", "_matcher", "_on_failure", "end_token_ids", "report", "value_check")

    def __init__(
        self,
        matcher: GrammarMatcher,
        keeper: BudgetKeeper,
        end_token_ids: frozenset[int],
        on_failure: Callable[[], None],
        value_check: ValueCheck | None = None,
        report: Report | None = None,
    ) -> None:
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
        try:
            self._matcher.fill_bitmask(row)
        except BaseException as error:  # a foreign library may panic, which is no Exception; other rows must not suffer
            self._fail(error)
            row.fill(0)

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
