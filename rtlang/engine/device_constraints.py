"""Tracks the constraints whose masks the device computes itself.

The automaton of a constraint is exported in the background, once per compiled constraint; until that is done, and for a constraint without
an automaton, the host computes the masks. The device advances by the tokens that it samples. The host, which sees them one step later,
walks the automaton only where the device needs a position: when it takes over a text, and after a correction.
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
from rtlang_grammars.machine.export import ExportedAutomaton, Walk, export, most_frames, owner_of

_FEW_FRAMES = 32
"""Open frames up to which any device follows a text, and some tokens more; if there may be more, the host walks along and asks."""
_ASK_EVERY = 4  # tokens


@dataclass(slots=True)
class _Followed:
    """A request with an automaton.

    Attributes:
        walk: the position after the first `num_walked` output tokens.
        is_on_device: whether the device has computed the mask of its last row, so that it knows the position after that row.
        num_sure: further tokens for which the device certainly follows.
    """

    walk: Walk
    num_walked: int = 0
    is_on_device: bool = False
    num_sure: int = 0


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
        for index, (request, row) in enumerate(zip(requests, rows, strict=True)):
            if row.mask_row is None:
                continue
            followed = self._followed.get(request) or self._find(request)
            if followed is None:
                continue
            if followed.num_sure and row.input_is_pending and followed.is_on_device:
                followed.num_sure -= 1
                found[index] = followed.walk
            elif row.num_draft_tokens or (row.input_is_pending and not followed.is_on_device):
                followed.is_on_device = False
            elif self._can_follow(request, followed, is_new=not row.input_is_pending):
                found[index] = followed.walk
        return found

    def walk_now(self, request: Request) -> Walk | None:
        """The position of a row whose tokens the host knows by now, if the device can take it over."""
        followed = self._find(request)
        return followed.walk if followed is not None and self._can_follow(request, followed, is_new=True) else None

    def forget(self, request: Request) -> None:
        """Forget a request that has ended."""
        self._followed.pop(request, None)

    def _can_follow(self, request: Request, followed: _Followed, *, is_new: bool) -> bool:
        """Whether the device masks the next row; if not, the host computes all further masks of the request.

        Args:
            is_new: the device needs the position; the host knows all tokens.
        """
        assert request.session is not None
        if not is_new:
            num_frames = most_frames(request.session.matcher)
            if num_frames is not None and num_frames <= _FEW_FRAMES:
                followed.num_sure = _ASK_EVERY - 1
                return True
        output = request.output_token_ids
        for token_id in output[followed.num_walked :]:
            followed.walk.advance(self._runner.tokenizer.token_bytes(token_id))
        followed.num_walked, followed.num_sure = len(output), 0
        followed.is_on_device = self._runner.can_follow(followed.walk)
        if not followed.is_on_device:
            self._followed[request] = None
        return followed.is_on_device

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
        followed = self._followed[request] = _Followed(Walk.at_start(automaton))
        return followed
