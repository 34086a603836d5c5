"""Errors: a constraint that cannot be compiled, a tokenizer whose tokens have no bytes."""

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


class UnsupportedTokenizerError(ValueError):
    """The tokens of a tokenizer do not spell texts byte for byte, or the kind of tokenizer is unknown."""
