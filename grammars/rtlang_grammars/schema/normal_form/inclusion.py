"""Subsumption: drop the facets of a union that are included in another facet.

A facet is a conjunction of atoms. If its atoms are a subset of another facet's, it accepts every value that the other accepts,
so the other can be dropped from the union. This reduces products of negations from thousands of facets to a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import chain

from rtlang_grammars.schema.normal_form.facets import (
    NOTHING_EVALUATED,
    TOP_BODY,
    ArrayBody,
    Facet,
    NumberBody,
    ObjectBody,
    StringBody,
)
from rtlang_grammars.schema.reading.values import Json

MAX_COMPARED = (
    1024  # longer lists are left as they are, because the comparison is quadratic if all facets share their atoms
)


def drop_subsumed(facets: Sequence[Facet]) -> Sequence[Facet]:
    """Return an equivalent union without the facets that another facet subsumes, in the same order."""
    if not 2 < len(facets) <= MAX_COMPARED:
        return facets
    sets = [frozenset(_atoms(facet)) for facet in facets]
    counts = Counter(chain.from_iterable(sets))
    retained: list[int] = []
    by_atom: dict[Hashable, list[int]] = {}  # the retained facets, each at its rarest atom
    for index in sorted(range(len(facets)), key=lambda index: len(sets[index])):
        atoms, evaluated = sets[index], facets[index].evaluated
        others = chain(by_atom.get(None, ()), *[by_atom[atom] for atom in atoms if atom in by_atom])
        if not any(sets[other] <= atoms and facets[other].evaluated == evaluated for other in others):
            retained.append(index)
            by_atom.setdefault(min(atoms, key=counts.__getitem__, default=None), []).append(index)
    return facets if len(retained) == len(facets) else [facets[index] for index in sorted(retained)]


def merge_literal_lists(facets: Sequence[Facet]) -> Sequence[Facet]:
    """Return an equivalent union in which all plain lists of values (a thousand `const` in an `anyOf`) are one list, at the first."""
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
    return not facet.marks and facet.evaluated is NOTHING_EVALUATED and facet.body == TOP_BODY[facet.kind]


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
