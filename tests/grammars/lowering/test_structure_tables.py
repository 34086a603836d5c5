"""Structures on the machine: against patterns that say the same, against a search through the text, and every token tried."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind, JsonStyle, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of, repeat, sequence, tagged, token
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)


def regex(pattern: str) -> Constraint:
    return Constraint(ConstraintKind.REGEX, pattern)


def schema(value: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(value))


DIGITS = regex("[0-9]+")
CHOICE = Constraint(ConstraintKind.CHOICE, '["a", "ab", ""]')
LARK = Constraint(ConstraintKind.LARK, 'start: "(" start ")" | "x"?')
GBNF = Constraint(ConstraintKind.GBNF, 'root ::= "-" root | [a-c]')
EBNF = Constraint(ConstraintKind.EBNF, "s ::= 'a' s | 'b'")
POINT = schema(
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
)
NUMBER = schema({"type": ["integer", "null"]})
ANY_NUMBER = replace(NUMBER, style=ANY_STYLE)
LISTED = schema({"enum": [1, 12, "é", [1, {"a": 2}], False]})
CALLS = tagged([("<f>", POINT, "</f>"), ("<g>", DIGITS, ""), ("<g>", regex("ab?"), ";")])

AS_PATTERNS: list[tuple[Constraint, str, str]] = [
    (sequence(), "", "ab"),
    (sequence("a", DIGITS, CHOICE, "b"), "a[0-9]+(a|ab)?b", "ab01"),
    (any_of("a", DIGITS, sequence(DIGITS, "b")), "a|[0-9]+b?", "ab01"),
    (repeat(any_of("ab", "a"), 2, 3), "(ab|a){2,3}", "ab"),
    (repeat(CHOICE), "(ab|a)*", "ab"),
    (repeat(sequence(DIGITS, "."), 1), r"([0-9]+\.)+", "01."),
    (sequence(GBNF, EBNF), "-*[a-c]a*b", "-abc"),
    (sequence(NUMBER, DIGITS), r"[ \t]{0,2}(0|-?[1-9][0-9]*|null)[0-9]+", "01-.nul "),
    (sequence(ANY_NUMBER, DIGITS), r"[ \t]{0,2}(-?(0|[1-9][0-9]*)(\.0{1,3})?([eE](\+?[0-9]{1,2}|-00?))?|null)[0-9]+", "01-.nul "),
    (sequence(LISTED, "2"), r'[ \t]{0,2}(1|12|"(é|\\u00[eE]9)"|false|\[1,\{"a":2\}\])2', '12.0"é[]'),
    (sequence(replace(LISTED, style=ANY_STYLE), "2"), r'[ \t]{0,2}(1(\.0)?|12(\.0)?|"(é|\\u00[eE]9)"|false|\[1,\{"a":2\}\])2', '12.0"é[]'),
    (any_of(regex("a*"), LARK), r"a*|x|\(x?\)|\(\(x?\)\)", "ax()"),
]  # fmt: skip

STRUCTURES = {
    **{str(i): constraint for i, (constraint, _, _) in enumerate(AS_PATTERNS)},
    "calls": CALLS,
    "one call": tagged([("<f>", POINT, "</f>")], low=1, high=1, text_behind=False),
    "two calls": tagged([("<a>", DIGITS, ""), ("<ab>", CHOICE, "!")], triggers=["<a"], low=1, high=2),
    "between": sequence("[", tagged([("((", DIGITS, "))")]), "]", NUMBER),
    "numbers": sequence(NUMBER, repeat(sequence(",", NUMBER)), LISTED),
    "nested": tagged([("<t>", tagged([("<u>", "x", "</u>")]), "</t>")]),
}


@functools.cache
def backend() -> RtlangBackend:
    made = RtlangBackend.create(VOCABULARY)
    assert isinstance(made, RtlangBackend)
    return made


@functools.cache
def matcher_of(constraint: Constraint) -> MachineMatcher:
    return backend().compile(constraint).matcher()


def accepts(constraint: Constraint, text: str) -> bool:
    return matcher_of(constraint).accepts([*spell(VOCABULARY, text), END])


def mask(matcher: MachineMatcher) -> list[int]:
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


def walks(constraint: Constraint, count: int, rng: random.Random) -> list[str]:
    """Texts of random lengths that were completed; every mask on the way is compared with trying."""
    texts = []
    for _ in range(count):
        matcher, tokens = matcher_of(constraint).fork(), list[int]()
        for _ in range(rng.randrange(16)):
            allowed = mask(matcher)
            assert allowed == [t for t in range(VOCABULARY.vocab_size) if matcher.fork().accept_token(t)]
            assert matcher.is_accepting == (END in allowed)
            closing = matcher.shortest_completion(200)
            assert closing is not None, VOCABULARY.text_of(tokens)
            assert matcher.accepts([*closing, END])
            joints = [t for t in allowed if VOCABULARY.token_bytes[t][:1] in b"<>/fg{}(),"]
            drawn = [
                t for t in (joints if joints and rng.random() < 0.6 else allowed) if t not in VOCABULARY.eos_token_ids
            ]
            if not drawn:
                break
            tokens.append(rng.choice(drawn))
            assert matcher.accept_token(tokens[-1])
        closing_bytes = matcher.closing_bytes()
        assert closing_bytes is not None
        texts.append((VOCABULARY.text_of(tokens) + closing_bytes).decode())
    return texts


@pytest.mark.parametrize(("constraint", "pattern", "alphabet"), AS_PATTERNS)
def test_structures_are_what_a_pattern_says(constraint: Constraint, pattern: str, alphabet: str) -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choice(alphabet) for _ in range(rng.randrange(7))) for _ in range(300)]
    texts += walks(constraint, 5, rng)
    texts += [text[:-1] + rng.choice(alphabet) for text in texts[300:]]
    num_good = 0
    for text in texts:
        if "\n" in text or "\r" in text or ("enum" in constraint.source and re.search(r"[\[{,:]\s|\s[\]},:]", text)):
            continue  # blanks that the pattern leaves out
        is_good = re.fullmatch(pattern, text) is not None
        if constraint is AS_PATTERNS[-1][0] and text.count("(") > 2:
            is_good = re.fullmatch(r"\(*x?\)*", text) is not None and text.count("(") == text.count(")")
        assert accepts(constraint, text) == is_good, text
        num_good += is_good
    assert num_good > 3 or not pattern


@pytest.mark.parametrize("name", STRUCTURES)
def test_mask_equals_trying_every_token_and_every_way_can_be_completed(name: str) -> None:
    for text in walks(STRUCTURES[name], 4, random.Random(name)):
        assert accepts(STRUCTURES[name], text)


def is_text_with_calls(text: str, low: int = 0, high: int = 99) -> bool:
    """Whether CALLS matches: the first trigger in what is left begins a tag."""
    found = re.search("<f>|<g>", text)
    if found is None or high == 0:
        return found is None and low == 0
    rest = text[found.end() :]
    for end in range(len(rest) + 1):
        inner, behind = rest[:end], rest[end:]
        if found[0] == "<g>":
            ways = [behind] if re.fullmatch("[0-9]+", inner) else []
            ways += [behind[1:]] if re.fullmatch("ab?", inner) and behind.startswith(";") else []
        else:
            ways = [behind[4:]] if behind.startswith("</f>") and is_point(inner) else []
        if any(is_text_with_calls(way, max(low - 1, 0), high - 1) for way in ways):
            return True
    return False


def is_point(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return jsonschema.Draft202012Validator(json.loads(POINT.source)).is_valid(value)


def test_tags_are_found_wherever_they_stand() -> None:
    rng = random.Random(5)
    pieces = ["<f>", '{"x": 1}', "</f>", "<g>", "12", "ab", ";", "<", "f>", "é日", "text ", "<<g>"]
    texts = ["".join(rng.choice(pieces) for _ in range(rng.randrange(7))) for _ in range(400)]
    texts += walks(CALLS, 12, rng)
    judged = [is_text_with_calls(text) for text in texts]
    assert 50 < sum(judged) < len(texts) - 50
    for text, is_good in zip(texts, judged, strict=True):
        assert accepts(CALLS, text) == is_good, text


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 1), (2, 3), (1, None)])
def test_tags_are_counted(low: int, high: int | None) -> None:
    for text_behind in (True, False):
        constraint = tagged([("<g>", "1", ".")], low=low, high=high, text_behind=text_behind)
        for pieces in itertools.product(["x", "<g>1."], repeat=4):
            text = "".join(pieces)
            count = text.count("<g>")
            is_good = low <= count and (high is None or count <= high)
            if not text_behind and high is not None and 0 < high == count:
                is_good = is_good and text.endswith(".")
            assert accepts(constraint, text) == is_good, text


def test_compact_is_the_style_of_all_parts() -> None:
    point = Constraint(POINT.kind, POINT.source, JsonStyle(Whitespace.COMPACT))
    compact = sequence(point, " ", point)
    assert accepts(compact, '{"x":1} {"x":2}')
    assert not accepts(compact, '{"x": 1} {"x":2}')
    assert accepts(sequence(POINT, " ", POINT), '{"x": 1}  {"x":2}')


def test_the_report_names_the_keywords_of_every_schema() -> None:
    report = backend().compile(CALLS).report
    assert report is not None
    pointers = {entry.pointer for entry in report.entries}
    assert "#/tags/0/part#/properties/x" in pointers
    assert report.is_exact


@pytest.mark.parametrize(
    ("constraint", "reason", "location"),
    [
        (sequence("a", regex("(b")), "parenthesis", "#/sequence/1 1:1"),
        (tagged([("<t>", schema({"type": "strin"}), "")]), "strin", "#/tags/0/part"),
        (Constraint(ConstraintKind.STRUCTURE, '{"kind": "regex", "source": "(b"}'), "parenthesis", "# 1:1"),
        (tagged([("<t>", regex("a*"), "")]), "empty", None),
        (sequence(regex("[^\\s\\S]")), "derives no string", None),
        (tagged([("<t>", regex("[^\\s\\S]"), "")], low=1), "derives no string", None),
        (sequence("\ud800"), "surrogate", None),
    ],
)
def test_errors_say_which_part(constraint: Constraint, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        backend().compile(constraint)
    if location is not None:
        assert (caught.value.location or "").startswith(location)


def test_a_tag_that_nothing_fits_is_never_begun() -> None:
    constraint = tagged([("<t>", regex("[^\\s\\S]"), ""), ("<u>", "x", "")])
    assert accepts(constraint, "a<u>xb")
    assert not matcher_of(constraint).accepts(spell(VOCABULARY, "a<t>"))


def test_overlapping_triggers_are_followed() -> None:
    constraint = tagged([("aab", "x", "."), ("ba", "y", ".")])
    for text, is_good in [("aaab", False), ("aaabx.", True), ("aabay.", False), ("bay.aabx.aa", True), ("abay.", True)]:
        assert accepts(constraint, text) == is_good, text


def test_one_structure_serves_models_with_a_token_and_without() -> None:
    letters = tuple(bytes([byte]) for byte in range(256))
    constraint = tagged([("<call>", Constraint(ConstraintKind.REGEX, "[0-9]"), "</call>")], triggers=["<ca"], high=1)
    with_tokens = Vocabulary((*letters, b"<call>", b"</call>", b""), frozenset({258}), frozenset({256, 257, 258}), 259)
    without = Vocabulary((*letters, b"<call>", b"</call>", b""), frozenset({258}), frozenset({258}), 259)
    for vocabulary in (with_tokens, without):
        matcher = RtlangBackend(VocabularyIndex(vocabulary)).compile(constraint).matcher()
        assert all(map(matcher.accept_token, (*b"hi ", 256)))
        assert [i for i in range(259) if matcher.accepts([i])] == [*b"0123456789"]
        assert matcher.accepts([*b"7", 257, *b" there", 258])
        assert not matcher.accepts([*b"7 "])
    spelled = [*b"<call>"]
    assert RtlangBackend(VocabularyIndex(without)).compile(constraint).matcher().accepts([*spelled, *b"7</call>"])
    matcher = RtlangBackend(VocabularyIndex(with_tokens)).compile(constraint).matcher()
    assert matcher.accepts([*spelled, *b"x"])  # five letters are text; the token alone begins a tag
    assert matcher.accepts([256, *b"7", 257])


def test_tokens_that_are_wrong_in_a_structure_are_located() -> None:
    backend = RtlangBackend(VocabularyIndex(small_vocabulary()))
    for constraint, reason, location in (
        (sequence("a", token("<|no|>")), "no token", "#/sequence/1"),
        (repeat(token(4000)), "no token 4000", "#/repeat"),
        (tagged([(token("<[1-3]>"), "a", "")]), "begins with one token", "#/tags/0/begin"),
        (tagged([(token("<|tool|>"), "a", "")], triggers=[token("<|start|>")]), "0 of the triggers", "#/tags/0"),
        (sequence(Constraint(ConstraintKind.LARK, "start: <|no|>")), "no token", "#/sequence/0 1:8"),
    ):
        with pytest.raises(GrammarError, match=reason) as caught:
            backend.compile(constraint)
        assert caught.value.location == location
