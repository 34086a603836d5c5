"""Arguments in nested tags, as xgrammar writes its style `cohere_xml`."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.structural_tag import read_structural_tag
from tests.grammars.formats.test_structural_tag import END, VOCABULARY, matcher_of
from tests.support.grammars.vocabularies import spell

SCHEMA = {
    "type": "object",
    "properties": {
        "c": {"type": "string"},
        "n": {"type": ["integer", "null"]},
        "l": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "o": {"type": "object", "properties": {"d": {"type": "boolean"}}, "required": ["d"]},
    },
    "required": ["c"],
}


def value(kind: str, text: str, name: str = "") -> str:
    named = f' name="{name}"' if name else ""
    return f'<cofl:value{named} type="{kind}">{text}</cofl:value>'


def accepts(schema: Any, text: str, **options: Any) -> bool:
    plain = {"type": "json_schema", "style": "cohere_xml", "json_schema": schema, **options}
    return matcher_of({"format": plain}).accepts([*spell(VOCABULARY, text), END])


def test_values_stand_in_tags_with_their_types() -> None:
    c, d = value("raw", "a\n", "c"), value("json", " true ", "d")
    items = value("raw", "x")
    for good in (
        c,
        f"{c}\n{value('json', 'null', 'n')}",
        f"{c}{value('list', '', 'l')}",
        f"{c}{value('list', items * 2, 'l')} ",
        f"{c}{value('dict', d, 'o')}",
    ):
        assert accepts(SCHEMA, good), good
    for bad in (
        "",
        value("json", "1", "c"),
        f"{c}{value('json', '1.5', 'n')}",
        f"{c}{value('list', items * 3, 'l')}",
        f"{c}{value('dict', '', 'o')}",
        f"{c}{value('raw', 'x', 'z')}",
    ):
        assert not accepts(SCHEMA, bad), bad
    assert not accepts(SCHEMA, c, excludes=["a"])


def test_values_that_are_not_described_nest() -> None:
    assert accepts(True, value("dict", value("list", value("json", "1") + value("raw", "x"), "b"), "a"))
    assert not accepts(True, value("dict", value("json", "1"), "a"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"not": {}}}}, "not cannot be enforced in the style cohere_xml"),
        ({"properties": {"a": {"enum": [[1]]}}}, "listed objects and arrays"),
        ({"required": ["a"]}, "'a' is not declared"),
        ({"properties": {"a": {"$ref": "#"}}}, "a schema that contains itself"),
    ],
)
def test_what_cannot_be_written_is_refused(schema: Any, message: str) -> None:
    plain = {"type": "json_schema", "style": "cohere_xml", "json_schema": schema}
    with pytest.raises(GrammarError, match=message):
        read_structural_tag({"format": plain})
