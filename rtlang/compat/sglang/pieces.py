"""The parts of a sequence, and the values of variables.

A state keeps what was appended to it as a list of pieces: strings, marks of messages, and texts that are still to come. From it follow
its text, its messages, named spans, and what a stream shows. A piece that was generated is also the value of its variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.compat.sglang.execution import Execution
from rtlang.contract.graph.nodes import Ref
from rtlang.lang.lazy_values.values import Value, needs_of, parts_of
from rtlang.lang.recordings.meta import Meta

MetaInfo = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """The start or the end of a message.

    Attributes:
        roles: the roles of the messages before it.
        role: its role.
    """

    roles: tuple[str, ...]
    role: str
    is_begin: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """A message was dropped: only the first `num_kept` of the pieces before it remain."""

    num_kept: int


class Generated:
    """A generated text. Its variable has the same text.

    Args:
        value: the text, lazily.
        source: the text before it was cut, lazily.
        cuts: strings at the first of which it is cut.
        meta: the metadata, lazily.
        describe: makes the meta information.
    """

    def __init__(
        self,
        execution: Execution,
        value: Value,
        meta: Value,
        describe: Callable[[Meta], MetaInfo],
        *,
        source: Value | None = None,
        cuts: Sequence[str] = (),
    ) -> None:
        self._execution, self.value, self._meta, self._describe = execution, value, meta, describe
        self._cuts = tuple(cuts)
        parts = parts_of(value if source is None else source)
        assert parts is not None
        assert isinstance(parts[0], Ref)
        self._place = (parts[0].node_id, parts[0].choice)

    @property
    def node_id(self) -> int:
        """The node that generates it."""
        return self._place[0]

    def read(self) -> str:
        """Wait for the text. Raises the error of the generation."""
        return str(self._execution.real(self.value))

    def meta_info(self) -> MetaInfo:
        """Wait for the meta information."""
        return self._describe(self._execution.real(self._meta))

    def token_ids(self) -> tuple[int, ...]:
        """Wait for the generated tokens."""
        found: Meta = self._execution.real(self._meta)
        return found.token_ids

    def so_far(self) -> tuple[str, bool]:
        """The text that a stream may show now, and whether that is all. Raises the error of the generation."""
        if self._execution.has([self.node_id]):
            return self.read(), True
        text = self._execution.streamed(*self._place)
        return without_cut(text, self._cuts), False

    def meta_so_far(self) -> MetaInfo:
        """The meta information that is known now."""
        if self._execution.has([self.node_id]):
            return self.meta_info()
        return {"finish_reason": None, "completion_tokens": self._execution.num_streamed_tokens(*self._place)}


def without_cut(text: str, cuts: Iterable[str]) -> str:
    """The text without what may be the beginning of a string at which it will be cut."""
    end = len(text)
    for cut in cuts:
        found = text.find(cut)
        if found >= 0:
            end = min(end, found)
        for length in range(1, len(cut)):
            if text.endswith(cut[:length]):
                end = min(end, len(text) - length)
    return text[:end]


@dataclass(frozen=True, slots=True)
class Known:
    """A text that the body had to wait for, with its meta information."""

    text: str
    info: Callable[[], MetaInfo]

    def read(self) -> str:
        """The text."""
        return self.text

    def meta_info(self) -> MetaInfo:
        """The meta information."""
        return self.info()


@dataclass(frozen=True, slots=True)
class Lazy:
    """Text of a lazy value that is not generated here."""

    execution: Execution
    value: Value

    def read(self) -> str:
        """Wait for the text."""
        return str(self.execution.real(self.value))

    def so_far(self) -> tuple[str, bool]:
        """As of `Generated`."""
        is_there = self.execution.has(needs_of(self.value))
        return (self.read(), True) if is_there else ("", False)


Piece = str | Mark | Generated | Lazy
LoggedPiece = Piece | Drop


def kept(pieces: Iterable[LoggedPiece]) -> list[Piece]:
    """The pieces without those that were dropped."""
    found: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Drop):
            del found[piece.num_kept :]
        else:
            found.append(piece)
    return found


@dataclass(frozen=True, slots=True)
class Own:
    """A variable that the body set."""

    value: Any


@dataclass(frozen=True, slots=True)
class Many:
    """The variables of one name in several states, or the texts of one generation."""

    items: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The text of a named part of a sequence."""

    execution: Execution
    pieces: tuple[Piece, ...]


Variable = Generated | Known | Own | Many | Span


def value_of(variable: Variable) -> Any:
    """The value of a variable, which waits for it."""
    match variable:
        case Own():
            return variable.value
        case Many():
            return [value_of(each) for each in variable.items]
        case Span():
            return text_of(variable.pieces, variable.execution)
        case _:
            return variable.read()


def meta_info_of(variable: Variable) -> Any:
    """The meta information of a variable; None if it was not generated."""
    match variable:
        case Own() | Span():
            return None
        case Many():
            return [meta_info_of(each) for each in variable.items]
        case _:
            return variable.meta_info()


def needs(item: Piece | Variable) -> list[int]:
    """The nodes that a piece or a variable waits for."""
    match item:
        case Generated() | Lazy():
            return list(needs_of(item.value))
        case Many():
            return [node_id for each in item.items for node_id in needs(each)]
        case Span():
            return [node_id for each in item.pieces for node_id in needs(each)]
        case _:
            return []


def check(item: Piece | Variable) -> None:
    """Raise the error of a piece or a variable that has ended, if there is one."""
    match item:
        case Generated() | Lazy():
            item.read()
        case Known():
            item.meta_info()
        case Many():
            for each in item.items:
                check(each)


def text_of(pieces: Iterable[Piece], execution: Execution) -> str:
    """The text of pieces, with the marks of messages where the backend knows them."""
    return "".join(_text(piece, execution) for piece in pieces)


def _text(piece: Piece, execution: Execution) -> str:
    if isinstance(piece, str):
        return piece
    return execution.mark_text(piece.roles, piece.role, piece.is_begin) if isinstance(piece, Mark) else piece.read()


def messages_of(pieces: Iterable[Piece], execution: Execution) -> list[dict[str, str]]:
    """The finished messages: role, and content without blanks in front."""
    messages: list[dict[str, str]] = []
    content: list[str] | None = None
    for piece in pieces:
        if not isinstance(piece, Mark):
            if content is not None:
                content.append(_text(piece, execution))
        elif piece.is_begin:
            content = []
        else:
            messages.append({"role": piece.role, "content": "".join(content or ()).lstrip()})
            content = None
    return messages
