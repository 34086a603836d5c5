"""A snapshot of an engine for people and tools that watch it: stored prefixes, running and waiting requests, and the last steps.

Plain frozen data, bounded in size whatever the load. `plain_snapshot` and `read_snapshot` convert it to maps and back, for HTTP and for an
engine in another process. `seen_by` leaves out of it what a principal must not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.plain_records import record_from_plain, record_to_plain

MAX_PREFIXES = 160
"""Prefixes of one snapshot."""
MAX_REQUESTS = 256
"""Requests of one snapshot."""
MAX_SESSIONS = 128
"""Sessions of one snapshot."""
MAX_STEPS = 64
"""Steps of one snapshot: the last ones."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A stored piece of sequences: a node of the radix tree.

    Attributes:
        prefix_id: stays the same while the piece is stored.
        parent_id: the piece before it; None if it begins sequences.
        num_tokens, num_pages: its own, without those of the pieces before it.
        num_users: running requests whose sequence contains it.
        is_held: whether an open program keeps it from eviction.
        num_children: pieces that continue it, those that the snapshot leaves out included.
        last_access: logical time of its last use; pieces with low numbers are evicted first.
        text: its beginning, at most 32 tokens.
        namespace: of the principals whose requests may use it.
    """

    prefix_id: int
    parent_id: int | None
    num_tokens: int
    num_pages: int
    num_users: int
    is_held: bool
    num_children: int
    last_access: int
    text: str
    namespace: str = ""


class StepRow(NamedTuple):
    """A request's part in one step. In plain form an array, because there are many.

    Attributes:
        num_tokens: tokens computed for it.
        num_computed_tokens: tokens that it had before the step, cached ones included.
        num_cached_tokens: prompt tokens that it took from the cache.
        is_prompt: whether the step computed tokens of its prompt.
        is_constrained: whether its text must follow a constraint.
        principal: who asked for it.
    """

    request_id: int
    num_tokens: int
    num_computed_tokens: int
    num_cached_tokens: int
    is_prompt: bool
    is_constrained: bool
    principal: str = ""


@dataclass(frozen=True, slots=True)
class WatchedStep:
    """One step: its number, start and duration in seconds of the engine's clock, and its rows in the order of the tree.

    Steps are recorded while someone takes snapshots, and for ten seconds after.
    """

    number: int
    started_s: float
    duration_s: float
    rows: tuple[StepRow, ...]


@dataclass(frozen=True, slots=True)
class WatchedRequest:
    """A request that has not ended.

    Attributes:
        state: running, waiting, preempted, compiling (its constraint), or fetching (its pages, from below the pool).
        principal: who asked for it.
        num_pages: pages that it uses, shared ones included.
        age_s: seconds since it arrived.
        num_replayed_tokens: prompt tokens in stored pages after its checkpoint, which are computed again.
        door_request_id: the id of the request that it belongs to, as logs and answers have it; empty for programs in the engine's process.
    """

    request_id: int
    state: str
    principal: str
    num_prompt_tokens: int
    num_cached_tokens: int
    num_output_tokens: int
    max_tokens: int
    num_pages: int
    is_constrained: bool
    priority: int
    age_s: float
    door_request_id: str = ""
    num_replayed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """A chain of requests, each of which continues the one before.

    Attributes:
        parent_id: the session from which it was forked; None if it began with a new prompt.
        principal: whose requests they are.
        state: running, waiting (for room in the pool, or for a row), calling (the client runs tools), or answered.
        num_turns, num_forks: requests, and sessions that were forked from it.
        num_tokens: of its longest sequence.
        num_returning_tokens: prompt tokens that an earlier turn had.
        num_cached_tokens: returning tokens that were cached.
        last_miss: why a turn had to compute returning tokens last: evicted, state evicted, or rewritten (by the client); empty for never.
        last_seen_s: the last begin or end of a request, in seconds of the engine's clock.
        is_held: whether its pages are kept.
        key_digest: of the client's name for it, 8 hex digits; empty without one.
    """

    session_id: int
    parent_id: int | None
    principal: str
    state: str
    num_turns: int
    num_forks: int
    num_tokens: int
    num_returning_tokens: int
    num_cached_tokens: int
    last_miss: str
    last_seen_s: float
    is_held: bool
    key_digest: str = ""


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """The state of an engine between two steps.

    Attributes:
        taken_s: seconds of the engine's clock.
        process_bytes: memory of the engine's process; 0 where the system does not tell.
        num_steps, num_prompt_tokens, num_cached_tokens, num_generated_tokens, num_preemptions: counted since the start; prompt tokens are
            those of ended requests, cached ones are part of them.
        num_queried_tokens, num_hit_tokens: tokens looked up in the prefix cache, and found.
        num_evicted_pages: cached pages that were given up to make room.
        num_running, num_waiting, num_requests: requests in the batch, in the queue, and all that have not ended.
        num_free_pages, num_cached_pages, num_used_pages: they add up to num_pages.
        num_held_pages: pages that open programs keep.
        num_states, num_used_states, num_kept_states: slots for states of recurrent layers, slots of requests, and checkpoints; all 0 for a
            model without recurrent layers.
        num_evicted_states: checkpoints evicted for other states.
        num_replayed_tokens: tokens that look-ups found in pages after the deepest checkpoint.
        num_prefixes: all pieces in the tree; `prefixes` has at most MAX_PREFIXES of them, each before those that continue it.
        requests: at most MAX_REQUESTS, running ones first.
        sessions: at most MAX_SESSIONS, those seen last of each principal, the last one first.
        num_returning_tokens, num_cached_returning_tokens: tokens of prompts that an earlier turn of their session had, and those of them
            that were cached, since the start; 0 if sessions are not inferred.
        num_suspended_sessions: sessions that had to wait, since others needed the pool.
    """

    taken_s: float
    process_bytes: int
    model: str
    page_size: int
    max_rows: int
    num_steps: int
    num_prompt_tokens: int
    num_cached_tokens: int
    num_generated_tokens: int
    num_preemptions: int
    num_queried_tokens: int
    num_hit_tokens: int
    num_evicted_pages: int
    num_running: int
    num_waiting: int
    num_requests: int
    num_pages: int
    num_free_pages: int
    num_cached_pages: int
    num_used_pages: int
    num_held_pages: int
    num_prefixes: int
    prefixes: tuple[Prefix, ...] = ()
    requests: tuple[WatchedRequest, ...] = ()
    steps: tuple[WatchedStep, ...] = ()
    num_states: int = 0
    num_used_states: int = 0
    num_kept_states: int = 0
    num_evicted_states: int = 0
    num_replayed_tokens: int = 0
    sessions: tuple[WatchedSession, ...] = ()
    num_returning_tokens: int = 0
    num_cached_returning_tokens: int = 0
    num_suspended_sessions: int = 0

    @property
    def returning_hit_rate(self) -> float:
        """Share of the returning tokens that were cached, 0 to 1."""
        return self.num_cached_returning_tokens / self.num_returning_tokens if self.num_returning_tokens else 0.0

    @property
    def hit_rate(self) -> float:
        """Share of the tokens looked up that were cached, 0 to 1."""
        return self.num_hit_tokens / self.num_queried_tokens if self.num_queried_tokens else 0.0


@runtime_checkable
class Watchable(Protocol):
    """A target whose engine can be watched."""

    def snapshot(self, *, after_step: int = 0) -> EngineSnapshot | None:
        """The present state; None if no engine runs here. Waits for the end of the current step; callable from any thread.

        Args:
            after_step: leave out the steps up to this number.
        Raises:
            EngineDeadError: the engine has stopped.
        """


def seen_by(snapshot: EngineSnapshot, principal: Principal) -> EngineSnapshot:
    """The snapshot as a principal may see it: the prefixes of its namespace, the public ones that they continue, its requests and sessions.

    A principal without a namespace is an operator's: it sees the requests of all, but texts of its own only. Totals stay as they are.
    """
    sees_all, name = not principal.namespace, principal.name
    visible = {each.prefix_id for each in snapshot.prefixes if each.namespace == principal.namespace}
    for each in reversed(snapshot.prefixes):  # public pieces, which come before those that continue them
        if each.prefix_id in visible and each.parent_id is not None:
            visible.add(each.parent_id)
    return replace(
        snapshot,
        prefixes=tuple(each for each in snapshot.prefixes if each.prefix_id in visible),
        requests=tuple(each for each in snapshot.requests if sees_all or each.principal == name),
        sessions=tuple(each for each in snapshot.sessions if sees_all or each.principal == name),
        steps=snapshot.steps
        if sees_all
        else tuple(
            replace(step, rows=tuple(row for row in step.rows if row.principal == name)) for step in snapshot.steps
        ),
    )


def plain_snapshot(snapshot: EngineSnapshot) -> dict[str, Any]:
    """The snapshot as a map of numbers, texts, arrays and maps under the names of the fields."""
    return record_to_plain(snapshot)


def read_snapshot(plain: Mapping[str, Any]) -> EngineSnapshot:
    """The snapshot of a map that `plain_snapshot` made; unknown fields, of a later version, are ignored.

    Raises:
        ValueError: a field is missing or has another type; names it.
    """
    return record_from_plain(EngineSnapshot, plain)
