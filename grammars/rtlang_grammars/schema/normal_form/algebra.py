"""From demands to facets: schemas as sets of values of one type, with conjunction, disjunction and negation.

`alternatives` says which facets make up one schema, or its negation, for one JSON type; `conjunction` does so for several at once.
Both are remembered, so a subschema that is met in many places is worked out once. Children are not entered, so recursion through
properties and elements costs nothing; a schema that refers to itself without a value in between has no meaning and is refused.
Every list allows at least what the schema allows. Where it allows more its facets carry marks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from rtlang_grammars.schema.normal_form.demands import CycleError, Demands
from rtlang_grammars.schema.normal_form.facets import TOPS, Conj, Facet, Mark, PropertyRule, meet
from rtlang_grammars.schema.normal_form.inclusion import with_lists_joined, without_included
from rtlang_grammars.schema.reading.documents import Documents, Node
from rtlang_grammars.schema.reading.report import Notes
from rtlang_grammars.schema.reading.values import Json, JsonType
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

if TYPE_CHECKING:
    from rtlang_grammars.schema.normal_form.texts import Texts
    from rtlang_grammars.schema.reading.options import SchemaOptions

MANY_CASES = 12  # from so many on it pays to look for contradictions below the surface
MAX_IN_PLACE_DEPTH = 60  # $ref, allOf, anyOf, not ... one inside the other without a value in between

Facets: TypeAlias = Sequence[Facet]
Handler: TypeAlias = "Callable[[Algebra, Node, JsonType, bool, bool], Facets]"
"""Reads one keyword (or a group of them) of a node for one type: positive or negated, with evaluated names kept or not."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """How a keyword is read.

    Attributes:
        group: keywords of one group are read together, by the handler of any of them.
        handler: what reads it.
        spread: for a conjunction of schemas: their facets, one list each, so that they are joined in one go with everything else.
            Takes what a handler takes, but for the sign.
    """

    group: str
    handler: Handler
    spread: Callable[[Algebra, Node, JsonType, bool], Sequence[Facets]] | None = None


@dataclass(frozen=True, slots=True)
class Afterthought:
    """How a keyword is read that needs to know what the rest of its schema allows.

    Attributes:
        keyword: its name.
        apply: from the facets of everything else in the schema to those of the whole. Takes what a handler takes, but for the sign.
        tracks: it looks at what the rest has evaluated.
    """

    keyword: str
    apply: Callable[[Algebra, Node, Facets, JsonType, bool], Facets]
    tracks: bool = False


class TooManyCasesError(GrammarError):
    """A conjunction of disjunctions does not fit the bound; caught where there is something better to do than refuse."""


class Algebra(Demands):
    """The facets of one compile. Owned by it."""

    def __init__(
        self,
        documents: Documents,
        texts: Texts,
        options: SchemaOptions,
        report: Notes,
        budget: Budget,
        keywords: Mapping[JsonType, Mapping[str, Keyword]],
        afterthoughts: Sequence[Afterthought],
        contradicts: Callable[[Algebra, Facet], bool],
    ) -> None:
        """Start a compile.

        Args:
            contradicts: whether it is shown that no value meets a facet; asked where cases become many.
        """
        super().__init__(documents, options, report)
        self.texts, self.options, self.budget = texts, options, budget
        self.listed: dict[Hashable, Json] = {}
        self.empties: dict[tuple[Conj, int], bool] = {}
        self._keywords, self._afterthoughts, self._contradicts = keywords, afterthoughts, contradicts
        self._alternatives: dict[tuple[int, JsonType, bool], Facets] = {}
        self._conjunctions: dict[tuple[Conj, JsonType], Facets] = {}
        self._rules: dict[tuple[str, Conj], PropertyRule] = {}
        self._open: set[tuple[int, JsonType, bool]] = set()

    # Facets

    def conjunction(self, conj: Conj, kind: JsonType) -> Facets:
        """The facets of a conjunction for one type; empty where no value of the type meets it."""
        if len(conj) == 1:
            (demand,) = conj
            return self.alternatives(demand, kind)
        key = (conj, kind)
        known = self._conjunctions.get(key)
        if known is None:
            lists = [self.alternatives(demand, kind) for demand in sorted(conj)]
            known = self.simplified(self.product(lists, kind, "allOf", lambda: self.location(conj)))
            self._conjunctions[key] = known
        return known

    def all_of(self, conjs: Iterable[Conj], kind: JsonType, track: bool, node: Node, keyword: str) -> Facets:
        """The facets of several conjunctions at once, with what was evaluated kept if `track`."""
        demands = sorted(frozenset[int]().union(*conjs))
        if len(demands) == 1:
            return self.alternatives(demands[0], kind, track)
        lists = [self.alternatives(demand, kind, track) for demand in demands]
        return self.product(lists, kind, keyword, lambda: node.location)

    def alternatives(self, demand: int, kind: JsonType, track: bool = False) -> Facets:
        """The facets of one schema (even numbers) or its negation (odd), for one type.

        Args:
            track: keep what was evaluated, and with it alternatives that differ in nothing else.
        Raises:
            CycleError: the schema is being worked out already.
            GrammarError: a keyword is malformed, or the cases are too many.
        """
        track = track and demand % 2 == 0
        key = (demand, kind, track)
        known = self._alternatives.get(key)
        if known is not None:
            return known
        node = self.documents.node(demand // 2)
        if key in self._open:
            raise CycleError("the schema refers to itself without a value in between", node.location)
        if len(self._open) > MAX_IN_PLACE_DEPTH:
            raise GrammarError(
                f"more than {MAX_IN_PLACE_DEPTH} schemas one inside the other for one value", node.location
            )
        self.budget.spend(states=1)
        self._open.add(key)
        try:
            facets = self._read(node, kind, demand % 2 == 0, track)
        finally:
            self._open.discard(key)
        if not track:
            facets = self.simplified([facet.without_evaluated() for facet in facets])
        if len(facets) > self.options.max_alternatives:
            self._too_many("the schema", node.location, self.options.max_alternatives)
        self._alternatives[key] = facets
        return facets

    def _read(self, node: Node, kind: JsonType, positive: bool, track: bool) -> Facets:
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
        later: list[Afterthought] = []
        inner_track = track
        for each in self._afterthoughts:
            if each.keyword in groups:
                del groups[each.keyword]
                later.append(each)
                inner_track = inner_track or each.tracks
        lists: list[Facets] = []
        for entry in groups.values():
            if entry.spread is None:
                lists.append(entry.handler(self, node, kind, True, inner_track))
            else:
                lists.extend(entry.spread(self, node, kind, inner_track))
            if not all(lists):
                return ()
        facets = self.product(lists, kind, "allOf", lambda: node.location)
        for each in later:
            facets = each.apply(self, node, facets, kind, inner_track)
        return facets

    def _read_choice(self, node: Node, kind: JsonType, positive: bool) -> Facets:
        conjs = self.choices[node.index]
        if positive:
            return [facet for conj in conjs for facet in self.conjunction(conj, kind)]
        lists = [[facet for demand in conj for facet in self.alternatives(demand ^ 1, kind)] for conj in conjs]
        return self.product(lists, kind, "not", lambda: node.location)

    def rule(self, name: str, conj: Conj) -> PropertyRule:
        """The rule that a property meets a conjunction where it is there; always the same object for the same demand."""
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
        """Every way to meet one facet of each list.

        Raises:
            TooManyCasesError: more than `limit`, `options.max_alternatives` without one; names the keyword and the place.
        """
        limit = limit or self.options.max_alternatives
        if all(len(facets) == 1 for facets in lists):
            return self._met([facets[0] for facets in lists], kind)
        result: Facets = (TOPS[kind],)
        for facets in sorted(lists, key=len):  # the bound is on what is made, so the short lists go first
            if len(facets) == 1 and facets[0] is TOPS[kind]:
                continue
            if len(result) == 1 and result[0] is TOPS[kind]:
                result = facets
                continue
            if len(result) * len(facets) > 4 * limit:
                self._too_many(keyword, location(), limit)
            made: dict[Facet, None] = {}
            for a in result:
                self.budget.spend(states=len(facets) >> 3)
                for b in facets:
                    both = meet(a, b)
                    both = both and self.texts.narrowed(both)
                    if both is not None:
                        made[both] = None
            result = without_included(tuple(made))
            if len(result) > MANY_CASES:
                result = [facet for facet in result if not self._contradicts(self, facet)]
            if len(result) > limit:
                self._too_many(keyword, location(), limit)
        return result

    def _met(self, facets: Sequence[Facet], kind: JsonType) -> Facets:
        """All of some facets."""
        met = TOPS[kind]
        for facet in facets:
            if met is TOPS[kind] or facet is TOPS[kind]:
                met = facet if met is TOPS[kind] else met
                continue
            self.budget.spend()
            both = meet(met, facet)
            both = both and self.texts.narrowed(both)
            if both is None:
                return ()
            met = both
        return (met,)

    def _too_many(self, keyword: str, pointer: str, limit: int) -> None:
        raise TooManyCasesError(f"{keyword} needs more than {limit} cases", pointer)

    def simplified(self, facets: Facets) -> Facets:
        """The same union without repetitions; one facet that allows everything stands for all."""
        if len(facets) < 2:
            return tuple(facets)
        marked: Facet | None = None
        for facet in facets:
            if facet.is_top:
                return (TOPS[facet.kind],)
            if facet.marks and replace(facet, marks=frozenset()).is_top:
                marked = facet if marked is None else replace(facet, marks=marked.marks | facet.marks)
        return (marked,) if marked else tuple(without_included(with_lists_joined(tuple(dict.fromkeys(facets)))))

    def unenforced(self, kind: JsonType, node: Node, keyword: str, reason: str) -> Facets:
        """Everything of a type, with a mark that a keyword is not enforced."""
        return (replace(TOPS[kind], marks=frozenset({Mark(node.location, keyword, reason)})),)
