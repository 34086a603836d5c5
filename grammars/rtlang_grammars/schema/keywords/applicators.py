"""References and in-place applicators: `$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if`.

A disjunction is a list of facets, a conjunction a product of lists, and negations are pushed inward. `oneOf` is a plain union if its
branches are proven disjoint, which is the usual case; branches that may overlap are each intersected with the negation of the other.

Source: JSON Schema Core 2020-12, sections 8.2.3 (references) and 10.2 (in-place applicators).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from rtlang_grammars.schema.keywords.scalars import has_keyword, keyword_value
from rtlang_grammars.schema.normal_form.algebra import (
    Algebra,
    DeferredKeyword,
    Facets,
    Keyword,
    TooManyCasesError,
    too_many_cases,
)
from rtlang_grammars.schema.normal_form.emptiness import discriminator, overlap
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    NOTHING_EVALUATED,
    TOP_BODY,
    TOPS,
    TRUE,
    Conj,
    Facet,
    FacetMark,
    NumberBody,
    ObjectBody,
    StringBody,
    meet,
)
from rtlang_grammars.schema.reading.dialects import invalid_value
from rtlang_grammars.schema.reading.documents import SchemaNode
from rtlang_grammars.schema.reading.values import JsonType
from rtlang_grammars.spec.errors import GrammarError

MAX_CONTEXT = (
    8  # facets of the adjacent keywords with which the branches of a oneOf are intersected before they are compared
)
MAX_CASES_WITHOUT_DISCRIMINATOR = 64  # facets of a oneOf for objects that lack its discriminator
MAX_EXCLUDED = (
    16  # patterns or steps of other branches that are excluded from one branch of a oneOf; the automata multiply
)
MAX_COMPARED_STATES = 12_000  # that comparing branches with patterns may create; after that they count as overlapping
MAX_PAIRS = 20_000  # limit on the square of the number of branches of a oneOf that are compared pairwise


def _reader(keyword: str) -> Callable[[Algebra, SchemaNode, JsonType, bool, bool], Facets]:
    def read(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
        conj = algebra.demand(algebra.documents.resolve(node, keyword), positive)
        return algebra.all_of([conj], kind, track, node, keyword)

    read.__doc__ = f"Read `{keyword}`."
    return read


def _branches(algebra: Algebra, node: SchemaNode, keyword: str, positive: bool) -> list[Conj]:
    value = keyword_value(node, keyword)
    if not isinstance(value, list):
        raise invalid_value(value, "an array of schemas", keyword, node.location)
    if not value:
        raise GrammarError(f"{keyword} must not be empty: it must contain at least one schema", node.location)
    return [algebra.demand(algebra.documents.child(node, keyword, index), positive) for index in range(len(value))]


def read_all_of(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `allOf` (Core 10.2.1.1)."""
    conjs = _branches(algebra, node, "allOf", positive)
    if positive:
        return algebra.all_of(conjs, kind, track, node, "allOf")
    return _union(algebra, conjs, kind, track, node, "allOf")


def spread_all_of(algebra: Algebra, node: SchemaNode, kind: JsonType, track: bool) -> Sequence[Facets]:
    """Return the facets of each branch of `allOf`."""
    return [algebra.all_of([conj], kind, track, node, "allOf") for conj in _branches(algebra, node, "allOf", True)]


def read_any_of(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `anyOf` (Core 10.2.1.2)."""
    conjs = _branches(algebra, node, "anyOf", positive)
    if not positive:
        return algebra.all_of(conjs, kind, track, node, "anyOf")
    if track:
        return _any_of_tracked(algebra, conjs, kind, node)
    return _union(algebra, conjs, kind, track, node, "anyOf")


def _union(
    algebra: Algebra, conjs: Sequence[Conj], kind: JsonType, track: bool, node: SchemaNode, keyword: str
) -> Facets:
    union: dict[Facet, None] = {}
    for conj in dict.fromkeys(conjs):
        facets = algebra.all_of([conj], kind, track, node, keyword)
        if not track and any(facet.is_top for facet in facets):
            return (TOPS[kind],)
        union.update(dict.fromkeys(facets))
    return tuple(union)


def _any_of_tracked(algebra: Algebra, conjs: Sequence[Conj], kind: JsonType, node: SchemaNode) -> Facets:
    """Return the facets of `anyOf`, with the properties and items that each evaluates.

    Every valid branch contributes annotations, so each subset of branches that hold together is a case of its own, in which fewer
    properties or items are left unevaluated.
    """
    result: dict[Facet, None] = {}
    for conj in dict.fromkeys(conjs):
        facets = algebra.all_of([conj], kind, True, node, "anyOf")
        annotated = [facet for facet in facets if facet.evaluated is not NOTHING_EVALUATED]
        both = (
            algebra.product([tuple(result), annotated], kind, "anyOf", lambda: node.location)
            if result and annotated
            else ()
        )
        result.update(dict.fromkeys([*facets, *both]))
        if len(result) > algebra.options.max_alternatives:
            raise too_many_cases("anyOf", algebra.options.max_alternatives, node.location)
    return tuple(result)


def read_not(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `not` (Core 10.2.1.4)."""
    conj = algebra.demand(algebra.documents.child(node, "not"), not positive)
    try:
        return algebra.all_of([conj], kind, False, node, "not")
    except TooManyCasesError as error:
        return algebra.unenforced(kind, node, "not", error.reason)


def read_if(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `if`, `then` and `else` (Core 10.2.2)."""
    if not has_keyword(node, "if"):
        return (TOPS[kind],) if positive else ()
    condition = algebra.documents.child(node, "if")
    met, unmet = algebra.demand(condition), algebra.demand(condition, False)
    ways = {"then": TRUE, "else": TRUE} if positive else {"then": FALSE, "else": FALSE}
    for keyword in ways:
        if has_keyword(node, keyword):
            ways[keyword] = algebra.demand(algebra.documents.child(node, keyword), positive)
    then, otherwise = ways["then"], ways["else"]
    if then == otherwise == TRUE and not track:
        return (TOPS[kind],)
    cases = [[met, then], [unmet, otherwise]]  # disjoint, so that a chain of conditions on one property needs few cases
    try:
        lists = [algebra.all_of(conjs, kind, track, node, "if") for conjs in cases if FALSE not in conjs]
    except TooManyCasesError as error:
        return algebra.unenforced(kind, node, "if", error.reason)
    return tuple(dict.fromkeys(facet for facets in lists for facet in facets))


def read_one_of(algebra: Algebra, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
    """Read `oneOf` without adjacent keywords (Core 10.2.1.3)."""
    if positive:
        return apply_one_of(algebra, node, (TOPS[kind],), kind, track)
    conjs = _branches(algebra, node, "oneOf", True)
    lists = [algebra.all_of([conj], kind, False, node, "oneOf") for conj in conjs]
    return _negate_one_of(algebra, conjs, lists, kind, node)


def apply_one_of(algebra: Algebra, node: SchemaNode, context: Facets, kind: JsonType, track: bool) -> Facets:
    """Apply `oneOf` to the facets of its adjacent keywords, which often make its branches disjoint (a required property)."""
    conjs = _branches(algebra, node, "oneOf", True)
    lists = [algebra.all_of([conj], kind, track, node, "oneOf") for conj in conjs]
    nonempty = [index for index, facets in enumerate(lists) if facets]
    if len(nonempty) < 2:
        union = lists[nonempty[0]] if nonempty else ()
    else:
        union = _exactly_one(algebra, conjs, lists, nonempty, context, kind, node)
    return algebra.product([context, union], kind, "oneOf", lambda: node.location)


def _exactly_one(
    algebra: Algebra,
    conjs: Sequence[Conj],
    lists: Sequence[Facets],
    nonempty: Sequence[int],
    context: Facets,
    kind: JsonType,
    node: SchemaNode,
) -> Facets:
    listed = _values_listed_once(lists, kind)
    if listed is not None:
        return listed
    if 0 < len(context) <= MAX_CONTEXT and context[0] is not TOPS[kind]:
        in_context = [algebra.product([context, facets], kind, "oneOf", lambda: node.location) for facets in lists]
    else:
        in_context = list(lists)
    name = discriminator(algebra, [in_context[index] for index in nonempty if in_context[index]])
    if name is None:
        return _separate(algebra, conjs, lists, in_context, kind, node, algebra.options.max_alternatives)
    has_name, lacks_name = ObjectBody(required=frozenset({name})), ObjectBody(absent=frozenset({name}))
    present = [both for facets in lists for facet in facets if (both := meet(Facet(kind, has_name), facet)) is not None]
    lists, in_context = (
        [_meet_each(Facet(kind, lacks_name), facets) for facets in each] for each in (lists, in_context)
    )
    return (*present, *_separate(algebra, conjs, lists, in_context, kind, node, MAX_CASES_WITHOUT_DISCRIMINATOR))


def _meet_each(facet: Facet, facets: Facets) -> Facets:
    return [both for each in facets if (both := meet(facet, each)) is not None]


def _separate(
    algebra: Algebra,
    conjs: Sequence[Conj],
    lists: Sequence[Facets],
    in_context: Sequence[Facets],
    kind: JsonType,
    node: SchemaNode,
    limit: int,
) -> Facets:
    """Return the union of the branches, each without the branches that may overlap it.

    Args:
        conjs: the branches as demands.
        lists: their facets.
        in_context: their facets intersected with the facets of the adjacent keywords; only these are compared.
        limit: upper bound on the facets of one branch; a branch that exceeds it is marked instead.
    """
    overlapping = _overlapping_branches(
        algebra, in_context, [index for index, facets in enumerate(in_context) if facets]
    )
    if overlapping is None:
        return _with_mark([facet for facets in lists for facet in facets], node, "too many branches to compare")
    union: dict[Facet, None] = {}
    failed: str | None = None
    for index, others in overlapping.items():
        if failed is not None and others:  # the branches of a oneOf are alike, so the next would exceed the limit too
            union.update(dict.fromkeys(_with_mark(lists[index], node, failed)))
            continue
        if sum(any(map(_has_automaton, lists[other])) for other in others) > MAX_EXCLUDED:
            reason = f"more than {MAX_EXCLUDED} other branches with a pattern or a step overlap one"
            union.update(dict.fromkeys(_with_mark(lists[index], node, reason)))
            continue
        negations = [_negation(algebra, conjs[other]) for other in others]
        try:
            outside = [algebra.all_of([conj], kind, False, node, "oneOf") for conj in dict.fromkeys(negations)]
            facets = algebra.product([lists[index], *outside], kind, "oneOf", lambda: node.location, limit)
        except TooManyCasesError as error:
            failed = error.reason
            facets = _with_mark(lists[index], node, failed)
        union.update(dict.fromkeys(facets))
    return tuple(union)


def _has_automaton(facet: Facet) -> bool:
    """Whether excluding a facet multiplies an automaton."""
    body = facet.body
    if facet.literals is not None:
        return False
    return (
        bool(body.texts)
        if isinstance(body, StringBody)
        else isinstance(body, NumberBody) and body.multiple_of not in (None, 1)
    )


def _negation(algebra: Algebra, branch: Conj) -> Conj:
    negation = algebra.negated(branch)
    assert negation is not None  # a branch is a single demand
    return negation


def _with_mark(facets: Sequence[Facet], node: SchemaNode, reason: str) -> Facets:
    marks = frozenset(
        {FacetMark(node.location, "oneOf", f"it is not enforced that only one branch is valid: {reason}")}
    )
    return [replace(facet, marks=facet.marks | marks) for facet in facets]


def _values_listed_once(lists: Sequence[Facets], kind: JsonType) -> Facets | None:
    """Return the values that exactly one branch lists; None unless all branches are lists of values (`enum`, `const`)."""
    if kind in (JsonType.ARRAY, JsonType.OBJECT):
        return None
    times: Counter[Hashable] = Counter()
    for facets in lists:
        if any(facet.literals is None or facet.body != TOP_BODY[kind] or facet.marks for facet in facets):
            return None
        times.update({key for facet in facets for key in facet.literals or ()})
    once = []
    for facet in (facet for facets in lists for facet in facets):
        left = {key: value for key, value in (facet.literals or {}).items() if times[key] == 1}
        if left:
            once.append(replace(facet, literals=left))
    return once


def _overlapping_branches(
    algebra: Algebra, lists: Sequence[Facets], nonempty: Sequence[int]
) -> Mapping[int, list[int]] | None:
    """Return, for each branch, the branches that may overlap it; None if there are too many branches to compare."""
    overlapping: dict[int, list[int]] = {index: [] for index in nonempty}
    if len(nonempty) ** 2 > MAX_PAIRS:
        return None
    is_costly = {index: any(map(_has_automaton, lists[index])) for index in nonempty}
    most_states = algebra.budget.num_states + MAX_COMPARED_STATES
    for a, b in combinations(nonempty, 2):
        is_unknown = algebra.budget.num_states > most_states and is_costly[a] and is_costly[b]
        if is_unknown or any(overlap(algebra, one, other) for one in lists[a] for other in lists[b]):
            overlapping[a].append(b)
            overlapping[b].append(a)
    return overlapping


def _negate_one_of(
    algebra: Algebra, conjs: Sequence[Conj], lists: Sequence[Facets], kind: JsonType, node: SchemaNode
) -> Facets:
    """Return the facets of the negation of `oneOf`: no branch is valid, or two are."""
    try:
        none = algebra.all_of([_negation(algebra, conj) for conj in conjs], kind, False, node, "oneOf")
        pairs = [
            facet
            for one, other in combinations(lists, 2)
            if one and other
            for facet in algebra.product([one, other], kind, "oneOf", lambda: node.location)
        ]
    except TooManyCasesError as error:
        return algebra.unenforced(kind, node, "oneOf", error.reason)
    return (*none, *pairs)


IN_PLACE: Mapping[str, Keyword] = {
    "$ref": Keyword("$ref", _reader("$ref")),
    "$dynamicRef": Keyword("$dynamicRef", _reader("$dynamicRef")),
    "$recursiveRef": Keyword("$recursiveRef", _reader("$recursiveRef")),
    "allOf": Keyword("allOf", read_all_of, spread_all_of),
    "anyOf": Keyword("anyOf", read_any_of),
    "oneOf": Keyword("oneOf", read_one_of),
    "not": Keyword("not", read_not),
    "if": Keyword("if", read_if),
    "then": Keyword("if", read_if),
    "else": Keyword("if", read_if),
}
DEFERRED_KEYWORDS = (DeferredKeyword("oneOf", apply_one_of),)
