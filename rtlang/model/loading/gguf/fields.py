"""Reads the metadata of an architecture, with types and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtlang.contract.errors import ModelLoadError

_MAX_NUMBER = 1 << 40
_MAX_REAL = 1e30


class Fields:
    """The metadata of one file, of which it remembers what was read.

    Args:
        path: of the file, for errors.
        metadata: all of its metadata.
        shapes: the shapes of its tensors by name, outermost dimension first.
    Attributes:
        architecture: `general.architecture`, with which the keys of its own entries begin.
    """

    def __init__(self, path: str, metadata: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.path, self.metadata, self.shapes = path, metadata, shapes
        name = metadata.get("general.architecture")
        if not isinstance(name, str):
            raise self.fail("general.architecture", name, "the name of an architecture")
        self.architecture = name
        self._read: set[str] = set()

    def fail(self, key: str, value: object, expected: str) -> ModelLoadError:
        """The error for an entry that cannot be used."""
        shown = (
            "is missing"
            if value is None
            else f"= {str(value)[:60]!r}"
            if isinstance(value, str)
            else f"= {value!r:.60}"
        )
        return ModelLoadError(self.path, f"{key} {shown}: expected {expected}")

    def key(self, name: str) -> str:
        """The whole key of an entry of the architecture."""
        return f"{self.architecture}.{name}"

    def given(self, name: str) -> Any:
        """The value of an entry, None if it is missing."""
        self._read.add(name)
        return self.metadata.get(self.key(name))

    def has(self, name: str) -> bool:
        """Whether there is an entry."""
        return self.given(name) is not None

    def has_tensor(self, name: str) -> bool:
        """Whether the file has a tensor."""
        return name in self.shapes

    def number(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number, which may be repeated for each layer.

        Raises:
            ModelLoadError: it is missing without a default, no number, below `least`, or differs by layer.
        """
        value = self.given(name)
        if isinstance(value, Sequence) and not isinstance(value, str) and value:
            if any(each != value[0] for each in value):
                raise self.fail(self.key(name), value, "one number for all layers")
            value = value[0]
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_NUMBER:
            raise self.fail(self.key(name), value, f"a number from {least}")
        return value

    def real(self, name: str, default: float | None = None, *, least: float | None = None) -> float:
        """A finite number, as it was written before it became a float32.

        Raises:
            ModelLoadError: it is missing without a default, no finite number, or below `least`.
        """
        value = self.given(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _MAX_REAL:
            raise self.fail(self.key(name), value, "a finite number")
        if least is not None and value < least:
            raise self.fail(self.key(name), value, f"a number from {least}")
        return as_written(value)

    def flag(self, name: str, default: bool) -> bool:
        """A yes or no."""
        value = self.given(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(self.key(name), value, "true or false")
        return value

    def unread(self) -> list[str]:
        """Keys of the architecture that nothing has asked for."""
        start = f"{self.architecture}."
        return sorted(
            key for key in self.metadata if key.startswith(start) and key.removeprefix(start) not in self._read
        )


def as_written(value: float) -> float:
    """The shortest number that has the same float32, if the number is one: 1e-05 for 9.99999974e-06."""
    single = np.float32(value)
    return float(str(single)) if float(single) == value else float(value)
