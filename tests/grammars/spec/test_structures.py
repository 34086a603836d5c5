"""Structures as data: what is made is read back, and what is malformed is refused with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structure_parts import AnyOf, Leaf, Literal, Repeat, Sequence, Tag, Tags, Token
from rtlang_grammars.spec.structures import any_of, read_structure, repeat, sequence, tagged, token
from rtlang_grammars.spec.tokens import TokenSet

DIGITS = Constraint(ConstraintKind.REGEX, "[0-9]+")


def test_what_is_made_is_read_back() -> None:
    made = sequence("a", any_of(DIGITS, repeat("b", 1, 3)), tagged([("<t>", DIGITS, "</t>")], low=1, text_behind=False))
    assert made.kind is ConstraintKind.STRUCTURE
    digits = Leaf(DIGITS, "#/sequence/1/any_of/0")
    inner = Leaf(DIGITS, "#/sequence/2/tags/0/part")
    assert read_structure(made.source) == Sequence(
        (
            Literal("a"),
            AnyOf((digits, Repeat(Literal("b"), 1, 3))),
            Tags((Tag(Literal("<t>"), inner, Literal("</t>")),), (Literal("<t>"),), (), 1, None, False, "#/sequence/2"),
        )
    )


def test_tokens_are_parts_and_ends_of_tags() -> None:
    made = tagged(
        [(token("<|a|>"), sequence(token(7), token("<[1, 5-9]>")), token("<[^3]>"))], triggers=[token("<|a|>")]
    )
    read = read_structure(made.source)
    assert isinstance(read, Tags)
    (tag,) = read.tags
    begin = Token(TokenSet(names=("<|a|>",), source="<|a|>"), "#/tags/0/begin")
    assert tag.begin == begin
    assert read.triggers == (replace(begin, pointer="#/triggers/0"),)
    assert tag.end == Token(TokenSet(ranges=((3, 3),), is_negated=True, source="<[^3]>"), "#/tags/0/end")
    assert isinstance(tag.part, Sequence)
    assert [each.tokens.ranges for each in tag.part.parts if isinstance(each, Token)] == [((7, 7),), ((1, 1), (5, 9))]


def test_the_style_of_the_schemas_is_that_of_the_whole() -> None:
    style = JsonStyle(Whitespace.COMPACT)
    compact, free = (Constraint(ConstraintKind.JSON_SCHEMA, "true", each) for each in (style, JsonStyle()))
    made = any_of("a", sequence("b", tagged([("<", compact, ">")]), DIGITS))
    assert made.style == style
    assert repeat(sequence(made, compact)).style == style
    assert sequence("a", DIGITS).style == JsonStyle()
    for parts in ((compact, free), (made, free)):
        with pytest.raises(GrammarError, match="style"):
            sequence(*parts)


def test_tags_may_share_a_trigger() -> None:
    read = read_structure(tagged([("<f=a>", "x", ""), ("<f=b>", "y", "")], triggers=["<f="]).source)
    assert isinstance(read, Tags)
    assert read.triggers == (Literal("<f="),)


@pytest.mark.parametrize(
    ("plain", "location"),
    [
        (1, "#"),
        ({}, "#"),
        ({"sequence": [], "any_of": []}, "#"),
        ({"sequence": "a"}, "#/sequence"),
        ({"sequence": ["a", 2]}, "#/sequence/1"),
        ({"sequence": [], "extra": 1}, "#"),
        ({"any_of": []}, "#"),
        ({"kind": "regex"}, "#"),
        ({"kind": "structure", "source": "{}"}, "#"),
        ({"repeat": "a", "min": -1}, "#"),
        ({"repeat": "a", "min": 2, "max": 1}, "#"),
        ({"repeat": "a", "max": True}, "#"),
        ({"repeat": {"any_of": [None]}}, "#/repeat/any_of/0"),
        ({"tags": []}, "#"),
        ({"token": -1}, "#"),
        ({"token": 1 << 20}, "#"),
        ({"token": True}, "#"),
        ({"token": ""}, "#"),
        ({"token": "<[]>"}, "#"),
        ({"token": "<[4-2]>"}, "#"),
        ({"sequence": [{"token": 1, "min": 0}]}, "#/sequence/0"),
        ({"tags": [{"begin": {"token": 1.5}, "part": "a", "end": ""}]}, "#/tags/0/begin"),
        ({"tags": [{"begin": "<", "part": "a", "end": {"any_of": ["a"]}}]}, "#/tags/0/end"),
        ({"tags": [{"begin": "<", "part": "a"}]}, "#/tags/0"),
        ({"tags": [{"begin": "<", "part": 1, "end": ""}]}, "#/tags/0/part"),
        ({"tags": [{"begin": 1, "part": "a", "end": ""}]}, "#/tags/0/begin"),
        ({"tags": [{"begin": "", "part": "a", "end": ""}]}, "#"),
        ({"tags": [{"begin": "<", "part": "a", "end": ""}, {"begin": "<b", "part": "a", "end": ""}]}, "#"),
        ({"tags": [{"begin": "<b", "part": "a", "end": ""}], "triggers": ["<c"]}, "#/tags/0"),
        ({"tags": [{"begin": "<b", "part": "a", "end": ""}], "text_behind": 1}, "#"),
    ],
)
def test_what_is_malformed_is_refused(plain: Any, location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_structure(json.dumps(plain))
    assert caught.value.location == location


def test_text_that_is_no_json_and_deep_nesting_are_refused() -> None:
    with pytest.raises(GrammarError) as caught:
        read_structure('{"sequence": [}')
    assert caught.value.location == "1:15"
    for depth in (40, 100_000):
        with pytest.raises(GrammarError, match="deep"):
            read_structure('{"repeat": ' * depth + '"a"' + "}" * depth)
