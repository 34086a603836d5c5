"""The constraint state of one request: masks, accepted tokens, and completion within the token limit."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import ConstraintError, DeadEndError
from rtlang.engine.constraints.stop_places import StopPlaces
from rtlang.engine.constraints.thought_limit import ThoughtLimit
from rtlang_grammars import GrammarError, GrammarMatcher, Report, TextCheck, TokenBudget, Vocabulary
from rtlang_grammars.machine.batch import find_mask
from rtlang_grammars.machine.token_index.mask import Mask
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.work_limit import WorkLimit, WorkLimitError

logger = logging.getLogger(__name__)

SLOW_FILL_S = 0.05
"""CPU time in seconds above which a mask counts as slow; later masks are then computed outside the steps."""
_NUM_RECENT = 24
_MAX_FORCED = 64
_MAX_CHOICES = 200
"""Maximum number of forced tokens that `dead_end_of` follows, and of the tokens that it looks at in each place."""
NUM_QUICK_AFTER_SLOW = 32
"""Number of consecutive fast masks after which masks are computed within the steps again."""


class MaskTimes:
    """Tracks mask times of one grammar; shared by its sessions.

    Attributes:
        is_slow: whether a recent mask took longer than `SLOW_FILL_S`, so the next ones should be computed by `prepare`.
    """

    __slots__ = ("_num_quick", "is_slow")

    def __init__(self) -> None:
        self.is_slow, self._num_quick = False, 0

    def note(self, seconds: float) -> None:
        """Record the CPU time of a mask."""
        took_long = seconds > SLOW_FILL_S
        self._num_quick = 0 if took_long else self._num_quick + 1
        self.is_slow = took_long or (self.is_slow and self._num_quick < NUM_QUICK_AFTER_SLOW)


class _Refused:
    """The outcome of a token that ended the text or was refused at once: a done future at a tenth of the cost."""

    __slots__ = ("error",)

    def __init__(self, error: ConstraintError | None = None) -> None:
        self.error = error

    def result(self) -> None:
        if self.error is not None:
            raise self.error


class ConstraintSession:
    """The constraint state of one request. Used by one thread at a time.

    Attributes:
        end_token_ids: tokens that end the text. Masks allow them exactly where the text is complete, or where the constraint names them.
        value_check: check for the finished text; None if the masks enforce the whole constraint.
        report: how each keyword of a schema is handled; None for other constraints.
        thought: the limit of the thought with which the text may begin; None for none. Set before the first token.
        stops: where stops may end the text; None without stops. Set by `stop_at`.
        temperatures: the temperatures that the grammar sets for the tokens of the last masks: of `find_mask` or `mask_after`, or of each
            row of `masks_along`; None where it sets none. Empty if it sets none at all.
    """

    __slots__ = (
        "_accept_known",
        "_accepted",
        "_error",
        "_is_closed",
        "_keeper",
        "_mask_times",
        "_matcher",
        "_on_failure",
        "_prepared",
        "_recent",
        "end_token_ids",
        "report",
        "stops",
        "temperatures",
        "thought",
        "value_check",
    )

    def __init__(
        self,
        matcher: GrammarMatcher,
        keeper: TokenBudget,
        end_token_ids: frozenset[int],
        on_failure: Callable[[], None],
        value_check: TextCheck | None = None,
        report: Report | None = None,
        *,
        mask_times: MaskTimes | None = None,
    ) -> None:
        self._mask_times, self._is_closed = mask_times or MaskTimes(), False
        self._prepared: Future[NDArray[np.int32]] | None = None
        self._accepted: Future[int | None] | _Refused | int | None = None  # an int: the token that was accepted at once
        self._accept_known: Callable[[int, bytes], bool] | None = getattr(matcher, "accept_known", None)
        self.value_check, self.report = value_check, report
        self._matcher, self._keeper, self.end_token_ids, self._on_failure = matcher, keeper, end_token_ids, on_failure
        self._error: ConstraintError | None = None
        self._recent = deque[int](maxlen=_NUM_RECENT)  # accepted tokens, for the message of a dead end
        self.thought: ThoughtLimit | None = None
        self.stops: StopPlaces | None = None
        self.temperatures: tuple[float | None, ...] = ()

    def stop_at(self, stops: StopPlaces) -> None:
        """Note the places at which stops may end the text, and allow stop tokens there. Call before the first token."""
        self.stops = stops
        stops.begin(self._matcher)

    @property
    def matcher(self) -> GrammarMatcher:
        """The matcher; must not be advanced by the caller."""
        return self._matcher

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return self._matcher.is_accepting

    @property
    def is_in_thought(self) -> bool:
        """Whether the text so far is within its thought, or may still begin one."""
        return self.thought is not None and self.thought.is_open

    @property
    def is_complete(self) -> bool:
        """Whether the text so far is complete and nothing can follow."""
        return self._matcher.is_terminated

    def captures(self) -> dict[str, tuple[str, ...]] | None:
        """The texts that rules of the grammar have captured so far, by name; None if there are none.

        Raises:
            ConstraintError: the matcher failed.
        """
        read: Any = getattr(self._matcher, "captures", dict)
        try:
            found: dict[str, list[bytes]] = read()
        except BaseException as error:
            raise self.fail(error) from error
        texts = {name: tuple(each.decode(errors="replace") for each in texts) for name, texts in found.items()}
        return texts or None

    def fill(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens into a row of the bitmask, [ceil(vocab_size / 32)] int32.

        Does not raise: if the matcher fails, the row is cleared and `raise_if_failed` raises.
        """
        mask = self.find_mask(row)
        if mask is not None:
            mask.write(row)

    def find_mask(self, row: NDArray[np.int32]) -> Mask | None:
        """As `fill`, but without writing the mask if `write_rows` can do it: then the mask is returned."""
        if self._prepared is not None:
            row[:] = self._prepared.result()
            self._prepared = None
            return None
        return self._find_mask(row)

    def _find_mask(self, row: NDArray[np.int32]) -> Mask | None:
        started, mask = thread_time(), None
        try:
            mask = self._next_mask(row)
            temperature = self.temperature
            self.temperatures = () if temperature is None else (temperature,)
        except BaseException as error:  # third-party libraries may panic, which is not an Exception
            self.fail(error)
            row.fill(0)
        self._mask_times.note(thread_time() - started)
        return mask

    def _next_mask(self, row: NDArray[np.int32]) -> Mask | None:
        """The mask after what the matcher has accepted, stop tokens among them; None: it is in `row`."""
        stops = self.stops
        try:
            mask = find_mask(self._matcher, row)
        except EmptyMaskError as error:
            raise error.after(b"".join(map(self._keeper.shown, self._recent))) from None
        if _is_empty(mask, row) and not self._matcher.is_accepting:  # other libraries leave an empty row
            text = b"".join(map(self._keeper.shown, self._recent))
            raise EmptyMaskError("the constraint allows no token", text)
        if stops is None or not stops.allows_tokens or not self._matcher.is_accepting:
            return mask
        if mask is not None:
            mask.write(row)
        stops.allow_tokens(row)
        return None

    @property
    def temperature(self) -> float | None:
        """The temperature that the grammar sets for the next token; None if it sets none, as other libraries."""
        found: float | None = getattr(self._matcher, "temperature", None)
        return found

    @property
    def is_slow(self) -> bool:
        """Whether masks of this grammar are slow, so the next one should be computed by `prepare`."""
        return self._mask_times.is_slow

    @property
    def may_draft(self) -> bool:
        """Whether `masks_along` may be called with a draft: masks are quick, and no other thread works on the constraint."""
        is_used = self._prepared is not None or self._accepted is not None or getattr(self._matcher, "is_busy", False)
        return not is_used and not self._mask_times.is_slow and self._error is None

    def num_allowed(self, draft: Sequence[int]) -> int:
        """Number of tokens at the start of `draft` that the constraint allows as parts of the text. Changes nothing.

        A matcher that fails allows none; the next mask then fails as well, and reports it.
        """
        num_taken = 0
        try:
            for token_id in draft:
                if token_id in self.end_token_ids and not self.takes(token_id):
                    break
                if self.stops is not None and self.stops.may_end(self._matcher, token_id):
                    break
                if not self._matcher.accept_token(token_id):
                    break
                num_taken += 1
        except Exception:  # a limit of the grammar, which the text may never reach
            return 0
        finally:
            self._matcher.rollback(num_taken)
        return num_taken

    def forced_tokens(self, num_bytes: int) -> list[int]:
        """Tokens that spell text that must come next, as the tokenizer would; empty if fewer than `num_bytes` bytes must.

        Empty also where the matcher fails: the next mask fails as well, and reports it.
        """
        forced_bytes: Any = getattr(self._matcher, "forced_bytes", None)
        try:
            is_long = forced_bytes is not None and len(forced_bytes()) >= num_bytes
            return self._matcher.forced_tokens() if is_long else []
        except Exception:
            logger.debug("forced text was not found", exc_info=True)
            return []

    def masks_along(self, draft: Sequence[int], rows: NDArray[np.int32]) -> list[Mask | None]:
        """As `find_mask` for the next token and for the one after each draft, into the rows of `rows`, [len(draft) + 1, words].

        Does not raise. Where the matcher fails or refuses a draft, the rows are cleared; an error counts for the first row only, since
        the text may never come to the others.
        """
        found = [self.find_mask(rows[0])]
        temperatures = [*self.temperatures] or [None]
        num_taken = 0
        try:
            for index, token_id in enumerate(draft, 1):
                if self._error is not None or not self._matcher.accept_token(token_id):
                    break
                num_taken += 1
                started = thread_time()
                mask = self._next_mask(rows[index])
                self._mask_times.note(thread_time() - started)
                found.append(mask)
                temperatures.append(self.temperature)
        except Exception:
            logger.debug("a mask along a draft failed", exc_info=True)
        rows[len(found) :].fill(0)
        found += [None] * (len(draft) + 1 - len(found))
        if any(each is not None for each in temperatures):
            self.temperatures = (*temperatures, *[None] * (len(found) - len(temperatures)))
        if num_taken:
            self._matcher.rollback(num_taken)
        return found

    def mask_after(self, draft: Sequence[int], row: NDArray[np.int32]) -> bool:
        """Write the tokens allowed after a draft into a row of a bitmask, [ceil(vocab_size / 32)] int32, and note `temperatures`.

        Returns:
            False if a draft token is refused or the matcher fails. The mask of the text itself then fails as well, and reports it.
        """
        num_taken = 0
        try:
            for token_id in draft:
                if not self._matcher.accept_token(token_id):
                    return False
                num_taken += 1
            mask, temperature = self._next_mask(row), self.temperature
            if mask is not None:
                mask.write(row)
            self.temperatures = () if temperature is None else (temperature,)
            return True
        except Exception:
            logger.debug("a mask after a draft failed", exc_info=True)
            return False
        finally:
            self._matcher.rollback(num_taken)

    @property
    def is_preparing(self) -> bool:
        """Whether another thread computes the next mask or accepts a token; do not use the session until then."""
        prepared, accepted = self._prepared, self._accepted
        return (prepared is not None and not prepared.done()) or (type(accepted) is Future and not accepted.done())

    def prepare(self, num_words: int, submit: Callable[[Callable[[], None]], None], wake: Callable[[], None]) -> None:
        """Compute the next mask in a job; the next `fill` then copies it.

        Args:
            num_words: width of the mask, ceil(vocab_size / 32).
            submit: runs the job on another thread.
            wake: called on that thread when the mask is ready.
        """
        row = np.zeros(num_words, dtype=np.int32)

        def make() -> None:
            if not self._is_closed:
                found = self._find_mask(row)
                if found is not None:
                    found.write(row)
            prepared.set_result(row)
            wake()

        prepared: Future[NDArray[np.int32]] = Future()
        self._prepared = prepared
        submit(make)

    def close(self) -> None:
        """End the session; a job that has not started is skipped."""
        self._is_closed = True

    def raise_if_failed(self) -> None:
        """Raise the error of the last `fill`, if it failed.

        Raises:
            ConstraintError: the matcher failed.
        """
        if self._error is not None:
            raise self._error

    def accept(self, token_id: int, remaining: int) -> int | None:
        """Accept a sampled token, or replace it if it would leave too few tokens to complete the text.

        Args:
            token_id: a token that the last mask allowed. An end token that the constraint names as a part is that part.
            remaining: tokens that may still be generated, including this one.
        Returns:
            The token to append; None if the text ends here: at a stop token, or because it is complete.
        Raises:
            ConstraintError: the token is not allowed, or the matcher failed.
        """
        accepted, self._accepted = self._accepted, None
        if accepted is None:
            return self._accept(token_id, remaining, None)
        return accepted if isinstance(accepted, int) else accepted.result()

    def try_accept(self, token_id: int, remaining: int, work: WorkLimit) -> bool:
        """Accept a token if that is little work; `accept` then returns the result at once.

        Args:
            token_id, remaining: as in `accept`.
            work: the work that may be done; what is done is taken from it.
        Returns:
            False: nothing has changed, and `accept_beside` or `accept` has to do it.
        """
        if self._accepted is not None:
            return True
        if (
            self._accept_known is not None
            and self.thought is None
            and self.stops is None
            and token_id not in self.end_token_ids
            and self._keeper.advance_known(self._accept_known, token_id, remaining)
        ):
            self._recent.append(token_id)
            self._accepted = token_id
            return True
        if getattr(self._matcher, "is_busy", False):
            return False
        try:
            found = self._accept(token_id, remaining, work)
            self._accepted = _Refused() if found is None else found
        except WorkLimitError:
            return False
        except ConstraintError as error:
            self._accepted = _Refused(error)
        return True

    def accept_beside(
        self, token_id: int, remaining: int, submit: Callable[[Callable[[], None]], None], wake: Callable[[], None]
    ) -> None:
        """Accept a token in a job; `accept` then returns the result.

        Args:
            token_id, remaining: as in `accept`.
            submit: runs the job on another thread.
            wake: called on that thread when the result is there.
        """
        accepted: Future[int | None] = Future()
        self._accepted = accepted

        def accept() -> None:
            try:
                accepted.set_result(None if self._is_closed else self._accept(token_id, remaining, None))
            except ConstraintError as error:
                accepted.set_exception(error)
            wake()

        submit(accept)

    def _accept(self, token_id: int, remaining: int, work: WorkLimit | None) -> int | None:
        try:
            thought = self.thought
            if thought is not None and (thought.is_spent or not thought.allows(self._keeper.shown(token_id))):
                forced = self._keeper.next_token()  # leads to the mark that ends the thought
                token_id = token_id if forced is None else forced
            stops = self.stops
            if stops is not None and stops.may_end(self._matcher, token_id):
                return None
            if token_id not in self.end_token_ids or self.takes(token_id):
                token = self._keeper.advance(self._matcher, token_id, remaining, work)
                if token is not None:
                    self._recent.append(token)
                    if thought is not None:
                        thought.note(self._keeper.shown(token))
                    if stops is not None:
                        stops.note(self._matcher, token, self._keeper.shown(token))
                    return token
            if not self._matcher.is_accepting:
                raise GrammarError(f"token_id = {token_id}: not allowed by the constraint")
            if not self.end_token_ids:
                raise GrammarError("the output must end here, but the model has no end token")
            for end_token_id in self.end_token_ids:
                if not self.takes(end_token_id) and self._matcher.accept_token(end_token_id):
                    break
            return None
        except WorkLimitError:
            raise
        except BaseException as error:
            raise self.fail(error) from error

    def takes(self, token_id: int) -> bool:
        """Whether an end token may follow as a part of the text; matchers without `takes` know no such tokens."""
        takes: Any = getattr(self._matcher, "takes", None)
        return takes is not None and bool(takes(token_id))

    def fail(self, error: BaseException) -> ConstraintError:
        """Make `raise_if_failed` raise."""
        self._error = as_constraint_error(error)
        self._on_failure()
        return self._error


def as_constraint_error(error: BaseException) -> ConstraintError:
    """Convert any exception to a ConstraintError."""
    if isinstance(error, ConstraintError):
        return error
    if isinstance(error, EmptyMaskError):
        return DeadEndError((error.text or b"").decode(errors="replace"))
    if isinstance(error, GrammarError):
        return ConstraintError(error.reason, error.location)
    return ConstraintError(f"{type(error).__name__}: {error}")


def _is_empty(mask: Mask | None, row: NDArray[np.int32]) -> bool:
    """Whether no token is allowed; without a mask, in the row."""
    if mask is None:
        return not row.any()
    return not len(mask.ids) and not mask.base.any()


def dead_end_of(matcher: GrammarMatcher, vocabulary: Vocabulary) -> DeadEndError | None:
    """The dead end to which a constraint forces every text; None if none is found. Call it where no completion was found.

    Args:
        matcher: at the beginning of the text; it is advanced.
    """
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    data = b""
    try:
        for _ in range(_MAX_FORCED):
            matcher.fill_bitmask(row)
            if not row.any():
                return None if matcher.is_accepting else _dead_end_after(data)
            forced: bytes = getattr(matcher, "forced_bytes", bytes)()
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))[:_MAX_CHOICES].tolist()
            texts = {
                text: token for token in allowed if forced.startswith(text := vocabulary.token_bytes[token]) and text
            }
            if not texts or not matcher.accept_token(texts[max(texts, key=len)]):
                return None
            data += max(texts, key=len)
    except EmptyMaskError:
        return _dead_end_after(data)
    except GrammarError:
        return None
    return None


def _dead_end_after(text: bytes) -> DeadEndError:
    return DeadEndError(text[-EmptyMaskError.MAX_TEXT :].decode(errors="replace"))
