"""Drafts from a request's own text."""

from __future__ import annotations

from rtlang.engine.drafts.own_text import MAX_PROMPT_TOKENS, OwnText
from tests.engine.requests.test_request import request


def test_what_followed_in_the_prompt_is_proposed() -> None:
    source, target = OwnText(), request([10, 11, 12, 13, 14, 10, 11])
    found = source.propose(target, 3)
    assert found is not None
    assert (list(found.token_ids), found.evidence) == ([12, 13, 14], 2)
    target.token_ids.append(12)
    found = source.propose(target, 8)
    assert found is not None
    assert (list(found.token_ids)[:2], found.evidence) == ([13, 14], 3)


def test_a_text_says_nothing_about_another() -> None:
    source = OwnText()
    source.propose(request([10, 11, 12, 10, 11]), 3)
    assert source.propose(request([10, 11]), 3) is None


def test_only_the_end_of_a_long_prompt_is_searched() -> None:
    source = OwnText()
    early = request([1, 2, 3, *range(100, 100 + MAX_PROMPT_TOKENS), 1, 2])
    assert source.propose(early, 3) is None
    late = request([*range(100, 100 + MAX_PROMPT_TOKENS), 1, 2, 3, 1, 2])
    assert source.propose(late, 1) is not None
    source.forget(late)
    source.forget(early)
    assert not source._indexes
