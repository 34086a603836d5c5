"""The error raised for a constraint that cannot be compiled."""

from __future__ import annotations


class GrammarError(ValueError):
    """A constraint cannot be compiled.

    Attributes:
        reason: what is wrong and what is supported instead.
        location: JSON pointer (schemas) or `line:column` (regex, Lark); None if it is not known.
    """

    def __init__(self, reason: str, location: str | None = None) -> None:
        super().__init__(f"{reason} (at {location})" if location else reason)
        self.reason, self.location = reason, location
