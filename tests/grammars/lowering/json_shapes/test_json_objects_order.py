"""The order of properties: in schemas as people and generators write them, against an order read off the document, and for real schemas."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.constraint import ANY_STYLE, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.conformance import Judge, accepts, entries, options_of
from tests.support.schemas.style_texts import style_texts

SHARED = Path(os.environ.get("RTLANG_SHARED", Path(__file__).parents[5] / "shared"))
BENCH = SHARED / "jsonschemabench" / "dev.jsonl.gz"
SUITE = SHARED / "json-schema-test-suite" / "dev.jsonl.gz"
JUDGES = {order: Judge(JsonStyle(order=order)) for order in PropertyOrder}
JUDGE = JUDGES[JsonStyle().order]
INTEGER, CLOSED = {"type": "integer"}, {"additionalProperties": False}
BASE = {"$defs": {"base": {"properties": {"m": INTEGER, "l": INTEGER}}}}


def declared(names: str, **more: Any) -> dict[str, Any]:
    return {"properties": dict.fromkeys(names, INTEGER), **more}


def orders(schema: Any, names: str, judge: Judge = JUDGE) -> list[str]:
    """The orders of some names in which an object of integers is accepted."""
    grammar = judge.compile({"type": "object", **schema}, SchemaOptions())
    return sorted({"".join(json.loads(text)) for text in style_texts(grammar, dict.fromkeys(names, 1))})


CASES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("declared", declared("bac"), "abc", ["bac"]),
    ("an optional one is left out", declared("bac", required=["c"]), "bc", ["bc"]),
    ("undeclared ones last, in any order", declared("b"), "axb", ["bax", "bxa"]),
    ("required, undeclared", declared("b", required=["z", "y"]), "byz", ["bzy"]),
    ("required alone", {"required": ["z", "y"]}, "yzx", ["zyx"]),
    ("required before properties", {"required": ["c", "a"], **declared("ac")}, "ac", ["ac"]),
    ("patterns", declared("b", patternProperties={"^[xy]$": INTEGER}, additionalProperties=False), "xyb", ["bxy", "byx"]),
    ("names", {"propertyNames": {"enum": ["x", "y"]}}, "xy", ["xy", "yx"]),
    ("counted names", declared("b", propertyNames={"enum": [*"xyb"]}, minProperties=3), "xyb", ["bxy", "byx"]),
    ("allOf, then properties", {**BASE, "allOf": [{"$ref": "#/$defs/base"}], **declared("a")}, "aml", ["mla"]),
    ("properties, then allOf", {**BASE, **declared("a"), "allOf": [{"$ref": "#/$defs/base"}]}, "aml", ["aml"]),
    ("$ref, then properties", {**BASE, "$ref": "#/$defs/base", **declared("a")}, "aml", ["mla"]),
    ("declared again", {"allOf": [declared("ba"), declared("acb")]}, "abc", ["bac"]),
    ("anyOf, then properties", {"anyOf": [declared("x", required=["x"]), declared("y", required=["y"])], **declared("a")}, "ax", ["xa"]),
    ("properties, then anyOf", {**declared("a"), "anyOf": [declared("x", required=["x"]), declared("y", required=["y"])]}, "ay", ["ay"]),
    ("each branch its own", {"anyOf": [declared("ab", additionalProperties=False), declared("bac", required=["c"])]}, "ab", ["ab"]),
    ("if, then", {**declared("k"), "if": declared("k", required=["k"]), "then": declared("vu", required=["u"])}, "kuv", ["kvu"]),
    ("if, before properties", {"if": declared("k", required=["k"]), "then": declared("v"), **declared("ak")}, "akv", ["akv"]),
    ("not, before properties", {"not": {"properties": {"a": {"const": 5}}, "required": ["a"]}, **declared("ba")}, "ab", ["ba"]),
    ("dependentSchemas first", {"dependentSchemas": {"b": declared("ca")}, **declared("ab")}, "abc", ["abc"]),
    ("dependentSchemas", {**declared("ab"), "dependentSchemas": {"b": declared("c", required=["c"])}}, "abc", ["abc"]),
    ("dependentRequired", declared("abc", dependentRequired={"c": ["a"]}), "abc", ["abc"]),
    ("counted, one forbidden", declared("abc", dependentRequired={"c": ["a"]}, minProperties=2, **CLOSED), "abc", ["abc"]),
    ("unevaluated", {**BASE, "unevaluatedProperties": False, **declared("a"), "$ref": "#/$defs/base"}, "aml", ["aml"]),
    ("const", {"const": {"b": 1, "a": 1}}, "ab", ["ba"]),
    ("enum", {"enum": [{"b": 1, "a": 1}, {"c": 1, "a": 1}]}, "ac", ["ca"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "names", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_properties_come_in_the_order_of_their_first_declaration(
    schema: dict[str, Any], names: str, expected: list[str]
) -> None:
    assert orders(schema, names) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (PropertyOrder.ANY, ["abx", "axb", "bax", "bxa", "xab", "xba"]),
        (PropertyOrder.DECLARED, ["bax", "bxa", "xba"]),
        (PropertyOrder.DECLARED_THEN_OTHERS, ["bax"]),
        (PropertyOrder.REQUIRED_FIRST, ["abx"]),
    ],
)
def test_every_order_is_an_option(order: PropertyOrder, expected: list[str]) -> None:
    assert orders(declared("ba", required=["a"]), "abx", JUDGES[order]) == expected


def test_merged_values_have_the_order_of_their_schemas_wherever_these_were_read_before() -> None:
    first, second = {"properties": {"p": declared("ba")}}, {"properties": {"p": declared("dc")}}
    refs = [{"$ref": "#/$defs/first"}, {"$ref": "#/$defs/second"}]
    for parts, expected in ((refs, "badc"), (refs[::-1], "dcba")):
        schema = {
            "$defs": {"first": first, "second": second},
            "properties": {"before": {"$ref": "#/$defs/first/properties/p"}, "q": {"allOf": parts}},
        }
        grammar = JUDGE.compile(schema, SchemaOptions())
        value = {"q": {"p": dict.fromkeys("abcd", 1)}}
        assert ["".join(json.loads(text)["q"]["p"]) for text in style_texts(grammar, value)] == [expected]


class Node(BaseModel):
    reasoning: str
    children: list[Node] = []
    answer: Literal["yes", "no"]


class Cat(BaseModel):
    lives: int
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Home(BaseModel):
    pet: Cat | Dog
    nodes: dict[str, Node]
    best: Node | None = None


VALUES: list[BaseModel] = [
    Node(reasoning="r", children=[Node(reasoning="s", answer="no")], answer="yes"),
    Home(pet=Cat(lives=9, kind="cat"), nodes={"x": Node(reasoning="r", answer="no")}),
    Home(pet=Dog(kind="dog", good=True), nodes={}, best=Node(reasoning="r", answer="no")),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("title", ["model", "wrapped"])
def test_a_model_of_pydantic_is_written_in_the_order_of_its_fields(value: BaseModel, title: str) -> None:
    schema = type(value).model_json_schema()
    plain = value.model_dump()
    if title == "wrapped":
        schema = {"$defs": schema.pop("$defs", {}), "allOf": [schema], "description": "as generators write it"}
        if "$ref" in schema["allOf"][0]:
            assert schema["allOf"][0].keys() == {"$ref"}
    grammar = JUDGE.compile(schema, SchemaOptions())
    assert [json.dumps(json.loads(text)) for text in style_texts(grammar, plain)] == [json.dumps(plain)]


# Random compositions, against an order that is read off the document.


def random_schema(rng: random.Random, depth: int) -> dict[str, Any]:
    """Properties, references and `allOf` over a few names, with keywords in any order."""
    keywords: list[tuple[str, Any]] = []
    if rng.random() < 0.8:
        keywords.append(("properties", dict.fromkeys(rng.sample("abcdef", rng.randrange(4)), INTEGER)))
    if rng.random() < 0.3:
        keywords.append(("required", rng.sample("abcdef", rng.randrange(3))))
    if rng.random() < 0.3:
        keywords.append(("$ref", f"#/$defs/{rng.choice('pq')}"))
    if depth and rng.random() < 0.5:
        keywords.append(("allOf", [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 3))]))
    rng.shuffle(keywords)
    return dict(keywords)


def read_names(schema: Any, document: dict[str, Any]) -> Iterator[str]:
    """The names that a schema declares, from its beginning to its end; a reference is read where it stands."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        match keyword:
            case "properties":
                yield from value
            case "$ref":
                yield from read_names(document["$defs"][value[-1]], document)
            case "allOf":
                for each in value:
                    yield from read_names(each, document)


def required_names(schema: Any, document: dict[str, Any]) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = set(schema.get("required", []))
    inner = [*schema.get("allOf", [])]
    if "$ref" in schema:
        inner.append(document["$defs"][schema["$ref"][-1]])
    return found.union(*(required_names(each, document) for each in inner))


def test_random_compositions_have_the_order_that_their_document_has() -> None:
    rng, num_orders = random.Random(7), 0
    for _ in range(60):
        definitions = {name: random_schema(rng, 0) for name in "pq"}
        for each in definitions.values():
            each.pop("$ref", None)
        schema = {"$defs": definitions, "type": "object", **random_schema(rng, 2)}
        names = list(dict.fromkeys(read_names(schema, schema)))
        grammar = JUDGE.compile(schema, SchemaOptions())
        some = sorted({*rng.sample(names, min(3, len(names))), *required_names(schema, schema), "x"})
        if len(some) > 6:
            continue
        accepted = ["".join(json.loads(text)) for text in style_texts(grammar, dict.fromkeys(some, 1))]
        assert accepted, schema
        first = [each for each in names if each in some]
        for each in accepted:
            assert each.startswith("".join(first)), (schema, accepted)
            num_orders += 1
    assert num_orders > 40


# Real schemas: nothing but the order and the spellings is lost.


def _is_small(value: Any) -> bool:
    """Whether all orders of its properties can be tried, and no number has more digits than are allowed."""
    if isinstance(value, list):
        return all(map(_is_small, value))
    if isinstance(value, int | float):
        return abs(value) < 1e60
    return not isinstance(value, dict) or (len(value) <= 5 and all(map(_is_small, value.values())))


@pytest.mark.parametrize("path", [BENCH, SUITE], ids=lambda path: path.parent.name)
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_every_valid_instance_of_a_real_schema_has_a_text_and_no_invalid_one(path: Path, every: int) -> None:
    if not path.exists():
        pytest.skip(f"{path.parent.name} is not beside the checkout")
    loose, num_valid = Judge(ANY_STYLE), 0
    for number, entry in enumerate(entries(path)):
        if number % every:
            continue
        options = options_of(entry)
        try:
            grammar, other = JUDGE.compile(entry["schema"], options), loose.compile(entry["schema"], options)
        except GrammarError:
            continue
        for test in entry["tests"]:
            if not _is_small(test["data"]):
                continue
            expected = accepts(other, json.dumps(test["data"], ensure_ascii=False))
            found = next(style_texts(grammar, test["data"]), None)
            where = (entry.get("id"), entry["schema"], test["data"])
            assert (found is not None) == expected, where
            num_valid += expected
    assert num_valid > 10
