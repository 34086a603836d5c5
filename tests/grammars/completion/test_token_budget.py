"""Ending in time: random walks over many schemas, patterns and grammars always end complete within their tokens."""

from __future__ import annotations

import functools
import json
import random
import re
from fractions import Fraction
from typing import Any

import jsonschema
import lark
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import CompiledGrammar
from tests.support.grammars.vocabularies import random_text, small_vocabulary, spell

VOCABULARY = small_vocabulary()
SEARCH = CompletionSearch(VOCABULARY)
OBJECT = {"type": "object", "additionalProperties": False}

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 3, "maxLength": 9},
    {"type": "string", "pattern": "^[a-f]{2,5}-[0-9]{3}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "enum": ["alpha", "alphabet", "beta"]},
    {"const": {"a": [1, None, True]}},
    {"type": "integer"},
    {"type": "integer", "minimum": 17, "maximum": 4242},
    {"type": "integer", "minimum": -300, "exclusiveMaximum": -17},
    {"type": "integer", "multipleOf": 7},
    {"type": "number"},
    {"type": "number", "minimum": 0.5, "maximum": 1.25},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"enum": [1, "one", None, [1, 2], {"k": "v"}]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 5},
    {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 1}, "minItems": 2},
    {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "boolean"}],
        "items": False,
        "minItems": 3,
    },
    {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
    {**OBJECT, "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]},
    {**OBJECT, "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "boolean"}}},
    {**OBJECT, "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["b"]},
    {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
    {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False},
    {
        **OBJECT,
        "properties": {
            "user": {
                **OBJECT,
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["name", "tags"],
            },
            "kind": {"enum": ["free", "paid", "trial"]},
        },
        "required": ["user", "kind"],
    },
    {  # an optional member whose value is large
        **OBJECT,
        "properties": {
            "a": {"type": "integer"},
            "big": {
                **OBJECT,
                "properties": {f"field_{i}": {"type": "string", "minLength": 4} for i in range(6)},
                "required": [f"field_{i}" for i in range(6)],
            },
        },
        "required": ["a"],
    },
    {  # one token decides between a short and a long value
        "anyOf": [
            {"type": "integer"},
            {"type": "array", "items": {"type": "string", "minLength": 5}, "minItems": 6},
            {
                **OBJECT,
                "properties": {"long_key_name": {"const": "a rather long constant text"}},
                "required": ["long_key_name"],
            },
        ]
    },
    {
        "$defs": {
            "tree": {
                **OBJECT,
                "properties": {
                    "v": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                },
                "required": ["v"],
            }
        },
        "$ref": "#/$defs/tree",
    },
    {
        "$defs": {
            "list": {
                "anyOf": [
                    {"type": "null"},
                    {**OBJECT, "properties": {"next": {"$ref": "#/$defs/list"}}, "required": ["next"]},
                ]
            }
        },
        "$ref": "#/$defs/list",
    },
    {
        **OBJECT,
        "properties": {
            "tool": {"enum": ["search", "weather"]},
            "arguments": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["q"],
            },
        },
        "required": ["tool", "arguments"],
    },
    {
        "anyOf": [
            {**OBJECT, "properties": {"ok": {"const": True}, "value": {"type": "number"}}, "required": ["ok", "value"]},
            {
                **OBJECT,
                "properties": {"ok": {"const": False}, "error": {"type": "string"}},
                "required": ["ok", "error"],
            },
        ]
    },
    {
        **OBJECT,
        "properties": {
            "m": {"type": "array", "items": {"type": "array", "items": {"enum": [0, 1]}, "minItems": 3, "maxItems": 3}}
        },
        "required": ["m"],
    },
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    {
        **OBJECT,
        "properties": {'we"ird\\key': {"type": "null"}, "日本": {"type": "string", "maxLength": 3}},
        "required": ['we"ird\\key', "日本"],
    },
    {
        "type": "object",
        "properties": {"when": {"type": "string", "format": "time"}, "mail": {"type": "string", "format": "email"}},
        "required": ["when", "mail"],
    },
    {},
]


FORMATS = jsonschema.FormatChecker(("uuid", "email"))


@FORMATS.checks("date-time")
@FORMATS.checks("date")
@FORMATS.checks("time")
def is_time(value: object) -> bool:
    """The library's own checks, but for the second 60 and the year 0, which RFC 3339 has and Python has not."""
    if not isinstance(value, str):
        return True
    value = re.sub("^0000-", "2000-", value.replace(":60", ":59"))
    name = "date-time" if "T" in value.upper() else "time" if ":" in value else "date"
    return bool(jsonschema.Draft202012Validator.FORMAT_CHECKER.conforms(value, name))


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


@functools.cache
def grammar(kind: ConstraintKind, source: str) -> CompiledGrammar:
    return backend().compile(Constraint(kind, source))


def generate(compiled: CompiledGrammar, max_tokens: int, rng: random.Random) -> str | None:
    """A random walk under a keeper; None where the budget is refused at the start."""
    matcher = compiled.matcher()
    path = SEARCH.find(matcher, max_tokens)
    if path is None:
        return None
    return random_text(VOCABULARY, matcher, TokenBudget(SEARCH, path), max_tokens, rng)


def number(text: str) -> int | float:
    """A number of JSON; as an integer if it is one, since floats are not exact enough for multipleOf."""
    exact = Fraction(text)
    return int(exact) if exact.denominator == 1 else float(text)


def check_schema(index: int, walks: range) -> int:
    schema = SCHEMAS[index]
    compiled = grammar(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    shortest = SEARCH.find(compiled.matcher(), 4096)
    assert shortest is not None
    num_done = 0
    for walk in walks:
        rng = random.Random(1000 * index + walk)
        max_tokens = rng.choice([shortest.cost(), shortest.cost() + 1, shortest.cost() + rng.randint(2, 12), 60, 150])
        if max_tokens < shortest.cost():
            continue
        generated = generate(compiled, max_tokens, rng)
        assert generated is not None
        value = json.loads(generated, parse_float=number)
        validator.validate(value)
        num_done += 1
    return num_done


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_every_walk_ends_in_a_valid_value_within_its_tokens(index: int) -> None:
    assert check_schema(index, range(8)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_many_more_walks_end_in_a_valid_value_within_their_tokens(index: int) -> None:
    assert check_schema(index, range(8, 80)) >= 36


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-z]+",
        "[a-z]{3,40}x",
        "a{30}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "(ab|cd){2,}e",
        "(a|b{20})c?",
        "x*y{0,3}",
        "(yes|no|maybe not), because .+\\.",
    ],
)
def test_walks_through_patterns_match_in_full(pattern: str) -> None:
    compiled = grammar(ConstraintKind.REGEX, pattern)
    for walk in range(20):
        rng = random.Random(walk)
        generated = generate(compiled, rng.choice([10, 40, 70]), rng)
        if generated is not None:
            assert re.fullmatch(pattern, generated) is not None
    assert generate(compiled, 70, random.Random(0)) is not None


GRAMMARS = {
    "nested": 'start: "(" start ")" | "[" (start ("," start)*)? "]" | /[a-c]+/',
    "statements": """
        start: statement+
        statement: NAME "=" sum ";"
        sum: atom ("+" atom)*
        atom: NAME | /[0-9]+/ | "{" sum "}"
        NAME: /[a-z]+/
    """,
    "long way": 'start: "x" start | "begin" start "end" | "stop"',
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_walks_through_lark_grammars_parse(name: str) -> None:
    parser = lark.Lark(GRAMMARS[name], parser="earley")
    compiled = grammar(ConstraintKind.LARK, GRAMMARS[name])
    num_done = 0
    for walk in range(15):
        rng = random.Random(walk)
        generated = generate(compiled, rng.choice([6, 12, 50]), rng)
        if generated is not None:
            parser.parse(generated)
            num_done += 1
    assert num_done >= 10


def test_following_the_held_way_needs_no_search_and_no_steering(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = grammar(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMAS[23]))
    rng = random.Random(6)
    text = '{"name": "hello world", "age": 12}'
    matcher = compiled.matcher()
    path = SEARCH.find(matcher, 100)
    assert path is not None
    keeper = TokenBudget(SEARCH, path)
    monkeypatch.setattr(CompletionSearch, "find", lambda *_: pytest.fail("it searched"))
    tokens = spell(VOCABULARY, text, rng)
    for index, token in enumerate(tokens):
        assert keeper.advance(matcher, token, 100 - index) == token
    assert matcher.is_accepting


def test_remembered_tokens_are_accepted_as_others_are() -> None:
    """Budgets that ask what is remembered first take the same tokens and keep paths of the same length."""
    num_known = num_others = 0
    for index, schema in enumerate(SCHEMAS[::4]):
        compiled = grammar(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
        shortest = SEARCH.find(compiled.matcher(), 4096)
        assert shortest is not None
        for num_more in (1, 40) * 2:  # the first two texts are remembered
            rng = random.Random(1000 * index + num_more)
            left = shortest.cost() + num_more
            matchers = compiled.matcher(), compiled.matcher()
            paths = [SEARCH.find(matcher, left) for matcher in matchers]
            plain, asking = (TokenBudget(SEARCH, path) for path in paths if path is not None)
            accept_known: Any = getattr(matchers[1], "accept_known")  # noqa: B009
            while left:
                token_ids = [token_id for token_id in range(VOCABULARY.vocab_size) if matchers[0].takes(token_id)]
                if not token_ids:
                    break
                token_id = rng.choice(token_ids)
                taken = plain.advance(matchers[0], token_id, left)
                if asking.advance_known(accept_known, token_id, left):
                    found, num_known = token_id, num_known + 1
                else:
                    found, num_others = asking.advance(matchers[1], token_id, left), num_others + 1
                assert found == taken
                if taken is None:
                    break
                left -= 1
                assert asking.num_tokens_needed == plain.num_tokens_needed <= left
                assert asking.next_token() == plain.next_token()
                assert matchers[0].is_accepting == matchers[1].is_accepting
    assert min(num_known, num_others) > 50


def test_a_token_that_is_not_allowed_is_an_error() -> None:
    matcher = grammar(ConstraintKind.REGEX, "ab").matcher()
    path = SEARCH.find(matcher, 9)
    assert path is not None
    with pytest.raises(GrammarError, match="not allowed"):
        TokenBudget(SEARCH, path).advance(matcher, ord("z"), 9)
