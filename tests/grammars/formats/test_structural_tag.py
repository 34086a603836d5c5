"""Structural tags: which texts they accept, as listed here and as xgrammar judges them where it is installed, and what is refused."""

from __future__ import annotations

import functools
import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.formats.structural_tag import read_structural_tag
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import JsonStyle, Whitespace
from rtlang_grammars.spec.tokens import segments_of
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

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
    "dispatch": {"type": "dispatch", "rules": [["<f=b>", const("y</f>")], ["12", const("3")]], "excludes": ["日"]},
    "dispatch once": {"type": "dispatch", "rules": [["<f=b>", const("y</f>")]], "loop": False},
    "dispatch inside": tag("<t>", {"type": "dispatch", "rules": [["<f=b>", const("y</f>")]]}, "</t>"),
    "Lark": {"type": "grammar", "grammar": 'start: "yes" | "no"', "syntax": "lark"},
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


def test_options_of_schemas_choose_the_style() -> None:
    properties = {"x": {"type": "integer"}, "y": {"type": "integer"}}
    plain = {"type": "json_schema", "json_schema": {"type": "object", "properties": properties, "required": ["x"]}}
    turned, spaced = spell(VOCABULARY, '{"y":1,"x":2}'), spell(VOCABULARY, '{"x": 2}')
    assert not matcher_of({"format": plain}).accepts([*turned, END])
    assert matcher_of({"format": {**plain, "any_order": True}}).accepts([*turned, END])
    assert matcher_of({"format": {**plain, "max_whitespace_cnt": 100}}).accepts([*spaced, END])
    assert not matcher_of({"format": {**plain, "max_whitespace_cnt": 0}}).accepts([*spaced, END])


A, B, START, TOOL = 97, 98, VOCABULARY.tokens.names["<|start|>"], VOCABULARY.tokens.names["<|tool|>"]
TOKENS: list[tuple[dict[str, Any], list[list[int]], list[list[int]]]] = [
    ({"type": "token", "token": A}, [[A]], [[B], []]),
    ({"type": "exclude_token", "exclude_tokens": ["a"]}, [[B], [START]], [[A], []]),
    ({"type": "any_tokens", "exclude_tokens": [A, "<|tool|>"], "max_tokens": 2}, [[], [B, START]], [[A], [TOOL], [B] * 3]),
    (
        tag({"type": "token", "token": "<|start|>"}, {"type": "any_tokens"}, {"type": "token", "token": "<|tool|>"}),
        [[START, TOOL], [START, A, START, TOOL]],
        [[START, TOOL, TOOL], [A, TOOL]],
    ),
    (
        {
            "type": "token_triggered_tags",
            "trigger_tokens": ["<|tool|>"],
            "exclude_tokens": ["b"],
            "tags": [tag({"type": "token", "token": "<|tool|>"}, const("a"), {"type": "token", "token": "<|start|>"})],
            "at_least_one": True,
        },
        [[TOOL, A, START], [TOOL, A, START, A, START, TOOL, A, START]],
        [[A, TOOL, A, START], [TOOL, A, START, B], [TOOL, A]],
    ),
    (
        {"type": "token_dispatch", "rules": [["<|tool|>", const("a")], [B, const("b")]], "loop": False},
        [[], [A, START], [A, TOOL, A], [B, B]],
        [[TOOL], [B, A], [TOOL, A, A]],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<|start|><|tool|>"], "tags": [tag("<|start|><|tool|>a", const("b"), "<|tool|>")]},
        [[A], [A, START, TOOL, A, B, TOOL, A]],
        [[START, A], [START, TOOL, B], [TOOL]],
    ),
    (tag("<|start|>", {"type": "any_text", "max_tokens": 2}, "<|tool|>"), [[START, TOOL], [START, A, B, TOOL]], [[START, A, B, A, TOOL]]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TOKENS)))
def test_formats_of_tokens(number: int) -> None:
    plain, good, bad = TOKENS[number]
    matcher = matcher_of({"format": plain})
    for ids, expected in [*((each, True) for each in good), *((each, False) for each in bad)]:
        assert matcher.accepts([*ids, END]) == expected, ids
        row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
        follower = matcher.fork()
        for token_id in ids:
            follower.fill_bitmask(row)
            assert (token_id in allowed_ids(row)) == follower.accept_token(token_id)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "n": {"type": "integer", "minimum": 1}, "of": {"enum": ["C", 1]}},
                "required": ["q"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("look", "find")
]  # fmt: skip


def test_the_tags_of_xgrammar_for_models_are_read() -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is the reference of structural tags")
    from xgrammar.builtin_structural_tag import _structural_tag_registry
    from xgrammar.testing import _is_grammar_accept_string

    rng, num_texts = random.Random(0), 0
    forced = {"type": "function", "function": {"name": "find"}}
    for model, choice in itertools.product(sorted(_structural_tag_registry), ("auto", "required", forced)):
        made = xgrammar.get_model_structural_tag(model=model, tools=TOOLS, tool_choice=choice, reasoning=True)
        style = JsonStyle(Whitespace.COMPACT)
        grammar = backend().compile(read_structural_tag(made.model_dump_json(), style=style))
        reference = xgrammar.Grammar.from_structural_tag(made)
        for _ in range(4):
            text = walked(grammar.matcher(), rng)
            assert _is_grammar_accept_string(reference, text), (model, text)
            num_texts += 1
    assert num_texts > 200


def walked(matcher: MachineMatcher, rng: random.Random) -> str:
    """A random text that is complete after some tokens."""
    row, data = np.empty(VOCABULARY.num_mask_words, dtype=np.int32), b""
    for _ in range(60):
        matcher.fill_bitmask(row)
        ids = [i for i in allowed_ids(row) if i not in VOCABULARY.eos_token_ids]
        if not ids or (matcher.is_accepting and rng.random() < 0.2):
            break
        token_id = rng.choice(ids)
        assert matcher.accept_token(token_id)
        data += VOCABULARY.token_bytes[token_id]
    closing = matcher.closing_bytes()
    assert closing is not None
    pieces = [each if isinstance(each, bytes) else VOCABULARY.token_bytes[each] for each in segments_of(closing)]
    return (data + b"".join(pieces)).decode()


@pytest.mark.parametrize(
    ("plain", "location", "message"),
    [
        ("{", "#", "expected JSON"),
        ({"type": "json_schema"}, "#", "structural_tag"),
        ({"type": "structural_tag"}, "#", "expected format, or structures"),
        ({"format": {"type": "other"}}, "#/format/type", "type = 'other': expected one of const_string"),
        ({"format": {"type": "dispatch"}}, "#/format/rules", "rules: expected a list that is not empty"),
        ({"format": {"type": "dispatch", "rules": [["", const("a")]]}}, "#/format/rules", "a text that is not empty"),
        ({"format": {"type": "token_dispatch", "rules": [[True, const("a")]]}}, "#/format/rules", "token = True"),
        ({"format": {"type": "grammar", "grammar": "", "syntax": "abnf"}}, "#/format/syntax", "one of ebnf, lark"),
        ({"format": {"type": "const_string"}}, "#/format/value", "value = None: expected a string"),
        ({"format": {"type": "sequence", "elements": [3]}}, "#/format/elements/0", "expected a format"),
        ({"format": {"type": "any_text", "max_tokens": "3"}}, "#/format/max_tokens", "max_tokens = '3'"),
        ({"format": {"type": "any_tokens", "max_tokens": 20000}}, "#/format/max_tokens", "expected at most 10000"),
        ({"format": {"type": "any_tokens", "exclude_tokens": [-1]}}, "#", "an id from 0"),
        ({"format": {**SCHEMA, "max_whitespace_cnt": -1}}, "#/format", "max_whitespace_cnt = -1"),
        ({"format": {"type": "any_text", "max_chars": -3}}, "#/format/max_chars", "max_chars = -3"),
        ({"format": {**SCHEMA, "style": "toml"}}, "#/format/style", "expected one of json, qwen_xml, minimax_xml"),
        ({"format": {**SCHEMA, "json_schema": {"type": "array"}, "style": "glm_xml"}}, "#/format/json_schema", "schema of an object"),
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
