"""The automaton check passes on correct kernels and detects each kind of mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels.triton.grammar.automaton_store import AutomatonStore
from rtlang_kernels_bench import automaton_checks
from tests.support.kernels.gpu import DEVICE

NUM_TOKENS = 90


def test_masks_and_transitions_match_the_languages() -> None:
    assert automaton_checks.check(NUM_TOKENS, DEVICE) == 0


def test_the_languages_accept_the_documented_texts() -> None:
    assert automaton_checks.number_after("4", "9") == "49"
    assert automaton_checks.number_after("", "0") == "0"
    assert automaton_checks.number_after("0", "7") is None
    assert automaton_checks.number_after("99999999999", "9") == "999999999999"  # 7 * 142857142857
    assert automaton_checks.number_after("99999999999", "8") is None
    frames = automaton_checks.frames_of("[{[")
    assert frames == (("", 1), ("[", 0), ("{", 1), ("[", 0))
    assert automaton_checks.frames_after(frames, "]}]") == (("", 1),)
    assert automaton_checks.frames_after(frames, "]}]a") is None
    assert automaton_checks.frames_after(frames, "]]") is None
    assert automaton_checks.frames_after(frames, "[" * 9) is None


def unmoved(store: AutomatonStore, *_: Any) -> None:
    """Takes no token in."""


def flat(store: AutomatonStore, slots: Any, places: Any) -> None:
    """Forgets the open brackets."""
    PUT(store, slots, places)
    store._slots[:, 1].zero_()


def one_bit_off(store: AutomatonStore, slots: Any) -> None:
    BUILD(store, slots)
    store.masks[slots[4], -1] ^= 1


PUT, BUILD = AutomatonStore.put, AutomatonStore.build_masks


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("advance", unmoved, "at step 1"),
        ("put", flat, "at step 0"),
        ("build_masks", one_bit_off, "row 4 at step 0: 1 of"),
    ],
)
def test_wrong_results_are_detected(
    name: str, wrong: Callable[..., None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AutomatonStore, name, wrong)
    with pytest.raises(ArithmeticError, match=told):
        automaton_checks.check(NUM_TOKENS, DEVICE)


def test_tables_allow_exactly_the_languages() -> None:
    """No dead ends: every number that has begun has an end."""
    trans = automaton_checks.numbers().trans
    reached = np.unique(trans[trans >= 0])
    ends = automaton_checks.numbers().may_end
    assert all(ends[state] or (trans[state] >= 0).any() for state in reached)
