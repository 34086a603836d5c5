"""Slow compilations move aside: what waits behind them is delayed by slices, not by their time."""

from __future__ import annotations

import threading
import time

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.constraints.lanes import SLICE_S, CompileLanes
from rtlang_grammars import Constraint, ConstraintKind, GrammarError, Vocabulary
from tests.support.vocabularies import small_vocabulary


class Tokenizer:
    """Only a vocabulary."""

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        return small_vocabulary()


def endless(flag: threading.Event) -> None:
    """A compilation that ends only when it is stopped."""
    while not flag.is_set():
        pass


def test_a_compilation_in_the_fast_lane_ends_after_its_slice() -> None:
    lanes = CompileLanes(1)
    flag = lanes.cancel_flag(threading.Event(), is_slow=False)
    started = time.thread_time()
    endless(flag)
    assert flag.is_over
    assert time.thread_time() - started >= SLICE_S * 0.9
    lanes.close()


def test_a_compilation_that_nobody_wants_ends_in_either_lane() -> None:
    lanes = CompileLanes(1)
    for is_slow in (False, True):
        unwanted = threading.Event()
        flag = lanes.cancel_flag(unwanted, is_slow=is_slow)
        assert not flag.is_set()
        unwanted.set()
        assert flag.is_set()
        assert not flag.is_over
    lanes.close()


class EndlessBackend:
    """Compiles the patterns that begin with x for ever, the others with a real backend."""

    def __init__(self, real: object) -> None:
        self._real = real
        self.num_slow = 0

    def compile(self, constraint: Constraint, flag: threading.Event) -> object:
        if constraint.source.startswith("x"):
            endless(flag)
            self.num_slow += not flag.is_over  # type: ignore[attr-defined]
            raise GrammarError("the compile was cancelled")
        return self._real.compile(constraint, flag)  # type: ignore[attr-defined]


@pytest.mark.parametrize("owner", ["attacker", "canary"], ids=["of the same principal", "of another"])
def test_hostile_patterns_do_not_hold_up_a_small_one(owner: str) -> None:
    vocabulary = small_vocabulary()
    compiler = ConstraintCompiler(RuntimeConfig(grammar_timeout_s=60.0), Tokenizer(), vocabulary.vocab_size)
    compiler._make_backend()
    compiler._backend = EndlessBackend(compiler._backend)  # type: ignore[assignment]
    hostile = [
        compiler.session(Constraint(ConstraintKind.REGEX, f"x{{{index}}}"), 60, "attacker") for index in range(12)
    ]
    small = compiler.session(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 60, owner)
    assert small.exception(30) is None  # all twelve together would take as long as twelve time limits
    assert not any(future.done() for future in hostile)
    compiler.close()
