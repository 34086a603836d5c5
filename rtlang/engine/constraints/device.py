"""Which requests' constraints the device follows by itself, and the host's own copy of where each text is.

The automaton of a constraint is exported beside the steps, once per compiled constraint; requests that begin before it is there, and
those whose constraint has none, are masked by the host. The host follows every token too, a step late: it still decides what a
drawn token means, and puts the device right where it replaced one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rtlang.contract.step import Row
from rtlang.engine.daemon_pool import DaemonPool
from rtlang.engine.request import Request, RequestStatus
from rtlang_grammars.machine.export import Automaton, Walk, export, owner_of

if TYPE_CHECKING:
    from rtlang.model.gpu.device_runner import DeviceRunner


class DeviceConstraints:
    """Used from the engine's thread.

    Args:
        executor: exports automata; default: a thread of its own.
    """

    def __init__(self, runner: DeviceRunner, executor: Executor | None = None) -> None:
        self._runner = runner
        self._executor = executor
        self._automata: WeakKeyDictionary[object, Future[Automaton | None]] = WeakKeyDictionary()
        self._walks: dict[Request, Walk | None] = {}

    def walks(self, requests: Sequence[Request], rows: Sequence[Row]) -> dict[int, Walk]:
        """Where the texts of a step's rows are, as far as the host knows, of those that the device follows."""
        found = {}
        for index, (request, row) in enumerate(zip(requests, rows, strict=True)):
            if row.mask_row is not None:
                walk = self._walk(request)
                if walk is not None:
                    found[index] = walk
        return found

    def follow(self, request: Request) -> None:
        """A drawn token was taken in for this request, which may have ended it."""
        walk = self._walks.get(request)
        if request.status is RequestStatus.FINISHED:
            self._walks.pop(request, None)
        elif walk is not None:
            walk.advance(self._runner.tokenizer.token_bytes(request.token_ids[-1]))

    def _walk(self, request: Request) -> Walk | None:
        if request not in self._walks:
            for ended in [other for other in self._walks if other.status is RequestStatus.FINISHED]:
                del self._walks[ended]
            automaton = self._automaton(request)
            self._walks[request] = Walk.at_start(automaton) if automaton is not None else None
        walk = self._walks[request]
        if walk is not None and not self._runner.takes(walk):
            walk = self._walks[request] = None  # from here on the host masks it
        return walk

    def _automaton(self, request: Request) -> Automaton | None:
        """The automaton of a request at its start, if it is there by now."""
        if request.session is None or request.num_output_tokens:
            return None
        matcher = request.session.matcher
        owner = owner_of(matcher)
        if owner is None:
            return None
        future = self._automata.get(owner)
        if future is None:
            if self._executor is None:
                self._executor = DaemonPool(1, "automaton-export")
            future = self._automata[owner] = self._executor.submit(export, matcher.fork())
        return future.result() if future.done() and future.exception() is None else None
