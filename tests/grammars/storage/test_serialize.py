"""Dumped and loaded tables against the originals: equal masks, endings and forced texts along random texts."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.completion.completion_path import TokenTable
from rtlang_grammars.completion.forced_text import ForcedText
from rtlang_grammars.machine.automaton.json_base_states import json_base_states
from rtlang_grammars.machine.automaton.layout import HEADS
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.machine.table_completion import TableCompletion
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, Lexer, PropertyOrder, Whitespace
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.structures import sequence, tagged
from rtlang_grammars.storage.disk_cache import KEY_BYTES, packed, unpacked
from rtlang_grammars.storage.serialize import complete_rows, dump, load
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary

VOCABULARY = small_vocabulary()
KEY = bytes(KEY_BYTES)


def schema(source: Any, style: JsonStyle | None = None) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(source), style or JsonStyle())


NAMES = {f"n{i}": {"type": "integer"} for i in range(70)}
CONSTRAINTS = [
    schema({"type": "object", "properties": NAMES, "required": ["n3", "n65"], "minProperties": 5}),
    schema({"type": "object", "properties": {"a": {"pattern": "^[a-c]{2,5}$"}, "b": {"format": "date"}}}),
    schema({"type": "object", "patternProperties": {"^x_[a-z]*$": {"type": "null"}}, "minProperties": 3,
            "additionalProperties": False}),
    schema({"type": "object", "properties": {"a": {}}, "minProperties": 2, "maxProperties": 4}),
    schema({"type": "string", "minLength": 3, "maxLength": 7}),
    schema({"type": "string", "maxLength": 40, "pattern": "^[a-z0-9_-]*$"}),
    schema({"type": "array", "items": {"enum": ["a", "b", 1, None]}, "uniqueItems": True, "minItems": 2}),
    schema({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "minItems": 5}),
    schema({"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}, "minContains": 2}),
    schema({"anyOf": [{"type": "number", "multipleOf": 0.25, "minimum": 1}, {"const": {"a": [1, {"b": "é"}]}}]}),
    schema({"$defs": {"t": {"type": "object", "properties": {"l": {"$ref": "#/$defs/t"}, "v": {"format": "ipv4"}},
            "required": ["v"]}}, "$ref": "#/$defs/t"}),
    schema({"properties": {f"p{i}": {"type": "object", "properties": {"q": {"maxLength": i + 1}}} for i in range(60)}}),
    schema({"properties": {"a": {"type": "array"}, "b": {}}, "type": "object"}, JsonStyle(Whitespace.COMPACT)),
    schema({"properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["a"]},
           JsonStyle(order=PropertyOrder.DECLARED)),
    Constraint(ConstraintKind.REGEX, r"(ab|cd){3}(?!x)[a-z]{0,4}\b-\d+"),
    Constraint(ConstraintKind.CHOICE, json.dumps(["one", "two", "twofold", "drei"])),
    sequence("<", Constraint(ConstraintKind.GBNF, 'root ::= "a" root "b" | "c"')),
    sequence(Constraint(ConstraintKind.LARK, 'start: "(" start* ")" | WORD\nWORD: /[a-c]{1,3}/', lexer=Lexer.ANYWHERE)),
    tagged([("<t>", Constraint(ConstraintKind.REGEX, "[0-9]{5}"), "</t>")], low=1),
]  # fmt: skip


@pytest.fixture(scope="module")
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY, allow_checked=True)


def reloaded(grammar: RtlangGrammar, constraint: Constraint, index: VocabularyIndex) -> RtlangGrammar:
    """Through the bytes of a file."""
    base = json_base_states(constraint.style).tables
    assert complete_rows(grammar.machine.tables, max_rows=10_000, max_seconds=60.0)
    dumped = dump(grammar.machine.tables, base)
    assert dumped is not None
    entry = unpacked(packed(KEY, *dumped), KEY)
    assert entry is not None
    tables = Tables(Budget(), base)
    load(*entry, tables)
    assert not tables.makers
    tables.has_distinct_names = grammar.machine.tables.has_distinct_names
    table = TokenTable(VOCABULARY)
    machine = MachineGrammar(index, tables, int(grammar.machine.start_place.configuration[HEADS]))
    return RtlangGrammar(
        machine,
        TableCompletion(machine),
        ForcedText(VOCABULARY, index.trie.order[: index.trie.num_texts], table),
        table,
    )


def mask(matcher: Any) -> list[int]:
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: f"{c.kind}:{c.source[:40]}")
def test_loaded_tables_have_the_masks_of_fresh_ones(backend: RtlangBackend, constraint: Constraint) -> None:
    fresh = backend.compile(constraint)  # its rows are made as texts come to them
    other = reloaded(backend.compile(constraint), constraint, backend._index)
    rng = random.Random(1)
    for _ in range(4):
        one, two, text = fresh.matcher(), other.matcher(), list[int]()
        for _ in range(16):
            allowed = mask(one)
            assert mask(two) == allowed, VOCABULARY.text_of(text)
            assert two.is_accepting == one.is_accepting
            assert two.forced_bytes() == one.forced_bytes()
            for each in (one, two):
                closing = each.closing_bytes()
                assert closing is not None
                assert one.completes_bytes(closing)
                assert two.completes_bytes(closing)
            joints = [t for t in allowed if VOCABULARY.token_bytes[t][:1] in b'"{},:[]']
            liked = joints if joints and rng.random() < 0.6 else allowed
            drawn = [t for t in liked if t not in VOCABULARY.eos_token_ids]
            if not drawn:
                break
            text.append(rng.choice(drawn))
            assert one.accept_token(text[-1])
            assert two.accept_token(text[-1])


def test_closings_are_as_short_where_nothing_has_to_be_made_up(backend: RtlangBackend) -> None:
    for constraint in CONSTRAINTS:
        fresh = backend.compile(constraint)
        assert reloaded(fresh, constraint, backend._index).matcher().closing_bytes() == fresh.matcher().closing_bytes()


def test_grammars_that_never_end_are_given_up(backend: RtlangBackend) -> None:
    endless = schema({"type": "string", "pattern": "^[ab]*a[ab]{14}$"})
    tables = backend.compile(endless).machine.tables
    assert not complete_rows(tables, max_rows=500)
    assert tables.num_rows < 700
    assert not complete_rows(tables, max_seconds=0.0)


def test_tables_with_another_beginning_are_not_kept(backend: RtlangBackend) -> None:
    tables = backend.compile(CONSTRAINTS[0]).machine.tables
    assert complete_rows(tables, max_seconds=60.0)
    assert dump(tables, json_base_states(JsonStyle(Whitespace.COMPACT)).tables) is None
    dumped = dump(tables, json_base_states().tables)
    assert dumped is not None
    plain, arrays = dumped
    with pytest.raises(ValueError, match="base"):
        load(plain | {"base": [1, 2, 3]}, arrays, Tables(Budget(), json_base_states().tables))
    with pytest.raises(ValueError, match="incomplete"):
        load(plain, [arrays[0][:-1], *arrays[1:]], Tables(Budget(), json_base_states().tables))
