"""Tracks the constraints whose masks the device computes itself, and keeps the host's copy of each position.

The automaton of a constraint is exported in the background, once per compiled constraint. Requests that start before the export is
done, and those whose constraint has no automaton, get their masks from the host. The host follows every token one step late: it still
decides the effect of a sampled token, and corrects the device when it replaces one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from weakref import WeakKeyDictionary

from rtlang.contract.step import Row
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.model.runner import Runner
from rtlang.work.fair_executor import FairExecutor
from rtlang_grammars.machine.export import ExportedAutomaton, Walk, export, owner_of


class DeviceConstraints:
    """Positions of constraints in exported automata. Used on the engine thread.

    Args:
        executor: exports automata; default: a dedicated thread.
    """

    def __init__(self, runner: Runner, executor: Executor | None = None) -> None:
        self._runner = runner
        self._executor = executor
        self._automata: WeakKeyDictionary[object, Future[ExportedAutomaton | None]] = WeakKeyDictionary()
        self._walks: dict[Request, Walk | None] = {}

    def walks(self, requests: Sequence[Request], rows: Sequence[Row]) -> dict[int, Walk]:
        """Positions of the rows whose constraint the device tracks, as far as the host knows; by row index.

        The masks along a draft are computed by the host, which knows all tokens before it.
        """
        found: dict[int, Walk] = {}
        for index, (request, row) in enumerate(zip(requests, rows, strict=True)):
            if row.mask_row is not None:
                walk = self._walk(request)
                if walk is not None and not row.num_draft_tokens:
                    found[index] = walk
        return found

    def follow(self, request: Request, num_tokens: int = 1) -> None:
        """Advance the host's copy after tokens were appended, or drop it if the request or its constraint has ended."""
        if not self._walks:
            return
        walk = self._walks.get(request)
        if request.status is RequestStatus.FINISHED or request.session is None:
            self._walks.pop(request, None)
        elif walk is not None:
            for token_id in request.token_ids[len(request.token_ids) - num_tokens :]:
                walk.advance(self._runner.tokenizer.token_bytes(token_id))

    def _walk(self, request: Request) -> Walk | None:
        if request not in self._walks:
            for ended in [other for other in self._walks if other.status is RequestStatus.FINISHED]:
                del self._walks[ended]
            automaton = self._automaton(request)
            self._walks[request] = Walk.at_start(automaton) if automaton is not None else None
        walk = self._walks[request]
        if walk is not None and not self._runner.can_follow(walk):
            walk = self._walks[request] = None  # the host computes its masks from now on
        return walk

    def _automaton(self, request: Request) -> ExportedAutomaton | None:
        """The automaton of a request that has not generated a token yet, if the export is done."""
        if request.session is None or request.num_output_tokens or request.spec.params.stop_token_ids:
            return None  # the host allows stop tokens where the text is complete
        matcher = request.session.matcher
        owner = owner_of(matcher)
        if owner is None:
            return None
        future = self._automata.get(owner)
        if future is None:
            if self._executor is None:
                self._executor = FairExecutor(1, "automaton-export")
            future = self._automata[owner] = self._executor.submit(export, matcher.fork())
        return future.result() if future.done() and future.exception() is None else None
