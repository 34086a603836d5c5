"""A typed value while its text grows."""

from __future__ import annotations

from typing import Any

from rtlang.contract.growing_json import GrowingJson, JsonKind, JsonPath, Path
from rtlang.lang.partials.shapes import PLAIN, ValueShape


class PartialObject:
    """The value of a JSON text so far. Pushing a chunk costs time proportional to the chunk; parsing happens when values are read."""

    def __init__(self, shape: ValueShape = PLAIN) -> None:
        self.text = GrowingJson()
        self._shape = shape

    def push(self, chunk: str) -> tuple[tuple[JsonPath, ...], JsonPath | None, str]:
        """Read more text: the values that became final and are known before the whole is, the string that grows, and its new text."""
        places, added = self.text.push(chunk)
        return self._known(places), self.text.growing, added

    def finish(self) -> tuple[JsonPath, ...]:
        """End the text; returns the places that this makes final, as `push` does."""
        return self._known(self.text.finish())

    def value_at(self, place: JsonPath) -> Any:
        """The typed value of a final place.

        Raises:
            ValueError: the text is invalid for its type.
        """
        shape = self._shape_at(place)
        if shape is None or place.end is None:
            raise ValueError(f"{place.path} is not final")
        return shape.parse(self.text.text(place.start, place.end))

    def snapshot(self, length: int) -> Any:
        """The value of the first `length` characters: final values have their types, open objects and arrays are dicts and lists, the
        growing string is its text so far, and values that have only begun are omitted. None if nothing has begun."""
        text = self.text
        if length != text.length:
            text = GrowingJson()
            text.push(self.text.text(0, length))
        return None if text.root is None else _so_far(text, text.root, self._shape)[0]

    def _known(self, places: list[JsonPath]) -> tuple[JsonPath, ...]:
        return tuple(place for place in places if self._shape_at(place) is not None)

    def _shape_at(self, place: JsonPath) -> ValueShape | None:
        steps: list[tuple[JsonKind, str | int]] = []
        at = place
        while at.parent is not None:
            steps.append((at.parent.kind, at.path[-1]))
            at = at.parent
        shape: ValueShape | None = self._shape
        for kind, step in reversed(steps):
            shape = None if shape is None else shape.inside(kind, step)
        return shape


def _so_far(text: GrowingJson, place: JsonPath, shape: ValueShape | None) -> tuple[Any, bool]:
    """The value of a place, and whether there is one."""
    if place.end is not None and shape is not None:
        try:
            return shape.parse(text.text(place.start, place.end)), True
        except ValueError:
            return None, False
    match place.kind:
        case JsonKind.STRING:
            return "".join(place.pieces), True
        case JsonKind.OBJECT | JsonKind.ARRAY:
            found = {
                step: value
                for step, child in place.children.items()
                for value, exists in [_so_far(text, child, None if shape is None else shape.inside(place.kind, step))]
                if exists
            }
            return (found if place.kind is JsonKind.OBJECT else list(found.values())), True
        case _ if place.end is not None:
            return PLAIN.parse(text.text(place.start, place.end)), True
        case _:
            return None, False


__all__ = ["JsonPath", "PartialObject", "Path"]
