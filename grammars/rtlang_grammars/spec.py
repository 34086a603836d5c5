"""What a grammar is to its caller: a constraint as plain data, and the protocols of backend and matcher.

A `Constraint` says what text is allowed without saying how that is enforced. A `GrammarBackend` compiles it once per
vocabulary, and a `GrammarMatcher` follows one sequence through it. Whoever implements these protocols can be put
behind the runtime; nothing else knows a grammar library by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from threading import Event
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # so that a client, which only describes constraints, need not load numpy
    import numpy as np
    from numpy.typing import NDArray


class ConstraintKind(StrEnum):
    """The input languages of the seam."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    STRUCTURE = "structure"


class Whitespace(StrEnum):
    """What may stand between the tokens of JSON text."""

    FREE = "free"  # nothing, one or two blanks, or a line break and up to 80 blanks: never endless
    COMPACT = "compact"  # nothing


class PropertyOrder(StrEnum):
    """In which order the properties of an object may come."""

    ANY = "any"
    DECLARED = "declared"  # those that the schema names in its order, optional ones possibly left out; others anywhere


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How the values of a schema are written. What is valid does not depend on it."""

    whitespace: Whitespace = Whitespace.FREE
    order: PropertyOrder = PropertyOrder.ANY


@dataclass(frozen=True, slots=True)
class Constraint:
    """Which texts are allowed.

    Attributes:
        kind: the language of `source`.
        source: JSON text of a schema (JSON_SCHEMA), a pattern that the whole text must match (REGEX),
            a JSON array of strings (CHOICE), or the text of a grammar: as Lark reads it (LARK), as llama.cpp does (GBNF), or in the
            EBNF of the W3C (EBNF); or what `structures` says, as JSON text (STRUCTURE).
        style: of JSON_SCHEMA and STRUCTURE: how values of schemas are written.
    """

    kind: ConstraintKind
    source: str
    style: JsonStyle = JsonStyle()

    def to_plain(self) -> dict[str, str]:
        """As a map of texts; a style only where it is not the default."""
        plain = {"kind": str(self.kind), "source": self.source}
        if self.style != JsonStyle():
            plain |= {"whitespace": str(self.style.whitespace), "order": str(self.style.order)}
        return plain

    @classmethod
    def from_plain(cls, plain: object) -> Constraint:
        """The reverse of `to_plain`.

        Raises:
            GrammarError: something is missing or not allowed; the location is the name of the field, empty for the whole.
        """
        if not isinstance(plain, dict) or not isinstance(plain.get("source"), str):
            raise GrammarError("a map with kind and source (a string) is allowed", "")
        style = JsonStyle(
            _member(Whitespace, plain.get("whitespace", Whitespace.FREE), "whitespace"),
            _member(PropertyOrder, plain.get("order", PropertyOrder.ANY), "order"),
        )
        return cls(_member(ConstraintKind, plain.get("kind"), "kind"), plain["source"], style)


_Member = TypeVar("_Member", bound=StrEnum)


def _member(members: type[_Member], value: object, field: str) -> _Member:
    if not isinstance(value, str) or value not in [str(each) for each in members]:
        raise GrammarError(f"allowed are {', '.join(members)}", field)
    return members(value)


class GrammarError(ValueError):
    """A constraint cannot be compiled.

    Attributes:
        reason: what is wrong and what is supported instead.
        location: JSON pointer (schemas) or `line:column` (regex, Lark); None where it is not known.
    """

    def __init__(self, reason: str, location: str | None = None) -> None:
        super().__init__(f"{reason} (at {location})" if location else reason)
        self.reason, self.location = reason, location


class GrammarMatcher(Protocol):
    """One sequence's way through a grammar. Owned by one request; not thread-safe, but needs no lock between matchers."""

    @property
    def is_accepting(self) -> bool:
        """The text so far is complete: an end token is allowed here."""

    @property
    def is_terminated(self) -> bool:
        """Complete, and nothing but an end token can follow."""

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token; False, and unchanged, where the token is not allowed."""

    def rollback(self, num_tokens: int) -> None:
        """Take back the last `num_tokens` accepted tokens."""

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens: bit j % 32 of row[j // 32] set means token j is allowed.

        `row` has ceil(vocab_size / 32) words and is wholly overwritten. End tokens are set exactly where `is_accepting`.
        """

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, in order; empty where there is a choice."""

    def fork(self) -> GrammarMatcher:
        """An independent matcher in the same state."""

    def shortest_completion(self, limit: int) -> list[int] | None:
        """Token ids of a short way (not necessarily the shortest) to a complete text, without the end token.

        None where no way of at most `limit` tokens was found within the search budget. Does not change the matcher.
        """

    def accepts(self, token_ids: list[int]) -> bool:
        """Whether `token_ids` could follow in this order. Does not change the matcher."""


class CompiledGrammar(Protocol):
    """A constraint bound to one vocabulary. Immutable and shared between requests and threads."""

    @property
    def size_bytes(self) -> int:
        """An estimate of memory held, for the byte-bounded cache."""

    def matcher(self) -> GrammarMatcher:
        """A fresh matcher at the start of the text."""


class GrammarBackend(Protocol):
    """Compiles constraints for one vocabulary."""

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> CompiledGrammar:
        """Compile.

        Args:
            is_unwanted: may be set from any thread while this works; a backend that can stop then does.
        Raises:
            GrammarError: the constraint is malformed, too large or uses what this backend does not support; or the compile was stopped.
        """
