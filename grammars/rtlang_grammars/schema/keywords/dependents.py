"""Keywords that apply to an object only if it has a property: `dependentRequired`, `dependentSchemas`, `dependencies`.

Source: JSON Schema Validation 2020-12, section 6.5.4; Core 2020-12, section 10.2.2.4; `dependencies` of draft-04 to draft-07.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set

from rtlang_grammars.schema.keywords.scalars import has_keyword, keyword_value, read_strings
from rtlang_grammars.schema.normal_form.algebra import Algebra, Facets
from rtlang_grammars.schema.normal_form.facets import TOPS, TRUE, Conj, Facet, ObjectBody, meet
from rtlang_grammars.schema.reading.dialects import invalid_value
from rtlang_grammars.schema.reading.documents import SchemaNode
from rtlang_grammars.schema.reading.values import Json, JsonType

MIN_DISCRIMINATED = 3  # with fewer dependencies on the values of one property, one case for each value saves nothing
_OBJECT = JsonType.OBJECT


def read_dependent_required(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `dependentRequired` (Validation 6.5.4)."""
    value = keyword_value(node, "dependentRequired")
    if not isinstance(value, dict):
        raise invalid_value(value, "an object of arrays of strings", "dependentRequired", node.location)
    lists = [
        _required_with(name, read_strings(names, "dependentRequired", node), positive) for name, names in value.items()
    ]
    if positive:
        return algebra.product(lists, _OBJECT, "dependentRequired", lambda: node.location)
    return [facet for facets in lists for facet in facets]


def _required_with(name: str, others: list[str], positive: bool) -> Facets:
    missing = frozenset(others) - {name}
    if not missing:
        return (TOPS[_OBJECT],) if positive else ()
    if positive:
        # requiring the name makes the two cases disjoint, so that fewer of them accept the same object
        together = ObjectBody(required=missing | {name})
        return (Facet(_OBJECT, ObjectBody(absent=frozenset({name}))), Facet(_OBJECT, together))
    return [
        Facet(_OBJECT, ObjectBody(required=frozenset({name}), absent=frozenset({other}))) for other in sorted(missing)
    ]


def read_dependent_schemas(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `dependentSchemas` (Core 10.2.2.4) and `dependencies` (draft-04 to draft-07)."""
    lists: list[Facets] = []
    schemas: dict[str, Conj] = {}
    for keyword in ("dependentSchemas", "dependencies"):
        if not has_keyword(node, keyword):
            continue
        value = keyword_value(node, keyword)
        if not isinstance(value, dict):
            raise invalid_value(value, "an object of schemas", keyword, node.location)
        for name, item in value.items():
            if isinstance(item, list):
                lists.append(_required_with(name, read_strings(item, keyword, node), positive))
            else:
                conj = algebra.demand(algebra.documents.child(node, keyword, name), positive)
                schemas[name] = schemas.get(name, TRUE) | conj if positive else conj
    if not positive:
        lists += [_schema_with(algebra, node, name, conj, False, False) for name, conj in schemas.items()]
        return [facet for facets in lists for facet in facets]
    if not track:
        cases, covered = _by_discriminator(algebra, node, schemas)
        lists.append(cases)
        schemas = {name: conj for name, conj in schemas.items() if name not in covered}
    lists += [_schema_with(algebra, node, name, conj, True, track) for name, conj in schemas.items()]
    return algebra.product(lists, _OBJECT, "dependentSchemas", lambda: node.location)


def _schema_with(algebra: Algebra, node: SchemaNode, name: str, conj: Conj, positive: bool, track: bool) -> Facets:
    if positive and conj == TRUE and not track:
        return (TOPS[_OBJECT],)
    present = Facet(_OBJECT, ObjectBody(required=frozenset({name})))
    facets = algebra.all_of([conj], _OBJECT, track, node, "dependentSchemas")
    both = [joined for facet in facets if (joined := meet(present, facet)) is not None]
    return [Facet(_OBJECT, ObjectBody(absent=frozenset({name}))), *both] if positive else both


def _by_discriminator(algebra: Algebra, node: SchemaNode, schemas: Mapping[str, Conj]) -> tuple[Facets, Set[str]]:
    """Split dependencies that only restrict the values of one property into cases over those values.

    Read one by one, n dependencies make 2^n cases; split by the values of the property, they make one case for each set of
    dependencies that a value allows.

    Returns:
        The cases, and the names of the dependencies that they cover.
    """
    listed: dict[str, dict[str, Mapping[Hashable, Json]]] = {}
    for name, conj in schemas.items():
        found = _listed_property(algebra, conj)
        if found is not None and found[0] != name:
            listed.setdefault(found[0], {})[name] = found[1]
    if not listed:
        return (TOPS[_OBJECT],), set()
    name, dependents = max(listed.items(), key=lambda item: len(item[1]))
    if len(dependents) < MIN_DISCRIMINATED or name in dependents:
        return (TOPS[_OBJECT],), set()
    values = {key: value for each in dependents.values() for key, value in each.items()}
    groups: dict[frozenset[str], list[Json]] = {}
    for key, value in values.items():
        allowed = frozenset(each for each, keys in dependents.items() if key in keys)
        groups.setdefault(allowed, []).append(value)
    cases = [Facet(_OBJECT, ObjectBody(absent=frozenset({name})))]
    for allowed, own in groups.items():
        conj = algebra.demand(algebra.documents.synthetic({"enum": own}, node))
        absent = frozenset(dependents) - allowed
        cases.append(Facet(_OBJECT, ObjectBody((algebra.rule(name, conj),), frozenset({name}), absent)))
    others = algebra.demand(algebra.documents.synthetic({"enum": [*values.values()]}, node), False)
    cases.append(Facet(_OBJECT, ObjectBody((algebra.rule(name, others),), frozenset({name}), frozenset(dependents))))
    return cases, dependents.keys()


def _listed_property(algebra: Algebra, conj: Conj) -> tuple[str, Mapping[Hashable, Json]] | None:
    """Return the only property that a conjunction restricts, with the values it may have; None if there is no such property.

    The conjunction must be satisfied exactly by the objects in which the property is absent or has one of the values, none of them
    an array or object.
    """
    facets = algebra.conjunction(conj, _OBJECT)
    if len(facets) != 1 or not isinstance(facets[0].body, ObjectBody) or len(facets[0].body.rules) != 1:
        return None
    rule = facets[0].body.rules[0]
    if facets[0] != Facet(_OBJECT, ObjectBody((rule,))) or rule.patterns or rule.additional or len(rule.names) != 1:
        return None
    ((name, value),) = rule.names.items()
    values: dict[Hashable, Json] = {}
    for kind in algebra.possible_types(value):
        for facet in algebra.conjunction(value, kind):
            if (
                facet.literals is None
                or kind in (_OBJECT, JsonType.ARRAY)
                or facet.body != TOPS[kind].body
                or facet.marks
            ):
                return None
            values.update(facet.literals)
    return name, values
