"""Finds the requests that make steps fail, so that the others go on.

The requests of a failed step are put back with what was computed before it, and run again in smaller groups, each halved until a group
succeeds or a single request fails alone, twice. Such a request is *suspected*, and fails with an error once all groups have run. If several
requests in a row fail alone and nothing succeeds, the fault is the runner's: it is rebuilt, and the suspects run once more.

A step that fails for want of memory also lowers the number of tokens of a step, which grows again as steps succeed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from rtlang.engine.requests.request import Request, RequestStatus

MAX_FAILED_ALONE = 3
"""Requests that fail alone, with no success in between, after which the runner is rebuilt."""
MIN_STEP_TOKENS = 16
NUM_STEPS_TO_GROW = 64
"""Successful steps after which a lowered limit on the tokens of a step is doubled."""

_MEMORY_TEXTS = ("out of memory", "not enough memory", "allocate memory")

Suspect = tuple[Request, Exception]


class FaultIsolation:
    """The groups of requests that run apart from others. Used on the engine thread.

    Args:
        max_step_tokens: the limit of a step as configured.

    Attributes:
        max_step_tokens: the limit of the next step.
        num_rebuilt: times that the runner was rebuilt since a step succeeded.
    """

    def __init__(self, max_step_tokens: int) -> None:
        self.max_step_tokens = self._full_step_tokens = max_step_tokens
        self._groups: deque[list[Request]] = deque()
        self._suspects: list[Suspect] = []
        self._num_failed_alone = self._num_succeeded = 0
        self._failed_alone: set[Request] = set()
        self._tried: set[Request] = set()  # suspects that ran before the runner was rebuilt
        self._doomed: list[Suspect] = []  # and failed again
        self.num_rebuilt = 0

    @property
    def is_active(self) -> bool:
        """Whether requests are kept apart from others."""
        return bool(self._groups or self._suspects or self._doomed)

    def group(self) -> Collection[Request] | None:
        """The requests that may be in the next step; None for all. Suspects are in none."""
        while self._groups:
            live = [request for request in self._groups[0] if request.status is not RequestStatus.FINISHED]
            if live:
                self._groups[0] = live
                return live
            self._groups.popleft()
        return None

    def skip_group(self) -> None:
        """Let the requests of the first group run with others again, since none of them can run now."""
        self._groups.popleft()

    def note_success(self, requests: Sequence[Request]) -> None:
        """A step with these requests has succeeded."""
        self._num_failed_alone = self.num_rebuilt = 0
        self._tried.clear()
        self._failed_alone.difference_update(requests)
        if self.max_step_tokens < self._full_step_tokens:
            self._num_succeeded += 1
            if self._num_succeeded >= NUM_STEPS_TO_GROW:
                self._num_succeeded = 0
                self.max_step_tokens = min(2 * self.max_step_tokens, self._full_step_tokens)
        if self._groups:
            cleared = set(requests)
            self._groups[0] = [request for request in self._groups[0] if request not in cleared]

    def note_failure(self, requests: Sequence[Request], num_tokens: int, error: Exception) -> None:
        """A step of so many tokens with these requests has failed; they were put back."""
        live = [request for request in requests if request.status is not RequestStatus.FINISHED]
        if self._groups:
            failed = set(live)
            self._groups[0] = [request for request in self._groups[0] if request not in failed]
        if is_memory_error(error) and num_tokens > MIN_STEP_TOKENS:
            self.max_step_tokens = max(MIN_STEP_TOKENS, min(self.max_step_tokens, num_tokens) // 2)
            self._num_succeeded = 0
            if len(live) == 1:
                self._groups.appendleft(live)
                return
        if len(live) == 1 and live[0] not in self._failed_alone:  # perhaps for a passing reason
            self._failed_alone.add(live[0])
            self._groups.appendleft(live)
        elif len(live) == 1 and live[0] in self._tried:
            self._doomed.append((live[0], error))
        elif len(live) == 1:
            self._suspects.append((live[0], error))
            self._num_failed_alone += 1
        elif live:
            middle = len(live) // 2
            self._groups.extendleft((live[middle:], live[:middle]))

    def settle(self) -> list[Suspect]:
        """The suspects that fail now: those that ran alone while others succeeded, or again after the runner was rebuilt."""
        failed, self._doomed = self._doomed, []
        if not self._groups and not self._suspects:
            self._failed_alone.clear()
        if self.group() is None and not self.wants_rebuild:
            failed += self._suspects
            self._suspects = []
        return [each for each in failed if each[0].status is not RequestStatus.FINISHED]

    @property
    def wants_rebuild(self) -> bool:
        """Whether the runner has to be rebuilt before anything else is tried."""
        return self._num_failed_alone >= MAX_FAILED_ALONE

    def note_rebuilt(self) -> None:
        """The runner was rebuilt: each suspect runs once more, alone."""
        self.num_rebuilt += 1
        self._num_failed_alone = 0
        self._tried.update(request for request, _ in self._suspects)
        self._groups.extendleft([request] for request, _ in reversed(self._suspects))
        self._suspects.clear()


def is_memory_error(error: BaseException) -> bool:
    """Whether a step failed for want of memory; torch raises RuntimeError on the host and a class of its own on a device."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(each in text for each in _MEMORY_TEXTS)
