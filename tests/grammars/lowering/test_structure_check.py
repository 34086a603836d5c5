"""Checks of structures: against jsonschema on what is read of the text, and against every division of small texts."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest

from rtlang_grammars import CompletionSearch, TokenBudget, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import ToolParseError, parse_output
from rtlang_grammars.formats.structural_tag import read_structural_tag
from rtlang_grammars.formats.tool_grammar import tool_grammar
from rtlang_grammars.lowering.structure_check import structure_check
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.value_checks import CheckTimeError, value_check
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.structures import (
    any_of,
    define,
    defined,
    members,
    raw_text,
    read_structure,
    repeat,
    sequence,
    tagged,
    token,
)
from rtlang_grammars.spec.tokens import segments_of
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell
from tests.support.grammars.vocabularies import random_text as random_walk
from tests.support.long_tests import is_long, sized, spread
from tests.support.schemas.tool_schemas import REALISTIC
from tests.support.schemas.tool_templates import FORMATS_OF_EACH_KIND, render

VOCABULARY = small_vocabulary()
UNIQUE = {"type": "array", "items": {"type": "string", "pattern": "^a*$"}, "uniqueItems": True, "minItems": 1}
CHECKED: dict[str, dict[str, Any]] = {
    "unique": {"properties": {"x": UNIQUE}, "required": ["x"]},
    "pattern as value": {"properties": {"x": {"type": "string", "format": "regex", "maxLength": 3}}, "required": ["x"]},
    "names and their number": {
        "properties": {"x": {"type": "object", "minProperties": 2, "propertyNames": {"maxLength": 3}}},
        "required": ["x"],
    },
    "at most one of a kind": {
        "properties": {"x": {"type": "array", "contains": {"const": 1}, "maxContains": 1, "maxItems": 4}},
        "required": ["x"],
    },
    "not": {"properties": {"x": {"type": "array", "items": {"enum": [0, 1]}, "not": {"contains": {"const": 0}}}}},
    "parameters together": {
        "properties": {"a": {"enum": [1, 2]}, "b": {"enum": [1, 2]}, "c": {"enum": [1, 2]}},
        "minProperties": 2,
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"required": ["b"]},
    },
    "a text or a number": {"properties": {"x": {"type": ["string", "integer"], "minimum": 5}}, "required": ["x"]},
    "text that is a number": {"properties": {"x": {"enum": ["1", 2]}}, "required": ["x"]},
}
NAMELESS = Vocabulary((*(bytes([each]) for each in range(256)), b"<end of text>"), frozenset([256]), frozenset(), 257)
SEARCH = CompletionSearch(NAMELESS)
VALIDATOR = jsonschema.Draft202012Validator


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend(VocabularyIndex(VOCABULARY), allow_checked=True)


def compiled(constraint: Constraint) -> RtlangGrammar:
    return backend().compile(constraint)


def schema(value: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(value))


def regex(pattern: str) -> Constraint:
    return Constraint(ConstraintKind.REGEX, pattern)


def random_text(grammar: RtlangGrammar, rng: random.Random, max_steps: int = 30) -> str:
    """A text that the masks allow: random tokens, and a short completion."""
    matcher, data, row = grammar.matcher(), b"", np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    for _ in range(rng.randrange(max_steps)):
        matcher.fill_bitmask(row)
        ids = [each for each in allowed_ids(row) if each not in VOCABULARY.eos_token_ids]
        if not ids:
            break
        chosen = rng.choice(ids)
        assert matcher.accept_token(chosen)
        data += VOCABULARY.text_of([chosen])
    closing = matcher.closing_bytes()
    assert closing is not None
    return "".join(
        VOCABULARY.token_bytes[each].decode() if isinstance(each, int) else each.decode()
        for each in segments_of(data + closing)
    )


def is_regex(value: object) -> bool:
    try:
        re.compile(str(value))
    except re.error:
        return False
    return True


@pytest.mark.parametrize(("name", "kind"), spread(list(FORMATS), list(CHECKED), usual=4))
def test_a_call_is_valid_if_jsonschema_finds_its_arguments_valid(name: str, kind: str) -> None:
    tools = [
        {"name": "f", "parameters": CHECKED[kind]},
        {"name": "g", "parameters": {"properties": {"y": {"type": "null"}}}},
    ]
    grammar = compiled(tool_grammar(name, tools, tool_choice="required", reasoning="forbidden"))
    formats = jsonschema.FormatChecker(())
    formats.checks("regex")(is_regex)
    validator = VALIDATOR(CHECKED[kind], format_checker=formats)
    rng, outcomes = random.Random(f"{name} {kind}"), set[bool]()
    for _ in range(sized(12, usual=6)):
        text = random_text(grammar, rng)
        try:
            calls = parse_output(name, text, tools).calls
        except ToolParseError:
            continue
        is_valid = all(validator.is_valid(call.arguments) for call in calls if call.name == "f")
        if grammar.value_check is None:
            assert is_valid, text
            continue
        error = grammar.value_check.error_in(text)
        if kind == "pattern as value" and not is_valid and error is None:
            continue  # ECMA's patterns are not Python's
        assert (error is None) == is_valid or kind == "pattern as value", (text, error)
        assert error is None or error.startswith("tool f: ")
        outcomes.add(is_valid)
    assert grammar.value_check is None or outcomes


FORMS: dict[str, Constraint] = {
    "sequence": sequence("a", schema(UNIQUE), regex("[0-9]*"), "b"),
    "alternatives": any_of(schema(UNIQUE), schema({"type": "array", "items": {"const": ""}, "maxItems": 2})),
    "repeat": repeat(sequence(schema(UNIQUE), ";"), 1, 3),
    "unbounded repeat": sequence(repeat(schema(UNIQUE), 2), ""),
    "members": members([(sequence("a", schema(UNIQUE)), True), (sequence("b", schema(UNIQUE)), False)], ","),
    "tags": tagged([("<a>", schema(UNIQUE), "</a>"), ("<b>", regex("[0-9]+"), ";")], low=1, high=3),
    "tags before text": sequence(
        tagged([("<a>", schema(UNIQUE), "")], low=1, high=1, text_behind=False), "!", regex("[a-c]?")
    ),
    "grammar": sequence(Constraint(ConstraintKind.GBNF, 'root ::= "(" root ")" | "[1]"'), schema(UNIQUE)),
    "choice": sequence(Constraint(ConstraintKind.CHOICE, '["x", "[", ""]'), schema(UNIQUE)),
    "token": sequence(token("<|tool|>"), schema(UNIQUE)),
    "numbers": sequence(schema({"type": "integer", "multipleOf": 999983}), regex("[0-9]*")),
    "text": sequence(raw_text({"type": "string", "format": "regex"}, excludes=["</p>"]), "</p>", schema(UNIQUE)),
    "defined": define({"u": schema(UNIQUE)}, sequence(defined("u"), "-", defined("u"))),
}
"""Compositions with a keyword that only a check enforces."""
PIECES = {
    "tags": ("x", "<", '<a>[""]</a>', '<a>["", ""]</a>', '<a>["a"]</a>', "<b>12;", "</a>"),
    "tags before text": ("x", '<a>[""]', '<a>["", ""]', "!", "!a"),
    "numbers": ("0", "1", "999983", "2"),
}
"""Texts that random walks seldom come to."""


def divisions(part: Any, text: str, known: dict[str, Any]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """The beginnings of a text that are texts of a part, as what is left of the text and the values with their schemas."""
    if isinstance(part, str):
        if text.startswith(part):
            yield text[len(part) :], []
    elif "kind" in part:
        yield from leaves(part, text)
    elif "sequence" in part:
        if not part["sequence"]:
            yield text, []
            return
        first, *others = part["sequence"]
        for rest, values in divisions(first, text, known):
            for last, more in divisions({"sequence": others}, rest, known):
                yield last, values + more
    elif "any_of" in part:
        for each in part["any_of"]:
            yield from divisions(each, text, known)
    elif "repeat" in part:
        low, high = part["min"], part["max"]
        if not low:
            yield text, []
        if high != 0:
            fewer = {**part, "min": max(0, low - 1), "max": None if high is None else high - 1}
            for rest, values in divisions(part["repeat"], text, known):
                if rest != text:
                    for last, more in divisions(fewer, rest, known):
                        yield last, values + more
    elif "members" in part:
        listed, separator = part["members"], part["separator"]
        if not any(each["required"] for each in listed):
            yield text, []
        for i, each in enumerate(listed):
            others = [other for other in listed if other is not each]
            start = {"sequence": ([] if part.get("begun") is None else [separator]) + [each["part"]]}
            for rest, values in divisions(start, text, known):
                for last, more in divisions({**part, "members": others, "begun": i}, rest, known):
                    yield last, values + more
    elif "text" in part:
        for end in range(len(text) + 1):
            if not any(each in text[:end] for each in part["excludes"]):
                yield text[end:], [(part["text"], text[:end])]
    elif "token" in part:
        yield from divisions(part["token"], text, known)
    elif "define" in part:
        yield from divisions(part["in"], text, {**known, **part["define"]})
    elif "defined" in part:
        yield from divisions(known[part["defined"]], text, known)
    else:
        yield from tag_divisions(part, text, known)


def tag_divisions(part: Any, text: str, known: dict[str, Any]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    begins = [tag["begin"] for tag in part["tags"]]
    high = part["max"]
    for end in range(len(text) + 1):
        if any(begin in text[:end] for begin in begins):
            break
        if not part["min"] and (high != 0 or part["text_behind"] or end == 0):
            yield text[end:], []
        for tag in part["tags"] if high != 0 else []:
            fewer = {**part, "min": max(0, part["min"] - 1), "max": None if high is None else high - 1}
            one = {"sequence": [tag["begin"], tag["part"], tag["end"]]}
            for rest, values in divisions(one, text[end:], known):
                for last, more in divisions(fewer, rest, known):
                    yield last, values + more


def leaves(part: Any, text: str) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    for end in range(len(text) + 1):
        begun, source = text[:end], part["source"]
        if part["kind"] == "json_schema":
            try:
                value = json.loads(begun)
            except ValueError:
                continue
            if begun == begun.rstrip():
                yield text[end:], [(json.loads(source), value)]
        elif part["kind"] == "choice":
            if begun in json.loads(source):
                yield text[end:], []
        elif part["kind"] == "regex":
            if re.fullmatch(source, begun):
                yield text[end:], []
        elif re.fullmatch(r"\(*\[1\]\)*", begun) and begun.count("(") == begun.count(")"):
            yield text[end:], []


def is_valid(value_schema: Any, value: Any) -> bool:
    if isinstance(value_schema, dict) and value_schema.get("format") == "regex":
        return value_check(value_schema).error(value) is None  # ECMA's patterns are not Python's
    return VALIDATOR(value_schema).is_valid(value)


@pytest.mark.parametrize("name", FORMS)
def test_a_text_is_valid_if_one_of_its_divisions_is(name: str) -> None:
    grammar, plain, rng = compiled(FORMS[name]), json.loads(FORMS[name].source), random.Random(name)
    assert grammar.value_check is not None
    outcomes = []
    for _ in range(80):
        if name in PIECES:
            text = "".join(rng.choice(PIECES[name]) for _ in range(rng.randint(1, 5)))
            if not grammar.matcher().accepts([*spell(VOCABULARY, text), min(VOCABULARY.eos_token_ids)]):
                continue
        else:
            text = random_text(grammar, rng, 14)
        expected = any(
            not rest and all(is_valid(*each) for each in values) for rest, values in divisions(plain, text, {})
        )
        error = grammar.value_check.error_in(text)
        assert (error is None) == expected, (text, error)
        outcomes.append(expected)
    assert {True, False} == set(outcomes), "the texts are not of both kinds"


def test_an_error_names_the_tool_or_the_part_and_the_place_in_the_value() -> None:
    tool = {"name": "put_tags", "parameters": CHECKED["unique"]}
    check = compiled(tool_grammar("hermes", [tool])).value_check
    assert check is not None
    text = '<tool_call>\n{"name": "put_tags", "arguments": {"x": ["a", "a"]}}\n</tool_call>'
    assert check.error_in(text) == "tool put_tags: two elements are equal (at #/x)"
    assert check.error_in("no call") is None
    check = compiled(sequence("a", schema(UNIQUE))).value_check
    assert check is not None
    assert check.error_in('a["", ""]') == "the value at #/sequence/1: two elements are equal (at #)"
    assert check.error_in("b") == "the text cannot be divided into the parts of the structure"


def test_a_structural_tag_with_a_checked_keyword_is_compiled_and_checked() -> None:
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<t>", "schema": UNIQUE, "end": "</t>"}],
        "triggers": ["<t"],
    }
    check = compiled(read_structural_tag(tag)).value_check
    assert check is not None
    assert [check.error_in(text) is None for text in ('<t>["", "a"]</t>', "x", '<t>["a"]</t> <t>["a", "a"]</t>')] == [
        True,
        True,
        False,
    ]


def test_a_part_begins_behind_the_name_of_its_tool() -> None:
    tools = [{"name": "put_tags", "parameters": CHECKED["unique"]}, {"name": "now"}]
    for name in FORMATS:
        check = compiled(tool_grammar(name, tools)).value_check
        assert check is not None
        call = "put_tags"
        assert not check.may_begin("some content, no calls", 5), name
        assert check.may_begin(f"content {call}", 3), name
    check = compiled(sequence(raw_text(excludes=["["]), schema(UNIQUE))).value_check
    assert check is not None
    assert check.may_begin("", 0)


@pytest.mark.parametrize(("number", "name"), list(enumerate(FORMATS_OF_EACH_KIND)))
def test_realistic_tools_are_compiled_together_and_their_calls_are_valid(number: int, name: str) -> None:
    schemas = {each["function"]["name"]: each["function"]["parameters"] for each in REALISTIC}
    nameless, rng = RtlangBackend(VocabularyIndex(NAMELESS), allow_checked=True), random.Random(name)
    # A usual run takes one tool for each format, and every tool with some formats.
    named = list(schemas) if is_long() else [list(schemas)[number % len(schemas)]]
    for choice in ("required", *({"name": each} for each in named)):
        grammar = nameless.compile(tool_grammar(name, REALISTIC, tool_choice=choice, reasoning="forbidden"))
        path = SEARCH.find(grammar.matcher(), 4096)
        assert path is not None
        for _ in range(sized(3, usual=1)):
            keeper = TokenBudget(SEARCH, path)
            text = random_walk(NAMELESS, grammar.matcher(), keeper, len(path.data) + 60, rng, end_chance=0.1)
            if grammar.value_check is not None and grammar.value_check.error_in(text) is not None:
                continue
            try:
                calls = parse_output(name, text, REALISTIC).calls
            except ToolParseError as error:
                if "occurs twice" in str(error):  # masks do not compare the names in parts of a structure
                    continue
                raise
            assert calls, text
            for call in calls:
                jsonschema.validators.validator_for(schemas[call.name], VALIDATOR)(schemas[call.name]).validate(
                    call.arguments
                )


UNCOMPILED: dict[str, Any] = {
    "not supported": {"type": "string", "pattern": r"(a)\1"},
    "no such reference": {"$ref": "#/$defs/nothing"},
    "elsewhere": {"$ref": "https://example.org/schema.json"},
    "malformed": {"type": "text"},
    "nested deeply": functools.reduce(lambda inner, _: {"properties": {"x": inner}, "type": "object"}, range(300), {}),
    "too many states": {"type": "string", "pattern": "(?=(a|b)*a(a|b){16}$)(?=(a|b)*b(a|b){17}$)"},
}


def error_of(grammar: RtlangGrammar, text: str) -> str | None:
    """The violation in a text, or the error of the schema that was to be checked."""
    assert grammar.value_check is not None
    try:
        return grammar.value_check.error_in(text)
    except GrammarError as error:
        return error.reason


@pytest.mark.parametrize("kind", UNCOMPILED)
@pytest.mark.parametrize("name", ["hermes", "qwen-coder", "llama-4"])
def test_a_tool_that_cannot_be_compiled_does_not_keep_the_others_from_being_called(name: str, kind: str) -> None:
    bad = {
        "name": "bad",
        "parameters": {"properties": {"x": UNCOMPILED[kind], "y": {"type": "integer"}}, "required": ["y"]},
    }
    fine = {"name": "fine", "parameters": CHECKED["unique"]}
    grammar = compiled(tool_grammar(name, [bad, fine], tool_choice="required", reasoning="forbidden"))
    for value, is_fine in ((["a", ""], True), (["a", "a"], False)):
        text = render(name, "", "", [("fine", {"x": value})]).replace("'", '"')
        assert grammar.matcher().accepts([*spell(VOCABULARY, text), min(VOCABULARY.eos_token_ids)])
        assert (error_of(grammar, text) is None) is is_fine
    rng = random.Random(kind)
    for _ in range(30):
        text = random_text(grammar, rng)
        try:
            calls = parse_output(name, text, [bad, fine]).calls
        except ToolParseError:
            continue
        if error_of(grammar, text) is None:
            assert all(float(call.arguments["y"]).is_integer() for call in calls if call.name == "bad"), text
            assert all(VALIDATOR(CHECKED["unique"]).is_valid(call.arguments) for call in calls if call.name == "fine")


def test_tools_that_are_too_large_together_are_all_checked_afterwards() -> None:
    word = {"type": "string", "pattern": "^(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).{8,16}$"}
    tools = [
        {
            "name": f"f{i}",
            "parameters": {"properties": {f"p{i}_{j}": {**word, "maxLength": 9 + i + j} for j in range(12)}},
        }
        for i in range(40)
    ]
    small = RtlangBackend(VocabularyIndex(VOCABULARY), Limits(max_states=20000), allow_checked=True)
    check = small.compile(tool_grammar("llama-4", tools, tool_choice="required")).value_check
    assert check is not None
    assert check.error_in('[f0(p0_0="aA345678")]') is None
    assert "tool f0: does not match" in str(check.error_in('[f0(p0_0="a")]'))


def test_a_check_is_bounded_in_time() -> None:
    part = read_structure(sequence(repeat(regex("a*")), repeat(regex("a*b?")), schema(UNIQUE)).source)
    check = structure_check(part, ["#/sequence/2"])
    with pytest.raises(CheckTimeError, match="too long"):
        check.error_in("a" * 20_000 + "[1]")


def test_a_backend_that_cannot_check_refuses_the_keyword_by_name() -> None:
    strict = RtlangBackend(VocabularyIndex(VOCABULARY))
    for name in ("hermes", "qwen-coder"):
        with pytest.raises(GrammarError, match="tool f: uniqueItems cannot be enforced here"):
            strict.compile(tool_grammar(name, [{"name": "f", "parameters": CHECKED["unique"]}, {"name": "g"}]))
    with pytest.raises(GrammarError, match="tool f: if cannot be enforced where parameters are written one by one"):
        strict.compile(tool_grammar("glm-4.5", [{"name": "f", "parameters": CHECKED["parameters together"]}]))
