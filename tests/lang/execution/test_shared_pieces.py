"""Shares of pieces, from the arguments of all runs."""

from __future__ import annotations

from rtlang.contract.graph import Ref
from rtlang.lang.execution.shared_pieces import SharedPieces

ARGUMENTS = [
    ((), {"document": "the shared one", "question": "first question", "tags": ["x"]}),
    ((), {"document": "the shared one", "question": "second question", "tags": ["x", 7]}),
    ((), {"document": "another one", "question": "third question", "tags": []}),
    ((), {"document": "the shared one", "question": "fourth question", "tags": []}),
]


def test_an_argument_is_shared_by_the_runs_that_have_it() -> None:
    share = SharedPieces(ARGUMENTS).of_run(0)
    assert share(("the shared one",)) == 0.75
    assert share(("first question",)) == 0.25
    assert share(("x",)) == 0.5


def test_text_of_the_program_is_shared_by_all_and_an_argument_in_it_counts() -> None:
    share = SharedPieces(ARGUMENTS).of_run(1)
    assert share(("Answer briefly.",)) == 1.0
    assert share(("Question: second question?",)) == 0.25
    assert share(("extra x",)) == 1.0  # too short to be found by chance
    assert share(("7",)) == 0.25


def test_generated_values_are_shared_by_none() -> None:
    assert SharedPieces(ARGUMENTS).of_run(2)(("a", Ref(3))) == 0.0
