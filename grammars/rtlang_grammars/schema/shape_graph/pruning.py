"""Prune a graph of shapes: remove uninhabited alternatives and merge equal shapes.

A shape is inhabited if it accepts a finite value. This is a least fixed point over the graph, so that an object with a required property
of its own shape is uninhabited. An item or optional property of an uninhabited shape must be absent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from rtlang_grammars.regular.language import Language
from rtlang_grammars.schema.shape_graph.shapes import (
    Alternative,
    ArrayShape,
    BooleanShape,
    ItemCase,
    KeyClass,
    LiteralShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_COUNT_STATES = 4096  # combinations of `contains` counts up to which their satisfiability is decided exactly


def prune(shapes: Sequence[Shape], budget: Budget) -> tuple[int, list[Shape]]:
    """Return the inhabited, reachable part of a graph, without duplicate shapes.

    Args:
        shapes: the graph; its root is shape 0.
        budget: charged for each shape.
    Returns:
        Index of the root, and the remaining shapes.
    Raises:
        GrammarError: the root is uninhabited.
    """
    inhabited = _inhabited(shapes, budget)
    if not inhabited[0]:
        raise GrammarError("nothing satisfies this schema", shapes[0].pointer)
    same = range(len(shapes))
    retained: list[Sequence[Alternative]] = []
    all_inhabited = all(inhabited)
    for shape in shapes:
        if all(isinstance(each, _ALWAYS_INHABITED) for each in shape.alternatives):
            left: Sequence[Alternative] = shape.alternatives
        else:
            left = [
                each if isinstance(each, _ALWAYS_INHABITED) else _drop_uninhabited(each, inhabited, all_inhabited)
                for each in shape.alternatives
                if _is_inhabited(each, inhabited, budget)
            ]
        retained.append(list({_key(each, same): each for each in left}.values()) if len(left) > 1 else left)
    representative = _merge_equal(retained, budget)
    return _reachable(shapes, retained, representative, budget)


def _inhabited(shapes: Sequence[Shape], budget: Budget) -> list[bool]:
    inhabited = [False] * len(shapes)
    changed = True
    while changed:
        changed = False
        for index in range(
            len(shapes) - 1, -1, -1
        ):  # most shapes follow those that refer to them, so one pass finds most of them
            budget.spend()
            if not inhabited[index] and any(
                _is_inhabited(each, inhabited, budget) for each in shapes[index].alternatives
            ):
                inhabited[index] = changed = True
    return inhabited


_ALWAYS_INHABITED = (NullShape, BooleanShape, NumberShape, StringShape, LiteralShape)


def _is_inhabited(shape: Alternative, inhabited: Sequence[bool], budget: Budget) -> bool:
    if isinstance(shape, ObjectShape):
        return _object_is_inhabited(shape, inhabited, budget)
    if isinstance(shape, ArrayShape):
        max_length = _max_length(shape, inhabited)
        return (max_length is None or max_length >= shape.min_items) and (
            not shape.contains or _counts_are_satisfiable(shape, inhabited, max_length)
        )
    return True


def _object_is_inhabited(shape: ObjectShape, inhabited: Sequence[bool], budget: Budget) -> bool:
    if not shape.required and not shape.min_properties:
        return shape.max_properties is None or shape.max_properties >= 0
    possible = {each.name for each in shape.properties if each.shape is not None and inhabited[each.shape]}
    if not shape.required <= possible:
        return False
    if shape.max_properties is not None and shape.max_properties < max(shape.min_properties, len(shape.required)):
        return False
    missing = shape.min_properties - len(possible)
    if missing <= 0:
        return True
    declared = {each.name for each in shape.properties}
    for names in _other_names(shape, inhabited):
        words = names.finite_words(shape.min_properties + len(declared), budget)
        missing = 0 if words is None else missing - len(set(words) - declared)
        if missing <= 0:
            return True
    return False


def _other_names(shape: ObjectShape, inhabited: Sequence[bool]) -> Iterator[Language]:
    """Yield the languages of undeclared names whose values have an inhabited shape."""
    if shape.additional is not None and inhabited[shape.additional]:
        others = Language.any_text()
        yield (
            others.minus(Language.nothing().union(*[each.names for each in shape.classes])) if shape.classes else others
        )
    for each in shape.classes:
        if each.shape is not None and inhabited[each.shape]:
            yield each.names


def _max_length(shape: ArrayShape, inhabited: Sequence[bool]) -> int | None:
    """Return the largest number of items that the shapes of the items allow; None if it is unbounded."""
    for index, item in enumerate(shape.prefix):
        if not inhabited[item]:
            return index if shape.max_items is None else min(index, shape.max_items)
    if shape.items is not None and not inhabited[shape.items]:
        return len(shape.prefix) if shape.max_items is None else min(len(shape.prefix), shape.max_items)
    return shape.max_items


def _counts_are_satisfiable(shape: ArrayShape, inhabited: Sequence[bool], max_length: int | None) -> bool:
    """Whether some array of at most `max_length` items has every `contains` count within its bounds.

    Breadth-first search over the vectors of counts; assumes True if there are more than `MAX_COUNT_STATES` and each minimum fits.
    """
    # a count is tracked up to its upper bound, or up to its lower bound if it has no upper one
    tops = [each.min_count if each.max_count is None else each.max_count for each in shape.contains]
    size = 1
    for top in tops:
        size *= top + 1
    if size > MAX_COUNT_STATES:
        return all(max_length is None or each.min_count <= max_length for each in shape.contains)
    reached = {(0,) * len(tops)}
    length = 0
    seen: set[frozenset[tuple[int, ...]]] = set()
    while True:
        if length >= shape.min_items and any(
            all(count >= each.min_count for count, each in zip(counts, shape.contains, strict=True))
            for counts in reached
        ):
            return True
        if not reached or (max_length is not None and length >= max_length):
            return False
        cases = shape.prefix_cases[length] if length < len(shape.prefix) else shape.items_cases
        masks = {case.counts for case in cases if inhabited[case.shape]}
        reached = {
            after
            for counts, mask in product(reached, masks)
            if (after := _count_item(counts, mask, shape, tops)) is not None
        }
        if length >= len(shape.prefix):
            if frozenset(reached) in seen:  # further items only repeat the same sets of counts
                length = max(length, shape.min_items)
                return any(
                    all(count >= each.min_count for count, each in zip(counts, shape.contains, strict=True))
                    for state in seen
                    for counts in state
                ) and (max_length is None or max_length >= shape.min_items)
            seen.add(frozenset(reached))
        length += 1


def _count_item(counts: tuple[int, ...], mask: int, shape: ArrayShape, tops: Sequence[int]) -> tuple[int, ...] | None:
    after = list(counts)
    for bit, each in enumerate(shape.contains):
        if mask >> bit & 1:
            if each.max_count is not None and after[bit] >= each.max_count:
                return None
            after[bit] = min(after[bit] + 1, tops[bit])
    return tuple(after)


def _drop_uninhabited(shape: Alternative, inhabited: Sequence[bool], all_inhabited: bool) -> Alternative:
    """Return an equivalent alternative without references to uninhabited shapes and without redundant bounds."""
    if isinstance(shape, ObjectShape):
        if all_inhabited and shape.max_properties is None:
            closed = shape.additional is None and all(each.shape is None for each in shape.classes)
            if not closed or (not shape.classes and all(each.shape is not None for each in shape.properties)):
                return shape
        additional = shape.additional if shape.additional is not None and inhabited[shape.additional] else None
        classes = tuple(
            each if each.shape is None or inhabited[each.shape] else KeyClass(each.names, None)
            for each in shape.classes
        )
        if additional is None:
            classes = tuple(each for each in classes if each.shape is not None)
        properties = tuple(
            each if each.shape is None or inhabited[each.shape] else Property(each.name, None)
            for each in shape.properties
        )
        maximum = shape.max_properties
        if additional is None and not classes:
            properties = tuple(each for each in properties if each.shape is not None)
            if maximum is not None and maximum >= len(properties):
                maximum = None
        return replace(shape, properties=properties, classes=classes, additional=additional, max_properties=maximum)
    if isinstance(shape, ArrayShape):
        max_length = _max_length(shape, inhabited)
        if max_length is None and not shape.contains:
            return shape
        prefix = shape.prefix if max_length is None else shape.prefix[:max_length]
        keep = max_length is None or max_length > len(prefix)
        return replace(
            shape,
            prefix=prefix,
            items=shape.items if keep else None,
            max_items=max_length,
            prefix_cases=tuple(_inhabited_cases(cases, inhabited) for cases in shape.prefix_cases[: len(prefix)]),
            items_cases=_inhabited_cases(shape.items_cases, inhabited) if keep else (),
        )
    return shape


def _inhabited_cases(cases: Sequence[ItemCase], inhabited: Sequence[bool]) -> tuple[ItemCase, ...]:
    return tuple(case for case in cases if inhabited[case.shape])


def _renumber(shape: Alternative, name: Callable[[int], int]) -> Alternative:
    """Return the alternative with each reference replaced by `name(reference)`."""
    if isinstance(shape, ObjectShape):
        return ObjectShape(
            tuple([each if each.shape is None else Property(each.name, name(each.shape)) for each in shape.properties]),
            tuple([each if each.shape is None else KeyClass(each.names, name(each.shape)) for each in shape.classes]),
            None if shape.additional is None else name(shape.additional),
            shape.required,
            shape.min_properties,
            shape.max_properties,
            shape.unordered,
        )
    if isinstance(shape, ArrayShape):
        return ArrayShape(
            tuple(map(name, shape.prefix)),
            None if shape.items is None else name(shape.items),
            shape.min_items,
            shape.max_items,
            shape.contains,
            tuple([tuple(ItemCase(name(case.shape), case.counts) for case in cases) for cases in shape.prefix_cases]),
            tuple([ItemCase(name(case.shape), case.counts) for case in shape.items_cases]),
            shape.unique,
            shape.distinct,
        )
    return shape


def _key(shape: Alternative, name: Sequence[int]) -> Hashable:
    """Return a key that structurally equal alternatives share, with each reference replaced by `name[reference]`."""
    if isinstance(shape, LiteralShape):
        return ("listed", repr(shape.values))  # not by value: the numbers 1 and 1.0 are written differently
    if isinstance(shape, ObjectShape):
        return (
            tuple([(each.name, each.shape if each.shape is None else name[each.shape]) for each in shape.properties]),
            tuple([(each.names, each.shape if each.shape is None else name[each.shape]) for each in shape.classes]),
            shape.additional if shape.additional is None else name[shape.additional],
            shape.required,
            shape.min_properties,
            shape.max_properties,
            shape.unordered,
        )
    return _renumber(shape, name.__getitem__) if isinstance(shape, ArrayShape) else shape


def _merge_equal(retained: Sequence[Sequence[Alternative]], budget: Budget) -> list[int]:
    """Return for each shape the index of the representative of its structurally equal shapes.

    Later shapes come first, so that shapes that refer to merged ones become equal too. Equal cycles are not merged, which costs
    memory but is not wrong.
    """
    name = list(range(len(retained)))
    first: dict[Hashable, int] = {}
    for index in range(len(retained) - 1, -1, -1):
        budget.spend()
        if retained[index]:
            name[index] = first.setdefault(tuple([_key(each, name) for each in retained[index]]), index)
    return name


def _reachable(
    shapes: Sequence[Shape], retained: Sequence[Sequence[Alternative]], representative: Sequence[int], budget: Budget
) -> tuple[int, list[Shape]]:
    order: dict[int, int] = {}
    pending: list[int] = []

    def number(index: int) -> int:
        first = representative[index]
        found = order.get(first)
        if found is None:
            found = order[first] = len(pending)
            pending.append(first)
        return found

    root = number(0)
    made = []
    for index in pending:  # grows during the iteration
        budget.spend()
        alternatives = tuple(
            [each if isinstance(each, _ALWAYS_INHABITED) else _renumber(each, number) for each in retained[index]]
        )
        made.append(Shape(alternatives, shapes[index].origin))
    return root, made
