"""Reads text while it grows: that of a state, or of one variable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rtlang.compat.sglang.execution import Arrivals, Execution
from rtlang.compat.sglang.pieces import Drop, Generated, LoggedPiece, Many, Mark, Variable, meta_info_of, value_of
from rtlang.contract.errors import RtlangError, TraceError
from rtlang.lang.lazy_values.values import user_location


class MissingVariableError(TraceError, KeyError):
    """A variable does not exist; names the existing ones. Also a KeyError, as of a dict."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        existing = ", ".join(sorted(map(str, known))) or "none"
        super().__init__(f"variable {name!r} does not exist; existing variables: {existing}", user_location())

    def __str__(self) -> str:
        return self.message


class TextReader(ABC):
    """The position of one reader in a text that may grow.

    Args:
        is_growing: whether the body may still append.

    Attributes:
        is_over: whether all of the text was read.
    """

    def __init__(self, execution: Execution, arrivals: Arrivals, is_growing: Callable[[], bool]) -> None:
        self.is_over = False
        self._execution, self._arrivals, self._is_growing = execution, arrivals, is_growing
        self._is_read = False  # whether the text is complete; an error of the body may follow
        self._num_chars = 0  # what was read of the piece at the position
        self._seen = 0

    def next(self) -> str:
        """The text that was added since the last call; empty if there is none. Sets `is_over` at the end.

        Raises:
            The error of a generation, or of the body. MissingVariableError: the variable to read does not exist.
        """
        self._seen = self._arrivals.count
        is_last = not self._is_growing()  # before looking
        try:
            chunk = "" if self._is_read else self._read(is_last)
        except RtlangError:
            if self._execution.error is not None:  # which has ended everything else
                raise self._execution.error from None
            raise
        error = self._execution.error
        if not is_last or error is None:
            self.is_over = self._is_read
        elif not chunk:
            self.is_over = True
            raise error
        return chunk

    @abstractmethod
    def _read(self, is_last: bool) -> str:
        """As `next`; sets `_is_read` at the end. `is_last`: nothing is appended any more."""

    def meta_so_far(self) -> Any:
        """The meta information that is known now."""
        return None

    def wait(self) -> None:
        """Block until there is news since the last `next`."""
        self._arrivals.condition.wait(self._has_news)

    async def wait_async(self) -> None:
        """`wait` for coroutines."""
        await self._arrivals.condition.wait_async(self._has_news)

    def wait_for_body(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Block until the body has ended, or until `unless` holds."""
        self._arrivals.condition.wait(lambda: not self._is_growing() or unless())

    def _has_news(self) -> bool:
        return self._arrivals.count != self._seen

    def _rest_of(self, piece: LoggedPiece) -> tuple[str, bool]:
        """The text added to a piece since the last read, and whether the piece is complete."""
        if isinstance(piece, str):
            return piece, True
        if isinstance(piece, Drop):  # what was shown cannot be taken back
            return "", True
        if isinstance(piece, Mark):
            return self._execution.mark_text(piece.roles, piece.role, piece.is_begin), True
        text, is_done = piece.so_far()
        chunk = text[self._num_chars :]
        self._num_chars = len(text)
        return chunk, is_done


class PiecesReader(TextReader):
    """Reads the text of a state."""

    def __init__(
        self, execution: Execution, arrivals: Arrivals, is_growing: Callable[[], bool], pieces: list[LoggedPiece]
    ) -> None:
        super().__init__(execution, arrivals, is_growing)
        self._pieces, self._index = pieces, 0

    def _read(self, is_last: bool) -> str:
        chunks = []
        while self._index < len(self._pieces):
            chunk, is_done = self._rest_of(self._pieces[self._index])
            chunks.append(chunk)
            if not is_done:
                return "".join(chunks)
            self._index, self._num_chars = self._index + 1, 0
        self._is_read = is_last
        return "".join(chunks)


class VariableReader(TextReader):
    """Reads the text of a variable, which may not exist yet."""

    def __init__(
        self,
        execution: Execution,
        arrivals: Arrivals,
        is_growing: Callable[[], bool],
        variables: Mapping[str, Variable],
        name: str,
    ) -> None:
        super().__init__(execution, arrivals, is_growing)
        self._variables, self._name = variables, name

    def _read(self, is_last: bool) -> str:
        variable = self._variables.get(self._name)
        if variable is None:
            if is_last and self._execution.error is None:
                raise MissingVariableError(self._name, self._variables)
            return ""
        if isinstance(variable, Generated):
            chunk, self._is_read = self._rest_of(variable)
            return chunk
        value = value_of(variable)
        self._is_read = True
        return "".join(map(str, value)) if isinstance(variable, Many) else str(value)

    def meta_so_far(self) -> Any:
        """See `TextReader`."""
        variable = self._variables.get(self._name)
        if isinstance(variable, Generated):
            return variable.meta_so_far()
        return None if variable is None else meta_info_of(variable)
