"""From a JSON Schema to shapes: the way through the parts, and the worklist of places.

`compile_shapes` is the whole interface. Each place of the value is a conjunction of demands; its shape is made from the facets of the
six types, and the conjunctions of its children are put on the worklist, each once, so recursion ends and depth costs no stack.
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
from rtlang_grammars.schema.normal_form.facets import Conj, Facet, Mark, NumberBody, StringBody
from rtlang_grammars.schema.normal_form.literal_exclusion import without_excluded
from rtlang_grammars.schema.normal_form.membership import facet_accepts
from rtlang_grammars.schema.normal_form.texts import Texts
from rtlang_grammars.schema.reading.documents import Documents
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Notes, Report
from rtlang_grammars.schema.reading.values import Json, JsonType, json_key
from rtlang_grammars.schema.shape_graph.array_shapes import array_shapes, whole_numbers
from rtlang_grammars.schema.shape_graph.object_shapes import object_shapes
from rtlang_grammars.schema.shape_graph.pruning import pruned
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
_AFTERTHOUGHTS = (*applicators.AFTERTHOUGHTS, *containers.AFTERTHOUGHTS)


def compile_shapes(schema: Any, *, options: SchemaOptions | None = None, budget: Budget | None = None) -> ShapeGraph:
    """Work out what a schema allows.

    Args:
        schema: a schema as parsed JSON (numbers may be `Decimal`); it is not changed, and not copied.
    Returns:
        Shapes that accept every valid value, and no other unless the report says that a keyword must be checked.
    Raises:
        GrammarError: the schema is malformed, refers to what is not there, allows nothing, or is more than the budget
            or the options allow; with a JSON pointer.
    """
    budget, options = budget or Budget(), options or SchemaOptions()
    try:
        return _compile(schema, options, budget)
    except RecursionError:  # what recurses is bounded, but not what the caller has already used of the stack
        raise GrammarError("nested too deeply for the stack that is left", "#") from None


def _compile(schema: Json, options: SchemaOptions, budget: Budget) -> ShapeGraph:
    documents = Documents(schema, budget, options.default_dialect, options.lenient)
    report = Notes()
    algebra = Algebra(documents, Texts(budget), options, report, budget, _KEYWORDS, _AFTERTHOUGHTS, is_empty)
    shapes = _Places(algebra).compile(algebra.demand(documents.root_node()))
    root, shapes = pruned(shapes, budget)
    return ShapeGraph(root, tuple(shapes), Report(documents.root.dialect.name, report))


class _Places:
    """The worklist. Owned by one compile."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._index: dict[Conj, int] = {}
        self._waiting: list[Conj] = []

    def compile(self, root: Conj) -> list[Shape]:
        """All shapes that can be reached, the root first; some may be empty."""
        self._refer(root)
        shapes = []
        for conj in self._waiting:  # grows while it is walked
            self._algebra.budget.spend(states=1)
            shapes.append(Shape(self._alternatives(conj), self._algebra.spot(conj)))
        return shapes

    def _refer(self, conj: Conj) -> int:
        index = self._index.get(conj)
        if index is None:
            index = self._index[conj] = len(self._waiting)
            self._waiting.append(conj)
        return index

    def _alternatives(self, conj: Conj) -> tuple[Alternative, ...]:
        algebra = self._algebra
        literals: dict[Hashable, Json] = {}
        made: list[Alternative] = []
        for kind in algebra.kinds(conj):
            for facet in algebra.conjunction(conj, kind):
                if kind is JsonType.NUMBER and facet.literals is None:
                    assert isinstance(facet.body, NumberBody)
                    facet = self._with_supported_steps(facet, facet.body, conj)
                if facet.literals is not None and kind is not JsonType.BOOLEAN:
                    left = self._left_of_list(facet)
                    if kind is JsonType.NULL and left:
                        made.append(NullShape())
                    else:
                        literals.update(left)
                    continue
                for shape in self._of_facet(facet, conj):
                    if isinstance(shape, LiteralShape):
                        literals.update((json_key(value), value) for value in shape.values)
                    else:
                        made.append(shape)
        if len(made) > 1:
            made = list(dict.fromkeys(made))
        if literals:
            made.append(LiteralShape(tuple(literals.values())))
        return tuple(made)

    def _with_supported_steps(self, facet: Facet, body: NumberBody, conj: Conj) -> Facet:
        """The same numbers, listed where that is how their steps can be enforced; else more, with a mark."""
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
        reason = "the step has too many digits, zeros at its end not counted"
        mark = Mark(self._algebra.location(conj), "multipleOf", reason)
        return replace(facet, body=body, marks=facet.marks | {mark})

    def _left_of_list(self, facet: Facet) -> dict[Hashable, Json]:
        assert facet.literals is not None
        left = {key: value for key, value in facet.literals.items() if facet_accepts(self._algebra, facet, value)}
        if left:
            self._algebra.report_marks(facet.marks)
        return left

    def _of_facet(self, facet: Facet, conj: Conj) -> Iterator[Alternative]:
        body = facet.body
        if facet.kind is JsonType.OBJECT or facet.kind is JsonType.ARRAY:
            for each in without_excluded(self._algebra, facet) if facet.excluded else (facet,):
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
    """An interval cut at the numbers that may not be."""
    numbers = sorted(key[1] for key in excluded if isinstance(key, tuple) and body.accepts(key[1]))
    bounds = [body.minimum, *numbers, body.maximum]
    for index, (low, high) in enumerate(pairwise(bounds)):
        piece = replace(
            body,
            minimum=low,
            maximum=high,
            exclusive_minimum=body.exclusive_minimum if index == 0 else True,
            exclusive_maximum=body.exclusive_maximum if index == len(numbers) else True,
        )
        if not piece.is_empty():
            yield _number(piece)


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
