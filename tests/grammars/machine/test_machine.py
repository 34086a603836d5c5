"""The machine against independent oracles: every token tried on a fork, jsonschema on completions, replays, a benchmark."""

from __future__ import annotations

import functools
import gzip
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell
from tests.support.long_tests import sized

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SHARED = Path(os.environ.get("RTLANG_SHARED", Path(__file__).parents[4] / "shared"))

SCHEMAS: list[Any] = [
    True,
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "integer", "minimum": -3, "maximum": 120},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
    {
        "type": "array",
        "prefixItems": [{"type": "null"}, {"type": "integer"}],
        "items": {"type": "string"},
        "minItems": 1,
    },
    {"type": "array", "contains": {"type": "integer"}, "items": {"type": ["string", "integer"]}, "minContains": 2},
    {"type": "array", "contains": {"const": 1}, "maxContains": 1},
    {"type": "object", "properties": {"a": {"type": "null"}, "ab": {"type": "integer"}}, "required": ["ab"]},
    {
        "type": "object",
        "properties": {"a": {"type": "null"}, "abc": {"type": "integer"}, "name": {"enum": ["x", "é"]}},
        "required": ["abc"],
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"a": True, "b": True}, "required": ["b"], "minProperties": 2, "maxProperties": 3},
    {"type": "object", "properties": {"a": False, "b": {"type": "null"}}, "maxProperties": 2},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "properties": {"xa": {"type": "null"}}},
    {"type": "object", "propertyNames": {"pattern": "^[a-c]+$"}, "minProperties": 1},
    {"type": "object", "properties": {f"n{i}": {"type": "null"} for i in range(70)}, "required": ["n3", "n65"]},
    {"enum": ["é", 1, 2.5, None, [1, 2], {"é": False}, 'quote"d']},
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}}, "required": ["b"]},
        ]
    },
    {"$ref": "#/$defs/t", "$defs": {"t": {"type": ["array", "null"], "items": {"$ref": "#/$defs/t"}}}},
    {"type": "string", "pattern": "^(a|bc)+$", "minLength": 3},
    {"type": "string", "pattern": "^(a|é|b{2}|日c)+$", "maxLength": 4, "minLength": 1},
    {"type": "string", "pattern": "^(?:\\S+\\s){0,3}\\S+$", "maxLength": 9},
    {"type": "array", "items": {"type": "string", "pattern": "^[^a]*(\n|b)$", "maxLength": 60}},
    {
        "properties": {"日本": {"type": "null"}, 'a"b': {"type": "null"}},
        "required": ["日本"],
        "additionalProperties": False,
    },
]
SCHEMAS.append(  # more containers than are built at once
    {
        "type": "object",
        "properties": {
            f"k{i}": {
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {"type": "object", "required": [f"n{i}"]}, "minItems": 1}
                },
                "required": ["a"],
            }
            for i in range(40)
        },
        "required": ["k39"],
        "additionalProperties": False,
    }
)
PATTERNS = ["[ab]*a[ab]{3}", "(é|日){1,3}x?", "", "a{2,3}|b+c", r"\d{2}-\d{2}"]
CONSTRAINTS = [
    *(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)) for schema in SCHEMAS),
    *(Constraint(ConstraintKind.REGEX, pattern) for pattern in PATTERNS),
    Constraint(ConstraintKind.CHOICE, json.dumps(["a", "ab", "日本", "b c"])),
]


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


@functools.cache
def grammar(constraint: Constraint) -> CompiledGrammar:
    return backend().compile(constraint)


def matcher_of(constraint: Constraint) -> MachineMatcher:
    matcher = grammar(constraint).matcher()
    assert isinstance(matcher, MachineMatcher)
    return matcher


def mask(matcher: MachineMatcher, vocabulary: Vocabulary = VOCABULARY) -> list[int]:
    row = np.full(vocabulary.num_mask_words, -1, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


def draw(allowed: list[int], rng: random.Random) -> int | None:
    """A token that is no end token, joints of JSON preferred."""
    allowed = [token for token in allowed if token not in VOCABULARY.eos_token_ids]
    joints = [token for token in allowed if VOCABULARY.token_bytes[token][:1] in b'"{[]},:']
    return rng.choice(joints if joints and rng.random() < 0.5 else allowed) if allowed else None


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: f"{c.kind}:{c.source[:40]}")
def test_mask_equals_trying_every_token_and_every_way_can_be_completed(constraint: Constraint) -> None:
    rng = random.Random(7)
    schema = json.loads(constraint.source) if constraint.kind is ConstraintKind.JSON_SCHEMA else None
    for _ in range(3):
        matcher, tokens = matcher_of(constraint), list[int]()
        for _ in range(14):
            allowed = mask(matcher)
            assert allowed == [t for t in range(-1, VOCABULARY.vocab_size + 1) if matcher.fork().accept_token(t)]
            assert matcher.is_accepting == (END in allowed)
            assert matcher.is_terminated == (set(allowed) == VOCABULARY.eos_token_ids)
            closing = matcher.shortest_completion(400)
            assert closing is not None, VOCABULARY.text_of(tokens)
            assert matcher.accepts([*closing, END])
            if schema is not None:
                jsonschema.Draft202012Validator(schema).validate(json.loads(VOCABULARY.text_of([*tokens, *closing])))
            token = draw(allowed, rng)
            if token is None:
                break
            assert matcher.accept_token(token)
            tokens.append(token)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: f"{c.kind}:{c.source[:40]}")
def test_rollback_and_fork_equal_a_replay(constraint: Constraint) -> None:
    rng = random.Random(8)
    for _ in range(3):
        matcher, tokens = matcher_of(constraint), list[int]()
        while len(tokens) < 12 and (token := draw(mask(matcher), rng)) is not None:
            assert matcher.accept_token(token)
            tokens.append(token)
        back = rng.randint(0, len(tokens))
        fork = matcher.fork()
        matcher.rollback(back)
        replay = matcher_of(constraint)
        assert all(map(replay.accept_token, tokens[: len(tokens) - back]))
        assert (mask(matcher), matcher.is_accepting) == (mask(replay), replay.is_accepting)
        assert matcher.accepts(tokens[len(tokens) - back :])
        assert all(map(matcher.accept_token, tokens[len(tokens) - back :]))
        assert mask(matcher) == mask(fork)


def test_taking_back_more_than_was_accepted_is_refused() -> None:
    matcher = matcher_of(CONSTRAINTS[0])
    with pytest.raises(ValueError, match="num_tokens = "):
        matcher.rollback(1)


@pytest.mark.parametrize(
    "style", [{}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}], ids=str
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_every_style_of_json_dumps_is_accepted(style: dict[str, Any], ensure_ascii: bool) -> None:
    schema = {
        "properties": {"日本": {"items": {"required": ["a"]}}},
        "required": ["日本"],
        "additionalProperties": False,
    }
    value = {"日本": [{"a": [[1.5, -2e30, "é😀\n"], {}, []], "ü": None}, True]}
    text = json.dumps(value, ensure_ascii=ensure_ascii, **style)
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    assert matcher_of(constraint).accepts([*spell(VOCABULARY, text, random.Random(1)), END])


def test_blanks_are_bounded() -> None:
    matcher = matcher_of(CONSTRAINTS[0])
    assert not matcher.accepts(spell(VOCABULARY, "[" + " " * 100))
    assert not matcher.accepts(spell(VOCABULARY, "[\n" + " " * 100))


def test_a_declared_name_comes_once_and_is_not_hidden_in_escapes() -> None:
    schema = {"properties": {"a": {"type": "null"}, "é": {"type": "null"}}}
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    for text in (
        '{"a": null, "a"',
        r'{"a": null, "\u0061"',
        r'{"\u0061": 1',
        '{"a": 1',
        '{"é": null, "\\u00e9"',
        '{"\\u00e9": 1',
    ):
        assert not matcher_of(constraint).accepts(spell(VOCABULARY, text)), text
    for text in (
        '{"b": 1, "bb": 2}',
        r'{"\u0062": 1}',
        '{"é": null, "aé": 1}',
        r'{"\u00E9": null}',
        '{"\\u00e9": null}',
    ):
        assert matcher_of(constraint).accepts([*spell(VOCABULARY, text), END]), text


NAMES = st.sampled_from(["a", "ab", "abc", "b", "name", "x y", "é"])
LEAVES = st.sampled_from(
    [
        {"type": "null"},
        {"type": "integer"},
        {"type": "string", "maxLength": 2},
        {"enum": ["a", "ab", 1]},
        {"type": "boolean"},
        True,
    ]
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of objects, arrays and alternatives over others."""
    objects = st.builds(
        lambda members, required, more: {
            "type": "object",
            "properties": members,
            "required": sorted(required & members.keys()),
            "additionalProperties": more,
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES),
        st.booleans() | inner,
    )
    arrays = st.builds(
        lambda items, low, extra: {"type": "array", "items": items, "minItems": low, "maxItems": low + extra},
        inner,
        st.integers(0, 2),
        st.integers(0, 2),
    )
    return objects | arrays | st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner)


def nested(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values that hold others."""
    return st.lists(value, max_size=3) | st.dictionaries(NAMES, value, max_size=3)


TREES = LEAVES | containers(LEAVES | containers(LEAVES))
SCALARS = st.sampled_from([None, 1, True, "a", "abc", "é"])
VALUES = SCALARS | nested(SCALARS | nested(SCALARS))


@settings(max_examples=sized(40), deadline=None, derandomize=True)
@given(TREES, st.integers(0, 1000))
def test_masks_and_completions_of_random_schemas_are_right(schema: Any, seed: int) -> None:
    rng = random.Random(seed)
    matcher, tokens = matcher_of(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))), list[int]()
    for _ in range(7):
        allowed = mask(matcher)
        probes = rng.sample(range(VOCABULARY.vocab_size), 40)
        assert [t in allowed for t in probes] == [matcher.fork().accept_token(t) for t in probes]
        closing = matcher.closing_bytes()
        assert closing is not None
        value = json.loads(VOCABULARY.text_of(tokens) + closing)
        jsonschema.Draft202012Validator(schema).validate(value)
        token = draw(allowed, rng)
        if token is None:
            break
        assert matcher.accept_token(token)
        tokens.append(token)


@settings(max_examples=sized(100), deadline=None, derandomize=True)
@given(TREES, VALUES)
def test_values_are_accepted_as_jsonschema_says(schema: Any, value: Any) -> None:
    try:
        matcher = matcher_of(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)))
    except GrammarError:
        return
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert matcher.accepts([*spell(VOCABULARY, json.dumps(value)), END]) == is_valid


def test_one_grammar_serves_many_threads() -> None:
    constraint = Constraint(
        ConstraintKind.JSON_SCHEMA, json.dumps({"type": "array", "items": {"format": "date", "type": "string"}})
    )
    shared = backend().compile(constraint)

    def run(seed: int) -> list[int]:
        rng, matcher, tokens = random.Random(seed), shared.matcher(), list[int]()
        row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
        for _ in range(20):
            matcher.fill_bitmask(row)
            token = draw(allowed_ids(row), rng)
            if token is None:
                break
            assert matcher.accept_token(token)
            tokens.append(token)
        return tokens

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, range(24)))
    assert found == [run(seed) for seed in range(24)]


def instances(count: int) -> list[tuple[str, list[dict[str, Any]]]]:
    path = SHARED / "jsonschemabench" / "dev.jsonl.gz"
    if not path.exists():
        pytest.skip(f"the development sample of jsonschemabench is not at {path}")
    with gzip.open(path) as file:
        rows = [json.loads(line) for line in file]
    return [(json.dumps(row["schema"]), row["tests"]) for row in rows[:: max(1, len(rows) // count)]]


@pytest.mark.parametrize("count", [50, pytest.param(300, marks=pytest.mark.long)])
def test_instances_of_a_benchmark_are_judged_right(count: int) -> None:
    wrong = []
    for source, tests in instances(count):
        try:
            compiled = backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, source, ANY_STYLE))
        except GrammarError:
            continue
        for test in tests:
            text = json.dumps(test["data"], ensure_ascii=False)
            accepted = compiled.matcher().accepts([*spell(VOCABULARY, text), END])
            says_so = (
                accepted and not compile_shapes(json.loads(source)).report.is_exact
            )  # left to be checked afterwards
            if accepted != test["valid"] and not says_so:
                wrong.append((source[:200], text[:200], test["valid"]))
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (ConstraintKind.JSON_SCHEMA, json.dumps({"enum": [f"value {i} x" for i in range(60_000)]})),
        (ConstraintKind.JSON_SCHEMA, json.dumps({"properties": {f"p{i}": {"type": "null"} for i in range(10_000)}})),
        (ConstraintKind.JSON_SCHEMA, json.dumps({"type": "array", "minItems": 10**6, "items": {"type": "null"}})),
        (ConstraintKind.JSON_SCHEMA, '{"items":' * 300 + "{}" + "}" * 300),
        (ConstraintKind.REGEX, "(a?){300}a{300}"),
    ],
    ids=["values", "properties", "items", "nesting", "options"],
)
def test_what_is_large_is_compiled_and_can_be_completed(kind: ConstraintKind, source: str) -> None:
    matcher = backend().compile(Constraint(kind, source)).matcher()
    assert isinstance(matcher, MachineMatcher)
    assert mask(matcher)
    assert matcher.closing_bytes() is not None


@pytest.mark.parametrize("pattern", ["[ab]*a[ab]{24}", "a{1000000000}", "(a|aa)+" * 50])
def test_patterns_of_many_states_are_followed(pattern: str) -> None:
    matcher = backend().compile(Constraint(ConstraintKind.REGEX, pattern)).matcher()
    assert isinstance(matcher, MachineMatcher)
    for _ in range(40):
        assert ord("a") in mask(matcher)
        assert matcher.accept_token(ord("a"))
