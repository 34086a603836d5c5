"""Assertions on numbers and strings, and on instances of any type: `type`, `enum`, `const`.

Source: JSON Schema Validation 2020-12, sections 6.1 to 6.3 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import cast

from rtlang_grammars.regular.string_formats.formats import LOOSE_FORMATS
from rtlang_grammars.schema.normal_form.algebra import Algebra, Facets, Keyword, keyword_group
from rtlang_grammars.schema.normal_form.facets import (
    PATTERN_KINDS,
    TOPS,
    Facet,
    FacetMark,
    NumberBody,
    StringBody,
    TextDemand,
)
from rtlang_grammars.schema.reading.dialects import PATTERN_DIALECT, invalid_value
from rtlang_grammars.schema.reading.documents import SchemaNode
from rtlang_grammars.schema.reading.values import (
    TYPE_NAMES,
    Json,
    JsonType,
    check_nesting,
    exact,
    is_number,
    json_key,
    type_of,
)

_ONE = Fraction(1)
_A_LABELS_LEFT_OUT = "host names with A-labels (xn--) are excluded"
_A_LABELS_UNCHECKED = "A-labels (xn--) must be decoded and U-labels encoded (RFC 5891)"
MAX_COUNT = 1 << 30  # items, properties or characters: the tables hold 32-bit integers
MAX_LITERAL_DEPTH = 64  # nesting of listed arrays and objects, which are compared by recursion


def read_count(node: SchemaNode, keyword: str) -> int:
    """Return the value of a keyword that bounds a length or count, but at most `MAX_COUNT`, which no generated text reaches.

    Raises:
        GrammarError: the value is not an integer of at least 0.
    """
    value = keyword_value(node, keyword)
    if not is_number(value) or value < 0 or exact(value).denominator != 1:
        raise invalid_value(value, "a non-negative integer", keyword, node.location)
    return int(min(value, MAX_COUNT))


def keyword_value(node: SchemaNode, keyword: str) -> Json:
    """Return the value of a keyword that the schema of a node has."""
    assert isinstance(node.schema, dict)
    return node.schema[keyword]


def read_strings(value: Json, keyword: str, node: SchemaNode) -> list[str]:
    """Return the value of a keyword if it is an array of strings.

    Raises:
        GrammarError: the value is not an array, or an item is not a string.
    """
    if not isinstance(value, list):
        raise invalid_value(value, "an array of strings", keyword, node.location)
    for item in value:
        if not isinstance(item, str):
            raise invalid_value(item, "a string", f"each item of {keyword}", node.location)
    return cast("list[str]", value)


def has_keyword(node: SchemaNode, keyword: str) -> bool:
    """Whether the schema of a node has a keyword that its dialect defines as an assertion or applicator."""
    return isinstance(node.schema, dict) and keyword in node.schema and keyword in node.dialect.keywords


def read_type(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `type` (Validation 6.1.1)."""
    value = keyword_value(node, "type")
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPE_NAMES:
            allowed = f"one of {', '.join(TYPE_NAMES)}, or an array of them"
            raise invalid_value(name, allowed, "type", node.location)
    if kind is JsonType.NUMBER and "integer" in names and "number" not in names:
        return _read_integer(node, positive)
    included = any(isinstance(name, str) and TYPE_NAMES[name] is kind for name in names)
    return (TOPS[kind],) if included is positive else ()


def _read_integer(node: SchemaNode, positive: bool) -> Facets:
    if node.dialect.integer_form:
        body = NumberBody(multiple_of=_ONE, integer_form=True) if positive else NumberBody(fraction_form=True)
    else:
        body = NumberBody(multiple_of=_ONE) if positive else NumberBody(not_multiple_of=frozenset({_ONE}))
    return (Facet(JsonType.NUMBER, body),)


def read_enum(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `enum` (Validation 6.1.2)."""
    values = keyword_value(node, "enum")
    if not isinstance(values, list):
        raise invalid_value(values, "an array", "enum", node.location)
    return _read_values(algebra, node, values, kind, positive)


def read_const(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `const` (Validation 6.1.3)."""
    return _read_values(algebra, node, [keyword_value(node, "const")], kind, positive)


def _read_values(algebra: Algebra, node: SchemaNode, values: list[Json], kind: JsonType, positive: bool) -> Facets:
    algebra.budget.spend(states=1 + (len(values) >> 4))
    if kind in (JsonType.ARRAY, JsonType.OBJECT):
        for value in values:
            check_nesting(value, MAX_LITERAL_DEPTH, node.location)  # before the recursion of `json_key`
    literals = {json_key(value): value for value in reversed(values) if type_of(value) is kind}
    literals = dict(reversed(literals.items()))
    top = TOPS[kind]
    if positive:
        return (replace(top, literals=literals),) if literals else ()
    if kind is JsonType.NULL:
        return () if literals else (top,)
    if kind is JsonType.BOOLEAN:
        allowed = {json_key(value): value for value in (False, True) if json_key(value) not in literals}
        return (replace(top, literals=allowed),) if len(allowed) == 1 else (top,) if allowed else ()
    algebra.excluded_values.update(literals)
    return (replace(top, excluded=frozenset(literals)),) if literals else (top,)


def read_bounds(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `minimum`, `maximum`, `exclusiveMinimum` and `exclusiveMaximum` (Validation 6.2.2 to 6.2.5)."""
    bodies: list[NumberBody] = []
    for side in ("Minimum", "Maximum"):
        plain, exclusive = side.lower(), f"exclusive{side}"
        is_open = False
        if node.dialect.boolean_exclusive and has_keyword(node, exclusive):
            flag = keyword_value(node, exclusive)
            if not isinstance(flag, bool):
                raise invalid_value(flag, f"a boolean in {node.dialect.name}", exclusive, node.location)
            is_open = flag
        elif has_keyword(node, exclusive):
            bodies.append(_bound(side, _number(node, exclusive), True, positive))
        if has_keyword(node, plain):
            bodies.append(_bound(side, _number(node, plain), is_open, positive))
    if not bodies:
        return (TOPS[kind],) if positive else ()
    if not positive:
        return [Facet(kind, body) for body in bodies]
    merged: NumberBody | None = NumberBody()
    for body in bodies:
        merged = merged and merged.meet(body)
    return [Facet(kind, merged)] if merged else ()


def _bound(side: str, value: Fraction, is_open: bool, positive: bool) -> NumberBody:
    if (side == "Minimum") is positive:
        return NumberBody(minimum=value, exclusive_minimum=is_open is positive)
    return NumberBody(maximum=value, exclusive_maximum=is_open is positive)


def _number(node: SchemaNode, keyword: str) -> Fraction:
    value = keyword_value(node, keyword)
    if not is_number(value):
        raise invalid_value(value, "a number", keyword, node.location)
    return exact(value)


def read_multiple_of(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `multipleOf` (Validation 6.2.1)."""
    value = _number(node, "multipleOf")
    if value <= 0:
        raise invalid_value(keyword_value(node, "multipleOf"), "greater than 0", "multipleOf", node.location)
    return (Facet(kind, NumberBody(multiple_of=value) if positive else NumberBody(not_multiple_of=frozenset({value}))),)


def read_lengths(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `minLength` and `maxLength` (Validation 6.3.1, 6.3.2)."""
    low = read_count(node, "minLength") if has_keyword(node, "minLength") else 0
    high = read_count(node, "maxLength") if has_keyword(node, "maxLength") else None
    if positive:
        return () if high is not None and high < low else (Facet(kind, StringBody(frozenset(), low, high)),)
    facets = [Facet(kind, StringBody(max_length=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(kind, StringBody(min_length=high + 1))]


def read_pattern(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `pattern` (Validation 6.3.3) and the dialect of it, which is ECMA-262 unless `x-pattern-dialect` names another one."""
    if not has_keyword(node, "pattern"):
        return (TOPS[kind],) if positive else ()
    pattern = keyword_value(node, "pattern")
    if not isinstance(pattern, str):
        raise invalid_value(pattern, "a string", "pattern", node.location)
    dialect = keyword_value(node, PATTERN_DIALECT) if has_keyword(node, PATTERN_DIALECT) else "ecma"
    if not isinstance(dialect, str) or dialect not in PATTERN_KINDS:
        raise invalid_value(dialect, f"one of {', '.join(PATTERN_KINDS)}", PATTERN_DIALECT, node.location)
    return _text_facet(TextDemand(PATTERN_KINDS[dialect], pattern, positive, node.location))


def read_format(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `format` (Validation 7)."""
    name = keyword_value(node, "format")
    if not isinstance(name, str):
        raise invalid_value(name, "a string", "format", node.location)
    if not algebra.options.assert_formats:
        algebra.ignore(node, "format", "format is an annotation (assert_formats is False)")
    elif name not in node.dialect.formats:
        algebra.ignore(node, "format", f"{name[:40]!r} is not a format of {node.dialect.name}")
    elif algebra.texts.has_format(name):
        if name in LOOSE_FORMATS:
            return _read_host_names(algebra, node, name, kind, positive)
        return _text_facet(TextDemand("format", name, positive, node.location))
    else:
        return algebra.unenforced(kind, node, "format", f"the format {name} is not a regular language")
    return (TOPS[kind],) if positive else ()


def _read_host_names(algebra: Algebra, node: SchemaNode, name: str, kind: JsonType, positive: bool) -> Facets:
    """Read a format of host names, whose A-labels no regular language describes exactly.

    For `hostname` there is a subset without A-labels; for each of these formats there is a superset, used with a mark.
    """
    is_ascii = name != "idn-hostname"
    if is_ascii and positive and not algebra.options.loose_formats:
        algebra.remark(node, "format", _A_LABELS_LEFT_OUT)
        return _text_facet(TextDemand("format", name, positive, node.location))
    if not is_ascii and not positive:
        return algebra.unenforced(kind, node, "format", _A_LABELS_UNCHECKED)
    facets = _text_facet(TextDemand("loose format" if positive else "format", name, positive, node.location))
    mark = FacetMark(node.location, "format", _A_LABELS_UNCHECKED)
    return [replace(facet, marks=facet.marks | {mark}) for facet in facets]


def _text_facet(demand: TextDemand) -> Facets:
    return (Facet(JsonType.STRING, StringBody(frozenset({demand}))),)


EVERY_TYPE: Mapping[str, Keyword] = {
    **keyword_group("type", read_type, "type"),
    **keyword_group("enum", read_enum, "enum"),
    **keyword_group("const", read_const, "const"),
}
NUMBERS: Mapping[str, Keyword] = {
    **keyword_group("bounds", read_bounds, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    **keyword_group("multipleOf", read_multiple_of, "multipleOf"),
}
STRINGS: Mapping[str, Keyword] = {
    **keyword_group("lengths", read_lengths, "minLength", "maxLength"),
    **keyword_group("pattern", read_pattern, "pattern", PATTERN_DIALECT),
    **keyword_group("format", read_format, "format"),
}
