"""Convert facets of objects to shapes.

Property names are partitioned into declared names, classes of names by pattern, and the rest, so that one shape governs each name:
overlapping patterns are split into disjoint regions, and the conjunctions of all schemas for a region are united. An assertion that some
property exists is split into cases over the possible names, or left to be checked if these are infinitely many.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

from rtlang_grammars.regular.language import Language
from rtlang_grammars.schema.normal_form.algebra import Algebra
from rtlang_grammars.schema.normal_form.emptiness import accepts_name, is_unsatisfiable, value_demands
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    NO_MARKS,
    TRUE,
    Conj,
    Exists,
    Facet,
    FacetMark,
    ObjectBody,
    PropertyRule,
    StringBody,
)
from rtlang_grammars.schema.reading.values import JsonType
from rtlang_grammars.schema.shape_graph.shapes import KeyClass, ObjectShape, Property
from rtlang_grammars.spec.errors import GrammarError


@dataclass(frozen=True, slots=True)
class _AllowedNames:
    """The names that `propertyNames` allows: listed names, and a language of others; None if there are no others."""

    listed: tuple[str, ...]
    language: Language | None


def object_shapes(algebra: Algebra, facet: Facet, refer: Callable[[Conj], int], conj: Conj) -> Iterator[ObjectShape]:
    """Yield the shapes of a facet of objects, without those that are plainly unsatisfiable.

    Args:
        refer: returns the index of the shape of a conjunction.
        conj: the conjunction that the facet belongs to, for the report.
    Raises:
        GrammarError: a pattern is not supported, or there are too many cases or regions.
    """
    body = facet.body
    assert isinstance(body, ObjectBody)
    is_plain = not (body.exists or body.names or any(rule.patterns for rule in body.rules))
    cases: Iterable[tuple[ObjectBody, frozenset[FacetMark]]] = [(body, NO_MARKS)]
    if not is_plain:
        cases = _expand_exists(algebra, body)
    for each, marks in cases:
        shape = _plain_shape(algebra, each, refer) if is_plain else _shape(algebra, each, refer)
        if shape is not None:
            if shape.min_properties and _may_count_name_twice(shape):
                marks |= {FacetMark(algebra.location(conj), "minProperties", _COUNTED_TWICE)}
            algebra.report_marks(facet.marks | marks)
            yield shape


_COUNTED_TWICE = "an undeclared name that occurs twice is counted twice"


def _may_count_name_twice(shape: ObjectShape) -> bool:
    """Whether an object with a repeated undeclared name could wrongly satisfy `min_properties`; declared names are never repeated."""
    is_open = shape.additional is not None or any(each.shape is not None for each in shape.classes)
    return is_open and shape.min_properties > len(shape.required) + 1


def _declared(body: ObjectBody) -> dict[str, None]:
    """The names that have an order: those that the schemas declare, as they are read, then other required ones."""
    names: dict[str, None] = {}
    for rule in body.rules:
        if rule.is_declaration:
            names.update(dict.fromkeys(rule.names))
    if not body.required <= names.keys():
        names.update((name, None) for name in body.listed if name in body.required)
        names.update(dict.fromkeys(sorted(body.required)))
    return names


def _listed(body: ObjectBody, limit: _AllowedNames | None) -> Iterator[str]:
    """The other names that are told apart. They have no order."""
    for rule in body.rules:
        if not rule.is_declaration:
            yield from rule.names
    if limit is not None:
        yield from limit.listed


def _declare_enumerable_names(algebra: Algebra, body: ObjectBody) -> ObjectBody:
    """Return an equivalent body that declares the names of patterns with few names, where it matters which of them are present."""
    patterns = _patterns(body)
    languages: list[Language] = []
    if body.exists or body.min_properties > 1:
        languages += [language for language, _ in _regions(algebra, body)]
        limit = _allowed_names(algebra, body.names)
        languages += [limit.language] if limit is not None and limit.language is not None else []
    if patterns and not algebra.join(rule.additional for rule in body.rules) >= FALSE:
        languages.append(algebra.texts.unmatched(patterns))
    names = {name: TRUE for language in languages for name in algebra.texts.enumerate_names(language) or ()}
    return replace(body, rules=(*body.rules, PropertyRule(names, is_declaration=False))) if names else body


def _is_declared(algebra: Algebra, body: ObjectBody, language: Language) -> bool:
    """Whether all names of a language are declared; True for the empty language."""
    words = algebra.texts.enumerate_names(language)
    return words is not None and all(any(word in rule.names for rule in body.rules) for word in words)


def _expand_exists(algebra: Algebra, body: ObjectBody) -> Iterator[tuple[ObjectBody, frozenset[FacetMark]]]:
    """Yield bodies without `exists` whose union is equivalent, each with the marks for assertions that it does not enforce."""
    pending: list[tuple[ObjectBody, frozenset[FacetMark]]] = [(_declare_enumerable_names(algebra, body), NO_MARKS)]
    while pending:
        algebra.budget.spend(states=1)
        body, marks = pending.pop()
        if not body.exists:
            yield body, marks
            continue
        exists = body.exists[0]
        body = replace(body, exists=body.exists[1:])
        if any(_is_witness(algebra, body, exists, name) for name in body.required):
            pending.append((body, marks))
        elif _may_have_undeclared_witness(algebra, body, exists):
            pending.append((body, marks | {exists.mark}))
        else:
            cases = _witness_cases(algebra, body, exists)
            pending.extend((case, marks) for case in reversed(cases))
        if len(pending) > algebra.options.max_alternatives:
            raise GrammarError(
                f"{exists.mark.keyword} expands to more than {algebra.options.max_alternatives} cases",
                exists.mark.pointer,
            )


def _is_witness(algebra: Algebra, body: ObjectBody, exists: Exists, name: str) -> bool:
    """Whether a required property already is the one that must exist."""
    return accepts_name(algebra, exists.name, name) and exists.value <= value_demands(algebra, body.rules, name)


def _may_have_undeclared_witness(algebra: Algebra, body: ObjectBody, exists: Exists) -> bool:
    """Whether an undeclared property could be the one that must exist."""
    limit = _allowed_names(algebra, body.names)
    if limit is not None and (limit.language is None or _is_declared(algebra, body, limit.language)):
        return False
    patterns = _patterns(body)
    if not patterns:
        return not is_unsatisfiable(algebra, algebra.join([*(rule.additional for rule in body.rules), exists.value]))
    wanted = _allowed_names(algebra, exists.name | body.names)
    for language, conj in _regions(algebra, body):
        if is_unsatisfiable(algebra, conj | exists.value):
            continue
        if wanted is None or (
            wanted.language is not None and not wanted.language.is_disjoint(language, algebra.budget)
        ):
            return True
    others = algebra.texts.unmatched(patterns)
    if is_unsatisfiable(
        algebra, algebra.join([*(rule.additional for rule in body.rules), exists.value])
    ) or _is_declared(algebra, body, others):
        return False
    return wanted is None or (wanted.language is not None and not wanted.language.is_disjoint(others, algebra.budget))


def _witness_cases(algebra: Algebra, body: ObjectBody, exists: Exists) -> list[ObjectBody]:
    cases = []
    names = _declared(body) | dict.fromkeys(_listed(body, _allowed_names(algebra, body.names)))
    for name in names:
        if name in body.absent or not accepts_name(algebra, exists.name, name):
            continue
        if not is_unsatisfiable(algebra, value_demands(algebra, body.rules, name) | exists.value):
            rules = (*body.rules, algebra.rule(name, exists.value)) if exists.value else body.rules
            cases.append(replace(body, rules=rules, required=body.required | {name}))
    return cases


def _plain_shape(algebra: Algebra, body: ObjectBody, refer: Callable[[Conj], int]) -> ObjectShape | None:
    """Return what `_shape` returns, for a body without pattern properties and `propertyNames`."""
    rules, absent, required = body.rules, body.absent, body.required
    names = _declared(body)
    if absent:
        names.update(dict.fromkeys(sorted(absent)))
    algebra.budget.spend(states=1 + (len(names) >> 4))
    rest = rules[0].additional if len(rules) == 1 else algebra.join(rule.additional for rule in rules)
    is_closed = 1 in rest

    def demanded(name: str) -> Conj:
        if name in absent:
            return FALSE
        if len(rules) == 1:
            return rules[0].names.get(name, rest)
        return algebra.join(rule.names.get(name, rule.additional) for rule in rules)

    properties = _properties(names, demanded, required, is_closed, refer)
    if properties is None:
        return None
    return ObjectShape(
        properties,
        (),
        None if is_closed else refer(rest),
        required,
        body.min_properties if body.min_properties > len(required) else 0,
        body.max_properties,
    )


def _shape(algebra: Algebra, body: ObjectBody, refer: Callable[[Conj], int]) -> ObjectShape | None:
    names, patterns = _declared(body), _patterns(body)
    names.update(dict.fromkeys(sorted(body.absent)))
    limit = _allowed_names(algebra, body.names) if body.names else None
    unordered = dict.fromkeys(name for name in _listed(body, limit) if name not in names)
    classes = _classes(algebra, body, limit, refer)
    rest = algebra.join(rule.additional for rule in body.rules) if limit is None else FALSE
    if not rest >= FALSE and patterns and _is_declared(algebra, body, algebra.texts.unmatched(patterns)):
        rest = FALSE
    is_closed = not classes and rest >= FALSE

    def demanded(name: str) -> Conj:
        conj = FALSE if name in body.absent else value_demands(algebra, body.rules, name)
        return FALSE if body.names and conj != FALSE and not accepts_name(algebra, body.names, name) else conj

    properties = _properties(names, demanded, body.required, is_closed, refer)
    others = _properties(unordered, demanded, body.required, is_closed, refer)
    if properties is None or others is None:
        return None
    return ObjectShape(
        properties=properties + others,
        unordered=frozenset(unordered),
        classes=tuple(classes),
        additional=None if rest >= FALSE else refer(rest),
        required=body.required,
        min_properties=body.min_properties if body.min_properties > len(body.required) else 0,
        max_properties=body.max_properties,
    )


def _properties(
    names: Iterable[str],
    demanded: Callable[[str], Conj],
    required: Container[str],
    is_closed: bool,
    refer: Callable[[Conj], int],
) -> tuple[Property, ...] | None:
    """Return the declared properties with their shapes; None if a required one is unsatisfiable."""
    found = []
    for name in names:
        conj = demanded(name)
        if not conj >= FALSE:
            found.append(Property(name, refer(conj)))
        elif name in required:
            return None
        elif not is_closed:
            found.append(Property(name, None))
    return tuple(found)


def _patterns(body: ObjectBody) -> frozenset[str]:
    return frozenset(pattern for rule in body.rules for pattern, _ in rule.patterns)


def _regions(algebra: Algebra, body: ObjectBody) -> Iterator[tuple[Language, Conj]]:
    """Yield disjoint languages that partition the names matched by some pattern, with the conjunction for each.

    Languages of declared names only are left out.
    """
    patterns = _patterns(body)
    if not patterns:
        return
    pointer = algebra.location(algebra.join(conj for rule in body.rules for _, conj in rule.patterns))
    for language, matched in algebra.texts.regions(patterns, pointer):
        if _is_declared(algebra, body, language):
            continue
        demands: list[Conj] = []
        for rule in body.rules:
            own = [conj for pattern, conj in rule.patterns if pattern in matched]
            demands += own or [rule.additional]
        yield language, algebra.join(demands)


def _classes(
    algebra: Algebra, body: ObjectBody, limit: _AllowedNames | None, refer: Callable[[Conj], int]
) -> list[KeyClass]:
    allowed = None if limit is None else limit.language
    if limit is not None and (allowed is None or _is_declared(algebra, body, allowed)):
        return []
    classes = []
    patterns = _patterns(body)
    rest = algebra.join(rule.additional for rule in body.rules)
    for names, conj in _regions(algebra, body):
        if allowed is not None:
            names = names.intersect(allowed)
        if not names.is_empty(algebra.budget) and not (conj >= FALSE and rest >= FALSE):
            classes.append(KeyClass(names, None if conj >= FALSE else refer(conj)))
    if allowed is not None and not rest >= FALSE:
        others = allowed
        if patterns:
            others = others.intersect(algebra.texts.unmatched(patterns))
        if not others.is_empty(algebra.budget):
            classes.append(KeyClass(others, refer(rest)))
    return classes


def _allowed_names(algebra: Algebra, names: Conj) -> _AllowedNames | None:
    """Return the names that a conjunction of `propertyNames` subschemas allows; None if it allows every name."""
    listed: dict[str, None] = {}
    languages: list[Language] = []
    for facet in algebra.conjunction(names, JsonType.STRING):
        if facet.literals is not None:
            listed.update((text, None) for text in facet.literals.values() if isinstance(text, str))
            continue
        body = facet.body
        assert isinstance(body, StringBody)
        algebra.report_marks(facet.marks)
        language = algebra.texts.body_language(body, facet.excluded)
        if language is None and not body.min_length and body.max_length is None:
            return None
        if language is None:
            language = Language.any_text()
        if body.min_length or body.max_length is not None:
            language = language.bounded(body.min_length, body.max_length)
        languages.append(language)
    language = algebra.texts.union(languages) if languages else None
    return _AllowedNames(tuple(listed), language)
