"""Objects whose fields are at paths, as pydantic's `AliasPath` and `AliasChoices` say: names in objects, indexes in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class AliasConflictError(ValueError):
    """Two fields cannot both be at their places."""


@dataclass(frozen=True, slots=True)
class AliasSlot:
    """A field of an object.

    Attributes:
        paths: its possible places, the best one first: names and indexes that lead to it.
        schema: of its value.
        is_required: whether it must be there.
    """

    paths: Sequence[Sequence[str | int]]
    schema: dict[str, Any]
    is_required: bool


@dataclass(slots=True)
class _Inner:
    """An object or array with fields inside; its keys are all names or all indexes."""

    inside: dict[str | int, _Inner | AliasSlot] = field(default_factory=dict)

    @property
    def is_required(self) -> bool:
        return any(each.is_required for each in self.inside.values())

    def can_hold(self, path: Sequence[str | int]) -> bool:
        key, *rest = path
        if self.inside and isinstance(next(iter(self.inside)), int) != isinstance(key, int):
            return False
        if (
            isinstance(key, int)
            and self.inside
            and (key < 0 or any(isinstance(each, int) and each < 0 for each in self.inside))
        ):
            return False  # an index from the end is another one from the start
        found = self.inside.get(key)
        return found is None or (isinstance(found, _Inner) and bool(rest) and found.can_hold(rest))

    def put(self, path: Sequence[str | int], slot: AliasSlot) -> None:
        key, *rest = path
        if not rest:
            self.inside[key] = slot
            return
        inner = self.inside.setdefault(key, _Inner())
        assert isinstance(inner, _Inner)
        inner.put(rest, slot)

    def schema(self) -> dict[str, Any]:
        if self.inside and isinstance(next(iter(self.inside)), int):
            return self._array()
        found: dict[str, Any] = {"type": "object", "properties": {}}
        for name, each in self.inside.items():
            found["properties"][name] = _schema(each)
        required = [name for name, each in self.inside.items() if each.is_required]
        return found | {"required": required} if required else found

    def _array(self) -> dict[str, Any]:
        at = {int(index): each for index, each in self.inside.items()}
        size = max(at) + 1
        least = max((index + 1 for index, each in at.items() if each.is_required), default=min(at) + 1)
        if min(at) < 0:  # the only one: the first of as many items as it counts from the end
            ((index, only),) = at.items()
            at, size, least = {0: only}, -index, -index
        items = [_schema(at[index]) if index in at else {} for index in range(size)]
        return {"type": "array", "prefixItems": items, "minItems": least, "maxItems": size}


def _schema(each: _Inner | AliasSlot) -> dict[str, Any]:
    if isinstance(each, AliasSlot):
        return each.schema
    found = each.schema()
    if found["type"] == "array":
        return found
    found["additionalProperties"] = False
    return found if "required" in found else found | {"minProperties": 1}  # an empty one counts as an undeclared key


def object_schema(slots: Sequence[AliasSlot]) -> dict[str, Any]:
    """The schema of an object with fields at their places.

    Raises:
        AliasConflictError: two fields have the same place, or one is inside another.
    """
    root = _Inner()
    for slot in slots:
        path = next((each for each in slot.paths if root.can_hold(each)), None)
        if path is None:
            raise AliasConflictError(f"the place {list(slot.paths[0])} of a field is already taken by another one")
        root.put(path, slot)
    return root.schema()
