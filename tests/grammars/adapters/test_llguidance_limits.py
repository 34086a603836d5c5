"""Schemas that ask one text to meet too much at once are refused before the library sees them, others are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang_grammars.adapters.llguidance_limits import MAX_MULTIPLE, MAX_PATTERNS, check_limits
from rtlang_grammars.api.backends import create_backend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from tests.support.vocabularies import small_vocabulary

MANY = 30


def words(count: int) -> list[dict[str, Any]]:
    return [{"pattern": f"x{index}"} for index in range(count)]


def at_property(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"allOf": [{"properties": {"k": part}} for part in parts]}


def at_named_and_unnamed(parts: list[dict[str, Any]]) -> dict[str, Any]:
    first, *others = parts
    return {"properties": {"k": first}, "allOf": [{"additionalProperties": part} for part in others]}


def at_named_and_matched(parts: list[dict[str, Any]]) -> dict[str, Any]:
    first, *others = parts
    return {"properties": {"k": first}, "allOf": [{"patternProperties": {"^k": part}} for part in others]}


def at_items(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"allOf": [{"items": part} for part in parts[1:]], "prefixItems": [{}, parts[0]]}


def in_a_chain_of_references(parts: list[dict[str, Any]]) -> dict[str, Any]:
    links = {f"a{i}": {**part, "$ref": f"#/$defs/a{i + 1}"} for i, part in enumerate(parts)}
    return {"$ref": "#/$defs/a0", "$defs": {**links, f"a{len(parts)}": {"type": "string"}}}


def in_named_references(parts: list[dict[str, Any]]) -> dict[str, Any]:
    named = {f"a~b/{i}": {**part, "$anchor": f"n{i}", "$id": f"http://x/{i}"} for i, part in enumerate(parts)}
    half = len(parts) // 2
    references = [f"#n{i}" for i in range(half)] + [f"http://x/{i}" for i in range(half, len(parts))]
    return {"allOf": [{"$ref": reference} for reference in references], "$defs": named}


def in_alternatives(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"allOf": [{"anyOf": [{"type": "integer"}, part]} for part in parts[:4]] + parts[4:]}


def nested(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"allOf": [{"properties": {"a": {"items": {"properties": {"b": {"allOf": [part]}}}}}} for part in parts]}


def under_a_reference_to_the_root(parts: list[dict[str, Any]]) -> dict[str, Any]:
    first, *others = parts
    inner = {"properties": {"child": {"properties": {"v": first}}}}
    return {
        "properties": {"child": {"allOf": [{"$ref": "#"}, *({"properties": {"v": p}} for p in others)]}},
        "allOf": [inner],
    }


SHAPES = [
    lambda parts: {"type": "string", "allOf": parts},
    at_property,
    at_named_and_unnamed,
    at_named_and_matched,
    at_items,
    in_a_chain_of_references,
    in_named_references,
    in_alternatives,
    nested,
    under_a_reference_to_the_root,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_patterns_are_counted_wherever_they_come_together(shape: Any) -> None:
    check_limits(shape(words(MAX_PATTERNS)))
    with pytest.raises(GrammarError, match=f"at most {MAX_PATTERNS} are allowed") as caught:
        check_limits(shape(words(MAX_PATTERNS + 1)))
    assert caught.value.location is not None
    place: Any = shape(words(MAX_PATTERNS + 1))
    for step in caught.value.location.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        place = place[int(step)] if isinstance(place, list) else place[step]
    assert "pattern" in place


def test_patterns_of_different_places_and_of_alternatives_do_not_add_up() -> None:
    check_limits({"properties": {f"p{i}": part for i, part in enumerate(words(MANY))}})
    check_limits({"allOf": [{"properties": {f"p{i}": part}} for i, part in enumerate(words(MANY))]})
    check_limits({"anyOf": words(MANY), "format": "date"})
    check_limits({"anyOf": [{"properties": {"id": part}} for part in words(2000)]})
    check_limits({"patternProperties": {f"^{i}": part for i, part in enumerate(words(MANY))}})
    check_limits({"prefixItems": words(MANY)})
    check_limits({"items": words(MANY), "additionalItems": {"pattern": "y"}})
    check_limits({"type": "string", "allOf": words(1) * MANY})
    check_limits({"enum": words(MANY), "$defs": {"unused": {"allOf": words(MANY)}}})


def test_formats_count_as_patterns() -> None:
    formats = [{"format": name} for name in ("date", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname")]
    check_limits({"allOf": formats})
    with pytest.raises(GrammarError, match="9 patterns and formats"):
        check_limits({"allOf": [*formats, {"pattern": "a"}]})


def test_recursive_and_dangling_references_end() -> None:
    loop = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}, *words(MANY)]}
    for schema in (loop, tree, {"anyOf": [{"$ref": "#/no"}, {"$ref": "else#x"}, {"$ref": "#/anyOf/99"}, *words(MANY)]}):
        check_limits(schema)


def test_a_schema_that_combines_too_much_to_be_counted_is_refused() -> None:
    names = {f"p{i}": {"pattern": f"x{i}"} for i in range(1000)}
    with pytest.raises(GrammarError, match="too many subschemas"):
        check_limits({"allOf": [{"properties": names} for _ in range(1000)]})


def test_multiples_are_bounded_by_their_least_common_multiple() -> None:
    check_limits({"allOf": [{"multipleOf": 99_991}, {"minimum": 0}]})
    check_limits({"properties": {"a": {"multipleOf": 99_991}, "b": {"multipleOf": 99_989}}})
    for value in (0.01, 1e-9, 10**9, 25e6, -3, 0, True, "7", 1e300):
        check_limits({"multipleOf": value})
    for schema in ({"multipleOf": MAX_MULTIPLE + 1}, {"allOf": [{"multipleOf": 991}, {"multipleOf": 997}]}):
        with pytest.raises(GrammarError, match="multipleOf") as caught:
            check_limits(schema)
        assert caught.value.location in ("", "/allOf/0", "/allOf/1")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_backend_refuses_at_once_what_would_keep_the_library_busy(shape: Any) -> None:
    backend = create_backend("llguidance", small_vocabulary())
    with pytest.raises(GrammarError, match="patterns and formats"):
        backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(shape(words(MANY)))))
