"""Limits of a run, shared by all of its nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run.

    A generation that starts gets at most what is left, divided by the generations that start at the same time; the constraint closes its
    value within that. A generation that gets no tokens fails with SpentError.

    Attributes:
        tokens: generated tokens.
        seconds: time from the start of the run; generations that run then fail, and what has ended stays.
        computed: generated tokens and tokens of prompts that were not cached. The prompt of the last generation may exceed it.
    """

    tokens: int | None = None
    seconds: float | None = None
    computed: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "computed"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ParameterError(name, value, "expected a positive integer")
        seconds = self.seconds
        if seconds is not None:
            is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
            if not is_number or not math.isfinite(seconds) or seconds <= 0:
                raise ParameterError("seconds", seconds, "expected a positive number")
        if self.tokens is None and seconds is None and self.computed is None:
            raise ParameterError("budget", self, "expected at least one of tokens, seconds and computed")

    def to_plain(self) -> dict[str, Any]:
        """The limits that are set."""
        limits = {"tokens": self.tokens, "seconds": self.seconds, "computed": self.computed}
        return {name: value for name, value in limits.items() if value is not None}

    @classmethod
    def from_plain(cls, plain: object) -> Budget:
        """The inverse of `to_plain`.

        Raises:
            ParameterError: names the field.
        """
        if not isinstance(plain, dict):
            raise ParameterError("budget", plain, "expected a map")
        for name in plain:
            if name not in ("tokens", "seconds", "computed"):
                raise ParameterError("budget", name, "expected tokens, seconds or computed")
        return cls(**plain)
