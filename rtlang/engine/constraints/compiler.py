"""Compiles constraints and fills masks on separate threads.

The engine never waits for a grammar: `ConstraintCompiler.session` returns a future. Equal constraints requested at the same time are
compiled once, and a cache with a byte limit keeps compiled constraints (and compilation errors) by the canonical form of their source. A
failure of one constraint fails the requests that use it and no others. Compilations are fair between principals and between the clients of
each, small ones come first, and slow ones have threads of their own (`CompileLanes`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from copy import copy
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.accounts.request_account import RequestAccount, WorkKind
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import BudgetError, ConfigError, ConstraintError, OverloadError, RtlangError
from rtlang.contract.runs.principal import LOCAL
from rtlang.contract.service.metrics import Metrics
from rtlang.engine.constraints.cache import CacheEntry, PendingCompile
from rtlang.engine.constraints.compile_quota import CompileQuota
from rtlang.engine.constraints.compile_time import CompileTime
from rtlang.engine.constraints.lanes import CompileLanes, cancelled
from rtlang.engine.constraints.mask_threads import MaskThreads
from rtlang.engine.constraints.session import ConstraintSession, as_constraint_error, dead_end_of
from rtlang.engine.constraints.stop_compiler import StopCompiler
from rtlang.engine.constraints.stop_search import StopPattern
from rtlang.work.fair_executor import JobTimer, run_or_cancel, start_timer
from rtlang.work.fair_queue import Owner, owner_of
from rtlang_grammars import (
    CompletionSearch,
    Constraint,
    GrammarError,
    GrammarStore,
    RtlangBackend,
    TokenBudget,
    Vocabulary,
)
from rtlang_grammars.api import precompile
from rtlang_grammars.completion.completion_path import UNREACHABLE
from rtlang_grammars.spec.canonical_json import canonical
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.work_limit import StoppableWork

_UNLIMITED = UNREACHABLE - 1
"""Maximum length in tokens of the completion path that is searched at compile time: the search itself is bounded."""
_MAX_PRICED_BYTES = 4096
"""Maximum length of a completion path whose token costs are computed at compile time."""
_ERROR_BYTES = 1024
_MAX_OTHER_FORMS, _MAX_OTHER_BYTES = 256, 32 << 10
"""Number and maximum length of sources whose canonical forms are cached; others are canonicalized each time, off the step."""
_LOCAL, _NOBODY = owner_of(LOCAL), Owner("")
MAX_LATE = 4
"""Maximum number of compilations that continue past their time limit. They stop soon."""


class VocabularySource(Protocol):
    """The part of a tokenizer that the compiler needs."""

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        """The vocabulary for logits of width `vocab_size`."""


class ConstraintCompiler:
    """Compiles constraints and fills masks on its own threads. Safe to use from several threads.

    Args:
        config: the grammar_* settings are used.
        tokenizer: the model's tokenizer; its vocabulary is indexed with the first constraint.
        vocab_size: width of the model's logits.
        metrics: receives the times of compilation and mask filling; optional.
        executor, timer, compile_time: replace the threads, timers and clocks; for tests.
    Attributes:
        is_busy: whether the engine has requests, so that long compilations must leave it time; the engine sets it.
    Raises:
        ConfigError: grammar_cache_dir names an unknown user (~name).
    """

    def __init__(
        self,
        config: RuntimeConfig,
        tokenizer: VocabularySource,
        vocab_size: int,
        metrics: Metrics | None = None,
        *,
        executor: Executor | None = None,
        timer: Callable[[float, Callable[[], None]], JobTimer] = start_timer,
        compile_time: Callable[[], CompileTime] = CompileTime,
        on_compiled: Callable[[float], None] | None = None,
    ) -> None:
        self._config, self._tokenizer, self._vocab_size = config, tokenizer, vocab_size
        self._folder = _folder(config)  # resolved now, in case the process changes its working directory
        self._metrics, self._on_compiled = metrics or Metrics(), on_compiled
        self._own_threads = executor is None
        self.is_busy: Callable[[], bool] = lambda: False
        self._lanes = CompileLanes(config.grammar_threads, executor, lambda: self.is_busy())
        self._masks = MaskThreads(config.grammar_threads, vocab_size, self._metrics, executor)
        self._stop_compiler = StopCompiler(self._lanes)
        self._start_timer, self._compile_time = timer, compile_time
        self._lock, self._backend_lock = threading.Lock(), threading.Lock()
        self._backend: RtlangBackend | None = None
        self._search: CompletionSearch | None = None
        self._cache: OrderedDict[Constraint, CacheEntry] = OrderedDict()  # keyed by canonical form
        self._forms: OrderedDict[Constraint, Constraint] = OrderedDict()  # other sources -> canonical form
        self._waiting: dict[Constraint, PendingCompile] = {}
        self._running: set[Constraint] = set()
        self._late: set[Constraint] = set()  # running compilations whose requests were failed
        self._is_closed = False
        self.quota = CompileQuota()
        self.num_cached_bytes = self.num_compiled = self.num_cache_hits = 0

    def session(
        self,
        constraint: Constraint,
        max_tokens: int,
        owner: Owner = _LOCAL,
        account: RequestAccount | None = None,
    ) -> Future[ConstraintSession]:
        """Create a session for a new output of at most `max_tokens` tokens, for a client. The time that it takes is counted in
        `account`.

        Never raises and never blocks. The future may be cancelled. It fails with:
            ConstraintError: the constraint cannot be compiled, or not within the time limit.
            BudgetError: no completion path of at most max_tokens tokens was found.
            OverloadError: too many compilations have exceeded their time limit.
        """
        future: Future[ConstraintSession] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            constraint = self._forms.get(constraint, constraint)
            compiled = self._cache.get(constraint)
            if compiled is not None and compiled.is_invalid:
                self.num_cached_bytes -= self._cache.pop(constraint).size_bytes
                compiled = None
            if compiled is not None:
                self._cache.move_to_end(constraint)
                self.num_cached_bytes += compiled.growth()
                self._drop_oldest()
                self.num_cache_hits += 1
                is_new = False
            elif constraint in self._late or len(self._late) >= MAX_LATE:
                future.set_exception(self._too_late(constraint))
                return future
            else:
                pending = self._waiting.get(constraint)
                if pending is None or pending.is_unwanted.is_set():  # one that is being stopped cannot be joined
                    pending = self._waiting[constraint] = PendingCompile()
                pending.requests.append((future, max_tokens))
                if account is not None:
                    pending.accounts.append(account)
                is_new, lane = owner not in pending.owners, pending.lane
                pending.owners.add(owner)
        if compiled is not None:
            self._answer_for(owner, future, compiled, max_tokens)
            return future
        assert pending is not None
        future.add_done_callback(lambda done: self._withdraw(constraint, pending) if done.cancelled() else None)
        if is_new:
            self._compile_for(owner, len(constraint.source), lambda: self._compile(constraint, lane), lane=lane)
        return future

    def stop_patterns(self, sources: tuple[str, ...], owner: Owner = _LOCAL) -> Future[tuple[StopPattern, ...]]:
        """Compile the patterns of `stop_regex` of one request, for a client. Never raises and never blocks.

        The future fails with:
            ParameterError: a pattern is invalid, needs backtracking, or is too complex.
        """
        with self._lock:
            is_closed = self._is_closed
        if is_closed:
            future: Future[tuple[StopPattern, ...]] = Future()
            future.cancel()
            return future
        return self._stop_compiler.compile(sources, owner)

    def fill(
        self, sessions: Sequence[ConstraintSession], bitmask: NDArray[np.int32], drafts: Sequence[Sequence[int]] = ()
    ) -> Future[None]:
        """See `MaskThreads.fill`."""
        return self._masks.fill(sessions, bitmask, drafts)

    def prepare(self, session: ConstraintSession, wake: Callable[[], None], owner: Owner = _LOCAL) -> None:
        """See `MaskThreads.prepare`."""
        self._masks.prepare(session, wake, owner)

    def accept_beside(
        self,
        session: ConstraintSession,
        token_id: int,
        remaining: int,
        wake: Callable[[], None],
        owner: Owner = _LOCAL,
    ) -> None:
        """See `MaskThreads.accept_beside`."""
        self._masks.accept_beside(session, token_id, remaining, wake, owner)

    def close(self) -> None:
        """Stop the threads and cancel pending compilations. Idempotent."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for compilation in waiting:
            compilation.is_unwanted.set()
            if compilation.timer is not None:
                compilation.timer.cancel()
            for future, _ in compilation.requests:
                future.cancel()
        if self._own_threads:
            self._lanes.close()
        self._masks.close()

    # -- on the compile threads

    def _compile_for(
        self, owner: Owner, size: int, job: Callable[[], None], *, lane: int = 0, asked: Future[Any] | None = None
    ) -> None:
        """Run a job in a lane; see `run_or_cancel`."""
        run_or_cancel(lambda run: self._lanes.submit(run, owner=owner, size=size, lane=lane), job, asked)

    def _compile(self, constraint: Constraint, lane: int) -> None:
        size = len(constraint.source)
        if not precompile.is_ready(
            self._vocab_size,
            constraint,
            lambda: self._compile_for(_NOBODY, size, lambda: self._compile(constraint, lane)),  # lets others run first
        ):
            return
        with self._lock:
            pending = self._waiting.get(constraint)
            # It timed out, was closed, or was requested by others and compiled or moved in the meantime.
            if pending is None or pending.lane != lane or constraint in self._running:
                return
            refused = self._waiting.pop(constraint) if len(self._late) >= MAX_LATE else None
            if refused is None:
                self._running.add(constraint)
        if refused is not None:
            self._refuse(constraint, refused)
            return
        started, cpu_started = perf_counter(), thread_time()
        form, compiled, is_new = self._compiled(constraint, pending)
        names, cpu_s = {each.party for each in pending.owners}, thread_time() - cpu_started
        self.quota.charge(names, cpu_s)
        for name in names:
            self._metrics.principals.engine_work.add(name, WorkKind.CONSTRAINT, cpu_s / len(names))
        if not pending.is_unwanted.is_set():  # else `_refuse` has
            pending.charge(cpu_s)
        if compiled is None:
            self._move_on(constraint)
            return
        if is_new:
            seconds = perf_counter() - started
            self._metrics.grammar_compile.observe(seconds)
            if self._on_compiled is not None:
                self._on_compiled(seconds)
        with self._lock:
            was_stopped = compiled.error is not None and pending.is_unwanted.is_set()
            waiting = self._waiting.get(constraint)
            begins_again = was_stopped and waiting is not None and waiting is not pending
            if not begins_again:
                self._waiting.pop(constraint, None)
            self._running.discard(constraint)
            self._late.discard(constraint)
            self._make_room()
            if compiled.size_bytes <= self._config.grammar_cache_bytes and not was_stopped:
                replaced = self._cache.pop(form, None)
                self._cache[form] = compiled
                self.num_cached_bytes += compiled.size_bytes - (replaced.size_bytes if replaced is not None else 0)
                self.num_cached_bytes += sum(each.growth() for each in self._cache.values())
                self._drop_oldest()
            self._remember(constraint, form)
            self.num_compiled += is_new
            self.num_cache_hits += not is_new
        if waiting is None:
            return
        if begins_again:  # for requests that came while it was being stopped
            self._begin(constraint, waiting)
        else:
            if waiting.timer is not None:
                waiting.timer.cancel()
            for future, max_tokens in tuple(waiting.requests):
                self._answer_for(next(iter(pending.owners)), future, compiled, max_tokens)

    def _move_on(self, constraint: Constraint) -> None:
        """A compilation has used its slice of a lane: begin it again in the next one, with all its time."""
        with self._lock:
            self._running.discard(constraint)
            self._late.discard(constraint)
            self._make_room()
            pending = self._waiting.get(constraint)
            if pending is None:
                return
            pending.lane += 1
            timer, pending.timer = pending.timer, None
        if timer is not None:
            timer.cancel()
        self._begin(constraint, pending)

    def _begin(self, constraint: Constraint, pending: PendingCompile) -> None:
        """Queue a compilation in its lane, for each client that waits for it."""
        lane = pending.lane
        for owner in tuple(pending.owners):
            self._compile_for(owner, len(constraint.source), lambda: self._compile(constraint, lane), lane=lane)

    def _withdraw(self, constraint: Constraint, pending: PendingCompile) -> None:
        """A request was cancelled; nothing is compiled for cancelled requests only."""
        with self._lock:
            if self._waiting.get(constraint) is not pending or not all(
                each.cancelled() for each, _ in pending.requests
            ):
                return
            pending.is_unwanted.set()
            if constraint not in self._running:
                del self._waiting[constraint]
            timer, pending.timer = pending.timer, None
        if timer is not None:
            timer.cancel()

    def _drop_oldest(self) -> None:
        """Enforce the cache limit. Call with the lock held."""
        while self.num_cached_bytes > self._config.grammar_cache_bytes:
            _, dropped = self._cache.popitem(last=False)
            self.num_cached_bytes -= dropped.size_bytes

    def _remember(self, constraint: Constraint, form: Constraint) -> None:
        """Cache the canonical form of a constraint. Call with the lock held."""
        if form != constraint and len(constraint.source) <= _MAX_OTHER_BYTES:
            self._forms[constraint] = form
            if len(self._forms) > _MAX_OTHER_FORMS:
                self._forms.popitem(last=False)

    def _compiled(self, constraint: Constraint, pending: PendingCompile) -> tuple[Constraint, CacheEntry | None, bool]:
        """The canonical form of a constraint, its cache entry, and whether the entry is new. No entry: its slice is over."""
        source_bytes, form = len(constraint.source), constraint
        is_over = False
        try:
            form = canonical(constraint)
            with self._lock:
                known = self._cache.get(form)
            if known is not None and not known.is_invalid:
                return form, known, False
            precompile.load_code(form)
            backend, search = self._make_backend()
            pending.time = self._compile_time()
            self._start_timer_of(constraint)
            with self._lanes.working(pending.is_unwanted, pending.lane) as flag:
                try:
                    if pending.grammar is None:
                        pending.grammar = backend.compile(constraint, flag)
                    grammar, work = pending.grammar, StoppableWork(Budget(cancelled=flag))
                    path = search.find(grammar.matcher(), _UNLIMITED, work=work)
                    if path is not None and len(path.data) <= _MAX_PRICED_BYTES:
                        path.compute_costs(work)
                finally:
                    is_over = flag.is_over
        except BaseException as error:  # see ConstraintSession.fill
            if is_over and not pending.is_unwanted.is_set():
                return form, None, True
            return form, CacheEntry(_ERROR_BYTES + source_bytes, source_bytes, error=as_constraint_error(error)), True
        if path is None and (dead_end := dead_end_of(grammar.matcher(), search.vocabulary)) is not None:
            return form, CacheEntry(_ERROR_BYTES + source_bytes, source_bytes, error=dead_end), True
        other_bytes = source_bytes + (0 if path is None else len(path.data))
        return form, CacheEntry(grammar.size_bytes + other_bytes, other_bytes, grammar, path), True

    def _answer_for(
        self, owner: Owner, future: Future[ConstraintSession], compiled: CacheEntry, max_tokens: int
    ) -> None:
        """Answer a request, now if that takes no time."""
        if compiled.path is None or compiled.path.fits_at_once(max_tokens) is not None:
            self._answer(future, compiled, max_tokens)
        else:
            self._answer_later(future, compiled, max_tokens, owner, 0)

    def _answer_later(
        self, future: Future[ConstraintSession], compiled: CacheEntry, max_tokens: int, owner: Owner, lane: int
    ) -> None:
        """Compute the costs of a completion path in a lane, then answer."""
        path = compiled.path
        assert path is not None

        def job() -> None:
            with self._lanes.working(cancelled(future), lane) as flag:
                try:
                    path.compute_costs(StoppableWork(Budget(cancelled=flag)))
                except GrammarError as error:
                    if flag.is_over:
                        self._answer_later(future, compiled, max_tokens, owner, lane + 1)
                    elif future.set_running_or_notify_cancel():
                        future.set_exception(as_constraint_error(error))
                    return
            self._answer(future, compiled, max_tokens)

        self._compile_for(owner, len(path.data), job, lane=lane, asked=future)

    def _answer(self, future: Future[ConstraintSession], compiled: CacheEntry, max_tokens: int) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(self._make_session(compiled, max_tokens))
        except BaseException as error:
            future.set_exception(error if isinstance(error, ConstraintError) else as_constraint_error(error))

    def _make_session(self, compiled: CacheEntry, max_tokens: int) -> ConstraintSession:
        if compiled.error is not None:
            raise copy(compiled.error)  # one for each request, since a raised exception accumulates tracebacks
        _, search = self._make_backend()
        grammar, path = compiled.grammar, compiled.path
        assert grammar is not None
        if path is None or not path.fits(max_tokens):
            raise BudgetError(max_tokens, None if path is None else path.num_tokens)
        keeper, ends = TokenBudget(search, path), search.vocabulary.eos_token_ids
        return ConstraintSession(
            grammar.matcher(),
            keeper,
            ends,
            compiled.invalidate,
            grammar.value_check,
            grammar.report,
            mask_times=compiled.mask_times,
        )

    def _make_backend(self) -> tuple[RtlangBackend, CompletionSearch]:
        """The backend, created on first use. Its creation may take long and does not count toward a constraint's time limit."""
        with self._backend_lock:
            if self._backend is None or self._search is None:
                vocabulary = self._tokenizer.vocabulary(self._vocab_size)
                self._search = CompletionSearch(vocabulary)
                folder, max_bytes = self._folder, self._config.grammar_cache_dir_bytes
                store = None if folder is None else GrammarStore(folder, max_bytes)
                self._backend = RtlangBackend.create(vocabulary, allow_checked=True, store=store)
            return self._backend, self._search

    def _start_timer_of(self, constraint: Constraint, replaced: JobTimer | None = None) -> None:
        """Look again when the compilation may have used up its time. It counts from its beginning, with a backend."""
        with self._lock:
            waiting = self._waiting.get(constraint)
            left_s = self._config.grammar_timeout_s
            if waiting is not None and waiting.time is not None:
                left_s = waiting.time.left_s(left_s)
        timer = self._start_timer(left_s, lambda: self._on_timer(constraint))
        with self._lock:
            waiting = self._waiting.get(constraint)
            is_needed = waiting is not None and waiting.timer is replaced
            if waiting is not None and is_needed:
                waiting.timer = timer
        if not is_needed:
            timer.cancel()

    def _on_timer(self, constraint: Constraint) -> None:
        with self._lock:
            waiting = self._waiting.get(constraint)
            if waiting is None:
                return
            if waiting.time is not None and not waiting.time.is_over(self._config.grammar_timeout_s):
                goes_on, timer = constraint in self._running, waiting.timer
            else:
                goes_on, timer = False, None
                del self._waiting[constraint]
                waiting.is_unwanted.set()
                if constraint in self._running:
                    self._late.add(constraint)
                    self._make_room()
        if goes_on:
            self._start_timer_of(constraint, timer)
        elif waiting.is_unwanted.is_set():
            self._refuse(constraint, waiting)

    def _make_room(self) -> None:
        """Adjust the number of threads, not counting those busy with late compilations. Call with the lock held."""
        self._lanes.resize(len(self._late))

    def _refuse(self, constraint: Constraint, waiting: PendingCompile) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        if waiting.time is not None:
            waiting.charge(waiting.time.used_s)
        for future, _ in waiting.requests:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._too_late(constraint))

    def _too_late(self, constraint: Constraint) -> RtlangError:
        timeout = self._config.grammar_timeout_s
        if constraint not in self._late and len(self._late) >= MAX_LATE:
            return OverloadError(f"{MAX_LATE} constraints are still being compiled after {timeout:g} s", timeout)
        return ConstraintError(f"the constraint was not compiled within {timeout:g} s of CPU time")


def _folder(config: RuntimeConfig) -> Path | None:
    folder = config.grammar_cache_dir
    try:
        return None if folder is None else Path(folder).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise ConfigError("grammar_cache_dir", folder, str(error)) from None
