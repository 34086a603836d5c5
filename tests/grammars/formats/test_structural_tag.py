"""Structural tags: which texts they accept, as listed here and as xgrammar judges them where it is installed, and what is refused."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.formats.structural_tag import read_structural_tag
from rtlang_grammars.machine.matcher import MachineMatcher
from tests.support.grammars.vocabularies import small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
X = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
SCHEMA = {"type": "json_schema", "json_schema": X}


def tag(begin: str, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


CALLS = [tag("<f=a>", SCHEMA, "</f>"), tag("<f=b>", const("y"), "</f>")]
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "aa",
    "aaa",
    "12",
    "<t></t>",
    "<t>a</t>",
    "<t>a</u>",
    "<t>a<t>b</t>",
    "<t>aé日b</t>",
    '<f=a>{"x": 1}</f>',
    '<f=a>{"x": 1}</f><f=b>y</f>',
    '<f=a>{"x": 1}</f>,<f=b>y</f>',
    "<f=b>y</f>",
    "text <f=b>y</f>",
    "<f=b>y</f> text",
    "text <f=b>y</f> and <f=b>y</f>.",
    "<f=c>y</f>",
    "text <f",
    "<t>text <f=b>y</f></t>",
    "<t>a</t>text",
    "<t>a</t>text<f=b>y</f>",
    '{"x": 1}',
    '{"x": "1"}',
    "<parameter=x>\n1\n</parameter>\n",
    "yes",
    "no",
)
FORMATS: dict[str, dict[str, Any]] = {
    "constant": const("a"),
    "regex": {"type": "regex", "pattern": "[0-9]+|a+"},
    "grammar": {"type": "grammar", "grammar": 'root ::= "yes" | "no"'},
    "schema": SCHEMA,
    "tag": tag("<t>", {"type": "any_text"}, "</t>"),
    "tag with several ends": tag("<t>", {"type": "any_text"}, ["</t>", "</u>"]),
    "bounded text": tag("<t>", {"type": "any_text", "max_chars": 4}, "</t>"),
    "text without": tag("<t>", {"type": "any_text", "excludes": ["b"]}, "</t>"),
    "any text": {"type": "any_text"},
    "sequence": {"type": "sequence", "elements": [const("a"), const("b")]},
    "or": {"type": "or", "elements": [const("a"), const("ab")]},
    "optional": {"type": "optional", "content": const("a")},
    "plus": {"type": "plus", "content": const("a")},
    "star": {"type": "star", "content": const("a")},
    "repeat": {"type": "repeat", "min": 2, "max": 3, "content": const("a")},
    "unbounded repeat": {"type": "repeat", "min": 2, "max": -1, "content": const("a")},
    "triggered": {"type": "triggered_tags", "triggers": ["<f="], "tags": CALLS},
    "triggered once": {"type": "triggered_tags", "triggers": ["<f="], "tags": CALLS, "stop_after_first": True},
    "triggered at least once": {"type": "triggered_tags", "triggers": ["<f="], "tags": CALLS, "at_least_one": True},
    "triggered exactly once": {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "tags": CALLS,
        "at_least_one": True,
        "stop_after_first": True,
    },
    "separated": {"type": "tags_with_separator", "separator": ",", "tags": CALLS},
    "separated at least once": {"type": "tags_with_separator", "separator": ",", "tags": CALLS, "at_least_one": True},
    "separated once": {"type": "tags_with_separator", "separator": ",", "tags": CALLS, "stop_after_first": True},
    "nested": tag("<t>", {"type": "triggered_tags", "triggers": ["<f="], "tags": CALLS}, "</t>"),
    "reasoning and calls": {
        "type": "sequence",
        "elements": [
            tag("<t>", {"type": "any_text"}, "</t>"),
            {"type": "triggered_tags", "triggers": ["<f="], "tags": CALLS},
        ],
    },
}
ACCEPTED: dict[str, set[str]] = {
    "constant": {"a"},
    "regex": {"12", "a", "aa", "aaa"},
    "grammar": {"yes", "no"},
    "schema": {'{"x": 1}'},
    "tag": {"<t></t>", "<t>a</t>", "<t>a<t>b</t>", "<t>aé日b</t>", "<t>text <f=b>y</f></t>"},
    "bounded text": {"<t></t>", "<t>a</t>", "<t>aé日b</t>"},
    "or": {"a", "ab"},
    "unbounded repeat": {"aa", "aaa"},
    "triggered exactly once": {'<f=a>{"x": 1}</f>', "<f=b>y</f>"},
    "separated": {"", '<f=a>{"x": 1}</f>', "<f=b>y</f>", '<f=a>{"x": 1}</f>,<f=b>y</f>'},
    "nested": {"<t></t>", "<t>a</t>", "<t>a<t>b</t>", "<t>aé日b</t>", "<t>text <f=b>y</f></t>"},
    "reasoning and calls": {
        *("<t></t>", "<t>a</t>", "<t>a<t>b</t>", "<t>aé日b</t>", "<t>text <f=b>y</f></t>"),
        *("<t>a</t>text", "<t>a</t>text<f=b>y</f>"),
    },
}


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def matcher_of(plain: Any) -> MachineMatcher:
    return backend().compile(read_structural_tag(plain)).matcher()


def accepted(plain: Any) -> set[str]:
    matcher = matcher_of(plain)
    return {text for text in TEXTS if matcher.accepts([*spell(VOCABULARY, text), END])}


@pytest.mark.parametrize("name", ACCEPTED)
def test_formats_accept_what_they_say(name: str) -> None:
    assert accepted({"type": "structural_tag", "format": FORMATS[name]}) == ACCEPTED[name]


@pytest.mark.parametrize("name", FORMATS)
def test_formats_accept_what_xgrammar_accepts(name: str) -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is the reference of structural tags")
    from xgrammar.testing import _is_grammar_accept_string

    plain = {"type": "structural_tag", "format": FORMATS[name]}
    grammar = xgrammar.Grammar.from_structural_tag(plain)
    assert accepted(plain) == {text for text in TEXTS if _is_grammar_accept_string(grammar, text)}


def test_the_older_form_is_free_text_with_tags() -> None:
    structures = [{"begin": "<f=a>", "schema": X, "end": "</f>"}, {"begin": "<f=b>", "schema": True, "end": "</f>"}]
    plain = {"type": "structural_tag", "structures": structures, "triggers": ["<f="]}
    assert accepted(json.dumps(plain)) >= {"", "text <f", '<f=a>{"x": 1}</f>', "no"}
    assert accepted(plain).isdisjoint({"<f=b>y</f>", "<f=c>y</f>", "text <f=b>y</f>"})


def test_parameters_are_written_as_the_models_write_them() -> None:
    for plain in ({"type": "qwen_xml_parameter", "json_schema": X}, {**SCHEMA, "style": "qwen_xml"}):
        assert accepted({"format": tag("", plain, "")}) == {"<parameter=x>\n1\n</parameter>\n"}
    glm = matcher_of({"format": {**SCHEMA, "style": "glm_xml"}})
    text = "<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n"
    assert glm.accepts([*spell(VOCABULARY, text), END])


def test_a_token_of_the_vocabulary_is_a_format() -> None:
    matcher = matcher_of({"format": tag("<t>", {"type": "token", "token": 65}, "</t>")})
    assert matcher.accepts([*spell(VOCABULARY, "<t>"), 65, *spell(VOCABULARY, "</t>"), END])


@pytest.mark.parametrize(
    ("plain", "location", "message"),
    [
        ("{", "#", "expected JSON"),
        ({"type": "json_schema"}, "#", "structural_tag"),
        ({"type": "structural_tag"}, "#", "expected format, or structures"),
        ({"format": {"type": "dispatch"}}, "#/format/type", "type = 'dispatch': expected one of const_string"),
        ({"format": {"type": "const_string"}}, "#/format/value", "value = None: expected a string"),
        ({"format": {"type": "sequence", "elements": [3]}}, "#/format/elements/0", "expected a format"),
        ({"format": {"type": "any_text", "max_tokens": 3}}, "#/format", "max_tokens is not supported here"),
        ({"format": {"type": "any_text", "max_chars": -3}}, "#/format/max_chars", "max_chars = -3"),
        ({"format": {**SCHEMA, "style": "minimax_xml"}}, "#/format/style", "expected one of json, qwen_xml, glm_xml"),
        ({"format": {"type": "repeat", "min": 2, "max": 1, "content": {}}}, "#/format", "min = 2, max = 1"),
        ({"format": tag("<t>", const("a"), [])}, "#/format/end", "expected at least one text"),
        ({"format": {"type": "triggered_tags", "triggers": [""], "tags": CALLS}}, "#/format/triggers", "non-empty"),
        ({"structures": [{"begin": "<", "schema": 3, "end": ">"}], "triggers": ["<"]}, "#/structures/0/schema", "schema"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused_with_its_place(plain: Any, location: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_structural_tag(plain)
    assert caught.value.location == location
    assert message in str(caught.value)
