"""What was answered to the extensions of one stream: one that is said again, on a later connection, is not done again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from rtlang.contract.errors import GoneError, ProtocolError, RtlangError
from rtlang.protocol.messages import ExtendNodes, digest_of

logger = logging.getLogger(__name__)

MAX_KNOWN = 256


class ExtendLog:
    """The last `MAX_KNOWN` of them, by their number (`q`), which rises from 1.

    Attributes:
        last_answered: the highest number so far, 0 for none.
    """

    def __init__(self) -> None:
        self.last_answered = 0
        self._answers: dict[int, tuple[bytes, RtlangError | None]] = {}
        self._last_forgotten_refusal = 0

    def once(self, said: ExtendNodes, add: Callable[[], None]) -> RtlangError | None:
        """Call `add`, unless this was said before; why it was refused, then or now, or None.

        Raises:
            ProtocolError: the number is that of another extension, or too low to be known; `param` is "q".
        """
        request = said.request
        assert request is not None
        digest = digest_of([said.nodes, said.closes])
        if request <= self.last_answered:
            if request not in self._answers:
                raise ProtocolError(
                    f"q = {request} came after {self.last_answered}; numbers rise, and this one is not, or no longer, known",
                    param="q",
                )
            before, refusal = self._answers[request]
            if before != digest:
                raise ProtocolError(f"something else was said as q = {request}; a new number is needed", param="q")
            return refusal
        refusal = None
        try:
            add()
        except RtlangError as error:
            refusal = error
            # What a traceback holds is in no account of memory, and the nodes are among it.
            refusal.__traceback__ = refusal.__context__ = refusal.__cause__ = None
        except Exception:
            logger.exception("an extension failed")
            refusal = RtlangError("internal error")
        self.last_answered = request
        self._answers[request] = (digest, refusal)
        if len(self._answers) > MAX_KNOWN:
            oldest = next(iter(self._answers))
            if self._answers.pop(oldest)[1] is not None:
                self._last_forgotten_refusal = oldest
        return refusal

    def refused_after(self, request: int) -> Mapping[int, RtlangError]:
        """Those with a number above `request` that were refused.

        Raises:
            GoneError: some of them are no longer known; `param` is "q".
        """
        if request < self._last_forgotten_refusal:
            raise GoneError(f"the answers to the first {self._last_forgotten_refusal} are no longer known", param="q")
        return {
            number: refusal
            for number, (_, refusal) in self._answers.items()
            if number > request and refusal is not None
        }
