"""Slow compilations move aside: what waits behind them is delayed by slices, not by their time."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.lanes import NUM_THREADS, SLICES_S, CancelFlag, CompileLanes
from rtlang.work.fair_queue import Owner
from rtlang_grammars import Constraint, ConstraintKind, GrammarError, Vocabulary
from tests.support.grammars.vocabularies import small_vocabulary
from tests.support.waiting import wait_until

ATTACKER = Owner("local", "attacker")


class Tokenizer:
    """Only a vocabulary."""

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        return small_vocabulary()


class Clock:
    """Moves by one millisecond when it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def test_a_compilation_ends_after_its_slice_and_rests_in_it() -> None:
    clock, rests = Clock(), []
    flag = CancelFlag(threading.Event(), 0.1, lambda: rests.append(clock.now), clock=clock)
    while not flag.is_set():
        pass
    assert flag.is_over
    assert 0.1 <= clock.now <= 0.103
    assert rests[0] > 0.01  # a quick one does not rest
    assert 20 <= len(rests) <= 90


def test_a_compilation_goes_on_after_its_slice_until_others_wait() -> None:
    clock, others = Clock(), []
    flag = CancelFlag(threading.Event(), 0.1, makes_way=lambda: bool(others), clock=clock)
    while clock.now < 0.2:
        assert not flag.is_set()
    others.append("job")
    assert flag.is_set()
    assert flag.is_over


def test_a_compilation_that_nobody_wants_ends_in_every_lane() -> None:
    lanes = CompileLanes(1)
    for lane in range(len(SLICES_S)):
        unwanted = threading.Event()
        with lanes.working(unwanted, lane) as flag:
            assert not flag.is_set()
            unwanted.set()
            assert flag.is_set()
            assert not flag.is_over
    lanes.close()


def test_the_last_lane_has_no_slice() -> None:
    assert SLICES_S[-1] == math.inf
    assert list(SLICES_S) == sorted(SLICES_S)
    assert len(SLICES_S) == len(NUM_THREADS)


class ScriptedBackend:
    """Compiles the patterns that begin with x for ever, in slices that the test ends; the others with a real backend."""

    def __init__(self, real: object) -> None:
        self._real = real
        self.begun: list[tuple[str, str]] = []
        self.slices, self.is_closed = threading.Semaphore(0), False

    def compile(self, constraint: Constraint, flag: CancelFlag) -> object:
        self.begun.append((threading.current_thread().name, constraint.source))
        if constraint.source.startswith("x"):
            assert self.slices.acquire(timeout=60)
            flag.is_over = not self.is_closed
            raise GrammarError("the compile was cancelled")
        return self._real.compile(constraint, flag)  # type: ignore[attr-defined]


@pytest.fixture
def scripted() -> object:
    vocabulary = small_vocabulary()
    compiler = ConstraintCompiler(RuntimeConfig(grammar_timeout_s=60.0), Tokenizer(), vocabulary.vocab_size)
    compiler._make_backend()
    backend = compiler._backend = ScriptedBackend(compiler._backend)  # type: ignore[assignment]
    yield compiler, backend
    backend.is_closed = True
    for _ in range(200):
        backend.slices.release()
    compiler.close()


def hostile(compiler: ConstraintCompiler, count: int) -> list[Future[object]]:
    sources = [f"x{{{number}}}" + "y" * 20 for number in range(count)]
    return [compiler.session(Constraint(ConstraintKind.REGEX, each), 60, ATTACKER) for each in sources]  # type: ignore[misc]


@pytest.mark.parametrize("client", ["other", "attacker"])
def test_hostile_patterns_hold_up_a_small_one_by_one_slice(
    scripted: tuple[ConstraintCompiler, ScriptedBackend], client: str
) -> None:
    compiler, backend = scripted
    bombs = hostile(compiler, 100)
    wait_until(lambda: len(backend.begun) == NUM_THREADS[0])  # all threads of the first lane are busy
    small = compiler.session(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 60, Owner("local", client))
    backend.slices.release()  # the end of one slice
    assert small.exception(30) is None
    assert not any(each.done() for each in bombs)


def test_the_lanes_behind_the_first_do_not_hold_up_anyone() -> None:
    lanes, goes_on = CompileLanes(1), threading.Event()
    for lane in range(1, len(SLICES_S)):
        for _ in range(10):
            lanes.submit(lambda: goes_on.wait(60), owner=ATTACKER, size=0, lane=lane)  # type: ignore[arg-type, return-value]
    assert lanes.submit(lambda: None, owner=Owner("local", "other"), size=9).exception(30) is None
    goes_on.set()
    lanes.close()
