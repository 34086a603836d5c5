"""One measured figure with its bound, and the line that shows it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_HOLDS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value and the bound that it has to keep.

    Attributes:
        name: identifies the figure.
        value: as measured; NaN if it could not be measured.
        relation: "<=", ">=" or "==".
        bound: what `value` is compared with.
        unit: of value and bound; may be empty.
        note: circumstances, or the reason why nothing was measured.
    """

    name: str
    value: float
    relation: str
    bound: float
    unit: str = ""
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the value keeps its bound; a value that could not be measured does not."""
        return not math.isnan(self.value) and _HOLDS[self.relation](self.value, self.bound)

    def __str__(self) -> str:
        value = "not measured" if math.isnan(self.value) else _shown(self.value, self.unit)
        text = f"{self.name}: {value}, bound {self.relation} {_shown(self.bound, self.unit)}, "
        return text + ("met" if self.is_met else "MISSED") + (f" ({self.note})" if self.note else "")


def fairness(amounts: Sequence[float]) -> float:
    """Jain's index: 1 if all amounts are equal, 1/n if one has everything."""
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else 0.0


def _shown(value: float, unit: str) -> str:
    return f"{value:.4g}" + (f" {unit}" if unit else "")
