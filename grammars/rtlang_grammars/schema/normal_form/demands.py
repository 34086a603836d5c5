"""Demands: schemas as numbers, the same number for schemas that ask the same.

A demand is a node and a sign. References that stand alone are followed first, schemas that ask nothing are `true`, and small schemas
without subschemas are one demand wherever they are written, so that a thousand `{"type": "string"}` are worked out once.
Whatever is looked at here is entered in the report.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from rtlang_grammars.schema.normal_form.facets import FALSE, TRUE, Conj, Mark
from rtlang_grammars.schema.reading.documents import Documents, Node
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus, Notes, ReadingRule, Spot
from rtlang_grammars.schema.reading.values import Json, JsonType, type_of
from rtlang_grammars.spec.errors import GrammarError

_LEAF_KEYWORDS = frozenset(
    {"type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"}
    | {"exclusiveMinimum", "exclusiveMaximum", "required", "minItems", "maxItems", "minProperties", "maxProperties"}
)
_MAX_LEAF_LIST = 64
_EVERY_KIND = (1 << len(JsonType)) - 1
_KINDS = tuple(tuple(kind for kind in JsonType if mask >> kind & 1) for mask in range(_EVERY_KIND + 1))
_TYPE_BITS = {
    "null": 1 << JsonType.NULL,
    "boolean": 1 << JsonType.BOOLEAN,
    "number": 1 << JsonType.NUMBER,
    "integer": 1 << JsonType.NUMBER,
    "string": 1 << JsonType.STRING,
    "array": 1 << JsonType.ARRAY,
    "object": 1 << JsonType.OBJECT,
}


class CycleError(GrammarError):
    """A schema was asked for while it is being worked out."""


class Demands:
    """The demands of one compile. Owned by it.

    Attributes:
        documents: where nodes come from.
        choices: nodes that stand for `any of these conjunctions`, which no document holds.
    """

    def __init__(self, documents: Documents, options: SchemaOptions, report: Notes) -> None:
        self.documents = documents
        self.choices: dict[int, tuple[Conj, ...]] = {}
        self._options, self._report = options, report
        self._of_node: dict[int, Conj] = {}
        self._conjs: dict[int, Conj] = {0: TRUE}
        self._readings: dict[tuple[str, bool], ReadingRule] = {}
        self._leaves: dict[Hashable, Node] = {}
        self._masks: dict[int, int] = {}

    def demand(self, node: Node, positive: bool = True) -> Conj:
        """The demand that a value meets a schema, or that it does not.

        Raises:
            CycleError: a chain of references ends where it began.
        """
        conj = self._of_node.get(node.index)
        if conj is None:
            conj = self._of_node[node.index] = self._conj(self._first_demand(node))
        return conj if positive else self._conj(next(iter(conj), 0) ^ 1)

    def _conj(self, demand: int) -> Conj:
        """One demand alone; always the same object."""
        conj = self._conjs.get(demand)
        if conj is None:
            conj = self._conjs[demand] = frozenset((demand,))
        return conj

    def _first_demand(self, node: Node) -> int:
        seen: set[int] = set()
        while isinstance(node.schema, dict) and "$ref" in node.schema and self._is_reference(node):
            self._record(node)
            if node.index in seen:
                raise CycleError("the reference leads back to itself without a value in between", node.location)
            seen.add(node.index)
            node = self.documents.resolve(node, "$ref")
        self._record(node)
        schema = node.schema
        if isinstance(schema, dict) and node.index not in self.choices:
            known = node.resource.dialect.keywords
            asked = [keyword for keyword in schema if keyword in known]
            if not asked:
                return 0
            if _LEAF_KEYWORDS.issuperset(asked):
                node = self._leaf(node, asked)
        elif schema is True or schema is False:
            return 0 if schema else 1
        return 2 * node.index

    def _leaf(self, node: Node, asked: list[str]) -> Node:
        """The first node that asks the same as one without subschemas."""
        assert isinstance(node.schema, dict)
        key: list[Hashable] = [node.resource.dialect.name]
        for keyword in asked:
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
            self._report.same(first.spot, node.spot)
        return first

    def _is_reference(self, node: Node) -> bool:
        """Whether a schema with `$ref` asks nothing else."""
        assert isinstance(node.schema, dict)
        known = node.dialect.keywords
        return node.dialect.ref_hides_siblings or all(key == "$ref" or key not in known for key in node.schema)

    def negated(self, conj: Conj) -> Conj | None:
        """The negation of a conjunction of at most one demand; None for more."""
        if not conj:
            return FALSE
        if len(conj) == 1:
            (demand,) = conj
            return TRUE if demand == 1 else frozenset({demand ^ 1})
        return None

    def any_of(self, conjs: Iterable[Conj], like: Node) -> Conj:
        """A demand that is met where any of some conjunctions is."""
        unique = tuple(dict.fromkeys(conj for conj in conjs if conj != FALSE))
        if len(unique) == 1 or TRUE in unique:
            return TRUE if TRUE in unique else unique[0]
        if not unique:
            return FALSE
        node = self.documents.synthetic({}, like)
        self.choices[node.index] = unique
        return frozenset({2 * node.index})

    def location(self, conj: Conj) -> str:
        """Where one of the demands was written."""
        return self.documents.node(max(conj, default=0) // 2).location

    def spot(self, conj: Conj) -> Spot:
        """The same, not yet written out."""
        return self.documents.node(max(conj, default=0) // 2).spot

    def kinds(self, conj: Conj) -> tuple[JsonType, ...]:
        """The types that are not plainly ruled out."""
        mask = _EVERY_KIND
        for demand in conj:
            known = self._masks.get(demand)
            if known is None:
                known = self._masks[demand] = self._mask(demand)
            mask &= known
        return _KINDS[mask]

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

    def _record(self, node: Node) -> None:
        if node.is_synthetic or not isinstance(node.schema, dict):
            return
        dialect = node.resource.dialect
        only_ref = dialect.ref_hides_siblings and "$ref" in node.schema
        rule = self._readings.get((dialect.name, only_ref))
        if rule is None:
            rule = ReadingRule(dialect.name, self._options.lenient, only_ref)
            self._readings[dialect.name, only_ref] = rule
        self._report.met(node.spot, tuple(node.schema), dialect.keywords, rule)

    def ignore(self, node: Node, keyword: str, reason: str) -> None:
        """Report that a keyword asserts nothing here."""
        self._report.add(node.location, keyword, KeywordStatus.IGNORED, reason)

    def remark(self, node: Node, keyword: str, remark: str) -> None:
        """Report that a keyword is enforced, with something to be known about it."""
        self._report.add(node.location, keyword, KeywordStatus.ENFORCED, remark)

    def report_marks(self, marks: Iterable[Mark]) -> None:
        """Report keywords that shapes do not enforce."""
        for mark in marks:
            self._report.add(mark.pointer, mark.keyword, KeywordStatus.CHECKED, mark.reason)
