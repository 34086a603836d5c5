"""The llguidance adapter against independent oracles: every token tried, jsonschema, re, and forks against replays."""

from __future__ import annotations

import contextlib
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rtlang_grammars.api.backends import create_backend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarBackend, GrammarMatcher
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "tags": {"type": "array", "items": {"enum": ["ab", "abc"]}, "maxItems": 2},
            "n": {"type": "integer", "minimum": -5, "maximum": 130},
        },
        "required": ["name", "n"],
        "additionalProperties": False,
    }
)
SOURCES = [
    Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA),
    Constraint(ConstraintKind.JSON_SCHEMA, "true"),
    Constraint(ConstraintKind.REGEX, r"[a-c]{2,5}(é|日|😀)*\d?"),
    Constraint(ConstraintKind.REGEX, r"(\+?\d{1,3} )?[0-9]{3}-[0-9]{4}"),
    Constraint(ConstraintKind.CHOICE, json.dumps(["ab", "abc", "a b", "日本", 'quote"s', "."], ensure_ascii=False)),
    Constraint(ConstraintKind.LARK, 'start: term (("+" | "-") term)*\nterm: /[0-9]{1,3}/ | "(" start ")"'),
]


@pytest.fixture(scope="module")
def backend() -> GrammarBackend:
    return create_backend("llguidance", VOCABULARY)


def mask(matcher: GrammarMatcher, vocabulary: Vocabulary = VOCABULARY) -> list[int]:
    row = np.full(vocabulary.num_mask_words, -1, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


def walk(matcher: GrammarMatcher, rng: random.Random, num_tokens: int) -> list[int]:
    """Random allowed tokens, no end token."""
    tokens: list[int] = []
    while len(tokens) < num_tokens:
        choices = [token for token in mask(matcher) if token not in VOCABULARY.eos_token_ids]
        if not choices:
            break
        tokens.append(rng.choice(choices))
        assert matcher.accept_token(tokens[-1])
    return tokens


@pytest.mark.parametrize("constraint", SOURCES, ids=lambda c: f"{c.kind}:{c.source[:20]}")
def test_mask_equals_trying_every_token_where_there_is_a_choice(
    backend: GrammarBackend, constraint: Constraint
) -> None:
    rng = random.Random(1)
    grammar = backend.compile(constraint)
    for _ in range(4):
        matcher = grammar.matcher()
        for _ in range(12):
            tried = [token for token in range(-1, VOCABULARY.vocab_size + 1) if matcher.fork().accept_token(token)]
            forced = matcher.forced_tokens()
            assert mask(matcher) == (forced[:1] or tried)  # forced text is spelled as the tokenizer would
            assert tried == [token for token in range(VOCABULARY.vocab_size) if matcher.accepts([token])]
            ends = VOCABULARY.eos_token_ids & set(tried)
            assert ends == (VOCABULARY.eos_token_ids if matcher.is_accepting else set())
            assert matcher.is_terminated == (matcher.is_accepting and set(tried) == ends)
            if not walk(matcher, rng, 1):
                break


@pytest.mark.parametrize("constraint", SOURCES, ids=lambda c: f"{c.kind}:{c.source[:20]}")
def test_rollback_and_fork_equal_a_replay(backend: GrammarBackend, constraint: Constraint) -> None:
    rng = random.Random(2)
    grammar = backend.compile(constraint)
    for _ in range(6):
        matcher = grammar.matcher()
        tokens = walk(matcher, rng, 15)
        back = rng.randint(0, len(tokens))
        replay = grammar.matcher()
        assert all(map(replay.accept_token, tokens[: len(tokens) - back]))
        fork = matcher.fork()
        if matcher.is_accepting and rng.random() < 0.7:  # an end token is a token to take back, too
            assert matcher.accept_token(min(VOCABULARY.eos_token_ids))
            assert matcher.is_terminated
            assert mask(matcher) == []
            matcher.rollback(1)
        matcher.rollback(back)
        assert (mask(matcher), matcher.is_accepting, matcher.is_terminated) == (
            mask(replay),
            replay.is_accepting,
            replay.is_terminated,
        )
        assert matcher.accepts(tokens[len(tokens) - back :])
        untouched = grammar.matcher()
        assert all(map(untouched.accept_token, tokens))
        assert mask(fork) == mask(untouched)


def test_rollback_beyond_the_start_is_refused(backend: GrammarBackend) -> None:
    matcher = backend.compile(SOURCES[2]).matcher()
    with pytest.raises(ValueError, match="num_tokens = "):
        matcher.rollback(1)


def test_accepts_does_not_change_the_matcher_and_knows_the_end(backend: GrammarBackend) -> None:
    first, second = sorted(VOCABULARY.eos_token_ids)
    matcher = backend.compile(Constraint(ConstraintKind.REGEX, "ab?c")).matcher()
    for end in (first, second):
        assert matcher.accepts([*spell(VOCABULARY, "abc"), end])
        assert matcher.accepts([*spell(VOCABULARY, "ac"), end])
        assert not matcher.accepts([*spell(VOCABULARY, "ab"), end])
        assert not matcher.accepts([end])
        assert not matcher.accepts([end, *spell(VOCABULARY, "abc")])
    assert matcher.accepts([])
    assert matcher.accepts(spell(VOCABULARY, "ab"))
    assert not matcher.accepts([*spell(VOCABULARY, "ab"), 10**9])


@pytest.mark.parametrize(
    ("pattern", "alphabet"),
    [
        ("[a-c]{2,4}", "abcd"),
        ("^ab*$", "ab"),
        ("(ab|a)(c|bcd)?", "abcd"),
        (r"\d+(\.\d+)?", "0.9x"),
        (r"a.c", "abc\n日"),
        (r"[^a]+b", "ab日"),
        (r"(?i)ab", "abAB"),
        (r"x{0,2}y?\$", "xy$"),
        (r"\w\s?", "a 1_-"),
        ("", "a"),
        ("a|", "ab"),
    ],
)
def test_regex_agrees_with_re_fullmatch(backend: GrammarBackend, pattern: str, alphabet: str) -> None:
    rng = random.Random(3)
    grammar = backend.compile(Constraint(ConstraintKind.REGEX, pattern))
    for _ in range(150):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 6)))
        tokens = spell(VOCABULARY, text, rng)
        complete = grammar.matcher().accepts([*tokens, min(VOCABULARY.eos_token_ids)])
        assert complete == (re.fullmatch(pattern, text) is not None), text


def test_choices_are_exactly_the_given_texts(backend: GrammarBackend) -> None:
    choices = ["a", "ab", "a.b", "日本", "\n", 'x"y', "é\\", "^$", "tab\there", " ", "-[]"]
    grammar = backend.compile(Constraint(ConstraintKind.CHOICE, json.dumps(choices)))
    end = min(VOCABULARY.eos_token_ids)
    for text in choices:
        assert grammar.matcher().accepts([*spell(VOCABULARY, text), end]), text
    for text in ("", "b", "a.", "axb", "日", "abc", "x", "$", "ab "):
        assert not grammar.matcher().accepts([*spell(VOCABULARY, text), end]), text


def test_json_is_written_in_the_style_of_json_dumps(backend: GrammarBackend) -> None:
    grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA))
    end = min(VOCABULARY.eos_token_ids)
    value = {"name": "ab", "tags": ["ab", "abc"], "n": 12}
    assert grammar.matcher().accepts([*spell(VOCABULARY, json.dumps(value)), end])
    for text in (json.dumps(value, indent=1), json.dumps(value, separators=(",", ":")), " " + json.dumps(value)):
        assert not grammar.matcher().accepts([*spell(VOCABULARY, text), end])


def test_forced_tokens_are_the_only_way_on(backend: GrammarBackend) -> None:
    matcher = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA)).matcher()
    forced = matcher.forced_tokens()
    assert b'{"name": "'.startswith(VOCABULARY.text_of(forced))
    assert len(VOCABULARY.text_of(forced)) >= 6
    assert matcher.accepts(forced)
    assert backend.compile(Constraint(ConstraintKind.REGEX, "[ab]+")).matcher().forced_tokens() == []


@pytest.mark.parametrize("padding", [0, 13, 31, 32])
def test_a_vocabulary_without_end_token_works(padding: int) -> None:
    base = small_vocabulary(has_end=False)
    vocabulary = Vocabulary(base.token_bytes, frozenset(), base.special_token_ids, len(base.token_bytes) + padding)
    matcher = create_backend("llguidance", vocabulary).compile(Constraint(ConstraintKind.REGEX, "ab?")).matcher()
    assert [vocabulary.token_bytes[token] for token in mask(matcher, vocabulary)] == [b"a", b"ab"]
    assert matcher.accept_token(ord("a"))
    assert matcher.is_accepting
    assert mask(matcher, vocabulary) == [ord("b")]
    assert matcher.accept_token(ord("b"))
    assert matcher.is_terminated
    assert mask(matcher, vocabulary) == []


def test_a_row_of_the_wrong_shape_or_type_is_refused(backend: GrammarBackend) -> None:
    matcher = backend.compile(SOURCES[0]).matcher()
    words = VOCABULARY.num_mask_words
    for row in (np.zeros(words + 1, np.int32), np.zeros(words, np.int64), np.zeros(2 * words, np.int32)[::2]):
        with pytest.raises(ValueError, match="row"):
            matcher.fill_bitmask(row)  # type: ignore[arg-type]


HEAVY = [
    (ConstraintKind.REGEX, "(a?){300}a{300}"),
    (ConstraintKind.REGEX, "(.*a){20}"),
    (ConstraintKind.REGEX, "(x+x+)+y"),
    (ConstraintKind.REGEX, "a{100000}{1000}"),
    (ConstraintKind.REGEX, r"(\pL|\d){1,5000}"),
    (ConstraintKind.CHOICE, json.dumps([f"choice number {i}" for i in range(20_000)])),
    (ConstraintKind.JSON_SCHEMA, json.dumps({"enum": list(range(20_000))})),
    (ConstraintKind.JSON_SCHEMA, json.dumps({"properties": {f"p{i}": {"type": "integer"} for i in range(1500)}})),
    (ConstraintKind.JSON_SCHEMA, json.dumps({"type": "array", "minItems": 100_000})),
    (ConstraintKind.JSON_SCHEMA, json.dumps({"type": "string", "minLength": 1_000_000})),
    (ConstraintKind.JSON_SCHEMA, '{"$ref": "#"}'),
    (ConstraintKind.LARK, "start: start start | "),
    (ConstraintKind.LARK, 'start: "a" start "a" | "a"'),
]


@pytest.mark.parametrize(("kind", "source"), HEAVY, ids=lambda value: str(value)[:30])
def test_a_heavy_constraint_is_served_or_refused(backend: GrammarBackend, kind: ConstraintKind, source: str) -> None:
    rng = random.Random(4)
    with contextlib.suppress(GrammarError):  # a bound of the library was reached
        matcher = backend.compile(Constraint(kind, source)).matcher()
        assert walk(matcher, rng, 20) or matcher.is_accepting


def test_one_grammar_serves_many_threads(backend: GrammarBackend) -> None:
    grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA))

    def run(seed: int) -> list[int]:
        return walk(grammar.matcher(), random.Random(seed), 30)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(40))) == [run(seed) for seed in range(40)]


def _lark_chain(count: int) -> Constraint:
    rules = ["start: a0", *(f"a{i}: a{i + 1}" for i in range(count)), f'a{count}: "x"']
    return Constraint(ConstraintKind.LARK, "\n".join(rules))


def _chain_of_references(count: int) -> Constraint:
    links = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(count)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**links, f"a{count}": {"const": "x"}}}
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))


@pytest.mark.parametrize("constraint", [_lark_chain(15_000), _chain_of_references(30_000)], ids=["rules", "references"])
def test_long_chains_do_not_run_over_the_stack(backend: GrammarBackend, constraint: Constraint) -> None:
    matcher = backend.compile(constraint).matcher()
    assert not matcher.is_accepting
    assert mask(matcher)


def test_what_makes_the_library_panic_is_a_short_error(backend: GrammarBackend) -> None:
    count = 10_000
    link = {"type": "object", "required": ["x"]}
    links = {f"a{i}": {**link, "properties": {"x": {"$ref": f"#/$defs/a{i + 1}"}}} for i in range(count)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**links, f"a{count}": {"const": "x"}}}
    with pytest.raises(GrammarError, match="too large or too complex") as caught:
        backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)))
    assert len(str(caught.value)) < 200
