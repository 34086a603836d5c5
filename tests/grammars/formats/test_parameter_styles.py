"""Arguments in the styles of structural tags, as xgrammar 0.2.9 writes them."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.structural_tag import read_structural_tag
from tests.grammars.formats.test_structural_tag import END, VOCABULARY, matcher_of
from tests.support.grammars.vocabularies import spell

STYLED = {
    "qwen_xml": "<parameter=x>1</parameter>\n<parameter=s>a\n</parameter>",
    "minimax_xml": '<parameter name="x">1</parameter>\n<parameter name="s">a\n</parameter>\n',
    "minimax_m3_xml": "]<]minimax[>[<x>1]<]minimax[>[</x>]<]minimax[>[<s>a\n]<]minimax[>[</s>",
    "deepseek_xml": '<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="s" string="true">a\n</｜DSML｜parameter>\n',
    "deepseek_v4_1_xml": '<｜DSML｜ parameter name="x" string="false"> 1 </｜DSML｜ parameter>'
    '<｜DSML｜ parameter name="s" string="true">a\n</｜DSML｜ parameter>',
    "glm_xml": "<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n<arg_key>s</arg_key><arg_value>a\n</arg_value>",
    "kimi_k3_xml": '<|open|>argument key="x" type="number"<|sep|>1<|close|>argument<|sep|>'
    '<|open|>argument key="s" type="string"<|sep|>a\n<|close|>argument<|sep|>',
    "gemma": '{x:1,s:<|"|>a\n<|"|>}',
}


@pytest.mark.parametrize("style", STYLED)
def test_arguments_are_written_in_every_style(style: str) -> None:
    properties = {"x": {"type": "integer"}, "s": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["x", "s"], "additionalProperties": False}
    plain = {"type": "json_schema", "style": style, "json_schema": schema}
    ids = [*spell(VOCABULARY, STYLED[style]), END]
    assert matcher_of({"format": plain}).accepts(ids)
    assert not matcher_of({"format": {**plain, "excludes": ["a"]}}).accepts(ids)
    wrong = STYLED[style].replace("1", '"1"', 1)
    assert not matcher_of({"format": plain}).accepts([*spell(VOCABULARY, wrong), END])
    if style != "minimax_m3_xml":  # there, names that are not declared are refused
        assert matcher_of({"format": {**plain, "json_schema": True}}).accepts(ids)


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
