"""Masks where many frames are open at once: those of trying every token."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
BACKEND = RtlangBackend.create(VOCABULARY)


def tagged(number: int, *, is_open: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "type": {"const": f"t{number}"},
        "id": {"type": ["integer", "string"]},
        f"n{number}": {"type": "array", "items": {"enum": [number, "abc", None]}},
    }
    return {"type": "object", "properties": properties, "required": ["type"], "additionalProperties": is_open}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_masks_of_unions_of_objects_are_those_of_trying_every_token(keyword: str) -> None:
    options = [tagged(i, is_open=keyword == "anyOf" and i % 3 == 0) for i in range(24)]
    schema = {"type": "array", "items": {keyword: [*options, {"type": "string", "maxLength": 5}]}}
    grammar = BACKEND.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), ANY_STYLE))
    rng, row = random.Random(4), np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    values = [[{"id": 12, "type": "t3", "n3": [3, "abc"]}, "abc"], [{"n17": [None], "type": "t17", "id": "a b"}, {}]]
    for value in values[:1] if keyword == "oneOf" else values:
        matcher = grammar.matcher()
        for token_id in spell(VOCABULARY, json.dumps(value), rng):
            matcher.fill_bitmask(row)
            forced = matcher.forced_bytes()
            allowed = allowed_ids(row)
            assert allowed == [t for t in range(VOCABULARY.vocab_size) if matcher.fork().accept_token(t)]
            texts = [VOCABULARY.token_bytes[t] for t in allowed]
            assert all(text.startswith(forced) or forced.startswith(text) for text in texts)
            if not matcher.accept_token(token_id):
                assert value is values[1]
                break
        else:
            assert value is values[0]
            assert matcher.is_accepting
