"""Demands: schemas and their negations, interned as integers.

A *demand* is a node with a sign: `2 * node.index` for its schema, one more for the negation. A schema that consists of a reference has
the demand of the target, a schema without assertions or applicators that of `true`, and equal small schemas without subschemas share
one demand, so that a thousand `{"type": "string"}` are reduced once. Unions of the same demands share one, too: a recursive union of
models stands in a field of every model. Every schema interned here is recorded in the report.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from rtlang_grammars.schema.normal_form.facets import FALSE, TRUE, Conj, FacetMark
from rtlang_grammars.schema.reading.dialects import PATTERN_DIALECT
from rtlang_grammars.schema.reading.documents import Documents, SchemaNode
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus, LazyLocation, ReadingRule, ReportBuilder
from rtlang_grammars.schema.reading.values import TYPE_NAMES, Json, JsonType, type_of
from rtlang_grammars.spec.errors import GrammarError

_LEAF_KEYWORDS = frozenset(
    {"type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"}
    | {"exclusiveMinimum", "exclusiveMaximum", "required", "minItems", "maxItems", "minProperties", "maxProperties"}
    | {PATTERN_DIALECT}
)
_MAX_LEAF_LIST = 64
_UNIONS = ({"anyOf"}, {"oneOf"})
_EVERY_KIND = (1 << len(JsonType)) - 1
_KINDS = tuple(tuple(kind for kind in JsonType if mask >> kind & 1) for mask in range(_EVERY_KIND + 1))
_TYPE_BITS = {name: 1 << kind for name, kind in TYPE_NAMES.items()}


class CycleError(GrammarError):
    """A schema depends on itself for the same instance location."""


class Demands:
    """Interns the demands of one compile. Owned by that compile.

    Attributes:
        documents: the documents that hold the nodes.
        choices: by node index, the conjunctions of which a synthetic node is the disjunction.
    """

    def __init__(self, documents: Documents, options: SchemaOptions, report: ReportBuilder) -> None:
        self.documents = documents
        self.choices: dict[int, tuple[Conj, ...]] = {}
        self._options, self._report = options, report
        self._of_node: dict[int, Conj] = {}
        self._conjs: dict[int, Conj] = {0: TRUE}
        self._readings: dict[tuple[str, bool], ReadingRule] = {}
        self._leaves: dict[Hashable, SchemaNode] = {}
        self._masks: dict[int, int] = {}
        self._open_unions: set[int] = set()

    def demand(self, node: SchemaNode, positive: bool = True) -> Conj:
        """Return the demand for the schema of a node, or for its negation, as a conjunction of at most one demand.

        Raises:
            CycleError: a chain of references leads back to its start.
            GrammarError: a reference cannot be resolved.
        """
        conj = self._of_node.get(node.index)
        if conj is None:
            conj = self._of_node[node.index] = self._conj(self._first_demand(node))
        return conj if positive else self._conj(next(iter(conj), 0) ^ 1)

    def _conj(self, demand: int) -> Conj:
        """Return the conjunction of one demand; equal demands give the same object, which keeps comparisons fast."""
        conj = self._conjs.get(demand)
        if conj is None:
            conj = self._conjs[demand] = frozenset((demand,))
        return conj

    def _first_demand(self, node: SchemaNode) -> int:
        seen: set[int] = set()
        while isinstance(node.schema, dict) and "$ref" in node.schema and self._is_reference(node):
            self._record(node)
            if node.index in seen:
                raise CycleError(
                    f"$ref = {node.schema['$ref']!r}: the reference leads back to itself; a recursive schema must go through "
                    "properties or items",
                    node.location,
                )
            seen.add(node.index)
            node = self.documents.resolve(node, "$ref")
        self._record(node)
        schema = node.schema
        if isinstance(schema, dict) and node.index not in self.choices:
            known = node.resource.dialect.keywords
            keywords = [keyword for keyword in schema if keyword in known]
            if not keywords:
                return 0
            if _LEAF_KEYWORDS.issuperset(keywords):
                node = self._leaf(node, keywords)
            elif len(keywords) == 1 and set(keywords) in _UNIONS and node.index not in self._open_unions:
                node = self._union(node, keywords[0])
        elif schema is True or schema is False:
            return 0 if schema else 1
        return 2 * node.index

    def _leaf(self, node: SchemaNode, keywords: list[str]) -> SchemaNode:
        """Return the first node with the same keywords and values as a node without subschemas."""
        assert isinstance(node.schema, dict)
        key: list[Hashable] = [node.resource.dialect.name]
        for keyword in keywords:
            value = node.schema[keyword]
            if isinstance(value, str):
                key.append((keyword, value))
            elif isinstance(value, list):
                if len(value) > _MAX_LEAF_LIST or not all(isinstance(item, str) for item in value):
                    return node
                key.append((keyword, tuple(value)))
            elif isinstance(value, dict):
                return node
            else:
                key.append((keyword, type(value), value))
        first = self._leaves.setdefault(tuple(key), node)
        if first is not node:
            self._report.add_alias(first.lazy_location, node.lazy_location)
        return first

    def _union(self, node: SchemaNode, keyword: str) -> SchemaNode:
        """Return the first node that is a union of the same demands as a node whose only keyword is `anyOf` or `oneOf`."""
        assert isinstance(node.schema, dict)
        branches = node.schema[keyword]
        if not isinstance(branches, list):
            return node
        self._open_unions.add(node.index)  # a branch may refer to the union
        try:
            conjs = tuple([self.demand(self.documents.child(node, keyword, index)) for index in range(len(branches))])
        finally:
            self._open_unions.discard(node.index)
        first = self._leaves.setdefault((node.resource.dialect.name, keyword, conjs), node)
        if first is not node:
            self._report.add_alias(first.lazy_location, node.lazy_location)
        return first

    def _is_reference(self, node: SchemaNode) -> bool:
        """Whether `$ref` is the only keyword with a meaning in a schema that has it."""
        assert isinstance(node.schema, dict)
        known = node.dialect.keywords
        return node.dialect.ref_hides_siblings or all(key == "$ref" or key not in known for key in node.schema)

    def negated(self, conj: Conj) -> Conj | None:
        """Return the negation of a conjunction of at most one demand; None for more."""
        if not conj:
            return FALSE
        if len(conj) == 1:
            (demand,) = conj
            return TRUE if demand == 1 else frozenset({demand ^ 1})
        return None

    def any_of(self, conjs: Iterable[Conj], like: SchemaNode) -> Conj:
        """Return a demand that is satisfied if and only if any of the conjunctions is; `like` gives its location and dialect."""
        unique = tuple(dict.fromkeys(conj for conj in conjs if conj != FALSE))
        if len(unique) == 1 or TRUE in unique:
            return TRUE if TRUE in unique else unique[0]
        if not unique:
            return FALSE
        node = self.documents.synthetic({}, like)
        self.choices[node.index] = unique
        return frozenset({2 * node.index})

    def location(self, conj: Conj) -> str:
        """Return the location of the schema of one of the demands, for messages."""
        return self.documents.node(max(conj, default=0) // 2).location

    def lazy_location(self, conj: Conj) -> LazyLocation:
        """Return what `location` returns, not yet formatted."""
        return self.documents.node(max(conj, default=0) // 2).lazy_location

    def possible_types(self, conj: Conj) -> tuple[JsonType, ...]:
        """Return the JSON types that `type`, `enum` and `const` of the demanded schemas leave; the others need not be reduced."""
        mask = _EVERY_KIND
        for demand in conj:
            mask &= self.type_mask(demand)
        return _KINDS[mask]

    def type_mask(self, demand: int) -> int:
        """Return the JSON types of `possible_types` for one demand, as bits."""
        known = self._masks.get(demand)
        if known is None:
            known = self._masks[demand] = self._mask(demand)
        return known

    def _mask(self, demand: int) -> int:
        node = self.documents.node(demand // 2)
        schema = node.schema
        if demand % 2 or not isinstance(schema, dict) or (node.dialect.ref_hides_siblings and "$ref" in schema):
            return 0 if schema is False or (schema is True and demand % 2) else _EVERY_KIND
        mask, keywords = _EVERY_KIND, node.dialect.keywords
        if "type" in schema and "type" in keywords:
            names = schema["type"]
            names = names if isinstance(names, list) else [names]
            bits = [_TYPE_BITS.get(name, 0) for name in names if isinstance(name, str)]
            if len(bits) == len(names) and all(bits):
                mask = sum(set(bits))
        values: Json = schema.get("enum") if "enum" in keywords else None
        if "const" in schema and "const" in keywords:
            values = [schema["const"]]
        if isinstance(values, list):
            mask &= sum({1 << type_of(value) for value in values})
        return mask

    # The report

    def _record(self, node: SchemaNode) -> None:
        if node.is_synthetic or not isinstance(node.schema, dict):
            return
        dialect = node.resource.dialect
        only_ref = dialect.ref_hides_siblings and "$ref" in node.schema
        rule = self._readings.get((dialect.name, only_ref))
        if rule is None:
            rule = ReadingRule(dialect.name, self._options.lenient, only_ref)
            self._readings[dialect.name, only_ref] = rule
        self._report.add_schema(node.lazy_location, tuple(node.schema), dialect.keywords, rule)

    def ignore(self, node: SchemaNode, keyword: str, reason: str) -> None:
        """Report that a keyword of a node is ignored."""
        self._report.add(node.location, keyword, KeywordStatus.IGNORED, reason)

    def remark(self, node: SchemaNode, keyword: str, remark: str) -> None:
        """Report that a keyword of a node is enforced, with a remark on valid instances that it excludes."""
        self._report.add(node.location, keyword, KeywordStatus.ENFORCED, remark)

    def report_marks(self, marks: Iterable[FacetMark]) -> None:
        """Report the keywords that marks name as `checked`."""
        for mark in marks:
            self._report.add(mark.pointer, mark.keyword, KeywordStatus.CHECKED, mark.reason)
