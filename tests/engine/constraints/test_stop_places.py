"""The noted places are those at which Python's `re` calls the text complete, however tokens divide it."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from rtlang.contract.params import SamplingParams
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.constraints.stop_places import StopPlaces
from rtlang_grammars import CompletionSearch, Constraint, ConstraintKind, RtlangBackend, TokenBudget
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell
from tests.support.long_tests import sized

VOCABULARY = small_vocabulary()
REGEXES = [
    "[a-c]+",
    "(ab|abc)*",
    "a*b?c*",
    r"(\w+ )*\w+",
    "é*日?a*",
    r"\d+(\.\d+)?",
    "(aa)+b?",
    '"[^"]*"',
    "(?:the |then )+x",
]


def session_of(constraint: Constraint, params: SamplingParams) -> ConstraintSession:
    search = CompletionSearch(VOCABULARY)
    matcher = RtlangBackend.create(VOCABULARY).compile(constraint).matcher()
    path = search.find(matcher, 1000)
    assert path is not None
    session = ConstraintSession(matcher, TokenBudget(search, path), VOCABULARY.eos_token_ids, lambda: None)
    session.stop_at(StopPlaces(params, VOCABULARY.special_token_ids))
    return session


def random_text(regex: str, rng: random.Random) -> str:
    """A text that the matcher of a regex allows, chosen one character at a time among those that may follow."""
    matcher = RtlangBackend.create(VOCABULARY).compile(Constraint(ConstraintKind.REGEX, regex)).matcher()
    text = ""
    for _ in range(rng.randint(1, 14)):
        letters = [each for each in 'abcé日12. "then x' if matcher.fork().accepts(list(each.encode()))]
        if not letters:
            break
        letter = rng.choice(letters)
        for byte in letter.encode():
            assert matcher.accept_token(byte)
        text += letter
    return text


@pytest.mark.parametrize("seed", range(sized(40)))
@pytest.mark.parametrize("regex", REGEXES)
def test_places_are_complete_exactly_where_re_matches(regex: str, seed: int) -> None:
    rng = random.Random(f"{regex}{seed}")
    text = random_text(regex, rng)
    stops = tuple(rng.sample(["a", "b", "c", "é", "日", " ", "1", ".", '"'], 2))
    every = session_of(Constraint(ConstraintKind.REGEX, regex), SamplingParams(stop_regex=("x",)))
    some = session_of(Constraint(ConstraintKind.REGEX, regex), SamplingParams(stop=stops))
    tokens = spell(VOCABULARY, text, rng)
    for session in (every, some):
        for number, token_id in enumerate(tokens):
            assert session.accept(token_id, 1000 - number) == token_id
    assert every.stops is not None
    assert some.stops is not None
    for offset in range(len(text) + 1):
        is_complete = re.fullmatch(regex, text[:offset]) is not None
        assert every.stops.may_begin(offset) == is_complete, (text, offset)
        if text[offset : offset + 1] in stops:
            assert some.stops.may_begin(offset) == is_complete, (text, offset)


def test_text_that_healing_put_before_the_output_is_not_counted() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "xy(ab)+"), SamplingParams(stop=("a",)))
    session.stop_at(StopPlaces(SamplingParams(stop=("a",)), num_skipped=2))
    for number, token_id in enumerate(b"xyabab"):
        session.accept(token_id, 100 - number)
    assert session.stops is not None
    assert [offset for offset in range(5) if session.stops.may_begin(offset)] == [2, 4]


def test_a_stop_token_is_allowed_where_the_text_is_complete_and_long_enough() -> None:
    stop = VOCABULARY.tokens.names["<|tool|>"]
    params = SamplingParams(stop_token_ids=(stop, ord("c")), min_tokens=2)
    session = session_of(Constraint(ConstraintKind.REGEX, "(abc)+d?"), params)
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)

    def allowed() -> set[int]:
        session.fill(row)
        return set(allowed_ids(row)) & {stop, ord("a"), ord("c"), ord("d")}

    for number, (token_id, expected) in enumerate(
        [
            (ord("a"), {ord("a")}),
            (ord("b"), set()),
            (ord("c"), {ord("c")}),  # needed where the text is not complete: a part of it
            (ord("a"), {ord("a"), ord("d"), stop, ord("c")}),
        ]
    ):
        assert allowed() == expected
        assert session.accept(token_id, 100 - number) == token_id
    rows = np.zeros((3, VOCABULARY.num_mask_words), dtype=np.int32)
    masks = session.masks_along([ord("b"), ord("c")], rows)
    for mask, each in zip(masks, rows, strict=True):
        if mask is not None:
            mask.write(each)
    assert stop in allowed_ids(rows[2])
    assert stop not in allowed_ids(rows[1])
    assert session.num_allowed([ord("b"), ord("c"), ord("c")]) == 2
    for number, token_id in enumerate(b"bc"):
        session.accept(token_id, 90 - number)
    assert session.accept(ord("c"), 80) is None


def test_no_stop_begins_inside_a_json_string() -> None:
    session = session_of(
        Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "string"})), SamplingParams(stop=("x",))
    )
    text = '"x,x"'
    for number, token_id in enumerate(spell(VOCABULARY, text)):
        session.accept(token_id, 100 - number)
    assert session.stops is not None
    assert [offset for offset in range(len(text) + 1) if session.stops.may_begin(offset)] == [len(text)]
