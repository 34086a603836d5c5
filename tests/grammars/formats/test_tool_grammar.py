"""Constraints of tool calls: what a template renders is accepted and read back, what the masks let through an independent parser reads."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError

from rtlang_grammars import ANY_STYLE, Constraint, GrammarError, JsonStyle, PropertyOrder, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import ArgumentStyle
from rtlang_grammars.formats.parsing import ToolCall, ToolOutput, parse_output
from rtlang_grammars.formats.rendering import rendered_calls
from rtlang_grammars.formats.tool_grammar import tool_grammar
from rtlang_grammars.machine.matcher import MachineMatcher
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell
from tests.support.long_tests import is_long, sized
from tests.support.schemas.tool_calls import is_in_declared_order, random_call, random_tools, text
from tests.support.schemas.tool_parsers import PARSERS
from tests.support.schemas.tool_templates import (
    FORMATS_OF_EACH_KIND,
    HAS_NO_CONTENT_BEFORE_CALLS,
    HAS_ONE_CALL,
    TEMPLATES,
    render,
)

_SMALL = small_vocabulary()
VOCABULARY = Vocabulary(  # its special tokens have names that no format writes
    tuple(b"<s%d>" % i if i in _SMALL.silent_ids else text for i, text in enumerate(_SMALL.token_bytes)),
    _SMALL.eos_token_ids,
    _SMALL.special_token_ids,
    _SMALL.vocab_size,
)
END = min(VOCABULARY.eos_token_ids)
MINIMAX = "]<]minimax[>["
AVOID = ("<think>", "</think>", "<tool_call>", "</tool_call>", "functools", "Action:")
"""Texts that content and reasoning cannot contain in some formats."""


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def matcher_of(constraint: Constraint) -> MachineMatcher:
    return backend().compile(constraint).matcher()


def accepts(matcher: MachineMatcher, given: str) -> bool:
    return matcher.accepts([*spell(VOCABULARY, given), END])


def avoided(name: str) -> tuple[str, ...]:
    """Texts that strings of arguments cannot contain."""
    found = FORMATS[name]
    marks = () if found.tagged is None else found.tagged.excludes
    return (*marks, found.literals.quote) if found.literals.quote else marks


def tools_of(name: str, rng: random.Random, count: int = 4) -> list[dict[str, Any]]:
    found = FORMATS[name]
    return random_tools(
        rng,
        count,
        python_names=found.arguments in (ArgumentStyle.PYTHON, ArgumentStyle.MARKED),
        has_free_objects=found.tagged is None or not found.tagged.item,  # they are JSON there, not elements
    )


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_what_the_template_renders_is_accepted_and_read_back(name: str) -> None:
    rng = random.Random(name)
    num_calls = 0
    while num_calls < sized(200, usual=20):
        tools = tools_of(name, rng)
        matcher = matcher_of(tool_grammar(name, tools, style=ANY_STYLE))
        ordered = matcher_of(tool_grammar(name, tools))
        needed = matcher_of(tool_grammar(name, tools, tool_choice="required", style=ANY_STYLE))
        for _ in range(sized(40, usual=20)):
            count = 1 if name in HAS_ONE_CALL else rng.randrange(4)
            calls = [random_call(rng, tools, avoided(name)) for _ in range(count)]
            content = text(rng, AVOID).strip() if not calls or name not in HAS_NO_CONTENT_BEFORE_CALLS else ""
            content = content if rng.random() < 0.5 or not calls else ""
            reasoning = text(rng, AVOID).strip() if FORMATS[name].reasoning and rng.random() < 0.5 else ""
            reasoning = reasoning if "reasoning_content" in TEMPLATES[name] else ""
            given = render(name, content, reasoning, calls)
            assert accepts(matcher, given), given
            assert accepts(ordered, given) == all(is_in_declared_order(call, tools) for call in calls), given
            assert accepts(needed, given) == (bool(calls) and (not content or FORMATS[name].preamble is not None)), (
                given
            )
            read = parse_output(name, given, tools)
            assert [(each.name, each.arguments) for each in read.calls] == calls, given
            assert (read.content, read.reasoning) == (content, reasoning), given
            num_calls += len(calls)
            if name in PARSERS:
                assert [each for each, _ in PARSERS[name](given)[1]] == [each for each, _ in calls]


def drawn(matcher: MachineMatcher, rng: random.Random, length: int) -> str:
    """A text that the masks let through: random tokens, then a completion."""
    matcher, tokens = matcher.fork(), list[int]()
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    for _ in range(length):
        matcher.fill_bitmask(row)
        allowed = [each for each in allowed_ids(row) if each not in VOCABULARY.eos_token_ids]
        if not allowed:
            break
        joints = [each for each in allowed if VOCABULARY.token_bytes[each][:1] in b"<>/[]{}(),:\"'=\n"]
        token = rng.choice(joints if joints and rng.random() < 0.5 else allowed)
        assert matcher.accept_token(token)
        tokens.append(token)
    closing = matcher.closing_bytes()
    assert closing is not None, VOCABULARY.text_of(tokens)
    return (VOCABULARY.text_of(tokens) + closing).decode()


@pytest.mark.parametrize("name", PARSERS)
def test_what_the_masks_let_through_is_parsed(name: str) -> None:
    rng = random.Random(name)
    for choice in ("auto", "required", "none", {"name": "no_parameters"}):
        tools = tools_of(name, rng, 3)
        schemas = {each["function"]["name"]: each["function"].get("parameters", {}) for each in tools}
        matcher = matcher_of(tool_grammar(name, tools, tool_choice=choice))
        for _ in range(sized(40, usual=15)):
            given = drawn(matcher, rng, rng.randrange(40))
            content, calls = PARSERS[name](given)
            read = parse_output(name, given, tools)
            assert [each.name for each in read.calls] == [each for each, _ in calls], given
            assert read.content == content.strip("\n") or FORMATS[name].content is not None, given
            for call, (_, arguments) in zip(read.calls, calls, strict=True):
                jsonschema.validate(call.arguments, schemas[call.name])
                if FORMATS[name].tagged is None:
                    assert call.arguments == arguments or "\\" in given, given
                else:
                    assert call.arguments.keys() == arguments.keys()
            match choice:
                case "required":
                    assert read.calls
                case "none":
                    assert not read.calls
                case {"name": only}:
                    assert [each.name for each in read.calls] == [only]


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_the_bounds_on_calls_hold(name: str) -> None:
    tools = [{"name": "a"}, {"name": "b"}]
    one, two = (render(name, "", "", [(each, {}) for each in names]) for names in ("a", "ab"))
    single = matcher_of(tool_grammar(name, tools, parallel=False))
    named = matcher_of(tool_grammar(name, tools, tool_choice={"type": "function", "function": {"name": "a"}}))
    none = matcher_of(tool_grammar(name, tools, tool_choice="none"))
    assert [accepts(each, one) for each in (single, named, none)] == [True, True, False]
    if name not in HAS_ONE_CALL:
        many = matcher_of(tool_grammar(name, tools))
        assert [accepts(each, two) for each in (many, single, named)] == [True, False, False]
    assert not accepts(named, render(name, "", "", [("b", {})]))
    answer = render(name, "no call", "", [])
    assert [accepts(each, answer) for each in (single, none, named)] == [True, True, False]


def test_undeclared_names_are_refused_unless_the_schema_speaks_about_them() -> None:
    closed = {"type": "object", "properties": {"x": {"type": "integer"}}}
    for parameters, extra in ((closed, False), ({**closed, "additionalProperties": True}, True)):
        matcher = matcher_of(tool_grammar("hermes", [{"name": "f", "parameters": parameters}]))
        assert accepts(matcher, render("hermes", "", "", [("f", {"x": 1})]))
        assert accepts(matcher, render("hermes", "", "", [("f", {"x": 1, "y": 2})])) == extra


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_strict_decides_nothing_but_whether_a_schema_is_closed(name: str) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}}
    parameters = {"type": "object", "properties": {"x": inner, "y": {"type": "integer"}}, "required": ["x"]}
    texts = [
        render(name, "", "", [("f", arguments)])
        for arguments in ({"x": {"a": 1}, "y": 2}, {"x": {"a": 1, "b": 2}, "y": 2}, {"x": {"a": 1}}, {"x": 1, "y": 2})
    ]
    found = FORMATS[name]  # written as literals or as elements, objects have declared names only
    is_open = found.arguments is ArgumentStyle.JSON or (found.tagged is not None and not found.tagged.item)
    for strict, allowed in ((None, [1, is_open, 1, 0]), (False, [1, is_open, 1, 0]), (True, [1, 0, 0, 0])):
        for choice in ("required", "auto"):
            tool = {"name": "f", "parameters": parameters, "strict": strict}
            matcher = matcher_of(tool_grammar(name, [tool], tool_choice=choice))
            assert [accepts(matcher, text) for text in texts] == [bool(each) for each in allowed]


OBJECTS = ({"b": 1}, {"b": 1, "a": "t"}, {"a": "t", "b": 1}, {"a": "t"}, {"b": 1, "x": 2}, {"b": 1, "x": "s"}, {})


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_an_object_in_arguments_is_as_open_as_its_schema_says(name: str) -> None:
    """Those of `OBJECTS` that jsonschema accepts and that have their properties in order. Elements have declared names; others are JSON."""
    inner = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b"]}
    found = FORMATS[name]
    for more in (
        {"additionalProperties": False},
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
    ):
        schema = inner | more
        tool = {"name": "f", "parameters": {"properties": {"o": schema}, "required": ["o"]}}
        matcher = matcher_of(tool_grammar(name, [tool], tool_choice="required", reasoning="forbidden"))
        for value in OBJECTS:
            given = render(name, "", "", [("f", {"o": value})])
            if "x" in value and found.tagged is not None and found.tagged.item:
                given = render(name, "", "", [("f", {"o": {}})]).replace("<o>", f"<o>{json.dumps(value)}")
            is_valid = jsonschema.Draft202012Validator(schema).is_valid(value) and list(value)[:1] == ["b"]
            assert accepts(matcher, given.lstrip("\n")) == is_valid, given
            assert not is_valid or parse_output(name, given, [tool]).calls[0].arguments == {"o": value}


def test_reasoning_is_optional_required_opened_or_forbidden() -> None:
    texts = {"closed": "<think>a</think>b", "inside": "a</think>b", "without": "b"}
    accepted: dict[str, set[str]] = {}
    for reasoning in ("forbidden", "optional", "required", "opened"):
        matcher = matcher_of(tool_grammar("hermes", [{"name": "f"}], reasoning=reasoning))
        accepted[reasoning] = {key for key, given in texts.items() if accepts(matcher, given)}
    assert accepted == {
        "forbidden": {"without"},
        "optional": {"closed", "without"},
        "required": {"closed"},
        "opened": {"inside"},
    }
    assert parse_output("hermes", texts["inside"], is_reasoning=True) == ToolOutput("b", "a")


def test_the_characters_of_reasoning_are_bounded() -> None:
    matcher = matcher_of(tool_grammar("hermes", [{"name": "f"}], reasoning="required", max_reasoning_chars=5))
    assert accepts(matcher, "<think>aé日</t</think>b") is False
    assert accepts(matcher, "<think>aé日<t</think>b")


ORDERS = {
    PropertyOrder.DECLARED_THEN_OTHERS: ["b", "ab", "bc", "abc"],
    PropertyOrder.REQUIRED_FIRST: ["b", "ba", "bc", "bac"],
    PropertyOrder.ANY: ["b", "ab", "ba", "bc", "cb", "abc", "acb", "bac", "bca", "cab", "cba"],
}


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_arguments_come_in_the_order_of_the_style_in_every_format(name: str) -> None:
    """In a usual run, each format has one of the orders."""
    properties = {each: {"type": "integer"} for each in "abc"}
    tool = {"name": "f", "parameters": {"properties": properties, "required": ["b"]}}
    some = ["".join(each) for size in range(4) for each in itertools.permutations("abc", size)]
    for order in list(ORDERS) if is_long() else [list(ORDERS)[FORMATS_OF_EACH_KIND.index(name) % len(ORDERS)]]:
        matcher = matcher_of(tool_grammar(name, [tool], style=JsonStyle(order=order)))
        accepted = [each for each in some if accepts(matcher, render(name, "", "", [("f", dict.fromkeys(each, 1))]))]
        assert sorted(accepted) == sorted(ORDERS[order]), order


def with_object(name: str, given: str, written: str) -> str:
    """A call with an object in place of the empty one of its argument `o`; `written` is JSON, without strings as values."""
    found = FORMATS[name]
    if found.tagged is not None and found.tagged.item:
        members = re.sub(r'"(\w)": ([^,}]+)[,}] ?', rf"{MINIMAX}<\1>\2{MINIMAX}</\1>", written.removeprefix("{"))
        return given.replace("<o>", f"<o>{members.replace('[]', '')}")
    assert given.count("{}") == 1
    if found.literals.quote:
        return given.replace("{}", written.replace('"', "").replace(" ", ""))
    return given.replace("{}", written.replace('"', "'") if found.tagged is None else written)


OBJECT = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "array"}}, "required": ["b"]}


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_nested_values_have_the_order_and_the_integers_of_the_style(name: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"o": OBJECT}, "required": ["o"]}}]
    strict, loose = (
        matcher_of(tool_grammar(name, tools, tool_choice="required", reasoning="forbidden", style=style))
        for style in (JsonStyle(), ANY_STYLE)
    )
    for written, accepted in (
        ('{"b": 5}', True),
        ('{"b": 5, "a": []}', True),
        ('{"a": [], "b": 5}', False),
        ('{"b": 5.0}', False),
        ('{"b": 5e0}', False),
    ):
        call = ToolCall("f", {"o": {}}, "0", text=f'{{"o": {written}}}')
        given = "".join(text for text, _ in rendered_calls(name, [call]))
        if FORMATS[name].arguments is not ArgumentStyle.JSON:
            given = with_object(name, given, written)
        assert accepts(strict, given) == accepted, given
        assert accepts(loose, given), given


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_a_name_that_occurs_twice_in_a_free_object_has_its_last_value(name: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"o": {"type": "object"}}, "required": ["o"]}}]
    written = '{"x": {"y": 1, "y": [2]}, "x": {"y": 3, "y": 4}}'
    call = ToolCall("f", {"o": {}}, "0", text=f'{{"o": {written}}}')
    given = "".join(text for text, _ in rendered_calls(name, [call]))
    if FORMATS[name].arguments is not ArgumentStyle.JSON:
        tagged = FORMATS[name].tagged
        if tagged is not None and tagged.item:
            given = given.replace("<o>", f"<o>{written}")  # objects with any names are JSON
        else:
            given = with_object(name, given, written)
    assert accepts(matcher_of(tool_grammar(name, tools, tool_choice="required", reasoning="forbidden")), given), given
    (read,) = parse_output(name, given, tools).calls
    assert read.arguments == {"o": {"x": {"y": 4}}}
    if read.text:
        assert json.loads(read.text) == read.arguments


def test_more_parameters_than_fit_in_any_order_are_written_in_the_declared_order() -> None:
    properties = {f"p{i}": {"type": "integer"} for i in range(12)}
    tool = {"name": "f", "parameters": {"properties": properties, "required": ["p3"]}}
    matcher = matcher_of(tool_grammar("glm-4.5", [tool], style=ANY_STYLE))
    accepted = [
        accepts(matcher, render("glm-4.5", "", "", [("f", dict.fromkeys(names, 1))]))
        for names in (["p3"], ["p0", "p3", "p11"], ["p3", "p0"], ["p0", "p11"])
    ]
    assert accepted == [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "tools", "options", "message"),
    [
        ("xml", [{"name": "f"}], {}, "format = 'xml': expected one of hermes"),
        ("hermes", [], {}, "0 tools: expected 1 to 512"),
        ("hermes", [{"name": "f"}, {"name": "f"}], {}, "two tools have this name"),
        ("hermes", [{"name": "f g"}], {}, "letters, digits"),
        ("hermes", [{"name": "f"}], {"tool_choice": "g"}, "tool_choice = 'g': expected auto, none, required"),
        ("hermes", [{"name": "f"}], {"tool_choice": {"name": "g"}}, "tool_choice = {'name': 'g'}"),
        ("hermes", [{"name": "f"}], {"reasoning": "some"}, "reasoning = 'some': expected one of forbidden"),
        ("llama-3", [{"name": "f"}], {"reasoning": "required"}, "the format llama-3 has no reasoning"),
        (
            "hermes",
            [{"name": "f"}],
            {"max_reasoning_chars": -1},
            "max_reasoning_chars = -1: expected an integer from 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name: str, tools: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        tool_grammar(name, tools, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "llama-4",
            {"properties": {"a b": {}}, "required": ["a b"]},
            "tool f: parameter 'a b': the format llama-4 cannot",
        ),
        (
            "llama-4",
            {"properties": {"class": {}}, "required": ["class"]},
            "tool f: parameter 'class': the format llama-4",
        ),
        (
            "glm-4.5",
            {"properties": {"a<": {}}, "required": ["a<"]},
            "tool f: parameter 'a<': the format glm-4.5 cannot",
        ),
        ("glm-4.5", {"required": ["a"]}, "tool f: required parameter 'a' is not declared (at #/required)"),
        ("hermes", {"properties": {"a": {"type": "text"}}}, "tool f: type must be one of null"),
        ("qwen-coder", {"properties": {"a": {"pattern": "("}}}, "(at #/properties/a)"),
        ("llama-4", {"properties": {"a": {"$ref": "#/nowhere"}}}, "(at #/properties/a)"),
    ],
)
def test_a_tool_that_must_be_called_and_cannot_be_is_refused_by_name(
    name: str, parameters: dict[str, Any], message: str
) -> None:
    tool = {"name": "f", "parameters": parameters}
    with pytest.raises(GrammarError) as caught:
        backend().compile(tool_grammar(name, [tool], tool_choice="required"))
    assert message in str(caught.value)
    checking = RtlangBackend(backend()._index, allow_checked=True)
    with pytest.raises(GrammarError) as caught:
        checking.compile(tool_grammar(name, [tool, {"name": "g"}], tool_choice={"name": "f"}))
    assert message in str(caught.value)
    matcher = checking.compile(tool_grammar(name, [tool, {"name": "g"}])).matcher()
    assert accepts(matcher, render(name, "", "", [("g", {})]))
    assert accepts(matcher, "none")


def test_names_that_a_format_cannot_write_are_left_out_if_they_may_be() -> None:
    tool = {"name": "f-g", "parameters": {"properties": {"a b": {}, "x": {"type": "integer"}}}}
    matcher = matcher_of(tool_grammar("llama-4", [tool]))
    assert accepts(matcher, "[f-g(x=1)]")
    assert parse_output("llama-4", "[f-g(x=1)]", [tool]).calls[0].name == "f-g"
    assert not accepts(matcher, "[f-g(a b=1)]")


def test_schemas_of_the_tools_are_reported_with_their_places() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "integer", "title": "X"}}}
    grammar = backend().compile(tool_grammar("hermes", [{"name": "f", "parameters": parameters}]))
    pointers = [entry.pointer for entry in grammar.report.entries]
    assert any(pointer.startswith("#/") and pointer.endswith("#/properties/x") for pointer in pointers), pointers


MARKS = re.compile(
    r"<[|｜][^<>]*?[|｜]>|\[/?[A-Z_]{4,}\]|</?(?:think|tool_call|arg_key|arg_value)>"
    r"|｜DSML｜|\]<\]minimax\[>\[|<\|tool_call>|<tool_call\|>|<\|\"\|>|<\|?channel\|?>"
)


@pytest.mark.parametrize("name", FORMATS_OF_EACH_KIND)
def test_marks_that_are_special_tokens_are_those_tokens(name: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}, {"name": "g"}]
    calls: list[tuple[str, dict[str, Any]]] = [("f", {"x": 1}), ("g", {})]
    content = "" if name in HAS_NO_CONTENT_BEFORE_CALLS else "text"
    given = render(name, content, "why", calls[: 1 if name in HAS_ONE_CALL else 2])
    marks = sorted({*MARKS.findall(given), *MARKS.findall(tool_grammar(name, tools).source)})
    tokens = (*(bytes([byte]) for byte in range(256)), *(mark.encode() for mark in marks), b"<end>")
    end = len(tokens) - 1
    vocabulary = Vocabulary(tokens, frozenset({end}), frozenset(range(256, end + 1)), end + 1)
    matcher = RtlangBackend.create(vocabulary).compile(tool_grammar(name, tools)).matcher()
    ids = []
    for part in re.split(f"({MARKS.pattern})", given):
        ids += [256 + marks.index(part)] if part in marks else list(part.encode())
    assert matcher.accepts([*ids, end]), given
    read = parse_output(name, vocabulary.shown(ids).decode(), tools)
    assert read == parse_output(name, given, tools)
    assert [(each.name, each.arguments) for each in read.calls] == calls[: len(read.calls)]
    if MARKS.search(given):
        assert not matcher.accepts([*given.encode(), end]), "marks are not spelled with ordinary tokens"


@pytest.mark.parametrize("name", ["llama-4", "qwen-coder", "hermes"])
@pytest.mark.parametrize(
    "inner",
    [
        {"anyOf": [{"$ref": "#/$defs/x"}] * 10},
        {"type": "object", "properties": {letter: {"$ref": "#/$defs/x"} for letter in "abcdefghij"}},
        {"allOf": [{"$ref": "#/$defs/x"}] * 10},
    ],
)
def test_schemas_that_refer_to_themselves_many_times_are_not_multiplied_out(name: str, inner: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": inner}}
    assert len(tool_grammar(name, [{"name": "f", "parameters": parameters}]).source) < 1_000_000


@pytest.mark.parametrize(
    "malformed",
    [{"type": 3}, {"allOf": 3}, {"properties": []}, {"required": 1}, {"minItems": "2", "type": "array"}, {"enum": 1}],
)
def test_malformed_inner_schemas_are_left_to_their_compilation(malformed: dict[str, Any]) -> None:
    for name in ("llama-4", "qwen-coder"):
        assert tool_grammar(name, [{"name": "f", "parameters": {"properties": {"a": malformed}}}])


EDITS = """start: (add | remove)+ LF?
add: "+" /[^\\n]*/ LF
remove: "- " /[a-z"]+/ LF
%import common.LF
"""
SUMS = """start: sum
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | "-" atom | "(" sum ")" | STRING
NUMBER: /[0-9]+/
%import common.ESCAPED_STRING -> STRING
"""
TEXTS = {
    EDITS: ['+a "b" \\é\n', "- abc\n+\n\n", "+a", "- \n", "- aB\n", "", "+\n- x\n\n\n"],
    SUMS: [
        "1",
        "(2+3)*-4",
        '((("a\\"b\\\\"/2)))',
        "(1",
        "1)",
        "",
        '"a',
        "1 + 2",
        '-("é")',
        "2**3",
        "(" * 9 + "7" + ")" * 9,
    ],
}


@pytest.mark.parametrize("name", ["hermes", "qwen-coder", "llama-4", "harmony"])
def test_a_text_of_a_tool_is_held_to_its_lark_grammar(name: str) -> None:
    """In each style of arguments: as JSON, between tags, and as Python writes them, with the text as a JSON string there."""
    for grammar, texts in TEXTS.items():
        schema = {"type": "string", "pattern": grammar, "x-pattern-dialect": "lark"}
        parameters = {"type": "object", "properties": {"input": schema}, "required": ["input"]}
        tool = {"type": "function", "function": {"name": "edit", "parameters": parameters}}
        whole = grammar.replace("[^\\n]*/", "[^\\n]+/?")  # this parser takes no empty terminals
        parser = Lark(whole, parser="earley", lexer="dynamic_complete")
        for style in (ANY_STYLE, JsonStyle()):
            matcher = matcher_of(tool_grammar(name, [tool], tool_choice="required", reasoning="forbidden", style=style))
            for given in texts:
                try:
                    parser.parse(given)
                    is_text = True
                except LarkError:
                    is_text = False
                written = "".join(piece for piece, _ in rendered_calls(name, [ToolCall("edit", {"input": given})]))
                if name == "llama-4":
                    written = f"[edit(input={json.dumps(given)})]"
                assert accepts(matcher, written) is is_text, (grammar, given)
