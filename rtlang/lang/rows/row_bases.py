"""The earlier results that the rows of a batch take over."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtlang.contract.service.target import Target
from rtlang.lang.program_state.body import Body
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import check_base


class RowBases:
    """Finds the result of an earlier batch for each row: that of a row with the same arguments, or else the one at the same index.
    Thread-safe.

    Rows may have been added, removed or moved. Of equal rows each takes a result of its own.

    Args:
        options: of the batch; `base` is a list of results, one result for all rows, or None.
    Raises:
        ParameterError: a result cannot be taken over on `target`.
    """

    def __init__(self, options: ProgramOptions, target: Target) -> None:
        self._options, self._lock = options, threading.Lock()
        base: Any = options.base
        self._bases: Sequence[Any] | None = base if isinstance(base, (list, tuple)) else None
        self._by_arguments: dict[str | None, deque[Any]] = defaultdict(deque)
        for each in self._bases or (() if base is None else (base,)):
            if each is not None:
                check_base(each, target)
                self._by_arguments[getattr(each, "arguments_digest", None)].append(each)

    def options_of(self, index: int, body: Body) -> ProgramOptions:
        """The options of the row at `index`."""
        if self._bases is None:
            return self._options
        with self._lock:
            same = self._by_arguments.get(body.arguments_digest())
            found = same.popleft() if same else None
        base = found or (self._bases[index] if index < len(self._bases) else None)
        return replace(self._options, base=base)
