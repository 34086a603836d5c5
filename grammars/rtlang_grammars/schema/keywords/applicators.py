"""Keywords that put schemas together for one value: references, `allOf`, `anyOf`, `oneOf`, `not`, `if`.

Disjunctions are lists, conjunctions products of lists, negations are pushed inward. `oneOf` is a plain union where its branches
are shown to exclude each other, which is the usual case; where two may both hold, each is taken without the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from rtlang_grammars.schema.keywords.scalars import has, keyword_value
from rtlang_grammars.schema.normal_form.algebra import Afterthought, Algebra, Facets, Keyword, TooManyCasesError
from rtlang_grammars.schema.normal_form.emptiness import discriminator, overlap
from rtlang_grammars.schema.normal_form.facets import (
    FALSE,
    NOTHING,
    TOP_BODY,
    TOPS,
    TRUE,
    Conj,
    Facet,
    Mark,
    ObjectBody,
    meet,
)
from rtlang_grammars.schema.reading.dialects import expected
from rtlang_grammars.schema.reading.documents import Node
from rtlang_grammars.schema.reading.values import JsonType
from rtlang_grammars.spec.errors import GrammarError

MAX_CONTEXT = 8  # ways to meet the rest of a schema that are held against its oneOf
MAX_UNTOLD = 64  # cases for what a telling property would tell apart, were it there
MAX_PAIRS = 20_000  # branches of a oneOf that are held against each other


def _reader(keyword: str) -> Callable[[Algebra, Node, JsonType, bool, bool], Facets]:
    def read(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
        conj = algebra.demand(algebra.documents.resolve(node, keyword), positive)
        return algebra.all_of([conj], kind, track, node, keyword)

    read.__doc__ = f"`{keyword}`."
    return read


def _branches(algebra: Algebra, node: Node, keyword: str, positive: bool) -> list[Conj]:
    value = keyword_value(node, keyword)
    if not isinstance(value, list):
        raise expected(value, "a list", keyword, node.location)
    if not value:
        raise GrammarError(f"{keyword} must not be empty", node.location)
    return [algebra.demand(algebra.documents.child(node, keyword, index), positive) for index in range(len(value))]


def read_all_of(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`allOf`."""
    conjs = _branches(algebra, node, "allOf", positive)
    if positive:
        return algebra.all_of(conjs, kind, track, node, "allOf")
    return _union(algebra, conjs, kind, track, node, "allOf")


def spread_all_of(algebra: Algebra, node: Node, kind: JsonType, track: bool) -> Sequence[Facets]:
    """The branches of `allOf`, each by itself."""
    return [algebra.all_of([conj], kind, track, node, "allOf") for conj in _branches(algebra, node, "allOf", True)]


def read_any_of(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`anyOf`."""
    conjs = _branches(algebra, node, "anyOf", positive)
    if not positive:
        return algebra.all_of(conjs, kind, track, node, "anyOf")
    if track:
        return _any_subset(algebra, conjs, kind, node)
    return _union(algebra, conjs, kind, track, node, "anyOf")


def _union(algebra: Algebra, conjs: Sequence[Conj], kind: JsonType, track: bool, node: Node, keyword: str) -> Facets:
    union: dict[Facet, None] = {}
    for conj in dict.fromkeys(conjs):
        facets = algebra.all_of([conj], kind, track, node, keyword)
        if not track and any(facet.is_top for facet in facets):
            return (TOPS[kind],)
        union.update(dict.fromkeys(facets))
    return tuple(union)


def _any_subset(algebra: Algebra, conjs: Sequence[Conj], kind: JsonType, node: Node) -> Facets:
    """Any of some schemas, each way with what was evaluated by it.

    All that hold count as evaluating, so several that hold together are a case of their own, in which less is left unevaluated.
    """
    result: dict[Facet, None] = {}
    for conj in dict.fromkeys(conjs):
        facets = algebra.all_of([conj], kind, True, node, "anyOf")
        annotated = [facet for facet in facets if facet.evaluated is not NOTHING]
        both = (
            algebra.product([tuple(result), annotated], kind, "anyOf", lambda: node.location)
            if result and annotated
            else ()
        )
        result.update(dict.fromkeys([*facets, *both]))
        if len(result) > algebra.options.max_alternatives:
            raise TooManyCasesError(f"anyOf needs more than {algebra.options.max_alternatives} cases", node.location)
    return tuple(result)


def read_not(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`not`."""
    conj = algebra.demand(algebra.documents.child(node, "not"), not positive)
    try:
        return algebra.all_of([conj], kind, False, node, "not")
    except TooManyCasesError as error:
        return algebra.unenforced(kind, node, "not", error.reason)


def read_if(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`if`, `then`, `else`."""
    if not has(node, "if"):
        return (TOPS[kind],) if positive else ()
    condition = algebra.documents.child(node, "if")
    met, unmet = algebra.demand(condition), algebra.demand(condition, False)
    ways = {"then": TRUE, "else": TRUE} if positive else {"then": FALSE, "else": FALSE}
    for keyword in ways:
        if has(node, keyword):
            ways[keyword] = algebra.demand(algebra.documents.child(node, keyword), positive)
    then, otherwise = ways["then"], ways["else"]
    if then == otherwise == TRUE and not track:
        return (TOPS[kind],)
    cases = [[met, then], [unmet, otherwise]]  # disjoint, so that a chain of conditions on one property stays short
    try:
        lists = [algebra.all_of(conjs, kind, track, node, "if") for conjs in cases if FALSE not in conjs]
    except TooManyCasesError as error:
        return algebra.unenforced(kind, node, "if", error.reason)
    return tuple(dict.fromkeys(facet for facets in lists for facet in facets))


def read_one_of(algebra: Algebra, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
    """`oneOf`, standing alone."""
    if positive:
        return apply_one_of(algebra, node, (TOPS[kind],), kind, track)
    conjs = _branches(algebra, node, "oneOf", True)
    lists = [algebra.all_of([conj], kind, False, node, "oneOf") for conj in conjs]
    return _not_one(algebra, conjs, lists, kind, node)


def apply_one_of(algebra: Algebra, node: Node, context: Facets, kind: JsonType, track: bool) -> Facets:
    """`oneOf` among what the rest of its schema allows, which often is what keeps its branches apart (a required name)."""
    conjs = _branches(algebra, node, "oneOf", True)
    lists = [algebra.all_of([conj], kind, track, node, "oneOf") for conj in conjs]
    held = [index for index, facets in enumerate(lists) if facets]
    if len(held) < 2:
        union = lists[held[0]] if held else ()
    else:
        union = _exactly_one(algebra, conjs, lists, held, context, kind, node)
    return algebra.product([context, union], kind, "oneOf", lambda: node.location)


def _exactly_one(
    algebra: Algebra,
    conjs: Sequence[Conj],
    lists: Sequence[Facets],
    held: Sequence[int],
    context: Facets,
    kind: JsonType,
    node: Node,
) -> Facets:
    listed = _listed_once(lists, kind)
    if listed is not None:
        return listed
    if 0 < len(context) <= MAX_CONTEXT and context[0] is not TOPS[kind]:
        seen = [algebra.product([context, facets], kind, "oneOf", lambda: node.location) for facets in lists]
    else:
        seen = list(lists)
    name = discriminator(algebra, [seen[index] for index in held if seen[index]])
    if name is None:
        return _apart(algebra, conjs, lists, seen, kind, node, algebra.options.max_alternatives)
    has_name, has_not = ObjectBody(required=frozenset({name})), ObjectBody(absent=frozenset({name}))
    told = [both for facets in lists for facet in facets if (both := meet(Facet(kind, has_name), facet)) is not None]
    lists, seen = ([_all_met(Facet(kind, has_not), facets) for facets in each] for each in (lists, seen))
    return (*told, *_apart(algebra, conjs, lists, seen, kind, node, MAX_UNTOLD))


def _all_met(facet: Facet, facets: Facets) -> Facets:
    return [both for each in facets if (both := meet(facet, each)) is not None]


def _apart(
    algebra: Algebra,
    conjs: Sequence[Conj],
    lists: Sequence[Facets],
    seen: Sequence[Facets],
    kind: JsonType,
    node: Node,
    limit: int,
) -> Facets:
    """Each branch without those that may hold together with it; `seen` are the branches in their context."""
    rivals = _rivals(algebra, seen, [index for index, facets in enumerate(seen) if facets])
    if rivals is None:
        return _marked([facet for facets in lists for facet in facets], node, "too many branches to compare")
    union: dict[Facet, None] = {}
    failed: str | None = None
    for index, others in rivals.items():
        if failed is not None and others:  # the branches are alike: the next would only fail later
            union.update(dict.fromkeys(_marked(lists[index], node, failed)))
            continue
        negations = [_outside(algebra, conjs[rival]) for rival in others]
        try:
            outside = [algebra.all_of([conj], kind, False, node, "oneOf") for conj in dict.fromkeys(negations)]
            facets = algebra.product([lists[index], *outside], kind, "oneOf", lambda: node.location, limit)
        except TooManyCasesError as error:
            failed = error.reason
            facets = _marked(lists[index], node, failed)
        union.update(dict.fromkeys(facets))
    return tuple(union)


def _outside(algebra: Algebra, branch: Conj) -> Conj:
    negation = algebra.negated(branch)
    assert negation is not None  # a branch is a single demand
    return negation


def _marked(facets: Sequence[Facet], node: Node, reason: str) -> Facets:
    marks = frozenset({Mark(node.location, "oneOf", f"that only one branch holds is not enforced: {reason}")})
    return [replace(facet, marks=facet.marks | marks) for facet in facets]


def _listed_once(lists: Sequence[Facets], kind: JsonType) -> Facets | None:
    """Where all branches are lists of values: the values of exactly one branch."""
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


def _rivals(algebra: Algebra, lists: Sequence[Facets], held: Sequence[int]) -> Mapping[int, list[int]] | None:
    """For each branch those that may hold together with it; None where the branches are too many to be compared."""
    rivals: dict[int, list[int]] = {index: [] for index in held}
    if len(held) ** 2 > MAX_PAIRS:
        return None
    for a, b in combinations(held, 2):
        if any(overlap(algebra, one, other) for one in lists[a] for other in lists[b]):
            rivals[a].append(b)
            rivals[b].append(a)
    return rivals


def _not_one(algebra: Algebra, conjs: Sequence[Conj], lists: Sequence[Facets], kind: JsonType, node: Node) -> Facets:
    """No branch holds, or two do."""
    try:
        none = algebra.all_of([_outside(algebra, conj) for conj in conjs], kind, False, node, "oneOf")
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
AFTERTHOUGHTS = (Afterthought("oneOf", apply_one_of),)
