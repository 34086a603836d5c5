"""Our own engine behind the seam: styles of JSON, reports, errors with places, cancelling."""

from __future__ import annotations

import functools
import json
import random
import threading
from typing import Any

import jsonschema
import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.lowering.compilation import check_constraint
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.structures import tagged
from tests.support.grammars.vocabularies import allowed_ids, random_text, small_vocabulary, spell
from tests.support.long_tests import sized

VOCABULARY = small_vocabulary()
SEARCH = CompletionSearch(VOCABULARY)
END = min(VOCABULARY.eos_token_ids)
OBJECTS: list[dict[str, Any]] = [
    {"properties": {"b": {"type": "null"}, "a": {"type": "null"}, "c": {"type": "null"}}, "required": ["a"]},
    {
        "properties": {"b": {"type": "null"}, "a": {"type": "null"}, "c": {"type": "null"}},
        "required": ["c"],
        "additionalProperties": False,
    },
    {
        "properties": {name: {"type": "null"} for name in ("bb", "b", "a", "ab")},
        "minProperties": 3,
        "additionalProperties": False,
    },
    {
        "properties": {name: {"type": "null"} for name in ("bb", "b", "a", "ab")},
        "required": ["a"],
        "maxProperties": 2,
        "additionalProperties": False,
    },
    {"properties": {f"n{i}": {"type": "null"} for i in range(70)}, "required": ["n3", "n65"]},
]
for schema in OBJECTS:
    schema["type"] = "object"


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def matcher_of(schema: Any, style: JsonStyle) -> MachineMatcher:
    return backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), style)).matcher()


def accepts(schema: Any, text: str, style: JsonStyle) -> bool:
    return matcher_of(schema, style).accepts([*spell(VOCABULARY, text), END])


def mask(matcher: MachineMatcher) -> list[int]:
    row = np.full(VOCABULARY.num_mask_words, -1, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


def is_in_order(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    places = [list(schema["properties"]).index(name) for name in value if name in schema["properties"]]
    return places == sorted(places)


def is_before_others(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    is_other = [name not in schema["properties"] for name in value]
    return is_other == sorted(is_other)


@pytest.mark.parametrize("order", [PropertyOrder.DECLARED, PropertyOrder.DECLARED_THEN_OTHERS])
@pytest.mark.parametrize("schema", OBJECTS)
def test_declared_order_is_kept_and_no_way_ends_dead(schema: dict[str, Any], order: PropertyOrder) -> None:
    rng = random.Random(3)
    for whitespace in Whitespace:
        for _ in range(sized(6, usual=2)):
            matcher, tokens = matcher_of(schema, JsonStyle(whitespace, order)), list[int]()
            for _ in range(30):
                allowed = mask(matcher)
                assert allowed == [t for t in range(VOCABULARY.vocab_size) if matcher.fork().accept_token(t)]
                closing = matcher.shortest_completion(400)
                assert closing is not None, VOCABULARY.text_of(tokens)
                assert matcher.accepts([*closing, END])
                text = VOCABULARY.text_of([*tokens, *closing])
                value = json.loads(text)
                jsonschema.Draft202012Validator(schema).validate(value)
                assert is_in_order(value, schema), text
                assert order is PropertyOrder.DECLARED or is_before_others(value, schema), text
                joints = [t for t in allowed if VOCABULARY.token_bytes[t][:1] in b'"{},:']
                drawn = [
                    t
                    for t in (joints if joints and rng.random() < 0.7 else allowed)
                    if t not in VOCABULARY.eos_token_ids
                ]
                if not drawn:
                    break
                tokens.append(rng.choice(drawn))
                assert matcher.accept_token(tokens[-1])


@pytest.mark.parametrize("schema", OBJECTS[:4])
def test_every_valid_object_is_accepted_exactly_in_the_orders_of_the_style(schema: dict[str, Any]) -> None:
    rng = random.Random(4)
    names = [*schema["properties"], "other"]
    num_valid = 0
    for _ in range(sized(120, usual=60)):
        value = dict.fromkeys(rng.sample(names, rng.randrange(len(names) + 1)))
        text = json.dumps(value, separators=(",", ":"))
        is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        num_valid += is_valid
        for whitespace in Whitespace:
            assert accepts(schema, text, JsonStyle(whitespace, PropertyOrder.ANY)) == is_valid, text
            is_ordered = is_valid and is_in_order(value, schema)
            assert accepts(schema, text, JsonStyle(whitespace, PropertyOrder.DECLARED)) == is_ordered, text
            assert accepts(schema, text, JsonStyle(whitespace)) == (is_ordered and is_before_others(value, schema)), (
                text
            )
    assert num_valid > sized(10, usual=4)


def test_free_whitespace_takes_what_json_dumps_writes_and_compact_takes_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}, "b": {}}}
    value = {"a": [1, {"x": None}, []], "b": {"y": "a, b: c", "z": [True, 2]}}
    compact = json.dumps(value, separators=(",", ":"))
    for text in (json.dumps(value), compact, json.dumps(value, indent=2), json.dumps(value, indent="\t")):
        assert accepts(schema, text, JsonStyle()), text
        assert accepts(schema, text, JsonStyle(Whitespace.COMPACT)) == (text == compact)
    assert not accepts(schema, '{"a":   []}', JsonStyle())
    assert not accepts(schema, "{\n" + " " * 81 + '"a": []}', JsonStyle())


BUDGETED = [
    *(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)) for schema in OBJECTS),
    Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "array", "items": {"enum": ["a long text", "b"]}, "minItems": 3}'),
    Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "pattern": "^(ab)+c{3}$", "minLength": 9}'),
    Constraint(ConstraintKind.LARK, 'start: "(" start ")" | "[" start "]" | WORD+\nWORD: /[a-c]{3} /'),
    tagged([("<t>", Constraint(ConstraintKind.REGEX, "[0-9]{5}"), "</t>")], low=1),
]


@pytest.mark.parametrize("constraint", BUDGETED, ids=lambda c: f"{c.kind}:{c.source[:30]}")
def test_texts_end_whole_within_every_budget_that_is_taken(constraint: Constraint) -> None:
    grammar = backend().compile(constraint)
    num_taken = 0
    for max_tokens in range(1, 46, 2):
        path = SEARCH.find(grammar.matcher(), max_tokens)
        if path is None:
            assert num_taken == 0  # what fits in less fits in more
            continue
        num_taken += 1
        text = random_text(
            VOCABULARY, grammar.matcher(), TokenBudget(SEARCH, path), max_tokens, random.Random(max_tokens)
        )
        assert grammar.matcher().completes_bytes(text.encode()), text
    assert num_taken > 5


def test_blanks_and_values_of_a_known_form_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    grammar = backend().compile(
        Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({**schema, "required": ["name", "age"]}))
    )
    matcher = grammar.matcher()
    path = SEARCH.find(matcher, 100)
    assert path is not None
    keeper = TokenBudget(SEARCH, path)
    monkeypatch.setattr(CompletionSearch, "find", lambda *_: pytest.fail("it searched"))
    for count, token in enumerate(spell(VOCABULARY, '{\n  "name" : "hello world", "age": 12 }')):
        assert keeper.advance(matcher, token, 100 - count) == token
    assert matcher.is_accepting


@pytest.mark.parametrize(
    ("kind", "source", "location"),
    [
        (ConstraintKind.REGEX, "(a", "1:1"),
        (ConstraintKind.REGEX, "[a", "1:1"),
        (ConstraintKind.JSON_SCHEMA, '{"type": "object",}', "1:19"),
        (ConstraintKind.JSON_SCHEMA, '{"properties": {"a": {"type": "strin"}}}', "/properties/a"),
        (ConstraintKind.JSON_SCHEMA, '{"items": {"pattern": "("}}', "/items"),
        (ConstraintKind.CHOICE, '["a", 1', "1:8"),
        (ConstraintKind.CHOICE, "[1]", "#"),
        (ConstraintKind.JSON_SCHEMA, "[]", "#"),
        (ConstraintKind.JSON_SCHEMA, '{"const":\n' + "9" * 5000 + "}", "2:1"),
        (ConstraintKind.STRUCTURE, '{"repeat": "a", "max": ' + "9" * 5000 + "}", "1:24"),
        (ConstraintKind.STRUCTURE, '{"sequence": ["a", {"kind": "json_schema", "source": "{\\"const\\": NaN}"}]}', "#"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else str(value),
)
def test_errors_say_where(kind: ConstraintKind, source: str, location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        backend().compile(Constraint(kind, source))
    assert caught.value.location is not None
    assert location in caught.value.location
    assert caught.value.location in str(caught.value)


def test_a_compile_can_be_stopped_and_what_is_made_later_cannot() -> None:
    is_unwanted = threading.Event()
    constraint = Constraint(ConstraintKind.REGEX, "[ab]*a[ab]{9}")
    grammar = backend().compile(constraint, is_unwanted)
    is_unwanted.set()
    matcher = grammar.matcher()
    for token in spell(VOCABULARY, "abbabababbabababbb"):
        assert token in mask(matcher)
        assert matcher.accept_token(token)
    with pytest.raises(GrammarError, match="cancelled"):
        backend().compile(constraint, is_unwanted)


def test_limits_bound_a_compile() -> None:
    small = RtlangBackend.create(VOCABULARY, limits=Limits(max_source_bytes=100))
    with pytest.raises(GrammarError, match="100 bytes"):
        small.compile(Constraint(ConstraintKind.REGEX, "a" * 101))


@pytest.mark.parametrize(("name", "other"), [("hostname", "b\u00fccher.de"), ("idn-hostname", "a b")])
def test_host_names_in_other_scripts_are_left_to_be_checked_by_who_can(name: str, other: str) -> None:
    checking = RtlangBackend(backend()._index, allow_checked=True)
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "string", "format": name}))
    grammar = checking.compile(constraint)
    assert grammar.value_check is not None
    assert grammar.report is not None
    assert not grammar.report.is_exact
    for text, is_allowed, is_valid in (
        ("example.de", True, True),
        ("xn--bcher-kva.de", True, True),
        ("xn--x.de", True, False),
        ("-a.de", False, False),
        (other, False, False),
    ):
        spelled = [*spell(VOCABULARY, json.dumps(text, ensure_ascii=False)), END]
        assert grammar.matcher().accepts(spelled) is is_allowed, text
        assert (grammar.value_check.error(text) is None) is is_valid, text
    for schema in ({"not": {"format": name}}, {"anyOf": [{"format": name}, {"const": "-"}]}):
        grammar = checking.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "string", **schema})))
        assert grammar.value_check is not None
        for text in ("xn--bcher-kva.de", "xn--x.de", "-", "a"):
            spelled = [*spell(VOCABULARY, json.dumps(text)), END]
            assert grammar.matcher().accepts(spelled) or grammar.value_check.error(text) is not None, text


def test_who_cannot_check_gets_host_names_without_other_scripts() -> None:
    schema = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "format": "hostname"}')
    for constraint in (schema, tagged([("<h>", schema, "</h>")], low=1)):
        grammar = backend().compile(constraint)
        assert grammar.value_check is None
        for text, is_allowed in (('"example.de"', True), ('"xn--bcher-kva.de"', False)):
            whole = text if constraint is schema else f"<h>{text}</h>"
            assert grammar.matcher().accepts([*spell(VOCABULARY, whole), END]) is is_allowed
    with pytest.raises(GrammarError, match="format cannot be enforced here"):
        backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "string", "format": "idn-hostname"}'))


@pytest.mark.parametrize("number", [2**31 - 1, 2**31 + 1, 2**63, 2**64 + 1])
@pytest.mark.parametrize(("kind", "keyword"), [("array", "Items"), ("object", "Properties"), ("string", "Length")])
def test_sizes_beyond_all_texts_are_read(kind: str, keyword: str, number: int) -> None:
    at_most = {"type": kind, f"max{keyword}": number, "items": {"type": "null"}}
    style = JsonStyle()
    values = {"array": "[null,null]", "object": '{"a": 1}', "string": '"a"'}
    assert accepts(at_most, values[kind], style)
    at_least = {"type": kind, f"min{keyword}": number, "items": {"type": "null"}}
    if kind == "object":  # a name may come twice: checked on the finished value
        check_constraint(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(at_least)))
    else:
        assert not accepts(at_least, values[kind], style)
