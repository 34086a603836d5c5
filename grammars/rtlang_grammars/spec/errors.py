"""Errors: a constraint that cannot be compiled, a tokenizer whose tokens have no bytes."""

from __future__ import annotations


class GrammarError(ValueError):
    """A constraint cannot be compiled.

    Attributes:
        reason: the fault, and the supported alternative.
        location: JSON pointer (schemas) or `line:column` (regex, Lark); None if it is not known.
    """

    def __init__(self, reason: str, location: str | None = None) -> None:
        super().__init__(f"{reason} (at {location})" if location else reason)
        self.reason, self.location = reason, location


class EmptyMaskError(GrammarError):
    """No token may follow a text, and the text is not complete.

    Attributes:
        text: the last bytes of the text, at most `MAX_TEXT`.
        constraint: the name of the constraint, if it is known.
    """

    MAX_TEXT = 80

    def __init__(self, text: bytes = b"", constraint: str | None = None) -> None:
        self.text, self.constraint = text[-self.MAX_TEXT :], constraint
        place = f"after {self.text.decode(errors='replace')!r}" if text else "at the beginning of the text"
        of = f"{constraint}: " if constraint else ""
        super().__init__(f"{of}no token is allowed {place}, and the text is not complete there")


def is_of_limit(error: GrammarError) -> bool:
    """Whether an error says that a constraint is too large to be compiled, not that it is wrong or not supported."""
    return error.reason.startswith(("too complex", "too large", "too long", "nested too deeply"))


class UnsupportedTokenizerError(ValueError):
    """The tokens of a tokenizer do not spell texts byte for byte, or the kind of tokenizer is unknown."""
