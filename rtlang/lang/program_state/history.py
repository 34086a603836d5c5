"""Sequences of earlier runs, appended to the sequence of a new run with the tokens that they had.

Text is tokenized where a node ends, and generated tokens are never tokenized again. So a history keeps its texts divided as they were, and
generated tokens as `TokenIds`. On another model it is text: its tokens mean nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds

Piece = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class History:
    """The sequence of a state that has ended.

    Attributes:
        pieces: the parts of its texts; no text is tokenized across two pieces. There are no references and inputs.
        target: the runtime that made it; None if it is not known any more.
        model: the identity of its model, used where the runtime is not known; None if the model has none.
    """

    pieces: tuple[Piece, ...]
    target: Any = None
    model: str | None = None

    def saved(self) -> History:
        """The same without the runtime."""
        return self if self.target is None else replace(self, target=None, model=_identity(self.target))

    def pieces_for(self, target: object) -> tuple[Piece, ...]:
        """The pieces for another run: with tokens if it runs the same model, otherwise as text only."""
        if target is self.target and target is not None:
            return self.pieces
        model = self.model if self.target is None else _identity(self.target)
        if model is not None and model == _identity(target):
            return self.pieces
        return tuple(
            tuple(part.text if isinstance(part, TokenIds) and part.text else part for part in piece)
            for piece in self.pieces
        )


def without_open_message(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces up to the start of a message that does not end."""
    found = list(pieces)
    place: tuple[int, int] | None = None
    for number, piece in enumerate(found):
        for at, part in enumerate(piece):
            if isinstance(part, RoleStart):
                place = number, at
            elif isinstance(part, RoleEnd):
                place = None
    if place is not None:
        number, at = place
        found[number:] = [found[number][:at]]
    return tuple(piece for piece in found if piece)


def _identity(target: object) -> str | None:
    """The identity of a runtime's model (see `Target.abilities`); None if it does not say it."""
    found = getattr(target, "model_identity", None)
    return found if isinstance(found, str) and found else None
