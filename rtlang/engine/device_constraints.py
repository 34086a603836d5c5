"""Tracks the constraints whose masks the device computes itself.

The automaton of a constraint is exported in the background, once per compiled constraint; until that is done, and for a constraint without
an automaton, the host computes the masks. The device advances by the tokens that it samples. The host, which sees them one step later,
gives it a position only where it needs one: when it takes over a text, and after a correction. A device that loses a row leaves it to the
host for some tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from rtlang.contract.step import Row
from rtlang.engine.requests.request import Request
from rtlang.model.runner import Runner
from rtlang.work.fair_executor import FairExecutor
from rtlang_grammars.machine.export import ExportedAutomaton, Walk, export, owner_of

_MOST_LOST = 16
"""A row that was lost more often stays with the host."""


@dataclass(slots=True)
class _Followed:
    """A request with an automaton.

    Attributes:
        walk: the position that the device got last.
        is_on_device: whether the device has computed the mask of its last row, so that it knows the position after that row.
        num_lost: how often the device lost it.
        num_tokens: output tokens until which the host computes its masks.
    """

    automaton: ExportedAutomaton
    walk: Walk | None = None
    is_on_device: bool = False
    num_lost: int = 0
    num_tokens: int = 0


class DeviceConstraints:
    """Decides which rows the device masks itself, and finds their positions. Used on the engine thread.

    Args:
        executor: exports automata; default: a dedicated thread.
    """

    def __init__(self, runner: Runner, executor: Executor | None = None) -> None:
        self._runner = runner
        self._executor = executor
        self._automata: WeakKeyDictionary[object, Future[ExportedAutomaton | None]] = WeakKeyDictionary()
        self._followed: dict[Request, _Followed | None] = {}  # None: the host computes its masks

    def walks(self, requests: Sequence[Request], rows: Sequence[Row]) -> dict[int, Walk]:
        """Positions of the rows that the device masks itself; by row index. That of a row with a pending input is an earlier one.

        The masks along a draft are computed by the host, which knows all tokens before it.
        """
        found: dict[int, Walk] = {}
        known = self._followed
        for index, (request, row) in enumerate(zip(requests, rows, strict=True)):
            if row.mask_row is None:
                continue
            followed = known.get(request) or self._find(request)
            if followed is None:
                continue
            if row.num_draft_tokens or (row.input_is_pending and not followed.is_on_device):
                followed.is_on_device = False
                continue
            walk = followed.walk if row.input_is_pending else self._taken_over(request, followed)
            if walk is not None:
                found[index] = walk
        return found

    def walk_now(self, request: Request) -> Walk | None:
        """The position of a row whose tokens the host knows by now, if the device can take it over."""
        followed = self._find(request)
        return None if followed is None else self._taken_over(request, followed)

    def leave(self, request: Request) -> None:
        """Leave a request that the device has lost to the host, for twice as many tokens each time."""
        followed = self._followed.get(request)
        if followed is not None:
            followed.is_on_device = False
            followed.num_lost += 1
            followed.num_tokens = request.num_output_tokens + (1 << followed.num_lost)
            if followed.num_lost > _MOST_LOST:
                self._followed[request] = None

    def forget(self, request: Request) -> None:
        """Forget a request that has ended."""
        self._followed.pop(request, None)

    def _taken_over(self, request: Request, followed: _Followed) -> Walk | None:
        """The position of a request, if the device masks its next row; the host knows all tokens."""
        assert request.session is not None
        followed.is_on_device = False
        if request.num_output_tokens < followed.num_tokens:
            return None
        walk = Walk.of(followed.automaton, request.session.matcher)
        if walk is None or not self._runner.can_follow(walk):
            return None
        followed.walk, followed.is_on_device = walk, True
        return walk

    def _find(self, request: Request) -> _Followed | None:
        try:
            return self._followed[request]
        except KeyError:
            pass
        self._followed[request] = None
        if request.session is None or request.spec.params.stop_token_ids:
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
        if not future.done():
            del self._followed[request]  # look again with the next row
            return None
        automaton = future.result() if future.exception() is None else None
        if automaton is None:
            return None
        followed = self._followed[request] = _Followed(automaton)
        return followed
