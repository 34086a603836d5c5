"""Exact separators and indents: a value has the one text that `json.dumps` writes, and completions are written like it."""

from __future__ import annotations

import functools
import json
import random
import re
from typing import Any

import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonLayout, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.vocabularies import small_vocabulary

SCHEMAS: list[Any] = [
    True,
    {"type": ["object", "array"]},
    {"properties": {"a0": {"type": "integer"}, "b1": {"items": {"enum": [1, "a", {"x": [1, {}]}]}}}},
    {"type": "array", "items": {"enum": [1, 2, "a"]}, "uniqueItems": True},
    {"type": "array", "contains": {"type": "object"}, "maxItems": 3},
    {"type": "array", "minItems": 2, "prefixItems": [{"type": "object", "minProperties": 2}]},
    {"type": "object", "properties": {"é": {}}, "maxProperties": 2, "patternProperties": {"^c": {"type": "object"}}},
    {"const": {"a": [1, 2, {"b": []}], "c": {}}},
]
FORMS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"indent": 0},
    {"indent": "\t", "separators": (", ", " : ")},
    {"separators": (",", ":")},
    {"separators": (" , ", " :")},
]
OTHERS: list[dict[str, Any]] = [*FORMS, {"indent": 3}]


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend(VocabularyIndex(small_vocabulary()), allow_checked=True)


def compiled(schema: Any, style: JsonStyle) -> RtlangGrammar:
    return backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), style))


def accepts(grammar: RtlangGrammar, text: str) -> bool:
    return grammar.matcher().completes_bytes(text.encode())


def values() -> list[Any]:
    rng = random.Random(3)

    def value(depth: int) -> Any:
        kind = rng.choice(["number", "text", "array", "object"] if depth < 4 else ["number", "text"])
        if kind == "number":
            return rng.choice([-5, 0, 1, 12, 0.5, None, True])
        if kind == "text":
            return rng.choice(["", "a", "é\n", ", : \n"])
        if kind == "array":
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice("abcdxyz") + str(i): value(depth + 1) for i in range(rng.randrange(4))}

    some = [value(0) for _ in range(80)]
    return [
        *some,
        [1, 2, "a"],
        [],
        {},
        {"a": [1, 2, {"b": []}], "c": {}},
        [{"p": 1, "q": [{}]}, 1],
        {"c": {}, "é": [1]},
    ]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_layout_allows_the_text_of_json_dumps_alone(form: dict[str, Any]) -> None:
    separators = form.get("separators", (None, ": "))
    style = JsonStyle(layout=JsonLayout(separators[0], separators[1], form.get("indent")))
    num_accepted = 0
    for schema in SCHEMAS:
        exact, free = compiled(schema, style), compiled(schema, JsonStyle())
        for value in values():
            text = json.dumps(value, ensure_ascii=False, **form)
            is_valid = accepts(free, json.dumps(value, ensure_ascii=False))
            assert accepts(exact, text) == is_valid, (schema, text)
            num_accepted += is_valid
            if is_valid:
                others = {json.dumps(value, ensure_ascii=False, **other) for other in OTHERS} - {text}
                assert not any(accepts(exact, other) for other in others), (schema, text)
    assert num_accepted > 100


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_completions_are_in_the_layout(form: dict[str, Any]) -> None:
    separators = form.get("separators", (None, ": "))
    style = JsonStyle(layout=JsonLayout(separators[0], separators[1], form.get("indent")))
    for schema in SCHEMAS:
        grammar = compiled(schema, style)
        for value in values()[::7]:
            data = json.dumps(value, ensure_ascii=False, **form).encode()
            matcher = grammar.matcher()
            for at, byte in enumerate(data):
                if at % 3 == 0:
                    closing = matcher.closing_bytes()
                    assert closing is not None
                    whole = (data[:at] + closing).decode()
                    written = json.dumps(json.loads(whole), ensure_ascii=False, **form)
                    assert written.replace("-0", "0") == whole.replace("-0", "0") or "\\" in whole or "e" in whole
                if not matcher.accept_token(byte):
                    break


JOINT = re.compile(r'"(?:[^"\\]|\\.)*"|[^"\[\]{},:]+|[\[\]{},:]')


def test_a_line_has_one_blank_at_most_and_only_after_commas_and_colons() -> None:
    """Blanks are put between the lexemes of compact texts, which are told apart by an expression of their own."""
    rng, num_accepted = random.Random(5), 0
    for schema in SCHEMAS:
        line, free = (compiled(schema, JsonStyle(each)) for each in (Whitespace.LINE, Whitespace.FREE))
        for value in values():
            compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            is_valid = accepts(free, compact)
            lexemes = JOINT.findall(compact)
            for chance in (0.0, 1.0, 0.5, 0.5):
                gaps = [" " if each in ",:" and rng.random() < chance else "" for each in lexemes]
                written = "".join(map("".join, zip(lexemes, gaps, strict=True)))
                assert accepts(line, written) == is_valid, (schema, written)
                num_accepted += is_valid
            at, blank = rng.randrange(len(lexemes)), rng.choice([" ", "\n", "  ", "\t"])
            allowed = blank == " " and lexemes[at] in (",", ":")
            written = "".join([*lexemes[: at + 1], blank, *lexemes[at + 1 :]])
            assert accepts(line, written) == (is_valid and allowed), (schema, written)
    assert num_accepted > 400


def test_an_indent_is_forced_text() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    grammar = compiled(schema, JsonStyle(order=PropertyOrder.DECLARED_THEN_OTHERS, layout=JsonLayout(indent=2)))
    assert grammar.matcher().forced_bytes() == b'{\n  "a": {\n    "b": null'


@pytest.mark.parametrize(
    ("fields", "location"),
    [
        ({"item_separator": ";"}, "item_separator"),
        ({"item_separator": " ,", "indent": 2}, "item_separator"),
        ({"key_separator": "=:"}, "key_separator"),
        ({"key_separator": ":" + " " * 80}, "key_separator"),
        ({"indent": -1}, "indent"),
        ({"indent": True}, "indent"),
        ({"indent": "x"}, "indent"),
        ({"indent": 81}, "indent"),
    ],
)
def test_what_is_no_layout_is_refused_by_its_field(fields: dict[str, Any], location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        JsonLayout(**fields)
    assert caught.value.location == location
    with pytest.raises(GrammarError):
        Constraint.from_plain({"kind": "json_schema", "source": "true", **fields})


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_layout_travels_as_strings(form: dict[str, Any]) -> None:
    separators = form.get("separators", (None, ": "))
    style = JsonStyle(layout=JsonLayout(separators[0], separators[1], form.get("indent")))
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, "true", style)
    plain = constraint.to_plain()
    assert all(isinstance(each, str) for each in plain.values())
    assert Constraint.from_plain(plain) == constraint
