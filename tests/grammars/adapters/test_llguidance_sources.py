"""What is refused before or by the library, with its place; and what only looks like something refused."""

from __future__ import annotations

import json

import pytest

from rtlang_grammars.api.backends import create_backend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarBackend
from tests.support.vocabularies import small_vocabulary, spell

VOCABULARY = small_vocabulary()


@pytest.fixture(scope="module")
def backend() -> GrammarBackend:
    return create_backend("llguidance", VOCABULARY)


REFUSED = [
    (ConstraintKind.JSON_SCHEMA, "", "1:1"),
    (ConstraintKind.JSON_SCHEMA, "{bad", "1:2"),
    (ConstraintKind.JSON_SCHEMA, "[1]", None),
    (ConstraintKind.JSON_SCHEMA, "false", None),
    (ConstraintKind.JSON_SCHEMA, '{"minimum": NaN}', None),
    (ConstraintKind.JSON_SCHEMA, '{"properties": {"a": {"type": "text"}}}', "/properties/a/type"),
    (ConstraintKind.JSON_SCHEMA, '{"properties": {"a/b": {"not": {"type": "string"}}}}', "/properties/a~1b/not"),
    (ConstraintKind.JSON_SCHEMA, '{"anyOf": []}', "/anyOf"),
    (ConstraintKind.JSON_SCHEMA, '{"type": "array", "minItems": 5, "maxItems": 2}', "/minItems"),
    (ConstraintKind.JSON_SCHEMA, '{"type": "array", "minItems": -5}', "/minItems"),
    (ConstraintKind.JSON_SCHEMA, '{"type": "array", "uniqueItems": true}', "/uniqueItems"),
    (ConstraintKind.JSON_SCHEMA, '{"$ref": "http://localhost:1/x"}', "/$ref"),
    (ConstraintKind.JSON_SCHEMA, '{"$ref": "#/definitions/a"}', None),
    (ConstraintKind.JSON_SCHEMA, '{"type": "string", "pattern": "(?=a)"}', None),
    (ConstraintKind.JSON_SCHEMA, '{"type": "string", "format": "nonsense"}', "/format"),
    (ConstraintKind.JSON_SCHEMA, '{"oneOf": [{"type": "integer"}, {"type": "number"}]}', "/oneOf"),
    (ConstraintKind.JSON_SCHEMA, '{"type": "object", "required": ["a"], "additionalProperties": false}', None),
    (ConstraintKind.JSON_SCHEMA, "[" * 5000, None),
    (ConstraintKind.JSON_SCHEMA, '{"items":' * 200 + "{}" + "}" * 200, None),
    (ConstraintKind.JSON_SCHEMA, '{"title": "' + "x" * (3 << 20) + '"}', None),
    (ConstraintKind.JSON_SCHEMA, '{"const": "\ud800"}', None),
    (ConstraintKind.REGEX, "ab(c", "1:3"),
    (ConstraintKind.REGEX, "a(?=b)", "1:2"),
    (ConstraintKind.REGEX, r"(a)\1", "1:4"),
    (ConstraintKind.REGEX, r"\bword", None),
    (ConstraintKind.REGEX, "a$b", None),
    (ConstraintKind.REGEX, "a{5,2}", None),
    (ConstraintKind.REGEX, "[", None),
    (ConstraintKind.REGEX, "x" * (1 << 17), None),
    (ConstraintKind.CHOICE, "[]", None),
    (ConstraintKind.CHOICE, '["a", 1]', None),
    (ConstraintKind.CHOICE, '{"a": 1}', None),
    (ConstraintKind.CHOICE, "nope", "1:1"),
    (ConstraintKind.CHOICE, json.dumps([str(i) for i in range(60_000)]), None),
    (ConstraintKind.LARK, "", None),
    (ConstraintKind.LARK, 'start: "a', "1:10"),
    (ConstraintKind.LARK, 'start: "a"\n  | missing', "1:8"),
    (ConstraintKind.LARK, 'other: "a"', None),
    (ConstraintKind.LARK, "start: /a(/", "1:8"),
    (ConstraintKind.LARK, 'start: "x" <|tool|>', "1:12"),
    (ConstraintKind.LARK, "start: <[1-20]>", "1:8"),
    (ConstraintKind.LARK, 'start: a\na[max_tokens=3]: "x"*', "2:2"),
    (ConstraintKind.LARK, "start: @other", None),
]


@pytest.mark.parametrize(("kind", "source", "location"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_bad_constraint_is_refused_with_its_place(
    backend: GrammarBackend, kind: ConstraintKind, source: str, location: str | None
) -> None:
    with pytest.raises(GrammarError) as caught:
        backend.compile(Constraint(kind, source))
    assert caught.value.reason
    if location is not None:
        assert caught.value.location == location


def test_special_tokens_named_in_a_string_are_plain_text(backend: GrammarBackend) -> None:
    matcher = backend.compile(Constraint(ConstraintKind.LARK, 'start: "<|tool|>" // not <|tool|> itself')).matcher()
    special = VOCABULARY.token_bytes.index(b"<|tool|>")
    assert not matcher.accept_token(special)
    assert matcher.accepts(spell(VOCABULARY, "<|tool|>"))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (ConstraintKind.REGEX, r"[^\s\S]"),
        (ConstraintKind.REGEX, r"ab[^\s\S]"),
        (ConstraintKind.LARK, "start: start"),
        (ConstraintKind.LARK, "start: a\na: b\nb: a"),
        (ConstraintKind.LARK, "start: T\nT: /a/ & /b/"),
        (ConstraintKind.JSON_SCHEMA, '{"$ref": "#"}'),
        (ConstraintKind.JSON_SCHEMA, '{"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#"}}}'),
    ],
)
def test_what_nothing_matches_is_said_in_plain_words(
    backend: GrammarBackend, kind: ConstraintKind, source: str
) -> None:
    with pytest.raises(GrammarError, match=r"^no text can match: .* refers to itself without end$"):
        backend.compile(Constraint(kind, source))


MANY_WORDS = [f"/.*x{index}.*/" for index in range(30)]


@pytest.mark.parametrize(
    "source",
    [
        "start: T\nT: " + " & ".join(MANY_WORDS),
        "start: A0\n" + "\n".join(f"A{i}: {word} & A{i + 1}" for i, word in enumerate(MANY_WORDS)) + "\nA30: /x/",
        "start: T\nT: " + "/a/ & " * 9 + "T",
        'start: %json {"type": "string", "allOf": [' + ", ".join(f'{{"pattern": "x{i}"}}' for i in range(30)) + "]}",
    ],
)
def test_a_lark_grammar_that_joins_many_patterns_is_refused_at_once(backend: GrammarBackend, source: str) -> None:
    with pytest.raises(GrammarError, match="at most 8 are allowed") as caught:
        backend.compile(Constraint(ConstraintKind.LARK, source))
    assert caught.value.location is not None


def test_lark_patterns_joined_at_different_places_are_served(backend: GrammarBackend) -> None:
    terminals = "\n".join(f"T{i}: /[a-{letter}&]+/ & /..?/" for i, letter in enumerate("bcdefghijklmnop"))
    source = f'start: {" ".join(f"T{i}" for i in range(15))} "&&&&&&&&&"\n{terminals}'
    assert backend.compile(Constraint(ConstraintKind.LARK, source)).matcher().accept_token(ord("a"))
