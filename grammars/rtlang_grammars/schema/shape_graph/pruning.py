"""Shapes made tidy: what nothing can satisfy is taken out, what is the same becomes one.

A shape is inhabited when a finite value meets it: the least fixed point over the graph, so that `{"a": itself}` with `a` required is
nothing. Where a reference turns out to be nothing, the element or property may simply not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from rtlang_grammars.regular.language import Language
from rtlang_grammars.schema.reading.values import json_key
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

MAX_COUNT_STATES = 4096  # combinations of counted elements that are looked at to see whether a count can be met


def pruned(shapes: Sequence[Shape], budget: Budget) -> tuple[int, list[Shape]]:
    """The inhabited part of a graph whose root is shape 0, each different shape once.

    Returns:
        Index of the root, and the shapes that can be reached from it.
    Raises:
        GrammarError: nothing satisfies the root.
    """
    alive = _inhabited(shapes, budget)
    if not alive[0]:
        raise GrammarError("nothing satisfies this schema", shapes[0].pointer)
    same = range(len(shapes))
    kept: list[Sequence[Alternative]] = []
    all_alive = all(alive)
    for shape in shapes:
        if all(isinstance(each, _ALWAYS_INHABITED) for each in shape.alternatives):
            left: Sequence[Alternative] = shape.alternatives
        else:
            left = [
                each if isinstance(each, _ALWAYS_INHABITED) else _without_dead(each, alive, all_alive)
                for each in shape.alternatives
                if _is_inhabited(each, alive, budget)
            ]
        kept.append(list({_key(each, same): each for each in left}.values()) if len(left) > 1 else left)
    representative = _merged(kept, budget)
    return _reachable(shapes, kept, representative, budget)


def _inhabited(shapes: Sequence[Shape], budget: Budget) -> list[bool]:
    alive = [False] * len(shapes)
    changed = True
    while changed:
        changed = False
        for index in range(len(shapes) - 1, -1, -1):  # children come after their parents: most are known in one pass
            budget.spend()
            if not alive[index] and any(_is_inhabited(each, alive, budget) for each in shapes[index].alternatives):
                alive[index] = changed = True
    return alive


_ALWAYS_INHABITED = (NullShape, BooleanShape, NumberShape, StringShape, LiteralShape)


def _is_inhabited(shape: Alternative, alive: Sequence[bool], budget: Budget) -> bool:
    if isinstance(shape, ObjectShape):
        return _object_is_inhabited(shape, alive, budget)
    if isinstance(shape, ArrayShape):
        room = _room(shape, alive)
        return (room is None or room >= shape.min_items) and (
            not shape.contains or _counts_can_be_met(shape, alive, room)
        )
    return True


def _object_is_inhabited(shape: ObjectShape, alive: Sequence[bool], budget: Budget) -> bool:
    if not shape.required and not shape.min_properties:
        return shape.max_properties is None or shape.max_properties >= 0
    possible = {each.name for each in shape.properties if each.shape is not None and alive[each.shape]}
    if not shape.required <= possible:
        return False
    if shape.max_properties is not None and shape.max_properties < max(shape.min_properties, len(shape.required)):
        return False
    missing = shape.min_properties - len(possible)
    if missing <= 0:
        return True
    declared = {each.name for each in shape.properties}
    for names in _other_names(shape, alive):
        words = names.finite_words(shape.min_properties + len(declared), budget)
        missing = 0 if words is None else missing - len(set(words) - declared)
        if missing <= 0:
            return True
    return False


def _other_names(shape: ObjectShape, alive: Sequence[bool]) -> Iterator[Language]:
    """The names that are not declared, as far as there can be a value for them."""
    if shape.additional is not None and alive[shape.additional]:
        others = Language.any_text()
        yield (
            others.minus(Language.nothing().union(*[each.names for each in shape.classes])) if shape.classes else others
        )
    for each in shape.classes:
        if each.shape is not None and alive[each.shape]:
            yield each.names


def _room(shape: ArrayShape, alive: Sequence[bool]) -> int | None:
    """How many elements there can be; None: any number."""
    for index, item in enumerate(shape.prefix):
        if not alive[item]:
            return index if shape.max_items is None else min(index, shape.max_items)
    if shape.items is not None and not alive[shape.items]:
        return len(shape.prefix) if shape.max_items is None else min(len(shape.prefix), shape.max_items)
    return shape.max_items


def _counts_can_be_met(shape: ArrayShape, alive: Sequence[bool], room: int | None) -> bool:
    """Whether some array of at most `room` elements has every count in its bounds."""
    # a count matters up to its upper bound, or up to its lower one where there is none
    tops = [each.min_count if each.max_count is None else each.max_count for each in shape.contains]
    size = 1
    for top in tops:
        size *= top + 1
    if size > MAX_COUNT_STATES:
        return all(room is None or each.min_count <= room for each in shape.contains)
    reached = {(0,) * len(tops)}
    length = 0
    seen: set[frozenset[tuple[int, ...]]] = set()
    while True:
        if length >= shape.min_items and any(
            all(count >= each.min_count for count, each in zip(counts, shape.contains, strict=True))
            for counts in reached
        ):
            return True
        if not reached or (room is not None and length >= room):
            return False
        cases = shape.prefix_cases[length] if length < len(shape.prefix) else shape.items_cases
        masks = {case.counts for case in cases if alive[case.shape]}
        reached = {
            after
            for counts, mask in product(reached, masks)
            if (after := _counted(counts, mask, shape, tops)) is not None
        }
        if length >= len(shape.prefix):
            if frozenset(reached) in seen:  # nothing new comes of more of the same
                length = max(length, shape.min_items)
                return any(
                    all(count >= each.min_count for count, each in zip(counts, shape.contains, strict=True))
                    for state in seen
                    for counts in state
                ) and (room is None or room >= shape.min_items)
            seen.add(frozenset(reached))
        length += 1


def _counted(counts: tuple[int, ...], mask: int, shape: ArrayShape, tops: Sequence[int]) -> tuple[int, ...] | None:
    after = list(counts)
    for bit, each in enumerate(shape.contains):
        if mask >> bit & 1:
            if each.max_count is not None and after[bit] >= each.max_count:
                return None
            after[bit] = min(after[bit] + 1, tops[bit])
    return tuple(after)


def _without_dead(shape: Alternative, alive: Sequence[bool], all_alive: bool) -> Alternative:
    """The same values, with no reference to a shape that is nothing, and no bound that says nothing."""
    if isinstance(shape, ObjectShape):
        if all_alive and shape.max_properties is None:
            closed = shape.additional is None and all(each.shape is None for each in shape.classes)
            if not closed or (not shape.classes and all(each.shape is not None for each in shape.properties)):
                return shape
        additional = shape.additional if shape.additional is not None and alive[shape.additional] else None
        classes = tuple(
            each if each.shape is None or alive[each.shape] else KeyClass(each.names, None) for each in shape.classes
        )
        if additional is None:
            classes = tuple(each for each in classes if each.shape is not None)
        properties = tuple(
            each if each.shape is None or alive[each.shape] else Property(each.name, None) for each in shape.properties
        )
        maximum = shape.max_properties
        if additional is None and not classes:
            properties = tuple(each for each in properties if each.shape is not None)
            if maximum is not None and maximum >= len(properties):
                maximum = None
        return replace(shape, properties=properties, classes=classes, additional=additional, max_properties=maximum)
    if isinstance(shape, ArrayShape):
        room = _room(shape, alive)
        if room is None and not shape.contains:
            return shape
        prefix = shape.prefix if room is None else shape.prefix[:room]
        keep = room is None or room > len(prefix)
        return replace(
            shape,
            prefix=prefix,
            items=shape.items if keep else None,
            max_items=room,
            prefix_cases=tuple(_alive_cases(cases, alive) for cases in shape.prefix_cases[: len(prefix)]),
            items_cases=_alive_cases(shape.items_cases, alive) if keep else (),
        )
    return shape


def _alive_cases(cases: Sequence[ItemCase], alive: Sequence[bool]) -> tuple[ItemCase, ...]:
    return tuple(case for case in cases if alive[case.shape])


def _renamed(shape: Alternative, name: Callable[[int], int]) -> Alternative:
    """The same alternative with every reference put through `name`."""
    if isinstance(shape, ObjectShape):
        return ObjectShape(
            tuple([each if each.shape is None else Property(each.name, name(each.shape)) for each in shape.properties]),
            tuple([each if each.shape is None else KeyClass(each.names, name(each.shape)) for each in shape.classes]),
            None if shape.additional is None else name(shape.additional),
            shape.required,
            shape.min_properties,
            shape.max_properties,
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
    """What two alternatives share when they are written the same, references put through `name`."""
    if isinstance(shape, LiteralShape):
        return ("listed", tuple(map(json_key, shape.values)))
    if isinstance(shape, ObjectShape):
        return (
            tuple([(each.name, each.shape if each.shape is None else name[each.shape]) for each in shape.properties]),
            tuple([(each.names, each.shape if each.shape is None else name[each.shape]) for each in shape.classes]),
            shape.additional if shape.additional is None else name[shape.additional],
            shape.required,
            shape.min_properties,
            shape.max_properties,
        )
    return _renamed(shape, name.__getitem__) if isinstance(shape, ArrayShape) else shape


def _merged(kept: Sequence[Sequence[Alternative]], budget: Budget) -> list[int]:
    """For each shape one of those that are written the same. Children first, so that what refers to them is the same then too;
    equal cycles stay apart, which costs only room."""
    name = list(range(len(kept)))
    first: dict[Hashable, int] = {}
    for index in range(len(kept) - 1, -1, -1):
        budget.spend()
        if kept[index]:
            name[index] = first.setdefault(tuple([_key(each, name) for each in kept[index]]), index)
    return name


def _reachable(
    shapes: Sequence[Shape], kept: Sequence[Sequence[Alternative]], representative: Sequence[int], budget: Budget
) -> tuple[int, list[Shape]]:
    order: dict[int, int] = {}
    waiting: list[int] = []

    def number(index: int) -> int:
        first = representative[index]
        found = order.get(first)
        if found is None:
            found = order[first] = len(waiting)
            waiting.append(first)
        return found

    root = number(0)
    made = []
    for index in waiting:  # grows while it is walked
        budget.spend()
        alternatives = tuple(
            [each if isinstance(each, _ALWAYS_INHABITED) else _renamed(each, number) for each in kept[index]]
        )
        made.append(Shape(alternatives, shapes[index].spot))
    return root, made
