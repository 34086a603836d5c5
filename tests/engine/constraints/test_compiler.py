"""Compiling off the step, sessions that end in time, masks on threads, and failures that stay with their request."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from rtlang.contract.accounts.request_account import RequestAccount
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import BudgetError, ConfigError, ConstraintError, DeadEndError, OverloadError
from rtlang.contract.service.metrics import Metrics
from rtlang.engine.constraints import compiler as compiler_module
from rtlang.engine.constraints.compiler import MAX_LATE, ConstraintCompiler, ConstraintSession
from rtlang.engine.constraints.lanes import NUM_THREADS
from rtlang_grammars import CompletionSearch, Constraint, ConstraintKind, GrammarError, GrammarStore, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary
from tests.support.waiting import wait_until

VOCABULARY = small_vocabulary()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["name"],
    "additionalProperties": False,
}
JSON = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA))
WORD = Constraint(ConstraintKind.REGEX, "[a-z]{2,8}")
BROKEN = Constraint(ConstraintKind.REGEX, "(a")


class FakeTokenizer:
    """Only a vocabulary; `has_end` False: a model without end tokens."""

    def __init__(self, *, has_end: bool = True) -> None:
        self.has_end = has_end

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        return small_vocabulary(has_end=self.has_end)


class Inline(Executor):
    """Runs a job when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Manual(Executor):
    """Keeps jobs until `run`."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs.append(lambda: fn(*args, **kwargs))
        return Future()

    def run(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job()


@dataclass
class FakeTimer:
    """Fires when the test says so."""

    action: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class CompileTimeStub:
    """The time of a compilation that is over, or is not; the test says which."""

    has_ended = True

    used_s = 0.25

    def left_s(self, limit_s: float) -> float:
        return limit_s

    def is_over(self, limit_s: float) -> bool:
        assert limit_s == 3.0
        return self.has_ended


class Timers:
    def __init__(self) -> None:
        self.started: list[FakeTimer] = []

    def __call__(self, seconds: float, action: Callable[[], None]) -> FakeTimer:
        assert seconds == 3.0
        self.started.append(FakeTimer(action))
        return self.started[-1]


def make(
    executor: Executor | None = None,
    *,
    has_end: bool = True,
    is_ready: bool = True,
    metrics: Metrics | None = None,
    **settings: Any,
) -> tuple[ConstraintCompiler, Timers]:
    timers = Timers()
    config = RuntimeConfig(grammar_timeout_s=3.0, **settings)
    tokenizer = FakeTokenizer(has_end=has_end)
    compiler = ConstraintCompiler(
        config,
        tokenizer,
        VOCABULARY.vocab_size,
        metrics,
        executor=executor,
        timer=timers,
        compile_time=CompileTimeStub,  # type: ignore[arg-type]
    )
    if is_ready:
        compiler._make_backend()
    return compiler, timers


def row() -> Any:
    return np.empty(VOCABULARY.num_mask_words, dtype=np.int32)


def generate(session: ConstraintSession, max_tokens: int, rng: random.Random) -> str:
    """What the engine does: mask, draw, accept, until complete, an end token or out of tokens."""
    tokens: list[int] = []
    mask = row()
    while len(tokens) < max_tokens:
        session.fill(mask)
        session.raise_if_failed()
        token = rng.choice(allowed_ids(mask))
        accepted = session.accept(token, max_tokens - len(tokens))
        if accepted is not None:
            tokens.append(accepted)
        if accepted is None or session.is_complete:
            break
    return VOCABULARY.text_of(tokens).decode()


def test_a_session_generates_valid_text_within_every_budget_it_takes() -> None:
    compiler, timers = make(Inline())
    num_refused = 0
    for max_tokens in range(1, 40):
        future = compiler.session(JSON, max_tokens)
        if isinstance(future.exception(0), BudgetError):
            num_refused += 1
            continue
        jsonschema.validate(json.loads(generate(future.result(0), max_tokens, random.Random(max_tokens))), SCHEMA)
    assert 1 <= num_refused <= 12
    assert compiler.num_compiled == 1
    assert all(timer.is_cancelled for timer in timers.started)


def test_a_budget_error_says_what_is_needed() -> None:
    compiler, _ = make(Inline())
    with pytest.raises(BudgetError, match="max_tokens = 2") as caught:
        compiler.session(JSON, 2).result(0)
    needed = caught.value.needed
    assert needed is not None
    assert compiler.session(JSON, needed).exception(0) is None


def test_a_bad_constraint_fails_its_own_requests_with_an_error_each() -> None:
    compiler, _ = make(Inline())
    errors = [compiler.session(BROKEN, 9).exception(0) for _ in range(2)]
    assert all(isinstance(error, ConstraintError) for error in errors)
    assert errors[0] is not errors[1]
    assert isinstance(errors[0], ConstraintError)
    assert errors[0].location == "1:1"
    assert "1:1" in str(errors[0])
    assert compiler.num_compiled == 1  # the refusal is kept, too
    assert compiler.session(WORD, 9).exception(0) is None


@pytest.mark.parametrize("source", ['start: "a" start', "start: start"])
def test_a_constraint_that_no_text_meets_is_refused(source: str) -> None:
    compiler, _ = make(Inline())
    error = compiler.session(Constraint(ConstraintKind.LARK, source), 50).exception(0)
    assert isinstance(error, ConstraintError)


def test_a_constraint_that_leads_to_a_dead_end_alone_is_not_refused_for_its_max_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler, _ = make(Inline())
    monkeypatch.setattr(
        CompletionSearch, "find", lambda *args, **options: None
    )  # as a grammar with such a fault has it
    monkeypatch.setattr(MachineMatcher, "fill_bitmask", lambda self, row: row.fill(0))
    for _ in range(2):  # compiled, and kept
        error = compiler.session(WORD, 50).exception(0)
        assert isinstance(error, DeadEndError)
        assert error.text == ""
        assert "at the beginning of the text" in str(error)


def test_equal_constraints_in_flight_are_compiled_once() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    futures = [compiler.session(Constraint(WORD.kind, WORD.source), 4 + index) for index in range(5)]
    cancelled = futures[2]
    assert cancelled.cancel()
    assert len(manual.jobs) == 1
    assert not timers.started
    assert not any(future.done() for future in futures if future is not cancelled)
    manual.run()
    sessions = {id(future.result(0)) for future in futures if future is not cancelled}
    assert len(sessions) == 4
    assert (compiler.num_compiled, compiler.num_cache_hits) == (1, 0)
    assert compiler.session(WORD, 4).result(0).is_accepting is False
    assert compiler.num_cache_hits == 1


class Slow:
    """Compiles as `working` does, after `meanwhile` in the middle of it."""

    def __init__(self, working: Any, meanwhile: Callable[[], None]) -> None:
        self._working, self._meanwhile = working, meanwhile

    def compile(self, constraint: Constraint, is_unwanted: threading.Event) -> Any:
        self._meanwhile()
        return self._working.compile(constraint)


def test_a_compilation_that_takes_too_long_fails_and_is_not_kept() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    working = compiler._make_backend()[0]
    compiler._backend = Slow(working, lambda: timers.started[0].action())  # type: ignore[assignment]
    account = RequestAccount()
    late = compiler.session(WORD, 4, account=account)
    manual.run()
    with pytest.raises(ConstraintError, match="within 3 s"):
        late.result(0)
    assert account.work == {"constraint": 0.25}, "the time until it was refused counts, once"
    compiler._backend = working
    again = compiler.session(WORD, 4)
    manual.run()
    timers.started[1].action()  # a timer that fires after the answer changes nothing
    assert again.result(0).is_accepting is False
    assert compiler.num_cache_hits == 0


def test_a_compilation_that_waits_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    manual = Manual()
    compiler, timers = make(manual)
    monkeypatch.setattr(CompileTimeStub, "has_ended", False)

    def wait() -> None:
        for number in range(5):  # each looks at the clock of the thread and begins another
            timers.started[number].action()

    compiler._backend = Slow(compiler._make_backend()[0], wait)  # type: ignore[assignment]
    late = compiler.session(WORD, 4)
    manual.run()
    assert late.exception(0) is None
    assert len(timers.started) == 6
    assert timers.started[-1].is_cancelled
    timers.started[-1].action()  # fires although it was cancelled
    assert len(timers.started) == 6


def test_no_time_runs_for_what_waits_behind_others() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    compiler._backend = Slow(compiler._make_backend()[0], lambda: timers.started[-1].action())  # type: ignore[assignment]
    futures = [compiler.session(source, 4) for source in (WORD, Constraint(ConstraintKind.REGEX, "a"))]
    first, second = manual.jobs
    first()
    assert isinstance(futures[0].exception(0), ConstraintError)
    assert len(timers.started) == 1
    assert not futures[1].done()
    compiler._backend = compiler._backend._working  # type: ignore[union-attr]
    second()
    assert futures[1].exception(0) is None


def test_no_time_runs_before_the_backend_is_ready() -> None:
    manual = Manual()
    compiler, timers = make(manual, is_ready=False)
    futures = [compiler.session(WORD, 4), compiler.session(JSON, 60)]
    assert not timers.started
    first, second = manual.jobs
    first()
    assert len(timers.started) == 1  # for the one that is being compiled
    assert futures[0].exception(0) is None
    second()
    assert futures[1].exception(0) is None
    assert [timer.is_cancelled for timer in timers.started] == [True, True]


def test_native_code_that_must_be_compiled_takes_none_of_the_time_of_a_constraint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manual = Manual()
    compiler, timers = make(manual, is_ready=False)
    loaded: list[tuple[Constraint, int]] = []
    monkeypatch.setattr(
        compiler_module.precompile, "load_code", lambda constraint: loaded.append((constraint, len(timers.started)))
    )
    future = compiler.session(WORD, 4)
    manual.run()
    assert future.exception(0) is None
    assert loaded == [(WORD, 0)]
    assert len(timers.started) == 1


@pytest.mark.parametrize("is_closed", [False, True])
def test_what_waits_for_the_code_holds_up_nothing_and_has_all_its_time(
    is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    manual, waiting = Manual(), [WORD]
    calls: list[Callable[[], None]] = []

    def is_ready(vocab_size: int, constraint: Constraint, when_done: Callable[[], None]) -> bool:
        assert vocab_size == VOCABULARY.vocab_size
        if constraint in waiting:
            calls.append(when_done)
        return constraint not in waiting

    monkeypatch.setattr(compiler_module.precompile, "is_ready", is_ready)
    compiler, timers = make(manual, is_ready=False)
    futures = [compiler.session(source, 60) for source in (WORD, JSON, WORD)]
    manual.run()
    assert [future.done() for future in futures] == [False, True, False]
    assert [timer.is_cancelled for timer in timers.started] == [True]
    waiting.clear()
    if is_closed:
        compiler.close()
    for call in calls:
        call()
    manual.run()
    assert all(future.done() for future in futures)
    assert [future.cancelled() for future in futures] == [is_closed, False, is_closed]


class StuckBackend:
    """Compiles nothing until `release`; `begun` is released once for each compilation that begins."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Semaphore(0), threading.Event()

    def compile(self, constraint: Constraint, is_unwanted: threading.Event) -> Any:
        self.begun.release()
        assert self.release.wait(60)
        raise GrammarError("released")


def test_compilations_that_are_stuck_are_bounded_and_leave_room_for_others() -> None:
    compiler, timers = make()
    assert compiler.session(JSON, 60).exception(60) is None
    working, stuck = compiler._make_backend(), StuckBackend()
    compiler._backend = stuck
    sources = [Constraint(ConstraintKind.REGEX, f"a{{{index}}}") for index in range(MAX_LATE + 2)]
    for source in sources[:MAX_LATE]:
        future = compiler.session(source, 60)
        assert stuck.begun.acquire(timeout=60)
        timers.started[-1].action()
        assert isinstance(future.exception(0), ConstraintError)
        # The same constraint is not begun once more.
        assert isinstance(compiler.session(source, 60).exception(0), ConstraintError)
    refused = compiler.session(sources[-1], 60).exception(0)
    assert isinstance(refused, OverloadError)
    assert str(MAX_LATE) in str(refused)
    assert compiler.session(JSON, 60).exception(60) is None  # what is compiled is served as ever
    compiler._backend = working[0]
    stuck.release.set()
    while isinstance(compiler.session(sources[-1], 60).exception(60), OverloadError):
        pass
    assert compiler.session(WORD, 60).exception(60) is None
    compiler.close()


def test_what_waits_behind_compilations_that_are_stuck_is_refused_in_its_turn() -> None:
    compiler, timers = make()
    assert compiler.session(JSON, 60).exception(60) is None
    stuck, num_before = StuckBackend(), len(timers.started)
    compiler._backend = stuck
    sources = [Constraint(ConstraintKind.REGEX, f"a{{{index}}}") for index in range(MAX_LATE + NUM_THREADS[0])]
    futures = [compiler.session(source, 60) for source in sources]
    for index in range(MAX_LATE):
        assert stuck.begun.acquire(timeout=60)
        timers.started[num_before + index].action()
    wait_until(lambda: sum(future.done() for future in futures) > MAX_LATE)
    errors = [type(future.exception()) for future in futures if future.done()]
    assert errors.count(ConstraintError) == MAX_LATE
    assert set(errors) == {ConstraintError, OverloadError}
    assert timers.started[0].is_cancelled
    stuck.release.set()
    compiler.close()


def test_the_cache_holds_no_more_bytes_than_it_may_and_drops_the_least_recently_used() -> None:
    sources = [Constraint(ConstraintKind.REGEX, f"[a-{letter}]{{4}}") for letter in "stuvwxyz"]
    probe, _ = make(Inline())
    assert probe.session(sources[0], 9).exception(0) is None
    size = probe.num_cached_bytes
    bound = 3 * size + size // 2
    compiler, _ = make(Inline(), grammar_cache_bytes=bound)
    for source in sources[:3]:
        assert compiler.session(source, 9).exception(0) is None
    assert compiler.session(sources[0], 9).exception(0) is None
    assert compiler.num_compiled == 3
    assert compiler.session(sources[3], 9).exception(0) is None  # drops sources[1]
    assert compiler.session(sources[0], 9).exception(0) is None
    assert compiler.num_compiled == 4
    assert compiler.session(sources[1], 9).exception(0) is None
    assert compiler.num_compiled == 5
    for source in sources:
        assert compiler.session(source, 9).exception(0) is None
        assert compiler.num_cached_bytes <= bound


def test_what_a_grammar_comes_to_hold_counts_when_it_is_used_again() -> None:
    sources = [Constraint(ConstraintKind.REGEX, f"[a-{letter}]{{4}}") for letter in "yz"]
    probe, _ = make(Inline())
    size = 0
    for source in sources:
        session = probe.session(source, 9).result(0)
        size = max(size, probe.num_cached_bytes)
    before = probe.num_cached_bytes
    generate(session, 9, random.Random(0))
    probe.session(sources[1], 9).result(0)
    assert probe.num_cached_bytes > before
    compiler, _ = make(Inline(), grammar_cache_bytes=before)
    for source in sources:
        session = compiler.session(source, 9).result(0)
    assert (compiler.num_compiled, compiler.num_cached_bytes) == (2, before)
    generate(session, 9, random.Random(0))
    compiler.session(sources[1], 9).result(0)  # it has grown, so the other one has to go
    assert compiler.num_cached_bytes < before
    compiler.session(sources[0], 9).result(0)
    assert compiler.num_compiled == 3


def test_what_grammars_in_use_come_to_hold_counts_when_another_is_compiled() -> None:
    first, other = (Constraint(ConstraintKind.REGEX, f"[a-{letter}]{{4}}") for letter in "yz")
    probe, _ = make(Inline())
    sizes = []
    for source in (first, other):
        probe.session(source, 9).result(0)
        sizes.append(probe.num_cached_bytes)
    compiler, _ = make(Inline(), grammar_cache_bytes=sizes[1])
    session = compiler.session(first, 9).result(0)
    generate(session, 9, random.Random(0))
    assert compiler.num_cached_bytes == sizes[0]  # nobody has looked since
    compiler.session(other, 9).result(0)
    assert compiler.num_cached_bytes == sizes[1] - sizes[0]  # the first has grown, and had to go
    compiler.session(first, 9).result(0)
    assert compiler.num_compiled == 3


def test_sources_that_say_the_same_are_compiled_once() -> None:
    forms = [Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA, indent=indent)) for indent in (None, 1, 2)]
    long = Constraint(ConstraintKind.JSON_SCHEMA, forms[0].source + " " * 100_000)
    compiler, _ = make(Inline())
    for source in (*forms, long, *forms, long):
        assert compiler.session(source, 90).exception(0) is None
    assert (compiler.num_compiled, compiler.num_cache_hits) == (1, 7)
    assert len(compiler._cache) == 1
    assert long not in compiler._forms
    reordered = {"required": ["name"], **SCHEMA}
    compiler.session(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(reordered)), 90).result(0)
    assert compiler.num_compiled == 2
    for number in range(600):  # what is remembered is bounded
        compiler.session(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA) + " " * (2 + number)), 90).result(0)
    assert compiler.num_compiled == 2
    assert len(compiler._forms) <= 256


def test_refusals_are_kept_by_what_sources_say_too() -> None:
    compiler, _ = make(Inline())
    for blanks in range(3):
        wrong = Constraint(ConstraintKind.JSON_SCHEMA, '{"type":' + " " * blanks + '"nothing"}')
        assert isinstance(compiler.session(wrong, 9).exception(0), ConstraintError)
    assert compiler.num_compiled == 1
    for _ in range(2):
        malformed = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": ')
        assert isinstance(compiler.session(malformed, 9).exception(0), ConstraintError)
    assert compiler.num_compiled == 2


def test_what_was_kept_on_disk_is_found_by_the_next_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrammarStore.__init__, "__defaults__", (1 << 20, 0.0))  # however short the compile
    texts = []
    for attempt in range(2):
        compiler, _ = make(Inline(), grammar_cache_dir=str(tmp_path))
        session = compiler.session(JSON, 60).result(0)
        texts.append(generate(session, 60, random.Random(7)))
        jsonschema.validate(json.loads(texts[-1]), SCHEMA)
        backend, _ = compiler._make_backend()
        assert isinstance(backend, RtlangBackend)
        assert backend.store is not None
        backend.store.flush()
        assert backend.store.counts.hits == attempt
        assert len(list(tmp_path.iterdir())) == 1
    assert texts[0] == texts[1]


def test_a_directory_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    compiler, _ = make(Inline(), grammar_cache_dir=str(tmp_path / "file" / "below"))
    assert compiler.session(JSON, 60).exception(0) is None


def test_a_compilation_that_nobody_waits_for_any_more_is_stopped_and_forgotten() -> None:
    compiler, timers = make()
    stopped = threading.Event()

    class Patient:
        def compile(self, constraint: Constraint, is_unwanted: threading.Event) -> Any:
            timers.started[0].action()
            assert is_unwanted.is_set()
            stopped.set()
            raise GrammarError("the compile was cancelled")

    working = compiler._make_backend()[0]
    compiler._backend = Patient()
    with pytest.raises(ConstraintError, match="within 3 s"):
        compiler.session(WORD, 9).result(60)
    assert stopped.wait(60)
    compiler._backend = working
    while isinstance(error := compiler.session(WORD, 9).exception(60), ConstraintError):
        assert "within 3 s" in str(error)  # the thread that was stopped is on its way out
    assert error is None
    compiler.close()


def test_the_directory_on_disk_is_told_when_a_compiler_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiler, _ = make(Inline(), is_ready=False, grammar_cache_dir="here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert compiler.session(WORD, 9).exception(0) is None
    assert (tmp_path / "here").is_dir()
    with pytest.raises(ConfigError, match="grammar_cache_dir"):
        make(Inline(), is_ready=False, grammar_cache_dir="~nobody-of-this-name/x")


class BrokenMatcher:
    """A matcher whose library panics."""

    is_accepting = is_terminated = False

    def fill_bitmask(self, mask: Any) -> None:
        mask.fill(-1)
        raise PanicError("index out of bounds")

    def accept_token(self, token_id: int) -> bool:
        raise PanicError("index out of bounds")


class PanicError(BaseException):
    """Panics of compiled libraries are no Exceptions."""


def test_a_matcher_that_fails_fails_its_own_session_only() -> None:
    compiler, _ = make(grammar_threads=2)
    good = [compiler.session(WORD, 9).result(60) for _ in range(4)]
    bad = compiler.session(WORD, 9).result(60)
    bad._matcher = BrokenMatcher()  # type: ignore[assignment]
    sessions = [*good[:2], bad, *good[2:]]
    bitmask = np.full((6, VOCABULARY.num_mask_words), 7, dtype=np.int32)
    compiler.fill(sessions, bitmask).result(60)
    expected = row()
    compiler.session(WORD, 9).result(60).fill(expected)
    for index in (0, 1, 3, 4):
        assert (bitmask[index] == expected).all()
        sessions[index].raise_if_failed()
    assert not bitmask[2].any()
    assert (bitmask[5] == 7).all()
    with pytest.raises(ConstraintError, match="index out of bounds"):
        bad.raise_if_failed()
    with pytest.raises(ConstraintError, match="index out of bounds"):
        bad.accept(ord("a"), 9)
    assert compiler.num_compiled == 2  # what may be broken was not given out again
    compiler.close()


@pytest.mark.parametrize("num_threads", [1, 3])
def test_masks_filled_on_threads_equal_masks_filled_here(num_threads: int) -> None:
    compiler, _ = make(grammar_threads=num_threads)
    rng = random.Random(0)
    sessions = [compiler.session(rng.choice([JSON, WORD]), 60).result(60) for _ in range(23)]
    mask = row()
    for _ in range(10):
        bitmask = np.zeros((len(sessions), VOCABULARY.num_mask_words), dtype=np.int32)
        compiler.fill(sessions, bitmask).result(60)
        for index, session in enumerate(sessions):
            session.fill(mask)
            assert (bitmask[index] == mask).all()
            drawn = [token for token in allowed_ids(mask) if token not in session.end_token_ids]
            if drawn:
                session.accept(rng.choice(drawn), 40)
    compiler.fill([], np.zeros((0, VOCABULARY.num_mask_words), dtype=np.int32)).result(60)
    compiler.close()


def test_the_times_of_compilations_and_of_masks_are_observed() -> None:
    metrics = Metrics()
    compiler, _ = make(Inline(), metrics=metrics)
    session = compiler.session(WORD, 9).result(0)
    compiler.session(WORD, 9).result(0)  # from the cache
    compiler.session(BROKEN, 9)
    for _ in range(3):
        compiler.fill([session], np.zeros((1, VOCABULARY.num_mask_words), dtype=np.int32)).result(0)
    values = metrics.snapshot()
    assert values["rtlang_grammar_compile_seconds_count"] == 2
    assert values["rtlang_mask_seconds_count"] == 3


def test_closing_cancels_what_waits_behind_a_compilation_that_is_stuck() -> None:
    compiler, _ = make()
    assert compiler.session(JSON, 60).exception(60) is None
    compiler._backend = stuck = StuckBackend()  # type: ignore[assignment]
    # as many as the first lane has threads
    running = [compiler.session(each, 9) for each in (WORD, Constraint(ConstraintKind.REGEX, "x+"))]
    assert all(stuck.begun.acquire(timeout=60) for _ in running)
    behind = compiler.session(Constraint(ConstraintKind.REGEX, "y+"), 9)
    assert not behind.done()
    compiler.close()
    assert behind.cancelled()
    assert all(each.cancelled() for each in running)
    assert compiler.session(JSON, 1).cancelled()
    stuck.release.set()


def test_closing_cancels_what_waits_and_takes_nothing_new() -> None:
    manual = Manual()
    compiler, timers = make(manual)
    waiting = compiler.session(WORD, 9)
    compiler.close()
    compiler.close()
    assert waiting.cancelled()
    assert not timers.started
    assert compiler.session(WORD, 9).cancelled()
    manual.run()
    assert compiler.num_compiled == 0


def test_masks_prepared_on_threads_equal_masks_filled_here() -> None:
    metrics = Metrics()
    compiler, _ = make(metrics=metrics)
    session, twin = (compiler.session(WORD, 9).result(60) for _ in range(2))
    woken = threading.Event()
    compiler.prepare(session, woken.set)
    assert woken.wait(60)
    assert not session.is_preparing
    prepared, filled = row(), row()
    session.fill(prepared)
    twin.fill(filled)
    assert (prepared == filled).all()
    assert len(prepared) == VOCABULARY.num_mask_words
    wait_until(lambda: metrics.snapshot()["rtlang_mask_seconds_count"] == 1)
    compiler.close()


def test_sessions_of_one_constraint_share_its_mask_times(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, _ = make()
    monkeypatch.setattr("rtlang.engine.constraints.session.SLOW_FILL_S", -1.0)
    first = compiler.session(WORD, 9).result(60)
    assert not first.is_slow
    first.fill(row())
    second, other = compiler.session(WORD, 9).result(60), compiler.session(JSON, 60).result(60)
    assert (first.is_slow, second.is_slow, other.is_slow) == (True, True, False)
    monkeypatch.setattr("rtlang.engine.constraints.session.SLOW_FILL_S", 1000.0)
    for _ in range(32):
        compiler.session(WORD, 9).result(60).fill(row())
    assert not second.is_slow
    compiler.close()
