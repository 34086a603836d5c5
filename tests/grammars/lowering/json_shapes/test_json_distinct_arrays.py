"""Arrays of different elements out of few values: every array of up to five, and every way out of every state."""

from __future__ import annotations

import functools
import itertools
import json
import random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
VALUES: list[list[Any]] = [
    [1, 12, "a", "ab", None, True],
    [0.5, 1.0, "é", 'x"y', "", False],
    [f"v{index}" for index in range(70)],
]


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def matcher_of(schema: Any) -> MachineMatcher:
    matcher = backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))).matcher()
    assert isinstance(matcher, MachineMatcher)
    return matcher


@pytest.mark.parametrize("bounds", [{}, {"minItems": 2}, {"minItems": 1, "maxItems": 3}], ids=str)
@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values[:2]))
def test_arrays_are_accepted_as_jsonschema_says(values: list[Any], bounds: dict[str, int]) -> None:
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, **bounds}
    assert compile_shapes(schema).report.is_exact
    matcher, oracle = matcher_of(schema), Draft202012Validator(schema)
    rng = random.Random(3)
    arrays = [list(each) for size in range(4) for each in itertools.product(values[:5], repeat=size)]
    for array in [*arrays, rng.sample(values, len(values)), rng.sample(values, 5)]:
        text = json.dumps(array, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
        assert matcher.accepts([*spell(VOCABULARY, text, rng), END]) is oracle.is_valid(array), text


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values[:2]))
def test_every_allowed_token_leads_to_a_valid_array(values: list[Any]) -> None:
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": min(6, len(values))}
    oracle, rng = Draft202012Validator(schema), random.Random(4)
    for _ in range(4):
        matcher, text = matcher_of(schema), b""
        for _ in range(40):
            closing = matcher.closing_bytes()
            assert closing is not None
            assert oracle.is_valid(json.loads(text + closing))
            allowed = [token for token in tokens_of(matcher) if token not in VOCABULARY.eos_token_ids]
            if not allowed:
                break
            token = rng.choice(allowed)
            assert matcher.accept_token(token)
            text += VOCABULARY.token_bytes[token]


def tokens_of(matcher: MachineMatcher) -> list[int]:
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


@pytest.mark.parametrize(
    ("items", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 40}, [[1, 40, 7]], [[7, 7], [41]]),
        ({"type": "string", "pattern": "^[ab]c?$"}, [["a", "ac", "b", "bc"]], [["a", "a"]]),
        ({"type": ["boolean", "null"]}, [[True, None, False]], [[None, None]]),
        ({"anyOf": [{"const": 1}, {"enum": ["x", 1.0]}]}, [[1, "x"]], [[1, 1.0]]),
    ],
    ids=str,
)
def test_values_need_not_be_listed_to_be_few(items: Any, good: list[Any], bad: list[Any]) -> None:
    schema = {"type": "array", "items": items, "uniqueItems": True}
    matcher = matcher_of(schema)
    assert compile_shapes(schema).report.is_exact
    for array in good:
        assert matcher.accepts([*spell(VOCABULARY, json.dumps(array)), END]), array
    for array in bad:
        assert not matcher.accepts([*spell(VOCABULARY, json.dumps(array)), END]), array


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string"}},
        {"items": {"enum": [[], [1]]}, "minItems": 1, "prefixItems": [{"type": "string"}]},
        {"items": {"enum": [f"v{index}" for index in range(500)]}},
    ],
    ids=str,
)
def test_what_cannot_be_kept_in_mind_is_left_to_be_checked(schema: Any) -> None:
    report = compile_shapes({"type": "array", "uniqueItems": True, **schema}).report
    assert [entry.keyword for entry in report.with_status(KeywordStatus.CHECKED)] == ["uniqueItems"]
