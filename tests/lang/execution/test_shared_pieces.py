"""Shares of pieces, from the arguments of all runs."""

from __future__ import annotations

from rtlang.contract.request_graph import Ref
from rtlang.lang.execution.shared_pieces import SharedPieces

ARGUMENTS = [
    ((), {"document": "the shared one", "question": "first question", "tags": ["x"]}),
    ((), {"document": "the shared one", "question": "second question", "tags": ["x", 7]}),
    ((), {"document": "another one", "question": "third question", "tags": []}),
    ((), {"document": "the shared one", "question": "fourth question", "tags": []}),
]


def test_an_argument_is_shared_by_the_runs_that_have_it() -> None:
    share = SharedPieces(ARGUMENTS).of_run(0)
    assert share(("the shared one",)).share == 0.75
    assert share(("first question",)).share == 0.25
    assert share(("x",)).share == 0.5


def test_text_of_the_program_is_shared_by_all_and_an_argument_in_it_counts() -> None:
    share = SharedPieces(ARGUMENTS).of_run(1)
    assert share(("Answer briefly.",)).share == 1.0
    assert share(("Question: second question?",)).share == 0.25
    assert share(("extra x",)).share == 1.0  # too short to be found by chance
    assert share(("7",)).share == 0.25


def test_generated_values_are_shared_by_none() -> None:
    assert SharedPieces(ARGUMENTS).of_run(2)(("a", Ref(3))) == (0.0, None)


def test_arguments_of_equal_share_have_one_order_in_all_runs() -> None:
    documents = [["lamp shelf", "mug shelf"], ["mug shelf", "lamp shelf"], ["mug shelf", "rake shelf"], ["lamp shelf"]]
    shares = [SharedPieces([(each,) for each in documents]).of_run(index) for index in range(4)]
    for share in shares[:2]:
        lamp, mug = share(("lamp shelf",)), share(("- mug shelf",))
        assert lamp.share == mug.share == 0.75
        assert lamp.rank is not None
        assert mug.rank is not None
        assert lamp.rank < mug.rank
    assert shares[2](("rake shelf",)).rank is None  # nobody else has it
    assert shares[2](("Catalog:",)).rank is None
