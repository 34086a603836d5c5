"""Facets that others make superfluous: fewer cases for the same values.

A facet is a set of atoms that all must hold, so one whose atoms are among those of another allows whatever the other does, and
the other can be left out of a list. Products of negations shrink by it from thousands of cases to a few.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from rtlang_grammars.schema.normal_form.facets import (
    NOTHING,
    TOP_BODY,
    ArrayBody,
    Facet,
    NumberBody,
    ObjectBody,
    StringBody,
)
from rtlang_grammars.schema.reading.values import Json

MAX_COMPARED = 1024  # facets of one list that are compared; beyond that the list is left as it is


def without_included(facets: Sequence[Facet]) -> Sequence[Facet]:
    """The same union with facets left out that are part of another one; the order is kept."""
    if not 2 < len(facets) <= MAX_COMPARED:
        return facets
    sets = [frozenset(_atoms(facet)) for facet in facets]
    kept: list[int] = []
    for index in sorted(range(len(facets)), key=lambda index: len(sets[index])):
        evaluated = facets[index].evaluated
        if not any(sets[other] <= sets[index] and facets[other].evaluated == evaluated for other in kept):
            kept.append(index)
    return facets if len(kept) == len(facets) else [facets[index] for index in sorted(kept)]


def with_lists_joined(facets: Sequence[Facet]) -> Sequence[Facet]:
    """The same union with plain lists of values (a thousand `const` in an `anyOf`) made one list, in place of the first."""
    plain = [facet for facet in facets if facet.literals is not None and _is_plain_list(facet)]
    if len(plain) < 2:
        return facets
    joined: dict[Hashable, Json] = {}
    for facet in plain:
        joined.update(facet.literals or {})
    first = replace(plain[0], literals=joined)
    rest = [facet for facet in facets if facet.literals is None or not _is_plain_list(facet)]
    return (first, *rest)


def _is_plain_list(facet: Facet) -> bool:
    return not facet.marks and facet.evaluated is NOTHING and facet.body == TOP_BODY[facet.kind]


def _atoms(facet: Facet) -> list[Hashable]:
    atoms: list[Hashable] = [*facet.marks, *facet.excluded]
    if facet.literals is not None:
        atoms.append(("listed", id(facet.literals)))
    body = facet.body
    if body is TOP_BODY[facet.kind]:
        return atoms
    if isinstance(body, NumberBody):
        atoms.append(body)
    elif isinstance(body, StringBody):
        atoms += body.texts
        if body.min_length:
            atoms.append(("at least", body.min_length))
        if body.max_length is not None:
            atoms.append(("at most", body.max_length))
    elif isinstance(body, ArrayBody):
        atoms += [*body.rules, *body.contains]
        if body.min_items:
            atoms.append(("at least", body.min_items))
        if body.max_items is not None:
            atoms.append(("at most", body.max_items))
        if body.unique:
            atoms.append("unique")
    elif isinstance(body, ObjectBody):
        atoms += [*body.rules, *body.exists]
        atoms += [("has", name) for name in body.required]
        atoms += [("has not", name) for name in body.absent]
        atoms += [("named", demand) for demand in body.names]
        if body.min_properties:
            atoms.append(("at least", body.min_properties))
        if body.max_properties is not None:
            atoms.append(("at most", body.max_properties))
    return atoms
