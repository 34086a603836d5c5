"""The account of a request: its tokens by kind, its waits by cause and its work by kind, from all processes that take part in it.

An engine sends its part with the final event of the graph, and the door adds its own. The sums of a request over what runs side by side may
exceed its duration. Adding is a few dictionary operations a request or a node, and none a token.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from rtlang.contract.accounts.request_context import RequestContext


class Tokens(StrEnum):
    """Kinds of tokens. Of the prompt tokens some are cached; of the drafted ones some are accepted, and those are output as well."""

    PROMPT = "prompt"
    CACHED = "cached"
    OUTPUT = "output"
    DRAFTED = "drafted"
    ACCEPTED = "accepted"


class Wait(StrEnum):
    """Causes of waiting: for a thread, a compiled constraint, pages of the cache's tiers, a row and its pages, pages that were taken away,
    the client's credit, and an engine."""

    THREAD = "thread"
    CONSTRAINT = "constraint"
    FETCH = "fetch"
    ROW = "row"
    PREEMPTED = "preempted"
    CREDIT = "credit"
    ENGINE = "engine"


class WorkKind(StrEnum):
    """Kinds of work, in seconds of threads."""

    STEPS = "steps"  # its part of the steps of the model
    PARSE = "parse"  # bodies and messages become values
    READ = "read"  # values become graphs: checks, templates, schemas
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    SUBMIT = "submit"  # graphs are checked and handed to an engine
    REPLY = "reply"  # events and responses become text
    CACHE = "cache"  # questions about the prefix cache
    SNAPSHOT = "snapshot"
    CONSTRAINT = "constraint"  # schemas and grammars are compiled
    VALUE = "value"  # pure functions, and checks of values
    OTHER = "other"


@dataclass(slots=True)
class RequestAccount:
    """The sums of one request. Written by the threads that work for it.

    Attributes:
        context: of the request; None for an engine's part.
        tokens, waits, work: by the values of `Tokens`, and seconds by those of `Wait` and `WorkKind`; only what is not 0.
        finish_reasons: how many completions ended for each reason.
        first_token_s: seconds from the start of the run to its first token, where that is known.
        moves: why the graph left an engine, each time, with the time in nanoseconds since the epoch.
    """

    context: RequestContext | None = None
    tokens: dict[str, int] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    finish_reasons: dict[str, int] = field(default_factory=dict)
    first_token_s: float | None = None
    moves: list[tuple[int, str]] = field(default_factory=list)

    def add_tokens(self, kind: str, number: int) -> None:
        """Count tokens."""
        if number:
            self.tokens[kind] = self.tokens.get(kind, 0) + number

    def add_wait(self, cause: str, seconds: float) -> None:
        """Count a wait."""
        if seconds > 0:
            with _LOCK:
                self.waits[cause] = self.waits.get(cause, 0.0) + seconds

    def add_work(self, kind: str, seconds: float) -> None:
        """Count work."""
        if seconds > 0:
            with _LOCK:
                self.work[kind] = self.work.get(kind, 0.0) + seconds

    def add(self, other: RequestAccount) -> None:
        """Add the sums of another account."""
        for kind, number in other.tokens.items():
            self.add_tokens(kind, number)
        for cause, seconds in other.waits.items():
            self.add_wait(cause, seconds)
        for kind, seconds in other.work.items():
            self.add_work(kind, seconds)
        for reason, number in other.finish_reasons.items():
            self.finish_reasons[reason] = self.finish_reasons.get(reason, 0) + number
        self.note_first_token(other.first_token_s)
        self.moves.extend(other.moves)

    def copy(self) -> RequestAccount:
        """The sums as they are now."""
        maps = dict(self.tokens), dict(self.waits), dict(self.work), dict(self.finish_reasons)  # each in one operation
        return RequestAccount(self.context, *maps, self.first_token_s, list(self.moves))

    def since(self, earlier: RequestAccount | None) -> RequestAccount:
        """The tokens, waits and work that were added after an earlier state; nothing is negative."""
        if earlier is None:
            return self
        new = RequestAccount()
        for kind, number in self.tokens.items():
            new.add_tokens(kind, max(0, number - earlier.tokens.get(kind, 0)))
        for cause, seconds in self.waits.items():
            new.add_wait(cause, seconds - earlier.waits.get(cause, 0.0))
        for kind, seconds in self.work.items():
            new.add_work(kind, seconds - earlier.work.get(kind, 0.0))
        return new

    def note_completion(self, finish_reason: str) -> None:
        """Count a completion that ended for this reason."""
        self.finish_reasons[finish_reason] = self.finish_reasons.get(finish_reason, 0) + 1

    def note_first_token(self, seconds: float | None) -> None:
        """Note a first token of the run; the earliest counts."""
        if seconds is not None and (self.first_token_s is None or seconds < self.first_token_s):
            self.first_token_s = max(0.0, seconds)

    def to_plain(self) -> dict[str, Any]:
        """The sums as a map of plain values, without what is empty."""
        plain: dict[str, Any] = {
            name: dict(value)
            for name in ("tokens", "waits", "work", "finish_reasons")
            if (value := getattr(self, name))
        }
        if self.first_token_s is not None:
            plain["first_token_s"] = self.first_token_s
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The sums of a map made by `to_plain` in another process of this version."""
        return cls(None, **plain)


_LOCK = threading.Lock()
