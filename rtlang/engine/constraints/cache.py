"""Entries of the constraint cache: compiled constraints and pending compilations."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from rtlang.contract.accounts.request_account import RequestAccount, WorkKind
from rtlang.contract.errors import ConstraintError
from rtlang.engine.constraints.compile_time import CompileTime
from rtlang.engine.constraints.session import ConstraintSession, MaskTimes
from rtlang.work.fair_executor import JobTimer
from rtlang.work.fair_queue import Owner
from rtlang_grammars import CompletionPath
from rtlang_grammars.api.rtlang_backend import RtlangGrammar


@dataclass(slots=True)
class CacheEntry:
    """A compiled constraint, or the error of its compilation.

    Attributes:
        size_bytes: memory when last measured; it grows, since tables and masks are computed lazily.
        path: the shortest known completion path.
        is_invalid: a matcher failed; since matchers share state, the entry must not be used again.
        mask_times: tracks whether its masks are slow.
    """

    size_bytes: int
    source_bytes: int
    grammar: RtlangGrammar | None = None
    path: CompletionPath | None = None
    error: ConstraintError | None = None
    is_invalid: bool = False
    mask_times: MaskTimes = field(default_factory=MaskTimes)

    def invalidate(self) -> None:
        """Mark the entry as unusable."""
        self.is_invalid = True

    def growth(self) -> int:
        """Measure the memory again; returns the growth in bytes since the last measurement."""
        before = self.size_bytes
        if self.grammar is not None:
            self.size_bytes = self.grammar.size_bytes + self.source_bytes
        return self.size_bytes - before


@dataclass(slots=True)
class PendingCompile:
    """A running compilation and the requests that wait for it.

    Attributes:
        is_unwanted: set when no request waits any more, so the compilation may stop.
        owners: the clients that wait, each with a job in the queue of the lane.
        lane: where it is compiled; it has used the slices of the lanes before.
        time: of the thread that compiles it, since it began in this lane; None: it has not begun.
        grammar: the compiled grammar, while its completion path is searched.
        accounts: of the requests that wait; they share its time.
    """

    timer: JobTimer | None = None
    is_unwanted: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[Future[ConstraintSession], int]] = field(default_factory=list)
    owners: set[Owner] = field(default_factory=set)
    lane: int = 0
    time: CompileTime | None = None
    accounts: list[RequestAccount] = field(default_factory=list)
    grammar: RtlangGrammar | None = None

    def charge(self, seconds: float) -> None:
        """Divide time of a thread between the requests that wait."""
        for account in self.accounts:
            account.add_work(WorkKind.CONSTRAINT, seconds / len(self.accounts))
