"""Proofs that a facet or conjunction is unsatisfiable, which look into subschemas, property names and string languages.

Used to find the branches of a `oneOf` that are disjoint and the cases that can be dropped. The proofs are sound but incomplete: True
means that no value is valid, False means that this was not proven.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rtlang_grammars.schema.normal_form.algebra import Algebra, InPlaceDepthError, TooManyCasesError
from rtlang_grammars.schema.normal_form.demands import CycleError
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    TRUE,
    ArrayBody,
    Conj,
    Facet,
    ObjectBody,
    PropertyRule,
    StringBody,
    is_contradiction,
    meet,
)
from rtlang_grammars.schema.reading.values import JsonType

MAX_DISCRIMINATORS = 8  # properties that are tried as discriminator
MAX_DEPTH = 4  # levels of subschemas that are searched for a contradiction


def overlap(algebra: Algebra, a: Facet, b: Facet) -> bool:
    """Whether some value may satisfy both facets; False only if proven otherwise."""
    algebra.budget.spend()
    both = meet(a.without_evaluated(), b.without_evaluated())
    both = both and algebra.texts.filter_literals(both)
    return both is not None and not is_empty(algebra, both, MAX_DEPTH)


def discriminator(algebra: Algebra, branches: Sequence[Sequence[Facet]]) -> str | None:
    """Return a property that discriminates between all branches, or None.

    In every branch its values are listed (`enum`, `const`) and occur in no other branch. Objects that lack it are not told apart.
    """
    first = branches[0][0].body if branches and branches[0] else None
    if not isinstance(first, ObjectBody):
        return None
    names = dict.fromkeys(sorted(first.required)) | {name: None for rule in first.rules for name in rule.names}
    return next((name for name in [*names][:MAX_DISCRIMINATORS] if _discriminates(algebra, branches, name)), None)


def _discriminates(algebra: Algebra, branches: Sequence[Sequence[Facet]], name: str) -> bool:
    seen: set[Hashable] = set()
    for facets in branches:
        own: set[Hashable] = set()
        for facet in facets:
            if not isinstance(facet.body, ObjectBody):
                return False
            keys = _listed_keys(algebra, value_demands(algebra, facet.body.rules, name))
            if keys is None:
                return False
            own |= keys
        if not own.isdisjoint(seen):
            return False
        seen |= own
    return True


def _listed_keys(algebra: Algebra, conj: Conj) -> set[Hashable] | None:
    """Return the keys of the values that a conjunction lists; None if it does not list them all."""
    keys: set[Hashable] = set()
    try:
        for kind in algebra.possible_types(conj):
            for facet in algebra.conjunction(conj, kind):
                if facet.literals is None:
                    return None
                keys.update(facet.literals)
    except CycleError:
        return None
    return keys


def is_empty(algebra: Algebra, facet: Facet, depth: int = MAX_DEPTH) -> bool:
    """Whether it is proven that no value satisfies a facet.

    Args:
        depth: levels of subschemas to search.
    """
    body = facet.body
    if isinstance(body, StringBody):
        return facet.literals is None and algebra.texts.is_empty(body, facet.excluded)
    if isinstance(body, ObjectBody):
        return any(_required_is_unsatisfiable(algebra, body, name, depth) for name in sorted(body.required))
    if isinstance(body, ArrayBody):
        places = min(body.min_items, max((len(rule.prefix) for rule in body.rules), default=0) + 1)
        conjs = (algebra.join(rule.at(index) for rule in body.rules) for index in range(places))
        return any(is_unsatisfiable(algebra, conj, depth - 1) for conj in conjs)
    return False


def _required_is_unsatisfiable(algebra: Algebra, body: ObjectBody, name: str, depth: int) -> bool:
    conj = value_demands(algebra, body.rules, name)
    if conj != TRUE and is_unsatisfiable(algebra, conj, depth - 1):
        return True
    return body.names != TRUE and not accepts_name(algebra, body.names, name)


def is_unsatisfiable(algebra: Algebra, conj: Conj, depth: int = MAX_DEPTH) -> bool:
    """Whether it is proven that no value satisfies a conjunction.

    Args:
        depth: levels of subschemas to search.
    """
    if is_contradiction(conj):
        return True
    if depth < 0 or not conj:
        return False
    known = algebra.unsatisfiable.get((conj, depth))
    if known is None:
        try:
            known = not any(
                not is_empty(algebra, facet, depth)
                for kind in algebra.possible_types(conj)
                for facet in algebra.conjunction(conj, kind)
            )
        except CycleError:
            return False  # it is being reduced: nothing is proven yet
        except (TooManyCasesError, InPlaceDepthError):
            known = False  # an error only if its shape is needed
        algebra.unsatisfiable[conj, depth] = known
    return known


def accepts_name(algebra: Algebra, names: Conj, name: str) -> bool:
    """Whether a property name satisfies the conjunction of the `propertyNames` subschemas."""
    for facet in algebra.conjunction(names, JsonType.STRING):
        if facet.literals is not None and name not in facet.literals:
            continue
        assert isinstance(facet.body, StringBody)
        if name not in facet.excluded and algebra.texts.accepts(facet.body, name):
            return True
    return False


def value_demands(algebra: Algebra, rules: tuple[PropertyRule, ...], name: str) -> Conj:
    """Return the conjunction that several rules together demand of the value of one property."""
    demands: list[Conj] = []
    for rule in rules:
        declared = rule.names.get(name)
        if declared is not None:
            demands.append(declared)
        matched = False
        for pattern, conj in rule.patterns:
            if algebra.texts.pattern_matches(pattern, name):
                matched = True
                demands.append(conj)
        if declared is None and not matched:
            demands.append(rule.additional)
    return FALSE if any(1 in conj for conj in demands) else algebra.join(demands)
