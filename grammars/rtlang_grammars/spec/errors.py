"""Errors: a constraint that cannot be compiled or leads nowhere, a tokenizer whose tokens have no bytes."""

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
    """No token may follow, and the text is not complete.

    Raised where masks are filled. The constraint allows bytes that the vocabulary has no token for, or no byte at all.

    Attributes:
        text: the last bytes of the text, at most `MAX_TEXT`; None if they are not known.
        constraint: name of the constraint; None if it is not known.
        cause: why no token may follow.
    """

    MAX_TEXT = 80

    def __init__(self, reason: str, text: bytes | None = None, constraint: str | None = None) -> None:
        self.text = None if text is None else text[-self.MAX_TEXT :]
        self.constraint = constraint
        where = "" if self.text is None else f" after {self.text!r}"
        of = "" if constraint is None else f"constraint {constraint}: "
        super().__init__(f"{of}no token may follow{where}, and the text is not complete: {reason}")
        self.cause = reason

    def __reduce__(self) -> tuple[type[EmptyMaskError], tuple[str, bytes | None, str | None]]:
        return EmptyMaskError, (self.cause, self.text, self.constraint)

    def after(self, text: bytes, constraint: str | None = None) -> EmptyMaskError:
        """The same error with the text, and perhaps the name of the constraint."""
        return EmptyMaskError(self.cause, text, constraint or self.constraint)


def is_of_limit(error: GrammarError) -> bool:
    """Whether an error says that a constraint is too large to be compiled, not that it is wrong or not supported."""
    return error.reason.startswith(("too complex", "too large", "too long", "nested too deeply"))


class UnsupportedTokenizerError(ValueError):
    """The tokens of a tokenizer do not spell texts byte for byte, or the kind of tokenizer is unknown."""
