"""Compile a JSON Schema to a graph of shapes.

`compile_shapes` is the interface of this package. A worklist holds conjunctions of demands: the shape of each is built from the facets of
the six JSON types, and the conjunctions of its subschemas are appended, each once, so that recursive schemas terminate and deep ones need
no stack.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from rtlang_grammars.regular.numeric.numbers import is_supported_step
from rtlang_grammars.schema.keywords import applicators, containers
from rtlang_grammars.schema.keywords.scalars import EVERY_TYPE, NUMBERS, STRINGS
from rtlang_grammars.schema.normal_form.algebra import Algebra, Keyword
from rtlang_grammars.schema.normal_form.emptiness import is_empty
from rtlang_grammars.schema.normal_form.facets import Conj, Facet, FacetMark, NumberBody, StringBody
from rtlang_grammars.schema.normal_form.literal_exclusion import expand_excluded
from rtlang_grammars.schema.normal_form.membership import facet_accepts
from rtlang_grammars.schema.normal_form.texts import StringSet
from rtlang_grammars.schema.reading.documents import Documents
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report, ReportBuilder
from rtlang_grammars.schema.reading.values import Json, JsonType, json_key
from rtlang_grammars.schema.shape_graph.array_shapes import array_shapes, whole_numbers
from rtlang_grammars.schema.shape_graph.object_shapes import object_shapes
from rtlang_grammars.schema.shape_graph.pruning import prune
from rtlang_grammars.schema.shape_graph.shapes import (
    Alternative,
    BooleanShape,
    LiteralShape,
    NullShape,
    NumberShape,
    Shape,
    ShapeGraph,
    StringShape,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_KEYWORDS: dict[JsonType, dict[str, Keyword]] = {
    kind: {**EVERY_TYPE, **own, **applicators.IN_PLACE}
    for kind, own in {
        JsonType.NULL: {},
        JsonType.BOOLEAN: {},
        JsonType.NUMBER: NUMBERS,
        JsonType.STRING: STRINGS,
        JsonType.ARRAY: containers.ARRAYS,
        JsonType.OBJECT: containers.OBJECTS,
    }.items()
}
_FEW_PATTERNS = 4
_DEFERRED_KEYWORDS = (*applicators.DEFERRED_KEYWORDS, *containers.DEFERRED_KEYWORDS)


def compile_shapes(schema: Any, *, options: SchemaOptions | None = None, budget: Budget | None = None) -> ShapeGraph:
    """Compile a schema to shapes.

    Args:
        schema: the schema as parsed JSON (numbers may be `Decimal`); neither changed nor copied.
        options: how to read it; the defaults if None.
        budget: what the compile may cost; a fresh one with default limits if None.
    Returns:
        Shapes that accept every valid instance, and no other unless the report has a keyword as `checked`.
    Raises:
        GrammarError: the schema is malformed, a reference cannot be resolved, no instance is valid, or the budget or a limit of the
            options is exceeded; with the JSON pointer of the schema.
    Source: JSON Schema Core and Validation, drafts 04 to 2020-12.
    """
    budget, options = budget or Budget(), options or SchemaOptions()
    documents = Documents(schema, budget, options.default_dialect, options.lenient)
    report = ReportBuilder()
    algebra = Algebra(documents, StringSet(budget), options, report, budget, _KEYWORDS, _DEFERRED_KEYWORDS, is_empty)
    try:
        shapes = _Worklist(algebra).compile(algebra.demand(documents.root_node()))
    except RecursionError:  # recursion is bounded here, but the caller may have used most of the stack already
        pointer = "#" if algebra.last_read is None else algebra.last_read.location
        raise GrammarError("nested too deeply for the remaining stack", pointer) from None
    root, shapes = prune(shapes, budget)
    return ShapeGraph(root, tuple(shapes), Report(documents.root.dialect.name, report))


class _Worklist:
    """The conjunctions that need a shape. Owned by one compile."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._index: dict[Conj, int] = {}
        self._pending: list[Conj] = []

    def compile(self, root: Conj) -> list[Shape]:
        """Return the shapes of all reachable conjunctions, the root first; some may be unsatisfiable."""
        self._refer(root)
        shapes = []
        for conj in self._pending:  # grows during the iteration
            self._algebra.budget.spend(states=1)
            shapes.append(Shape(self._alternatives(conj), self._algebra.lazy_location(conj)))
        return shapes

    def _refer(self, conj: Conj) -> int:
        index = self._index.get(conj)
        if index is None:
            index = self._index[conj] = len(self._pending)
            self._pending.append(conj)
        return index

    def _alternatives(self, conj: Conj) -> tuple[Alternative, ...]:
        algebra = self._algebra
        literals: dict[Hashable, Json] = {}
        made: list[Alternative] = []
        for kind in algebra.possible_types(conj):
            for facet in algebra.conjunction(conj, kind):
                if kind is JsonType.NUMBER and facet.literals is None:
                    assert isinstance(facet.body, NumberBody)
                    facet = self._support_steps(facet, facet.body, conj)
                if facet.literals is not None and kind is not JsonType.BOOLEAN:
                    valid = self._valid_literals(facet)
                    if kind is JsonType.NULL and valid:
                        made.append(NullShape())
                    else:
                        literals.update(valid)
                    continue
                for shape in self._facet_shapes(facet, conj):
                    if isinstance(shape, LiteralShape):
                        literals.update((json_key(value), value) for value in shape.values)
                    else:
                        made.append(shape)
        if len(made) > 1:
            made = _joined(list(dict.fromkeys(made)))
        if literals:
            made.append(LiteralShape(tuple(literals.values())))
        return tuple(made)

    def _support_steps(self, facet: Facet, body: NumberBody, conj: Conj) -> Facet:
        """Return a facet whose multiples the number automata support: equivalent if few numbers can be listed, else a marked superset."""
        step, others = body.multiple_of, body.not_multiple_of
        if not others and (step is None or step == 1):
            return facet
        if all(map(is_supported_step, (*others, step) if step else others)):
            return facet
        values = whole_numbers(body, self._algebra.options.max_listed)
        if values is not None:
            return replace(facet, literals={json_key(value): value for value in values})
        if step is not None and not is_supported_step(step):
            step = Fraction(1) if step.denominator == 1 else None
        body = replace(body, multiple_of=step, not_multiple_of=frozenset(filter(is_supported_step, others)))
        reason = "the value has too many significant digits"
        mark = FacetMark(self._algebra.location(conj), "multipleOf", reason)
        return replace(facet, body=body, marks=facet.marks | {mark})

    def _valid_literals(self, facet: Facet) -> dict[Hashable, Json]:
        assert facet.literals is not None
        valid = {key: value for key, value in facet.literals.items() if facet_accepts(self._algebra, facet, value)}
        if valid:
            self._algebra.report_marks(facet.marks)
        return valid

    def _facet_shapes(self, facet: Facet, conj: Conj) -> Iterator[Alternative]:
        body = facet.body
        if facet.kind is JsonType.OBJECT or facet.kind is JsonType.ARRAY:
            for each in expand_excluded(self._algebra, facet) if facet.excluded else (facet,):
                if facet.kind is JsonType.OBJECT:
                    yield from object_shapes(self._algebra, each, self._refer, conj)
                else:
                    yield from array_shapes(self._algebra, each, self._refer)
            return
        if is_empty(self._algebra, facet):
            return
        self._algebra.report_marks(facet.marks)
        if facet.kind is JsonType.NULL:
            yield NullShape()
        elif isinstance(body, NumberBody):
            if facet.excluded:
                yield from _intervals(body, facet.excluded)
            elif not body.is_empty():
                yield _number(body)
        elif isinstance(body, StringBody):
            language = self._algebra.texts.body_language(body, facet.excluded)
            yield StringShape(language, body.min_length, body.max_length)
        else:
            values = (False, True) if facet.literals is None else tuple(facet.literals.values())
            yield BooleanShape(tuple(value for value in values if isinstance(value, bool)))


def _intervals(body: NumberBody, excluded: frozenset[Hashable]) -> Iterator[NumberShape]:
    """Yield the open intervals between the excluded numbers of an interval."""
    numbers = sorted(key[1] for key in excluded if isinstance(key, tuple) and body.accepts(key[1]))
    bounds = [body.minimum, *numbers, body.maximum]
    for index, (low, high) in enumerate(pairwise(bounds)):
        interval = replace(
            body,
            minimum=low,
            maximum=high,
            exclusive_minimum=body.exclusive_minimum if index == 0 else True,
            exclusive_maximum=body.exclusive_maximum if index == len(numbers) else True,
        )
        if not interval.is_empty():
            yield _number(interval)


def _joined(made: list[Alternative]) -> list[Alternative]:
    """Return alternatives with one string in place of many that have patterns, whose automata would run beside each other."""
    patterns = [each for each in made if isinstance(each, StringShape) and _has_pattern(each)]
    if len(patterns) <= _FEW_PATTERNS:
        return made
    first, *others = [
        each.language.bounded(each.min_length, each.max_length) if each.min_length or each.max_length else each.language
        for each in patterns
        if each.language is not None
    ]
    joined = StringShape(first.union(*others))
    rest = [each for each in made if each not in patterns]
    return [*rest, joined]


def _has_pattern(shape: StringShape) -> bool:
    return shape.language is not None and not shape.language.is_any_text


def _number(body: NumberBody) -> NumberShape:
    return NumberShape(
        body.minimum,
        body.maximum,
        body.exclusive_minimum,
        body.exclusive_maximum,
        body.multiple_of,
        tuple(sorted(body.not_multiple_of)),
        body.integer_form,
        body.fraction_form,
    )
