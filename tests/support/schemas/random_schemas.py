"""Small random schemas and values, and the comparison of shapes with a validator on them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.errors import GrammarError
from tests.support.schemas.shape_interpreter import shape_accepts

NAMES = ["a", "b", "ab", "x1"]
scalars = st.sampled_from([None, False, True, 0, 1, 2, 3, -1, 0.5, 1.0, 2.5, "", "a", "b", "ab", "x1", "abc"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
sizes = st.integers(0, 3)
patterns = st.sampled_from(["a", "^a", "b$", "^x", "^.?$", "1"])
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
leaf_keywords: dict[str, st.SearchStrategy[Any]] = {
    "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
    "enum": st.lists(values, min_size=1, max_size=3),
    "const": values,
    "minimum": st.integers(-1, 3),
    "exclusiveMaximum": st.sampled_from([0, 1.5, 3]),
    "multipleOf": st.sampled_from([1, 2, 0.5, 1.5]),
    "minLength": sizes,
    "maxLength": sizes,
    "pattern": patterns,
    "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    "minProperties": sizes,
    "maxProperties": sizes,
    "minItems": sizes,
    "maxItems": sizes,
    "uniqueItems": st.booleans(),
}


def composed(children: st.SearchStrategy[Any], unevaluated: bool) -> st.SearchStrategy[Any]:
    lists = st.lists(children, min_size=1, max_size=3)
    names = st.sampled_from(NAMES)
    keywords = {
        **leaf_keywords,
        "properties": st.dictionaries(names, children, max_size=2),
        "patternProperties": st.dictionaries(patterns, children, max_size=2),
        "additionalProperties": children,
        "propertyNames": children,
        "dependentSchemas": st.dictionaries(names, children, max_size=2),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "prefixItems": lists,
        "items": children,
        "contains": children,
        "minContains": sizes,
        "maxContains": sizes,
        "allOf": lists,
        "anyOf": lists,
        "oneOf": lists,
        "not": children,
        "if": children,
        "then": children,
        "else": children,
    }
    if unevaluated:
        keywords |= {"unevaluatedProperties": children, "unevaluatedItems": children}
    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: keywords[keyword] for keyword in chosen})
    )


def schemas(unevaluated: bool = False) -> st.SearchStrategy[Any]:
    """Small schemas of the whole vocabulary."""
    leaves = st.booleans() | st.lists(st.sampled_from(sorted(leaf_keywords)), max_size=3, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: leaf_keywords[keyword] for keyword in chosen})
    )
    return st.recursive(leaves, lambda inner: composed(inner, unevaluated), max_leaves=6)


def containers() -> st.SearchStrategy[Any]:
    """Objects whose names meet declared names, patterns and counts in all ways, and arrays whose elements are counted."""
    names = st.sampled_from(NAMES)
    parts = st.sampled_from([True, False, {"type": "integer"}, {"const": 1}, {"type": "string"}, {"enum": ["a", 2]}])
    name_patterns = st.sampled_from(["a", "^a", "b$", "^x", "^.?$", "1", "^", "^$", "^(a|b)$", "^[^a]", "^ab$", ".."])
    limits = [{"pattern": "^a"}, {"maxLength": 1}, {"enum": ["a", "b"]}, {"not": {"const": "a"}}, {"pattern": "^[ab]$"}]
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, parts, max_size=3),
            "patternProperties": st.dictionaries(name_patterns, parts, max_size=3),
            "additionalProperties": parts,
            "required": leaf_keywords["required"],
            "minProperties": sizes,
            "maxProperties": sizes,
            "propertyNames": st.sampled_from(limits),
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "prefixItems": st.lists(parts, min_size=1, max_size=3),
            "items": parts,
            "minItems": sizes,
            "maxItems": sizes,
            "uniqueItems": st.booleans(),
            "contains": parts,
            "minContains": sizes,
            "maxContains": sizes,
        },
    )
    two_ways = [lambda a, b: {"allOf": [a, b]}, lambda a, b: {**a, "not": b}, lambda a, b: {"oneOf": [a, b]}]
    return st.one_of(
        *(
            one | st.builds(lambda way, a, b: way(a, b), st.sampled_from(two_ways), one, one)
            for one in (objects, arrays)
        )
    )


def with_python_patterns(schema: Any) -> Any:
    """The same schema for a validator that reads its patterns with Python's `re`, of whose `$` and `.` ECMA-262 has other ideas."""
    if isinstance(schema, list):
        return [with_python_patterns(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {keyword: with_python_patterns(value) for keyword, value in schema.items()}
    if isinstance(schema.get("pattern"), str):
        made["pattern"] = _python_pattern(schema["pattern"])
    if "patternProperties" in made:
        made["patternProperties"] = {
            _python_pattern(pattern): value for pattern, value in made["patternProperties"].items()
        }
    return made


def _python_pattern(pattern: str) -> str:
    return pattern.replace("$", r"\Z").replace(".", r"[^\n\r\u2028\u2029]")


def agree(schema: Any, instances: list[Any], validator: type[Validator] = Draft202012Validator, **options: Any) -> None:
    """Assert that shapes decide instances as a validator does, up to what the report says is to be checked."""
    oracle = validator(schema)
    graph = None
    refusal = ""
    try:
        graph = compile_shapes(schema, options=SchemaOptions(**options))
    except GrammarError as error:
        refusal = error.reason
    assert graph or "nothing satisfies" in refusal, (schema, refusal)
    for instance in instances:
        accepted, valid = graph is not None and shape_accepts(graph, instance), oracle.is_valid(instance)
        if accepted is not valid:
            assert accepted, (schema, instance, "was rejected")
            assert graph is None or not graph.report.is_exact, (schema, instance, "was accepted")
