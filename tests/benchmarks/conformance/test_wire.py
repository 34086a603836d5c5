"""What the checks are made of."""

from __future__ import annotations

import pytest

from rtlang_bench.conformance.wire import CHECKS, CheckError, check_offsets, expect, ids_of, text_of

DELTA = {"t": "delta", "n": 1}


def test_offsets_must_follow_each_other_for_each_choice() -> None:
    check_offsets([DELTA | {"o": 0}, DELTA | {"o": 0, "i": 1}, DELTA | {"o": 1}])
    with pytest.raises(CheckError, match="offset 2"):
        check_offsets([DELTA | {"o": 0}, DELTA | {"o": 2}])
    with pytest.raises(CheckError, match="offset 0"):
        check_offsets([DELTA | {"o": 0}, DELTA | {"o": 0}])


def test_texts_and_ids_are_joined() -> None:
    messages = [
        DELTA | {"d": "a", "ids": [1]},
        {"t": "event"},
        DELTA | {"d": "b", "i": 1},
        DELTA | {"d": "c", "ids": [2]},
    ]
    assert (text_of(messages), text_of(messages, choice=1), ids_of(messages)) == ("ac", "b", [1, 2])


def test_a_claim_that_does_not_hold_fails() -> None:
    expect(1, "")
    with pytest.raises(CheckError, match="why"):
        expect(0, "why")


def test_claims_are_unique() -> None:
    import rtlang_bench.conformance.__main__  # noqa: F401  (registers the checks)

    claims = [entry.claim for entry in CHECKS]
    assert len(set(claims)) == len(claims) > 50
