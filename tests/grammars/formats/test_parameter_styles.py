"""Arguments in the styles of structural tags, as xgrammar 0.2.9 writes them."""

from __future__ import annotations

import pytest

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
