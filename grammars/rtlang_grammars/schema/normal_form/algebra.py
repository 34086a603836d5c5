"""Reduce schemas to facets: one list of alternatives for each JSON type.

`Algebra.alternatives` reduces one schema, or its negation, for one JSON type; `Algebra.conjunction` reduces several at once. Both are
memoized, so a subschema that is used in many places is reduced once. Subschemas of properties and items are not reduced here, so
recursion through them costs nothing; a schema that refers to itself for the same instance location has no meaning and is refused.
Only the search for contradictions looks into subschemas. If it comes back to a conjunction that is being reduced (a recursive schema
intersected with its own negation, say), nothing is proven there; `pruning` later finds what no finite value satisfies.
A list of facets never rejects a valid value. Where it accepts more than the schema, its facets carry marks.

Source: JSON Schema Core 2020-12, sections 7 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from rtlang_grammars.schema.normal_form.demands import CycleError, Demands
from rtlang_grammars.schema.normal_form.facets import (
    TOPS,
    TRUE,
    Conj,
    Facet,
    FacetMark,
    ObjectBody,
    PropertyRule,
    is_contradiction,
    meet,
)
from rtlang_grammars.schema.normal_form.inclusion import drop_subsumed, merge_literal_lists
from rtlang_grammars.schema.reading.documents import Documents, SchemaNode
from rtlang_grammars.schema.reading.report import ReportBuilder
from rtlang_grammars.schema.reading.values import Json, JsonType
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

if TYPE_CHECKING:
    from rtlang_grammars.schema.normal_form.texts import StringSet
    from rtlang_grammars.schema.reading.options import SchemaOptions

MANY_CASES = 12  # with more facets than this, the search for contradictions in subschemas costs less than keeping them
MAX_IN_PLACE_DEPTH = 60  # nesting of in-place applicators and references ($ref, allOf, anyOf, not ...)
MAX_NESTED_SEARCHES = (
    4  # searches for contradictions inside one another; each reduces the subschemas of the one around it
)

_CONDITIONS = frozenset({"if", "not", "dependentRequired", "dependentSchemas"})
"""Groups of keywords that are read after the others: the names in them come after the names that the schema declares otherwise."""

Facets: TypeAlias = Sequence[Facet]
Handler: TypeAlias = "Callable[[Algebra, SchemaNode, JsonType, bool, bool], Facets]"
"""Reads one keyword, or a group of keywords, of a node for one type: `handler(algebra, node, kind, positive, track)`.

`positive` is False for the negation of the keywords. `track` asks for facets that record which properties and items were evaluated. A
handler raises `GrammarError` if the value of a keyword is malformed.
"""


@dataclass(frozen=True, slots=True)
class Keyword:
    """How to read a keyword.

    Attributes:
        group: name of the keywords that one call of the handler reads together, such as `minLength` and `maxLength`.
        handler: reads the group.
        spread: for a conjunction of subschemas (`allOf`): returns one list of facets for each of them, so that a single product joins
            them with the other keywords. Takes the arguments of a handler without `positive`.
    """

    group: str
    handler: Handler
    spread: Callable[[Algebra, SchemaNode, JsonType, bool], Sequence[Facets]] | None = None


def keyword_group(group: str, handler: Handler, *keywords: str) -> dict[str, Keyword]:
    """Return the table entries of keywords that one handler reads together."""
    return {keyword: Keyword(group, handler) for keyword in keywords}


@dataclass(frozen=True, slots=True)
class DeferredKeyword:
    """A keyword that is applied after its adjacent keywords, because its meaning depends on them.

    Attributes:
        keyword: its name.
        apply: `apply(algebra, node, facets, kind, track)` maps the facets of the adjacent keywords to the facets of the whole schema.
        needs_evaluated: the adjacent keywords must record which properties and items they evaluate.
    """

    keyword: str
    apply: Callable[[Algebra, SchemaNode, Facets, JsonType, bool], Facets]
    needs_evaluated: bool = False


class TooManyCasesError(GrammarError):
    """The disjunctive normal form of a conjunction exceeds the limit; callers that can relax a keyword instead catch it."""


class InPlaceDepthError(GrammarError):
    """Too many applicators and references apply to the same instance location."""


def too_many_cases(keyword: str, limit: int, pointer: str) -> TooManyCasesError:
    """Return the error for a keyword whose disjunctive normal form has more than `limit` alternatives."""
    return TooManyCasesError(f"{keyword} expands to more than {limit} cases", pointer)


class Algebra(Demands):
    """Reduces the schemas of one compile to facets. Owned by that compile.

    Attributes:
        texts: the string languages of the compile.
        options, budget: as given.
        excluded_values: arrays, objects and other values that `not` over `enum` or `const` excludes, by `json_key`.
        unsatisfiable: memo of `emptiness.is_unsatisfiable`.
        last_read: the schema whose reduction began last; None before the first.
    """

    def __init__(
        self,
        documents: Documents,
        texts: StringSet,
        options: SchemaOptions,
        report: ReportBuilder,
        budget: Budget,
        keywords: Mapping[JsonType, Mapping[str, Keyword]],
        deferred: Sequence[DeferredKeyword],
        is_empty: Callable[[Algebra, Facet], bool],
    ) -> None:
        """Create the algebra of one compile.

        Args:
            documents, texts, options, report, budget: the parts of the compile.
            keywords: for each type, the keywords that constrain it.
            deferred: keywords to apply after their adjacent keywords, in this order.
            is_empty: returns True only if no value satisfies a facet; called if a product has more than `MANY_CASES` facets.
        """
        super().__init__(documents, options, report)
        self.texts, self.options, self.budget = texts, options, budget
        self.excluded_values: dict[Hashable, Json] = {}
        self.unsatisfiable: dict[tuple[Conj, int], bool] = {}
        self.last_read: SchemaNode | None = None
        self._keywords, self._deferred, self._is_empty = keywords, deferred, is_empty
        self._alternatives: dict[tuple[int, JsonType, bool], Facets] = {}
        self._conjunctions: dict[tuple[Conj, JsonType], Facets] = {}
        self._rules: dict[tuple[str, Conj], PropertyRule] = {}
        self._orders: dict[Conj, tuple[int, ...]] = {}
        self._open: set[tuple[int, JsonType, bool]] = set()
        self._open_conjunctions: set[tuple[Conj, JsonType]] = set()
        self._num_searches = 0  # that are running, each inside the one before

    # Facets

    def conjunction(self, conj: Conj, kind: JsonType) -> Facets:
        """Return the facets of a conjunction for one type; empty if no value of the type satisfies it.

        Raises:
            CycleError, GrammarError: as `alternatives`.
        """
        if len(conj) == 1:
            (demand,) = conj
            return self.alternatives(demand, kind)
        key = (conj, kind)
        known = self._conjunctions.get(key)
        if known is None:
            if is_contradiction(conj):
                return ()
            if key in self._open_conjunctions:
                raise CycleError("the conjunction is being reduced already", self.location(conj))
            self._open_conjunctions.add(key)
            try:
                lists = [self.alternatives(demand, kind) for demand in self._in_order(conj)]
                known = self.simplify(self.product(lists, kind, "allOf", lambda: self.location(conj)))
            finally:
                self._open_conjunctions.discard(key)
            self._conjunctions[key] = known
        return known

    def join(self, conjs: Iterable[Conj]) -> Conj:
        """Return the union of several conjunctions, whose schemas are read in this order: it decides the order of properties."""
        parts = [*conjs]
        joined = TRUE.union(*parts)
        if len(joined) > 1 and joined not in self._orders:
            self._orders[joined] = tuple(dict.fromkeys(demand for part in parts for demand in self._in_order(part)))
        return joined

    def _in_order(self, conj: Conj) -> Sequence[int]:
        return self._orders.get(conj) or sorted(conj)

    def all_of(self, conjs: Iterable[Conj], kind: JsonType, track: bool, node: SchemaNode, keyword: str) -> Facets:
        """Return the facets of the union of several conjunctions, read in this order.

        Args:
            track: record which properties and items were evaluated.
            node, keyword: what an error names.
        Raises:
            CycleError, GrammarError: as `alternatives`.
        """
        demands = tuple(dict.fromkeys(demand for conj in conjs for demand in self._in_order(conj)))
        if len(demands) == 1:
            return self.alternatives(demands[0], kind, track)
        lists = [self.alternatives(demand, kind, track) for demand in demands]
        return self.product(lists, kind, keyword, lambda: node.location)

    def alternatives(self, demand: int, kind: JsonType, track: bool = False) -> Facets:
        """Return the facets of one demand for one type.

        Args:
            demand: `2 * node.index` for a schema, one more for its negation.
            track: record which properties and items were evaluated; alternatives that differ only in this stay separate.
        Raises:
            CycleError: the schema is being reduced already.
            GrammarError: the value of a keyword is malformed, or there are more than `options.max_alternatives` facets.
        """
        track = track and demand % 2 == 0
        key = (demand, kind, track)
        known = self._alternatives.get(key)
        if known is not None:
            return known
        if not self.type_mask(demand) >> kind & 1:
            self._alternatives[key] = ()
            return ()
        node = self.documents.node(demand // 2)
        if key in self._open:
            raise CycleError(
                "the schema refers to itself for the same instance location; a recursive schema must go through "
                "properties or items",
                node.location,
            )
        if len(self._open) > MAX_IN_PLACE_DEPTH:
            raise InPlaceDepthError(
                f"more than {MAX_IN_PLACE_DEPTH} levels of $ref, allOf, anyOf, oneOf, not or if apply to the same instance "
                "location",
                node.location,
            )
        self.budget.spend(states=1)
        self._open.add(key)
        self.last_read = node
        try:
            facets = self._read(node, kind, demand % 2 == 0, track)
        finally:
            self._open.discard(key)
        if not track:
            facets = self.simplify([facet.without_evaluated() for facet in facets])
        if len(facets) > self.options.max_alternatives:
            raise too_many_cases("the schema", self.options.max_alternatives, node.location)
        self._alternatives[key] = facets
        return facets

    def _read(self, node: SchemaNode, kind: JsonType, positive: bool, track: bool) -> Facets:
        schema = node.schema
        if not isinstance(schema, dict):
            return (TOPS[kind],) if schema is positive else ()
        if node.index in self.choices:
            return self._read_choice(node, kind, positive)
        dialect = node.resource.dialect
        known = dialect.keywords
        if dialect.ref_hides_siblings and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        handlers = self._keywords[kind]
        groups: dict[str, Keyword] = {}
        for keyword in schema:
            entry = handlers.get(keyword)
            if entry is not None and keyword in known:
                groups[entry.group] = entry
        if not positive:
            return [facet for entry in groups.values() for facet in entry.handler(self, node, kind, False, False)]
        later: list[DeferredKeyword] = []
        groups = dict(sorted(groups.items(), key=lambda item: item[0] in _CONDITIONS))
        places = {keyword: place for place, keyword in enumerate(groups)}
        inner_track = track
        for each in self._deferred:
            if each.keyword in groups:
                del groups[each.keyword]
                later.append(each)
                inner_track = inner_track or each.needs_evaluated
        lists: list[Facets] = []
        list_places: list[int] = []
        for group, entry in groups.items():
            if entry.spread is None:
                lists.append(entry.handler(self, node, kind, True, inner_track))
            else:
                lists.extend(entry.spread(self, node, kind, inner_track))
            if not all(lists):
                return ()
            list_places += [places[group]] * (len(lists) - len(list_places))
        facets = self.product(lists, kind, "allOf", lambda: node.location)
        for each in later:
            facets = each.apply(self, node, facets, kind, inner_track)
            if (
                not each.needs_evaluated
                and kind is JsonType.OBJECT
                and max(list_places, default=-1) > places[each.keyword]
            ):
                facets = _ordered(facets, zip(lists, list_places, strict=True), places[each.keyword])
        return facets

    def _read_choice(self, node: SchemaNode, kind: JsonType, positive: bool) -> Facets:
        conjs = self.choices[node.index]
        if positive:
            return [facet for conj in conjs for facet in self.conjunction(conj, kind)]
        lists = [[facet for demand in conj for facet in self.alternatives(demand ^ 1, kind)] for conj in conjs]
        return self.product(lists, kind, "not", lambda: node.location)

    def rule(self, name: str, conj: Conj) -> PropertyRule:
        """Return the rule that the value of a property, if present, satisfies a conjunction.

        Equal arguments give the same object, because rules are compared by identity.
        """
        return self._rules.setdefault((name, conj), PropertyRule({name: conj}))

    # Lists of facets

    def product(
        self,
        lists: Sequence[Facets],
        kind: JsonType,
        keyword: str,
        location: Callable[[], str],
        limit: int | None = None,
    ) -> Facets:
        """Return the facets that satisfy one facet of each list, in disjunctive normal form.

        Args:
            keyword, location: what an error names; the location is computed only then.
            limit: upper bound on the number of facets; None means `options.max_alternatives`.
        Raises:
            TooManyCasesError: the product has more than `limit` facets.
        """
        limit = limit or self.options.max_alternatives
        if all(len(facets) == 1 for facets in lists):
            return self._meet_all([facets[0] for facets in lists], kind)
        by_length = sorted(lists, key=len)  # short lists first keep the intermediate products small
        found = self._product(by_length, kind, keyword, location, limit)
        return found if kind is not JsonType.OBJECT else _ordered(found, zip(lists, count()), len(lists))

    def _product(
        self, lists: Sequence[Facets], kind: JsonType, keyword: str, location: Callable[[], str], limit: int
    ) -> Facets:
        result: Facets = (TOPS[kind],)
        for facets in lists:
            if len(facets) == 1 and facets[0] is TOPS[kind]:
                continue
            if len(result) == 1 and result[0] is TOPS[kind]:
                result = facets
                continue
            if len(result) * len(facets) > 4 * limit:
                raise too_many_cases(keyword, limit, location())
            made: dict[Facet, None] = {}
            for a in result:
                self.budget.spend(states=len(facets) >> 3)
                for b in facets:
                    both = meet(a, b)
                    both = both and self.texts.filter_literals(both)
                    if both is not None:
                        made[both] = None
            result = drop_subsumed(tuple(made))
            if len(result) > MANY_CASES:
                result = self._without_contradictions(result)
            if len(result) > limit:
                raise too_many_cases(keyword, limit, location())
        return result

    def _without_contradictions(self, facets: Facets) -> Facets:
        if self._num_searches >= MAX_NESTED_SEARCHES:
            return facets
        self._num_searches += 1
        try:
            return [facet for facet in facets if not self._is_empty(self, facet)]
        finally:
            self._num_searches -= 1

    def _meet_all(self, facets: Sequence[Facet], kind: JsonType) -> Facets:
        """Return the meet of several facets as a list of at most one facet."""
        met = TOPS[kind]
        for facet in facets:
            if met is TOPS[kind] or facet is TOPS[kind]:
                met = facet if met is TOPS[kind] else met
                continue
            self.budget.spend()
            both = meet(met, facet)
            both = both and self.texts.filter_literals(both)
            if both is None:
                return ()
            met = both
        return (met,)

    def simplify(self, facets: Facets) -> Facets:
        """Return an equivalent union without duplicates; a facet that accepts every value replaces the others."""
        if len(facets) < 2:
            return tuple(facets)
        marked: Facet | None = None
        for facet in facets:
            if facet.is_top:
                return (TOPS[facet.kind],)
            if facet.marks and replace(facet, marks=frozenset()).is_top:
                marked = facet if marked is None else replace(facet, marks=marked.marks | facet.marks)
        return (marked,) if marked else tuple(drop_subsumed(merge_literal_lists(tuple(dict.fromkeys(facets)))))

    def unenforced(self, kind: JsonType, node: SchemaNode, keyword: str, reason: str) -> Facets:
        """Return the facet that accepts every value of a type, with a mark that a keyword is not enforced."""
        return (replace(TOPS[kind], marks=frozenset({FacetMark(node.location, keyword, reason)})),)


def _ordered(facets: Facets, lists: Iterable[tuple[Facets, int]], place_of_others: int) -> Facets:
    """Return facets of objects whose rules follow the places of the lists that they come from."""
    places: dict[PropertyRule, int] = {}
    for each, place in lists:
        for facet in each:
            assert isinstance(facet.body, ObjectBody)
            for rule in facet.body.rules:
                places[rule] = min(place, places.get(rule, place))
    found = []
    for facet in facets:
        body = facet.body
        assert isinstance(body, ObjectBody)
        rules = tuple(sorted(body.rules, key=lambda rule: places.get(rule, place_of_others)))
        found.append(facet if rules == body.rules else replace(facet, body=replace(body, rules=rules)))
    return found
