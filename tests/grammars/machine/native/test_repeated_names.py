"""Names that come twice in one object: masks, steps and completions against Python's reader of JSON."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.machine.native.repeated_names import MAX_NAMES
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.vocabulary import Vocabulary

_PIECES = (
    b'"a"', b'a"', b'","a', b'","a"', b'"a":1,"a"', b'1,"a"', b'":1,"a"', b'"},{"a":1', b'{"a":1,"b":2', b'{"a":1,"a":2',
    b'\\u0061"', b'61"', b'ab"', b'"ab":', b'"":"",', b'b","a"', b'"b":{"a":1},"a"', b'a":1,"a":1', b'a":[1],"b"', b'{"x":{"a',
)  # fmt: skip
_END = 256
VOCABULARY = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), b"<end>", *_PIECES),
    frozenset({_END}),
    frozenset({_END}),
    257 + len(_PIECES),
)
SCHEMAS: list[Any] = [
    True,
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {}}, "required": ["a"]},
    {"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False},
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
            {"type": "object", "additionalProperties": {"type": ["integer", "object"]}},
        ]
    },
    {"type": "object", "propertyNames": {"pattern": "^[ab]+$"}},
    {"type": "object", "minProperties": 4},
    {"type": "object", "properties": {"é": {"type": "integer"}}, "maxProperties": 5},
]
BACKEND = RtlangBackend(
    VocabularyIndex(VOCABULARY), schema_options=SchemaOptions(default_dialect="2020-12"), allow_checked=True
)


def compiled(schema: Any, style: JsonStyle | None = None) -> RtlangGrammar:
    return BACKEND.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), style or JsonStyle()))


def has_repeats(text: str) -> bool:
    found = False

    def watch(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=watch)
    return found


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"b":2}',
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
        '{"a":{"a":1},"b":{"a":1}}',
        '[{"a":1},{"a":1}]',
        '{"é":1,"\\u00e9":2}',
        '{"😀":1,"\\uD83D\\ude00":2}',
        '{"a":"a\\"","b":["a","a"],"a":1}',
        '{"":1,"":2}',
        '{"a\\n":1,"a\\u000a":1}',
        '{"a\\/":1,"a/":1}',
        '{"a":1,"aa":{"x":[{"a":1,"a":2}]}}',
        '{"a":1,"aa":2,"aaa":{"aa":1},"aab":3}',
        '{ "a" : "\\\\" , "b" : "\\"" , "a" : 1 }',
    ],
)
def test_texts_are_refused_where_a_name_comes_twice(text: str) -> None:
    assert compiled(True).matcher().completes_bytes(text.encode()) == (not has_repeats(text))


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_masks_steps_and_completions_agree(schema: Any) -> None:
    rng, grammar = random.Random(0), compiled(schema)
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    liked = [*range(257, VOCABULARY.vocab_size), *b'{}":,1ab[]']
    for _ in range(12):
        matcher, text = grammar.matcher(), b""
        for _ in range(20):
            matcher.fill_bitmask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
            for token_id in range(VOCABULARY.vocab_size):
                assert matcher.fork().accept_token(token_id) == bits[token_id], (text, token_id)
            closing = matcher.closing_bytes()
            assert closing is not None, text
            assert matcher.completes_bytes(closing)
            assert not has_repeats((text + closing).decode())
            allowed = np.flatnonzero(bits).tolist()
            near = [each for each in liked if bits[each]]
            token_id = rng.choice(near if near and rng.random() < 0.9 else allowed)
            if not matcher.accept_token(token_id) or token_id == _END:
                break
            text += VOCABULARY.token_bytes[token_id]


def test_a_completion_finds_a_name_when_the_short_ones_are_taken() -> None:
    names = [chr(code) for code in range(33, 127) if chr(code) not in '"\\']
    text = "{" + ",".join(f"{json.dumps(name)}:0" for name in ("", *names)) + ',"'
    matcher = compiled({"type": "object"}).matcher()
    assert all(map(matcher.accept_token, text.encode()))
    closing = matcher.closing_bytes()
    assert closing is not None
    assert not has_repeats(text + closing.decode())


def test_as_many_names_as_are_kept_are_compared() -> None:
    text = ",".join(f'"{number}":0' for number in range(MAX_NAMES + 2))
    matcher = compiled(True).matcher()
    assert all(map(matcher.accept_token, ("{" + text).encode()))
    assert not matcher.completes_bytes(f',"{MAX_NAMES - 1}":0}}'.encode())
    assert matcher.completes_bytes(f',"{MAX_NAMES}":0}}'.encode())


def test_names_of_a_limited_form_may_come_twice() -> None:
    """A name of which only used ones are left could not be completed, so none is compared."""
    schema = {"type": "object", "propertyNames": {"pattern": "^[A-Z]{3}$"}}
    assert compiled(schema).matcher().completes_bytes(b'{"USD":1,"USD":2}')


@pytest.mark.parametrize("order", PropertyOrder)
def test_orders_and_layouts_keep_names_distinct(order: PropertyOrder) -> None:
    grammar = compiled({"properties": {"a": {}}, "required": ["a"]}, JsonStyle(Whitespace.COMPACT, order))
    assert grammar.matcher().completes_bytes(b'{"a":1,"b":1}')
    assert not grammar.matcher().completes_bytes(b'{"a":1,"b":1,"b":1}')
    assert not grammar.matcher().completes_bytes(b'{"a":1,"b":1,"a":1}')
