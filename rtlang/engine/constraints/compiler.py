"""Constraints beside the engine: compiled off the step, followed one matcher per request, masks filled on threads.

The engine never waits for a grammar. `ConstraintCompiler.session` answers with a future; equal constraints that are asked for at the
same time are compiled once, and a byte-bounded cache keeps the compiled ones (and the refusals) by the canonical form of their source. A
`ConstraintSession` is one request's way through its constraint, and keeps the promise that the text is complete when its tokens are used
up. Whatever goes wrong with one constraint becomes the error of the requests that asked for it, and of no other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import BudgetError, ConfigError, ConstraintError, OverloadError, RtlangError
from rtlang.contract.metrics import Metrics
from rtlang.engine.constraints.cache import CacheEntry, PendingCompile
from rtlang.engine.constraints.session import ConstraintSession, as_constraint_error
from rtlang.engine.daemon_pool import DaemonPool, Timer, start_timer
from rtlang_grammars import warm_up
from rtlang_grammars.backends import create_backend
from rtlang_grammars.budget import BudgetKeeper
from rtlang_grammars.canonical import canonical
from rtlang_grammars.closing import CompletionSearch
from rtlang_grammars.engine_backend import EngineGrammar
from rtlang_grammars.grammar_store import GrammarStore
from rtlang_grammars.spec import Constraint, GrammarBackend, GrammarError
from rtlang_grammars.vocabulary import Vocabulary

_SEARCH_LIMIT = 4096
"""Tokens of the longest way to the end that is looked for when a constraint is compiled."""
_ERROR_BYTES = 1024
_MAX_OTHER_FORMS, _MAX_OTHER_BYTES = 256, 32 << 10
"""Sources that are kept beside their canonical forms, and how long they may be; others are read each time, off the step."""
MAX_LATE = 4
"""Compilations that may go on after their time. Our own engine stops soon after it is told to; of a foreign library each takes a core."""

NUM_SLOW = 4
"""Masks that take long and may be made at a time: one that takes very long is not to hold up all others of its kind."""


class VocabularySource(Protocol):
    """What is needed of a tokenizer."""

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        """The tokens as grammars see them, for logits `vocab_size` wide."""


class ConstraintCompiler:
    """Compiles constraints and fills masks, on threads of its own. Safe to use from several threads.

    Args:
        config: the settings that begin with grammar_ are used.
        tokenizer: of the model; its vocabulary is indexed when the first constraint comes.
        vocab_size: width of the model's logits.
        metrics: where the times of compiling and of filling masks are observed, if anywhere.
        executor, timer: run everything instead of own threads, and start a timer; for tests.
    Raises:
        ConfigError: grammar_cache_dir is in the home of a user who is not here.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        tokenizer: VocabularySource,
        vocab_size: int,
        metrics: Metrics | None = None,
        *,
        executor: Executor | None = None,
        timer: Callable[[float, Callable[[], None]], Timer] = start_timer,
    ) -> None:
        self._config, self._tokenizer, self._vocab_size = config, tokenizer, vocab_size
        self._folder = _folder(config)  # as it is now, whatever directory the process changes to
        self._metrics = metrics or Metrics()
        self._own_threads = executor is None
        # Masks have threads of their own: a step must never stand behind a compilation.
        self._compile_pool = executor or DaemonPool(config.grammar_threads, "constraint-compile")
        self._fill_pool = executor or DaemonPool(config.grammar_threads, "constraint-fill")
        # A mask that takes long has threads apart: a step waits for all masks in the other pool.
        self._prepare_pool = executor or DaemonPool(NUM_SLOW, "constraint-prepare")
        self._start_timer = timer
        self._lock, self._backend_lock = threading.Lock(), threading.Lock()
        self._backend: GrammarBackend | None = None
        self._search: CompletionSearch | None = None
        self._cache: OrderedDict[Constraint, CacheEntry] = OrderedDict()  # by canonical forms
        self._forms: OrderedDict[Constraint, Constraint] = OrderedDict()  # canonical forms of others
        self._waiting: dict[Constraint, PendingCompile] = {}
        self._running: set[Constraint] = set()
        self._late: set[Constraint] = set()  # of those running, the ones whose requests were told so
        self._is_closed = False
        self.num_cached_bytes = self.num_compiled = self.num_cache_hits = 0

    def session(self, constraint: Constraint, max_tokens: int) -> Future[ConstraintSession]:
        """A session at the start of the text, for at most `max_tokens` tokens.

        Never raises and never blocks. The future may be cancelled. It fails with:
            ConstraintError: the constraint cannot be compiled, or not in time.
            BudgetError: no complete text of at most max_tokens tokens was found.
            OverloadError: too many compilations go on after their time.
        """
        future: Future[ConstraintSession] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            constraint = self._forms.get(constraint, constraint)
            compiled = self._cache.get(constraint)
            if compiled is not None and compiled.is_suspect:
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
                is_new = constraint not in self._waiting
                self._waiting.setdefault(constraint, PendingCompile()).requests.append((future, max_tokens))
        if compiled is not None:
            if compiled.error is not None or (compiled.path is not None and compiled.path.fits(max_tokens)):
                self._answer(future, compiled, max_tokens)
            else:
                self._submit(self._compile_pool, lambda: self._answer(future, compiled, max_tokens), future)
        elif is_new:
            self._submit(self._compile_pool, lambda: self._compile(constraint))
        return future

    def fill(self, sessions: Sequence[ConstraintSession], bitmask: NDArray[np.int32]) -> Future[None]:
        """Write row i of `bitmask` for sessions[i], on threads.

        Args:
            bitmask: int32, [at least len(sessions), ceil(vocab_size / 32)]; must not be read before the future is done.
        Returns:
            A future that is done when all rows are written. A session that fails does not fail it; see `raise_if_failed`.
        """
        num_parts = max(1, min(self._config.grammar_threads, len(sessions)))
        done: Future[None] = Future()
        left = [num_parts]
        started = perf_counter()

        def fill_part(part: int) -> None:
            for index in range(part, len(sessions), num_parts):
                sessions[index].fill(bitmask[index])
            with self._lock:
                left[0] -= 1
                is_last = left[0] == 0
            if is_last:
                self._metrics.mask.observe(perf_counter() - started)
                done.set_result(None)

        for part in range(num_parts):
            self._submit(self._fill_pool, lambda part=part: fill_part(part))  # type: ignore[misc]
        return done

    def prepare(self, session: ConstraintSession, wake: Callable[[], None]) -> None:
        """Make the next mask of a slow session, on a thread; until `session.is_preparing` ends nothing else may use the session.

        `wake` is called when the mask is there, from that thread.
        """

        def submit(make: Callable[[], None]) -> None:
            def job() -> None:
                started = perf_counter()
                make()
                self._metrics.mask.observe(perf_counter() - started)

            self._submit(self._prepare_pool, job)

        session.prepare(-(-self._vocab_size // 32), submit, wake)

    def close(self) -> None:
        """Stop the threads; what has not been compiled yet is cancelled. Idempotent."""
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
            self._compile_pool.shutdown(wait=False, cancel_futures=True)
            self._fill_pool.shutdown(wait=True)
            self._prepare_pool.shutdown(wait=False, cancel_futures=True)

    # -- on the compile threads

    def _compile(self, constraint: Constraint) -> None:
        if self._config.grammar_backend == "rtlang" and not warm_up.is_ready(
            self._vocab_size,
            constraint,
            lambda: self._submit(self._compile_pool, lambda: self._compile(constraint)),  # others go first
        ):
            return
        with self._lock:
            # It timed out or was closed before its turn; or it did, was asked for again, and had that turn already.
            if constraint not in self._waiting or constraint in self._running:
                return
            is_unwanted = self._waiting[constraint].is_unwanted
            refused = self._waiting.pop(constraint) if len(self._late) >= MAX_LATE else None
            if refused is None:
                self._running.add(constraint)
        if refused is not None:
            self._refuse(constraint, refused)
            return
        if self._backend is not None:  # now, and not when it was asked for: nobody fails because others took long
            self._start_timer_of(constraint)
        started = perf_counter()
        form, compiled, is_new = self._compiled(constraint, is_unwanted)
        if is_new:
            self._metrics.grammar_compile.observe(perf_counter() - started)
        with self._lock:
            waiting = self._waiting.pop(constraint, None)
            self._running.discard(constraint)
            self._late.discard(constraint)
            self._make_room()
            was_stopped = compiled.error is not None and is_unwanted.is_set()
            if compiled.size_bytes <= self._config.grammar_cache_bytes and not was_stopped:
                replaced = self._cache.pop(form, None)
                self._cache[form] = compiled
                self.num_cached_bytes += compiled.size_bytes - (replaced.size_bytes if replaced is not None else 0)
                self.num_cached_bytes += sum(each.growth() for each in self._cache.values())
                self._drop_oldest()
            self._remember(constraint, form)
            self.num_compiled += is_new
            self.num_cache_hits += not is_new
        if waiting is not None:
            if waiting.timer is not None:
                waiting.timer.cancel()
            for future, max_tokens in waiting.requests:
                self._answer(future, compiled, max_tokens)

    def _drop_oldest(self) -> None:
        """Keep the bound on the cache. The lock is held."""
        while self.num_cached_bytes > self._config.grammar_cache_bytes:
            _, dropped = self._cache.popitem(last=False)
            self.num_cached_bytes -= dropped.size_bytes

    def _remember(self, constraint: Constraint, form: Constraint) -> None:
        """Know the canonical form of a constraint the next time. The lock is held."""
        if form != constraint and len(constraint.source) <= _MAX_OTHER_BYTES:
            self._forms[constraint] = form
            if len(self._forms) > _MAX_OTHER_FORMS:
                self._forms.popitem(last=False)

    def _compiled(self, constraint: Constraint, is_unwanted: threading.Event) -> tuple[Constraint, CacheEntry, bool]:
        """The canonical form of a constraint, what it became, and whether that was not known before."""
        source_bytes, form = len(constraint.source), constraint
        try:
            form = canonical(constraint)
            with self._lock:
                known = self._cache.get(form)
            if known is not None and not known.is_suspect:
                return form, known, False
            backend, search = self._make_backend()
            grammar = backend.compile(constraint, is_unwanted)
            matcher = grammar.matcher()
            path = search.find(matcher, _SEARCH_LIMIT, is_unwanted=is_unwanted)
            if path is None and is_unwanted.is_set():
                raise GrammarError("the search for an end was cancelled")
            if path is None and search.is_hopeless(matcher):
                raise GrammarError("the constraint allows no text that ends")
        except BaseException as error:  # see ConstraintSession.fill
            return form, CacheEntry(_ERROR_BYTES + source_bytes, source_bytes, error=as_constraint_error(error)), True
        return form, CacheEntry(grammar.size_bytes + source_bytes, source_bytes, grammar, path), True

    def _answer(self, future: Future[ConstraintSession], compiled: CacheEntry, max_tokens: int) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(self._make_session(compiled, max_tokens))
        except BaseException as error:
            future.set_exception(error if isinstance(error, ConstraintError) else as_constraint_error(error))

    def _make_session(self, compiled: CacheEntry, max_tokens: int) -> ConstraintSession:
        if compiled.error is not None:
            raise _copy_of(compiled.error)
        _, search = self._make_backend()
        assert compiled.grammar is not None
        matcher, path = compiled.grammar.matcher(), compiled.path
        if path is None or not path.fits(max_tokens):
            path = search.find(matcher, max_tokens)
            if path is None:
                raise BudgetError(max_tokens, None if compiled.path is None else compiled.path.cost())
            compiled.path = path
        keeper, ends = BudgetKeeper(search, path), search.vocabulary.eos_token_ids
        grammar = compiled.grammar
        check, report = (grammar.value_check, grammar.report) if isinstance(grammar, EngineGrammar) else (None, None)
        return ConstraintSession(matcher, keeper, ends, compiled.suspect, check, report, pace=compiled.pace)

    def _make_backend(self) -> tuple[GrammarBackend, CompletionSearch]:
        """The backend, made when first asked for. That may take long: until it is there no time runs for constraints."""
        with self._backend_lock:
            if self._backend is None or self._search is None:
                vocabulary = self._tokenizer.vocabulary(self._vocab_size)
                self._search = CompletionSearch(vocabulary)
                folder, max_bytes = self._folder, self._config.grammar_cache_dir_bytes
                store = None if folder is None else GrammarStore(folder, max_bytes)
                self._backend = create_backend(
                    self._config.grammar_backend, vocabulary, self._search, checks_values=True, store=store
                )
                with self._lock:
                    untimed = [
                        each for each in self._running if each in self._waiting and self._waiting[each].timer is None
                    ]
                for constraint in untimed:
                    self._start_timer_of(constraint)
            return self._backend, self._search

    def _start_timer_of(self, constraint: Constraint) -> None:
        timer = self._start_timer(self._config.grammar_timeout_s, lambda: self._on_timeout(constraint))
        with self._lock:
            waiting = self._waiting.get(constraint)
            is_needed = waiting is not None and waiting.timer is None
            if waiting is not None and is_needed:
                waiting.timer = timer
        if not is_needed:
            timer.cancel()

    def _on_timeout(self, constraint: Constraint) -> None:
        with self._lock:
            waiting = self._waiting.pop(constraint, None)
            if waiting is None:
                return
            waiting.is_unwanted.set()
            if constraint in self._running:
                self._late.add(constraint)
                self._make_room()
        self._refuse(constraint, waiting)

    def _make_room(self) -> None:
        """Have as many threads as there should be besides those that work on what is late. The lock is held."""
        if isinstance(self._compile_pool, DaemonPool):
            self._compile_pool.resize(self._config.grammar_threads + len(self._late))

    def _refuse(self, constraint: Constraint, waiting: PendingCompile) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        for future, _ in waiting.requests:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._too_late(constraint))

    def _too_late(self, constraint: Constraint) -> RtlangError:
        timeout = self._config.grammar_timeout_s
        if constraint not in self._late and len(self._late) >= MAX_LATE:
            return OverloadError(f"{MAX_LATE} constraints are still being compiled after {timeout:g} s", timeout)
        return ConstraintError(f"the constraint was not compiled within {timeout:g} s")

    def _submit(self, pool: Executor, job: Callable[[], None], asked: Future[Any] | None = None) -> None:
        """Run a job, unless the pool is shut down before it begins: then what was `asked` for is cancelled."""
        try:
            submitted = pool.submit(job)
        except RuntimeError:
            submitted = Future()
            submitted.cancel()
        submitted.add_done_callback(lambda done: asked.cancel() if asked and done.cancelled() else None)


def _folder(config: RuntimeConfig) -> Path | None:
    folder = config.grammar_cache_dir
    try:
        return None if folder is None else Path(folder).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise ConfigError("grammar_cache_dir", folder, str(error)) from None


def _copy_of(error: ConstraintError) -> ConstraintError:
    """An error of its own for each request: a raised exception collects tracebacks."""
    copy = ConstraintError(error.message)
    copy.location = error.location
    return copy
