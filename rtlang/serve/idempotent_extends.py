"""Applies each `extend` of a resumable stream at most once, however often a reconnecting client sends it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rtlang.contract.errors import GoneError, ProtocolError, RtlangError, internal_error
from rtlang.protocol.messages import ExtendNodes, digest_of

logger = logging.getLogger(__name__)

MAX_KNOWN = 256


@dataclass(frozen=True, slots=True)
class ExtendAnswer:
    """The answer to an `extend`: `refusal` is the error with which it was refused, None if it was accepted."""

    refusal: RtlangError | None = None


class ExtendLog:
    """Outcomes of the last `MAX_KNOWN` `extend` messages of a stream, by request number (`q`), which increases from 1.

    Attributes:
        last_acknowledged: the highest request number answered so far; 0 if none.
    """

    def __init__(self) -> None:
        self.last_acknowledged = 0
        self._answers: dict[int, tuple[bytes, RtlangError | None]] = {}
        self._last_forgotten_refusal = 0

    def answer_to(self, message: ExtendNodes) -> ExtendAnswer | None:
        """The answer to this message if it was applied before; None if it is new: apply it with `answer_of`, then `note` the answer.

        Raises:
            ProtocolError: the request number was used with different content, or is too old to be known; `param` is "q".
        """
        request = message.request
        assert request is not None
        if request > self.last_acknowledged:
            return None
        if request not in self._answers:
            raise ProtocolError(
                f"q = {request}: numbers must increase; the last was {self.last_acknowledged}, "
                "and this one is unknown or no longer kept",
                param="q",
            )
        before, refusal = self._answers[request]
        if before != _digest(message):
            raise ProtocolError(
                f"q = {request} was already used with different content; use the next number", param="q"
            )
        return ExtendAnswer(refusal)

    def note(self, message: ExtendNodes, answer: ExtendAnswer) -> None:
        """Keep the answer to a new message."""
        request = message.request
        assert request is not None
        self.last_acknowledged = request
        self._answers[request] = (_digest(message), answer.refusal)
        if len(self._answers) > MAX_KNOWN:
            oldest = next(iter(self._answers))
            if self._answers.pop(oldest)[1] is not None:
                self._last_forgotten_refusal = oldest

    def refused_after(self, request: int) -> Mapping[int, RtlangError]:
        """Refusals with a request number above `request`.

        Raises:
            GoneError: some of them are no longer known; `param` is "q".
        """
        if request < self._last_forgotten_refusal:
            raise GoneError(
                f"q = {request}: answers up to {self._last_forgotten_refusal} are no longer kept", param="q"
            )
        return {
            number: refusal
            for number, (_, refusal) in self._answers.items()
            if number > request and refusal is not None
        }


def answer_of(add: Callable[[], None]) -> ExtendAnswer:
    """Call `add`, which adds the nodes of a message; its error is the refusal."""
    try:
        add()
    except RtlangError as error:
        refusal = error
        # A traceback would keep the nodes alive outside any memory accounting.
        refusal.__traceback__ = refusal.__context__ = refusal.__cause__ = None
    except Exception as error:
        refusal = internal_error(logger, "an extend failed", error)
        refusal.__cause__ = None  # as above
    else:
        return ExtendAnswer()
    return ExtendAnswer(refusal)


def _digest(message: ExtendNodes) -> bytes:
    return message.digest or digest_of([message.nodes, message.closes])
