"""The oracle at the level of masks: random schemas, patterns and grammars, random states, and checks that know nothing of the engine."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rtlang_grammars import ANY_STYLE, Constraint, ConstraintKind, GrammarError, Lexer, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.reading.options import SchemaOptions
from tests.support.grammars.mask_oracle import MaskOracle, vocabulary_of
from tests.support.grammars.random_grammars import LETTERS, lark_accepts, lark_grammars, lark_parser
from tests.support.long_tests import sized
from tests.support.schemas.json_spellings import spelled
from tests.support.schemas.random_schemas import NAMES, composed, containers, schemas, with_python_patterns

QUICK = settings(max_examples=sized(50), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG = settings(
    max_examples=sized(1200, usual=100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SEEDS = st.integers(0, 1 << 16)


class Kit:
    """A vocabulary and a backend for it."""

    def __init__(self, texts: list[bytes]) -> None:
        self.vocabulary: Vocabulary = vocabulary_of(texts, random.Random(2))
        options = SchemaOptions(default_dialect="2020-12")
        self.backend = RtlangBackend(VocabularyIndex(self.vocabulary), schema_options=options, allow_checked=True)

    def compile(self, kind: ConstraintKind, source: str) -> RtlangGrammar | str:
        """The compiled constraint, with every text of a valid JSON value, or why it is refused."""
        try:
            return self.backend.compile(Constraint(kind, source, ANY_STYLE, Lexer.ANYWHERE))
        except GrammarError as error:
            return error.reason


# JSON schemas


@functools.cache
def universe() -> list[Any]:
    """Values that random schemas speak of."""
    rng = random.Random(5)
    scalars = [None, False, True, 0, 1, 2, 3, -1, 0.5, 1.0, 2.5, "", "a", "b", "ab", "x1", "abc", "é\n"]
    values: list[Any] = [*scalars]
    for size in range(150):
        inner = scalars if size < 75 else values
        values.append([rng.choice(inner) for _ in range(rng.randint(0, 3))])
        values.append({name: rng.choice(inner) for name in rng.sample(NAMES, rng.randint(0, 3))})
    return values


@functools.cache
def json_kit() -> Kit:
    rng = random.Random(6)
    return Kit([spelled(value, rng, escapes=0.0, numbers=False).encode() for value in universe() for _ in range(2)])


def judge_json(validator: Draft202012Validator, text: bytes) -> bool | None:
    """Whether a text is a valid value; None where that depends on who reads it (names that come twice, numbers out of range)."""
    doubtful = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubtful
        doubtful |= len({name for name, _ in pairs}) < len(pairs)
        return dict(pairs)

    def number(text: str) -> float:
        nonlocal doubtful
        doubtful |= not math.isfinite(float(text))
        return float(text)

    value = json.loads(text, object_pairs_hook=members, parse_float=number)
    return None if doubtful else validator.is_valid(value)


def check_schema(schema: Any, seed: int) -> None:
    rng, kit = random.Random(seed), json_kit()
    validator = Draft202012Validator(with_python_patterns(schema))
    valid = [value for value in universe() if validator.is_valid(value)]
    grammar = kit.compile(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    if isinstance(grammar, str):
        assert "nothing satisfies" in grammar, (schema, grammar)
        assert not valid, (schema, grammar, valid[0])
        return
    assert grammar.report is not None
    is_exact = grammar.report.is_exact
    texts = [
        spelled(value, rng, escapes=0.0, numbers=False).encode() for value in rng.sample(valid, min(40, len(valid)))
    ]

    def is_valid(text: bytes) -> bool | None:
        return judge_json(validator, text) if is_exact else None

    oracle = MaskOracle(grammar.matcher, kit.vocabulary, is_valid, texts, schema)
    for _ in range(2):
        oracle.walk(rng)


@given(schemas() | composed(schemas(unevaluated=True), unevaluated=True), SEEDS)
@QUICK
def test_masks_of_random_schemas_are_right(schema: Any, seed: int) -> None:
    check_schema(schema, seed)


@given(containers(), SEEDS)
@QUICK
def test_masks_of_random_containers_are_right(schema: Any, seed: int) -> None:
    check_schema(schema, seed)


@pytest.mark.slow
@given(schemas() | containers() | composed(schemas(unevaluated=True), unevaluated=True), SEEDS)
@LONG
def test_masks_of_many_random_schemas_are_right(schema: Any, seed: int) -> None:
    check_schema(schema, seed)


# Numbers


@functools.cache
def number_texts() -> dict[bytes, Fraction]:
    """Numbers as they are written by programs, with their values."""
    rng = random.Random(7)
    values = [rng.randint(-40, 140) for _ in range(120)]
    texts = {str(value): Fraction(value) for value in (*values, *range(-12, 13), 1000, 12345, -999)}
    for value in values:
        for places in (1, 2, 3):
            text = f"{'-' if value < 0 else ''}{abs(value) // 10**places}.{abs(value) % 10**places:0{places}}"
            texts[text] = Fraction(text)
    for text in ("1e-07", "2.5e+16", "-1e+16", "1e-05", "1.25e-08"):
        texts[text] = Fraction(text)
    return {text.encode(): value for text, value in texts.items()}


@functools.cache
def number_kit() -> Kit:
    return Kit(list(number_texts()))


BOUNDS = st.integers(-60, 140).map(lambda number: number / 10) | st.integers(-12, 130)
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["number", "integer"])},
    optional={
        "minimum": BOUNDS,
        "maximum": BOUNDS,
        "exclusiveMinimum": BOUNDS,
        "exclusiveMaximum": BOUNDS,
        "multipleOf": st.sampled_from([1, 2, 3, 7, 0.5, 0.1, 0.25, 2.5, 100]),
        "not": st.sampled_from([{"multipleOf": 2}, {"const": 3}, {"enum": [0, 0.5]}, {"type": "integer"}]),
    },
)


def number_is_valid(schema: dict[str, Any], value: Fraction) -> bool:
    """The meaning of the keywords of `NUMBERS`, in exact arithmetic."""

    def exact(number: float) -> Fraction:
        return Fraction(str(number))

    holds = [
        schema["type"] == "number" or value.denominator == 1,
        "minimum" not in schema or value >= exact(schema["minimum"]),
        "maximum" not in schema or value <= exact(schema["maximum"]),
        "exclusiveMinimum" not in schema or value > exact(schema["exclusiveMinimum"]),
        "exclusiveMaximum" not in schema or value < exact(schema["exclusiveMaximum"]),
        "multipleOf" not in schema or (value / exact(schema["multipleOf"])).denominator == 1,
    ]
    excluded = schema.get("not", {})
    if "multipleOf" in excluded:
        holds.append((value / excluded["multipleOf"]).denominator != 1)
    if "type" in excluded:
        holds.append(value.denominator != 1)
    if "const" in excluded or "enum" in excluded:
        holds.append(value not in {exact(number) for number in excluded.get("enum", [excluded.get("const", 0)])})
    return all(holds)


@given(NUMBERS, SEEDS)
@QUICK
def test_masks_of_random_numbers_are_right(schema: dict[str, Any], seed: int) -> None:
    rng, kit = random.Random(seed), number_kit()
    # beside steps numbers have few exponents, and integers none
    excluded = schema.get("not", {}).keys() - {"const", "enum"}
    forms = rb"-?\d+" if schema["type"] == "integer" else rb"[^e]+" if "multipleOf" in schema else rb".*"
    is_plain = re.compile(rb"[^+]+" if excluded and forms == rb".*" else forms)
    valid = [
        text for text, value in number_texts().items() if number_is_valid(schema, value) and is_plain.fullmatch(text)
    ]
    grammar = kit.compile(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    if isinstance(grammar, str):
        assert "nothing satisfies" in grammar, (schema, grammar)
        assert not valid, (schema, valid)
        return

    def is_valid(text: bytes) -> bool:
        assert re.fullmatch(rb"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text)
        return number_is_valid(schema, Fraction(text.decode()))

    oracle = MaskOracle(grammar.matcher, kit.vocabulary, is_valid, rng.sample(valid, min(40, len(valid))), schema)
    for _ in range(3):
        oracle.walk(rng)


# Patterns

ALPHABET = "abé"


@functools.cache
def words(size: int = 5) -> list[str]:
    """All texts over the alphabet up to a size."""
    return ["".join(each) for count in range(size + 1) for each in itertools.product(ALPHABET, repeat=count)]


@functools.cache
def pattern_kit() -> Kit:
    return Kit([word.encode() for word in words()])


ATOMS = st.sampled_from(
    ["a", "b", "é", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "(?=a)", "(?!b)", "(?=.*é)", "(?<=a)", "(?<!b)"]
)


def grouped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "*?", "{0}"])
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, counts).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
    )


PATTERNS = st.recursive(ATOMS, grouped, max_leaves=7)


@given(PATTERNS, SEEDS)
@settings(QUICK, max_examples=sized(120))
def test_masks_of_random_patterns_are_right(pattern: str, seed: int) -> None:
    rng, kit = random.Random(seed), pattern_kit()
    meaning = re.compile(pattern)
    valid = [word for word in words() if meaning.fullmatch(word)]
    grammar = kit.compile(ConstraintKind.REGEX, pattern)
    if isinstance(grammar, str):
        assert "matches no string" in grammar, (pattern, grammar)
        assert not valid, (pattern, valid[0])
        return

    def is_valid(text: bytes) -> bool:
        return meaning.fullmatch(text.decode()) is not None

    oracle = MaskOracle(grammar.matcher, kit.vocabulary, is_valid, [word.encode() for word in valid], pattern)
    for _ in range(2):
        oracle.walk(rng)


# Grammars


@functools.cache
def lark_words(size: int = 5) -> list[str]:
    letters = f"{LETTERS}."
    return ["".join(each) for count in range(size) for each in itertools.product(letters, repeat=count)]


@functools.cache
def lark_kit() -> Kit:
    return Kit([word.encode() for word in lark_words()])


@given(lark_grammars(), SEEDS)
@settings(QUICK, max_examples=12)
def test_masks_of_random_grammars_are_right(source: str, seed: int) -> None:
    rng, kit, parser = random.Random(seed), lark_kit(), lark_parser(source)
    if parser is None:
        return
    valid = [word for word in lark_words() if lark_accepts(parser, word)]
    grammar = kit.compile(ConstraintKind.LARK, source)
    if isinstance(grammar, str):
        assert not valid, (source, grammar, valid[0])
        return

    def is_valid(text: bytes) -> bool | None:
        # the closing may be long, and Earley parsers are slow
        return lark_accepts(parser, text.decode()) if len(text) < 30 else None

    texts = [word.encode() for word in rng.sample(valid, min(60, len(valid)))]
    oracle = MaskOracle(grammar.matcher, kit.vocabulary, is_valid, texts, source)
    oracle.walk(rng)
