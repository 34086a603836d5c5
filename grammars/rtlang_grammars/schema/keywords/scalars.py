"""Keywords of numbers and strings, and those of every type: `type`, `enum`, `const`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import cast

from rtlang_grammars.regular.string_formats.formats import LOOSE_FORMATS
from rtlang_grammars.schema.normal_form.algebra import Algebra, Facets, Handler, Keyword
from rtlang_grammars.schema.normal_form.facets import TOPS, Facet, Mark, NumberBody, StringBody, TextDemand
from rtlang_grammars.schema.reading.dialects import expected
from rtlang_grammars.schema.reading.documents import Node
from rtlang_grammars.schema.reading.values import Json, JsonType, check_nesting, exact, is_number, json_key, type_of
from rtlang_grammars.spec.errors import GrammarError

_TYPE_NAMES = {
    "null": JsonType.NULL,
    "boolean": JsonType.BOOLEAN,
    "number": JsonType.NUMBER,
    "integer": JsonType.NUMBER,
    "string": JsonType.STRING,
    "array": JsonType.ARRAY,
    "object": JsonType.OBJECT,
}
_ONE = Fraction(1)
_NO_A_LABELS = "names with labels that stand for other scripts (xn--) are left out"
_ANY_LABELS = "labels that stand for other scripts (xn--) have to be decoded, others in other scripts to be encoded"
MAX_COUNT = 1 << 30  # of items, properties or characters: the tables hold 32 bits
MAX_LITERAL_DEPTH = 64  # nesting of listed values: they are compared by recursion


def count(node: Node, keyword: str) -> int:
    """The value of a keyword that holds a size; at most `MAX_COUNT`, which no text reaches.

    Raises:
        GrammarError: not a whole number that is at least 0.
    """
    value = keyword_value(node, keyword)
    if not is_number(value) or value < 0 or exact(value).denominator != 1:
        raise GrammarError(f"{keyword} must be a whole number, at least 0", node.location)
    return int(min(value, MAX_COUNT))


def keyword_value(node: Node, keyword: str) -> Json:
    """The value of a keyword that is there."""
    assert isinstance(node.schema, dict)
    return node.schema[keyword]


def strings(value: Json, keyword: str, node: Node) -> list[str]:
    """A list of strings.

    Raises:
        GrammarError: it is something else.
    """
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise expected(value, "a list of strings", keyword, node.location)
    return cast("list[str]", value)


def has(node: Node, keyword: str) -> bool:
    """Whether a node has a keyword and its dialect knows it."""
    return isinstance(node.schema, dict) and keyword in node.schema and keyword in node.dialect.keywords


def read_type(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`type`."""
    value = keyword_value(node, "type")
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in _TYPE_NAMES:
            raise GrammarError(
                f"type must be one of {', '.join(_TYPE_NAMES)} or a list of them, not {str(name)[:40]!r}", node.location
            )
    if kind is JsonType.NUMBER and "integer" in names and "number" not in names:
        return _integers(node, positive)
    included = any(isinstance(name, str) and _TYPE_NAMES[name] is kind for name in names)
    return (TOPS[kind],) if included is positive else ()


def _integers(node: Node, positive: bool) -> Facets:
    if node.dialect.integer_form:
        body = NumberBody(multiple_of=_ONE, integer_form=True) if positive else NumberBody(fraction_form=True)
    else:
        body = NumberBody(multiple_of=_ONE) if positive else NumberBody(not_multiple_of=frozenset({_ONE}))
    return (Facet(JsonType.NUMBER, body),)


def read_enum(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`enum`."""
    values = keyword_value(node, "enum")
    if not isinstance(values, list):
        raise expected(values, "a list", "enum", node.location)
    return _listed(algebra, node, values, kind, positive)


def read_const(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`const`."""
    return _listed(algebra, node, [keyword_value(node, "const")], kind, positive)


def _listed(algebra: Algebra, node: Node, values: list[Json], kind: JsonType, positive: bool) -> Facets:
    algebra.budget.spend(states=1 + (len(values) >> 4))
    if kind in (JsonType.ARRAY, JsonType.OBJECT):
        for value in values:
            check_nesting(value, MAX_LITERAL_DEPTH, node.location)
    literals = {json_key(value): value for value in reversed(values) if type_of(value) is kind}
    literals = dict(reversed(literals.items()))
    top = TOPS[kind]
    if positive:
        return (replace(top, literals=literals),) if literals else ()
    if kind is JsonType.NULL:
        return () if literals else (top,)
    if kind is JsonType.BOOLEAN:
        left = {json_key(value): value for value in (False, True) if json_key(value) not in literals}
        return (replace(top, literals=left),) if 0 < len(left) < 2 else (top,) if left else ()
    algebra.listed.update(literals)
    return (replace(top, excluded=frozenset(literals)),) if literals else (top,)


def read_bounds(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`."""
    bodies: list[NumberBody] = []
    for side in ("Minimum", "Maximum"):
        plain, exclusive = side.lower(), f"exclusive{side}"
        is_open = False
        if node.dialect.boolean_exclusive and has(node, exclusive):
            flag = keyword_value(node, exclusive)
            if not isinstance(flag, bool):
                raise expected(flag, f"a boolean in {node.dialect.name}", exclusive, node.location)
            is_open = flag
        elif has(node, exclusive):
            bodies.append(_bound(side, _number(node, exclusive), True, positive))
        if has(node, plain):
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


def _number(node: Node, keyword: str) -> Fraction:
    value = keyword_value(node, keyword)
    if not is_number(value):
        raise expected(value, "a number", keyword, node.location)
    return exact(value)


def read_multiple_of(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`multipleOf`."""
    value = _number(node, "multipleOf")
    if value <= 0:
        raise GrammarError("multipleOf must be more than 0", node.location)
    return (Facet(kind, NumberBody(multiple_of=value) if positive else NumberBody(not_multiple_of=frozenset({value}))),)


def read_lengths(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`minLength`, `maxLength`."""
    low = count(node, "minLength") if has(node, "minLength") else 0
    high = count(node, "maxLength") if has(node, "maxLength") else None
    if positive:
        return () if high is not None and high < low else (Facet(kind, StringBody(frozenset(), low, high)),)
    facets = [Facet(kind, StringBody(max_length=low - 1))] if low else []
    return facets if high is None else [*facets, Facet(kind, StringBody(min_length=high + 1))]


def read_pattern(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`pattern`."""
    pattern = keyword_value(node, "pattern")
    if not isinstance(pattern, str):
        raise expected(pattern, "a string", "pattern", node.location)
    return _text(TextDemand("pattern", pattern, positive, node.location))


def read_format(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`format`."""
    name = keyword_value(node, "format")
    if not isinstance(name, str):
        raise expected(name, "a string", "format", node.location)
    if not algebra.options.assert_formats:
        algebra.ignore(node, "format", "formats are not asserted")
    elif name not in node.dialect.formats:
        algebra.ignore(node, "format", f"{name[:40]!r} is not a format of {node.dialect.name}")
    elif algebra.texts.has_format(name):
        if name in LOOSE_FORMATS:
            return _host_names(algebra, node, name, kind, positive)
        return _text(TextDemand("format", name, positive, node.location))
    else:
        return algebra.unenforced(kind, node, "format", f"texts of the format {name} are no regular language")
    return (TOPS[kind],) if positive else ()


def _host_names(algebra: Algebra, node: Node, name: str, kind: JsonType, positive: bool) -> Facets:
    """Host names, of which there is a language that leaves some out (for names in ASCII) and one that has others in it."""
    is_ascii = name != "idn-hostname"
    if is_ascii and positive and not algebra.options.loose_formats:
        algebra.remark(node, "format", _NO_A_LABELS)
        return _text(TextDemand("format", name, positive, node.location))
    if not is_ascii and not positive:
        return algebra.unenforced(kind, node, "format", _ANY_LABELS)
    facets = _text(TextDemand("loose format" if positive else "format", name, positive, node.location))
    mark = Mark(node.location, "format", _ANY_LABELS)
    return [replace(facet, marks=facet.marks | {mark}) for facet in facets]


def _text(demand: TextDemand) -> Facets:
    return (Facet(JsonType.STRING, StringBody(frozenset({demand}))),)


def _group(group: str, handler: Handler, *keywords: str) -> dict[str, Keyword]:
    return {keyword: Keyword(group, handler) for keyword in keywords}


EVERY_TYPE: Mapping[str, Keyword] = {
    **_group("type", read_type, "type"),
    **_group("enum", read_enum, "enum"),
    **_group("const", read_const, "const"),
}
NUMBERS: Mapping[str, Keyword] = {
    **_group("bounds", read_bounds, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    **_group("multipleOf", read_multiple_of, "multipleOf"),
}
STRINGS: Mapping[str, Keyword] = {
    **_group("lengths", read_lengths, "minLength", "maxLength"),
    **_group("pattern", read_pattern, "pattern"),
    **_group("format", read_format, "format"),
}
