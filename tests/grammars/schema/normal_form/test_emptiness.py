"""Recursive schemas that are intersected with themselves and their negations: the search for contradictions ends, and decides rightly."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.errors import GrammarError
from tests.support.schemas.shape_interpreter import shape_accepts

SELF = {"$ref": "#/$defs/self"}
OTHER = {"$ref": "#/$defs/other"}
WIDE: dict[str, Any] = {name: {"items": {}} for name in "abcdefghijkl"}
RECURSIVE = {
    "self": {"properties": {**WIDE, "not": SELF, "one": {"type": "boolean"}, "other": OTHER}},
    "other": {"properties": {**WIDE, "self": SELF, "many": {"items": OTHER}}},
}


@pytest.mark.parametrize(
    ("combined", "good", "bad"),
    [
        ({"allOf": [SELF, {"oneOf": [{}, SELF]}]}, [], [{}, {"one": True}, 1]),
        ({"oneOf": [{}, SELF]}, [{"one": 1}, {"not": {"one": 1}}], [{}, 1, {"one": True}, {"not": {"one": True}}]),
        ({"oneOf": [SELF, {"not": SELF}]}, [{}, 1, {"one": 1}, {"not": {"one": 1}}], []),
        ({"allOf": [{"not": SELF}, SELF]}, [], [{}, {"one": 1}]),
        ({"allOf": [OTHER, {"not": SELF}]}, [{"one": 1}, {"self": {}, "one": 0}], [{}, {"self": {"one": 0}}, {"one": True}]),
        ({"oneOf": [SELF, OTHER]}, [{"one": 1}, {"many": [{"self": {"one": 1}}]}], [{}, 1, {"one": True}]),
        ({"if": SELF, "then": False}, [{"one": 1}, {"not": {"one": 1}}], [{}, {"one": False}]),
        ({"if": OTHER, "then": {"not": SELF}, "else": SELF}, [{"one": 1}, {"many": [{"self": {"one": 1}}]}], [{}, {"one": True}]),
        ({"anyOf": [{"allOf": [SELF, {"not": SELF}]}, {"const": 5}]}, [5], [{}, {"one": True}]),
    ],
)  # fmt: skip
def test_recursive_schemas_combine_with_themselves(combined: Any, good: list[Any], bad: list[Any]) -> None:
    schema = {"properties": {"key": combined}, "required": ["end"], "$defs": RECURSIVE}
    oracle, graph = Draft202012Validator(schema), compile_shapes(schema)
    for values, is_valid in ((good, True), (bad, False)):
        for value in values:
            instance = {"key": value, "end": 1}
            assert oracle.is_valid(instance) is is_valid
            assert shape_accepts(graph, instance) is is_valid, value


def test_a_schema_that_only_infinite_values_satisfy_is_refused() -> None:
    endless = {"required": ["next"], "properties": {**WIDE, "next": SELF}, "type": "object"}
    with pytest.raises(GrammarError, match="nothing satisfies"):
        compile_shapes(
            {"allOf": [SELF, {"anyOf": [SELF, OTHER]}], "$defs": {"self": endless, "other": {"allOf": [SELF]}}}
        )


class _RandomDocuments:
    """Documents of three schemas that refer to each other from all places, and two properties that combine them."""

    NAMES = "abcdefgh"
    LEAVES: tuple[Any, ...] = (
        {"type": "boolean"},
        {"type": "integer"},
        {"minimum": 1},
        {},
        {"enum": [1, "a"]},
        {"items": {}},
    )

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def reference(self) -> Any:
        targets = [{"$ref": f"#/$defs/{name}"} for name in "ABC"]
        return self.rng.choice([*targets, *targets, {"$ref": "#"}, {"$dynamicRef": "#node"}])

    def part(self) -> Any:
        rng, one = self.rng, self.reference()
        ways: list[Any] = [
            one,
            one,
            one,
            {"not": one},
            {"items": one},
            {"additionalProperties": one},
            {"contains": one},
        ]
        ways += [{rng.choice(["allOf", "anyOf", "oneOf"]): [rng.choice([*self.LEAVES, self.reference()]), one]}]
        ways += [{"propertyNames": one}, {"if": one, "then": rng.choice(self.LEAVES), "else": self.reference()}]
        return rng.choice([*ways, rng.choice(self.LEAVES), rng.choice(self.LEAVES)])

    def schema(self) -> Any:
        rng = self.rng
        made: dict[str, Any] = {"properties": {name: self.part() for name in rng.sample(self.NAMES, rng.randint(2, 8))}}
        for keyword, values in (
            ("required", [rng.sample(self.NAMES, rng.randint(1, 2))]),
            ("additionalProperties", [False, self.reference()]),
            ("unevaluatedProperties", [False, self.reference()]),
            ("patternProperties", [{"^[ab]": self.part()}]),
        ):
            if rng.random() < 0.15:
                made[keyword] = rng.choice(values)
        return made if rng.random() < 0.7 else {"allOf": [made]}

    def combined(self) -> Any:
        rng = self.rng
        parts: list[Any] = [
            rng.choice([{}, self.reference(), self.reference(), {"not": self.reference()}, self.schema()])
            for _ in range(3)
        ]
        return rng.choice(
            [
                {rng.choice(["allOf", "anyOf", "oneOf"]): parts},
                {"allOf": [parts[0], {"not": {rng.choice(["allOf", "anyOf", "oneOf"]): parts[1:]}}]},
                {"if": parts[0], "then": parts[1], "else": parts[2]},
                {"allOf": [{"oneOf": parts[:2]}, {rng.choice(["anyOf", "oneOf"]): parts[1:]}]},
            ]
        )

    def document(self) -> Any:
        definitions = {name: self.schema() for name in "ABC"}
        return {
            "$dynamicAnchor": "node",
            "properties": {"a": self.combined(), "b": self.combined()},
            "$defs": definitions,
        }

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        if depth > 3 or rng.random() < 0.3:
            return rng.choice([True, 1, 0, "a", "b", None, [], {}])
        if rng.random() < 0.2:
            return [self.value(depth + 1) for _ in range(rng.randint(0, 2))]
        return {name: self.value(depth + 1) for name in rng.sample(self.NAMES, rng.randint(0, 4))}


def test_random_recursive_documents_agree_with_jsonschema() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(30):
        documents = _RandomDocuments(seed)
        schema = documents.document()
        try:
            graph = compile_shapes(schema, options=SchemaOptions(default_dialect="2020-12"))
        except GrammarError as error:
            is_limit = "takes more than" in error.reason or ("expands to more than" in error.reason and error.location)
            outcomes["refused" if is_limit else str(error)] += 1
            continue
        outcomes["compiled"] += 1
        oracle = Draft202012Validator(schema)
        for _ in range(10):
            value = documents.value()
            is_valid, accepted = oracle.is_valid(value), shape_accepts(graph, value)
            outcomes[str(is_valid)] += 1
            assert accepted is is_valid or (accepted and not graph.report.is_exact), (seed, value)
    assert outcomes.keys() <= {"compiled", "refused", "True", "False"}
    assert outcomes["refused"] <= 2
    assert min(outcomes["True"], outcomes["False"]) > 20
