"""What can be shown to be nothing: contradictions that only show when children, names and texts are looked into.

Used where it pays to know: which branches of a `oneOf` exclude each other, which cases can be left out. The answer "may be something"
is always right; the answer "nothing" is a proof.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rtlang_grammars.schema.normal_form.algebra import Algebra
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
    meet,
)
from rtlang_grammars.schema.reading.values import JsonType

MAX_NAMES = 8  # names that are tried as what tells branches apart
MAX_DEPTH = 4  # how far a contradiction may be below


def overlap(algebra: Algebra, a: Facet, b: Facet) -> bool:
    """Whether some value may meet both."""
    algebra.budget.spend()
    both = meet(a.without_evaluated(), b.without_evaluated())
    both = both and algebra.texts.narrowed(both)
    return both is not None and not is_empty(algebra, both, MAX_DEPTH)


def discriminator(algebra: Algebra, branches: Sequence[Sequence[Facet]]) -> str | None:
    """A property that tells all branches apart wherever it is there: with listed values in each, that no other branch has."""
    first = branches[0][0].body if branches and branches[0] else None
    if not isinstance(first, ObjectBody):
        return None
    names = dict.fromkeys(sorted(first.required)) | {name: None for rule in first.rules for name in rule.names}
    return next((name for name in [*names][:MAX_NAMES] if _tells_apart(algebra, branches, name)), None)


def _tells_apart(algebra: Algebra, branches: Sequence[Sequence[Facet]], name: str) -> bool:
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
    """The keys of values that may meet a conjunction of lists; None where there are others."""
    keys: set[Hashable] = set()
    try:
        for kind in algebra.kinds(conj):
            for facet in algebra.conjunction(conj, kind):
                if facet.literals is None:
                    return None
                keys.update(facet.literals)
    except CycleError:
        return None
    return keys


def is_empty(algebra: Algebra, facet: Facet, depth: int = MAX_DEPTH) -> bool:
    """Whether it is shown that no value meets a facet."""
    body = facet.body
    if isinstance(body, StringBody):
        return facet.literals is None and algebra.texts.is_empty(body, facet.excluded)
    if isinstance(body, ObjectBody):
        return any(_none_for(algebra, body, name, depth) for name in sorted(body.required))
    if isinstance(body, ArrayBody):
        places = min(body.min_items, max((len(rule.prefix) for rule in body.rules), default=0) + 1)
        conjs = (frozenset[int]().union(*(rule.at(index) for rule in body.rules)) for index in range(places))
        return any(nothing(algebra, conj, depth - 1) for conj in conjs)
    return False


def _none_for(algebra: Algebra, body: ObjectBody, name: str, depth: int) -> bool:
    conj = value_demands(algebra, body.rules, name)
    if conj != TRUE and nothing(algebra, conj, depth - 1):
        return True
    return body.names != TRUE and not accepts_name(algebra, body.names, name)


def nothing(algebra: Algebra, conj: Conj, depth: int = MAX_DEPTH) -> bool:
    """Whether it is shown that no value meets a conjunction."""
    if conj >= FALSE:
        return True
    if depth < 0 or not conj:
        return False
    known = algebra.empties.get((conj, depth))
    if known is None:
        try:
            known = not any(
                not is_empty(algebra, facet, depth)
                for kind in algebra.kinds(conj)
                for facet in algebra.conjunction(conj, kind)
            )
        except CycleError:
            return False  # it is being worked out: nothing is known yet
        algebra.empties[conj, depth] = known
    return known


def accepts_name(algebra: Algebra, names: Conj, name: str) -> bool:
    """Whether a name meets the demands on names."""
    for facet in algebra.conjunction(names, JsonType.STRING):
        if facet.literals is not None and name not in facet.literals:
            continue
        assert isinstance(facet.body, StringBody)
        if name not in facet.excluded and algebra.texts.accepts(facet.body, name):
            return True
    return False


def value_demands(algebra: Algebra, rules: tuple[PropertyRule, ...], name: str) -> Conj:
    """What several rules together demand of the value of one name."""
    demands: set[int] = set()
    for rule in rules:
        declared = rule.names.get(name)
        if declared is not None:
            demands |= declared
        matched = False
        for pattern, conj in rule.patterns:
            if algebra.texts.finds(pattern, name):
                matched = True
                demands |= conj
        if declared is None and not matched:
            demands |= rule.additional
    return FALSE if 1 in demands else frozenset(demands)
