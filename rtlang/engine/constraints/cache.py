"""What `ConstraintCompiler` keeps: constraints that are compiled, and compilations under way."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from rtlang.contract.errors import ConstraintError
from rtlang.engine.constraints.session import ConstraintSession, Pace
from rtlang.engine.daemon_pool import Timer
from rtlang_grammars.spec import CompiledGrammar
from rtlang_grammars.spelling import ClosingPath


@dataclass(slots=True)
class CacheEntry:
    """A constraint ready for use, or why it is not.

    Attributes:
        size_bytes: memory held when that was last looked at: tables and masks are made while they are used.
        path: the shortest known way to a complete text.
        is_suspect: a matcher of it failed, and matchers of one grammar share parts: it is not given out again.
        pace: how long its masks take.
    """

    size_bytes: int
    source_bytes: int
    grammar: CompiledGrammar | None = None
    path: ClosingPath | None = None
    error: ConstraintError | None = None
    is_suspect: bool = False
    pace: Pace = field(default_factory=Pace)

    def suspect(self) -> None:
        """Do not use this any more."""
        self.is_suspect = True

    def growth(self) -> int:
        """Bytes that were added since the last look; a look."""
        before = self.size_bytes
        if self.grammar is not None:
            self.size_bytes = self.grammar.size_bytes + self.source_bytes
        return self.size_bytes - before


@dataclass(slots=True)
class PendingCompile:
    """A compilation that is under way, and who waits for it.

    Attributes:
        is_unwanted: set when nobody waits any more: the compilation may stop.
    """

    timer: Timer | None = None
    is_unwanted: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[Future[ConstraintSession], int]] = field(default_factory=list)
