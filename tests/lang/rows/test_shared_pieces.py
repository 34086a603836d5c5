"""Shares of pieces, from the arguments of all runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rtlang.compiler.context import ShareOf
from rtlang.contract.request_graph import Ref
from rtlang.lang.rows.shared_pieces import SharedPieces

ARGUMENTS = [
    ((), {"document": "the shared one", "question": "first question", "tags": ["x"]}),
    ((), {"document": "the shared one", "question": "second question", "tags": ["x", 7]}),
    ((), {"document": "another one", "question": "third question", "tags": []}),
    ((), {"document": "the shared one", "question": "fourth question", "tags": []}),
]


def shares(arguments: Sequence[Any], most: int | None = None) -> list[ShareOf]:
    pieces = SharedPieces(most)
    return [pieces.add(each) for each in arguments]


def test_an_argument_is_shared_by_the_runs_that_have_it() -> None:
    share = shares(ARGUMENTS)[0]
    assert share(("the shared one",)).share == 0.75
    assert share(("first question",)).share == 0.25
    assert share(("x",)).share == 0.5


def test_text_of_the_program_is_shared_by_all_and_an_argument_in_it_counts() -> None:
    share = shares(ARGUMENTS)[1]
    assert share(("Answer briefly.",)).share == 1.0
    assert share(("Question: second question?",)).share == 0.25
    assert share(("extra x",)).share == 1.0  # too short to be found by chance
    assert share(("7",)).share == 0.25


def test_generated_values_are_shared_by_none() -> None:
    assert shares(ARGUMENTS)[2](("a", Ref(3))) == (0.0, None)


def test_arguments_of_equal_share_have_one_order_in_all_runs() -> None:
    documents = [["lamp shelf", "mug shelf"], ["mug shelf", "lamp shelf"], ["mug shelf", "rake shelf"], ["lamp shelf"]]
    found = shares([(each,) for each in documents])
    for share in found[:2]:
        lamp, mug = share(("lamp shelf",)), share(("- mug shelf",))
        assert lamp.share == mug.share == 0.75
        assert lamp.rank is not None
        assert mug.rank is not None
        assert lamp.rank < mug.rank
    assert found[2](("rake shelf",)).rank is None  # nobody else has it
    assert found[2](("Catalog:",)).rank is None


@pytest.mark.parametrize("asks_early", [False, True])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_only_the_latest_runs_count(most: int, asks_early: bool) -> None:
    generator = random.Random(most)
    arguments = [[f"document {generator.randrange(6)}", f"question {number}"] for number in range(40)]
    pieces = SharedPieces(most)
    for number, each in enumerate(arguments):
        share = pieces.add(each)
        if not asks_early and number < len(arguments) - 1:
            continue
        latest = arguments[max(0, number + 1 - most) : number + 1]
        assert share((each[0],)).share == sum(other[0] == each[0] for other in latest) / len(latest)
        assert share((f"About {each[1]}.",)).share == 1 / len(latest)
        assert share(("Answer.",)).share == 1.0
    assert len(pieces._arguments) == len(pieces._leaves) == min(most, 40)
    assert set(pieces._counts) == set(pieces._ranks) == {leaf for each in arguments[-most:] for leaf in each}


def test_a_run_that_was_forgotten_shares_nothing_of_its_own() -> None:
    first, *_ = shares(["first text", "second text", "third text"], most=2)
    assert first(("first text",)) == (0.0, None)
    assert first(("Answer.",)).share == 1.0
