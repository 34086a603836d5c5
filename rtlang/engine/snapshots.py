"""Takes snapshots of an engine between its steps, and records the last steps while someone watches.

`take` runs on the engine thread and only copies numbers (below a millisecond, bounded); `finish` makes the snapshot of them on the
caller's thread, where it also decodes the texts.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rtlang.cache.outline import ROOT_ID, OutlineNode
from rtlang.contract.service.snapshot import (
    MAX_PREFIXES,
    MAX_REQUESTS,
    MAX_SESSIONS,
    MAX_STEPS,
    EngineSnapshot,
    Prefix,
    StepRow,
    WatchedRequest,
    WatchedSession,
    WatchedStep,
)
from rtlang.engine.engine import Engine
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.sessions.engine_sessions import EngineSessions
from rtlang.engine.sessions.session_table import Session

WATCH_S = 10.0
"""Steps are recorded for so long after a snapshot."""
_MAX_TEXTS = 4 * MAX_PREFIXES
_TOKEN_BITS = (1 << 32) - 1  # of a number in the tree, see cache/outline.py
_STATM = Path("/proc/self/statm")

_Row = tuple[int, int, int, int, bool, bool, str]  # the fields of StepRow


@dataclass(slots=True)
class RawSnapshot:
    """Copied numbers, from which `finish` makes a snapshot."""

    counts: dict[str, Any]
    outline: list[OutlineNode]
    namespaces: dict[int, str]  # by number
    requests: list[tuple[Any, ...]]  # the fields of WatchedRequest
    sessions: list[tuple[Any, ...]]  # those of WatchedSession
    steps: list[tuple[int, float, float, list[_Row]]]


class SnapshotTaker:
    """Takes the snapshots of one engine. `after_step` and `take` are for the engine thread, `finish` is for any thread.

    Args:
        model: name of the model.
        decode: the text of token ids; callable from any thread.
    """

    def __init__(self, model: str, decode: Callable[[Iterable[int]], str]) -> None:
        self._model, self._decode = model, decode
        self._steps: deque[tuple[int, float, float, list[_Row]]] = deque(maxlen=MAX_STEPS)
        self._watched_until = float("-inf")
        self._texts: dict[tuple[int, int], str] = {}  # by prefix id and length of the head

    def after_step(self, engine: Engine, started: float, ended: float) -> None:
        """Record a step that ran from `started` to `ended`, if someone watches."""
        if started > self._watched_until:
            self._steps.clear()
            return
        scheduled = engine.scheduler.last_rows
        if scheduled:
            rows = [
                (
                    request.request_id,
                    num_tokens,
                    num_computed,
                    request.stats.num_cached_tokens,
                    num_computed < request.num_prompt_tokens,
                    request.spec.constraint is not None,
                    request.spec.principal.name,
                )
                for request, num_tokens, num_computed in scheduled
            ]
            self._steps.append((engine.num_steps, started, ended - started, rows))

    def take(self, engine: Engine, now: float, after_step: int = 0) -> RawSnapshot:
        """Copy the state of the engine at the time `now`, and its steps after number `after_step`."""
        self._watched_until = now + WATCH_S
        cache, scheduler = engine.cache, engine.scheduler
        running = scheduler.running
        others = (each for each in engine.requests if each.status is not RequestStatus.RUNNING)
        counts = {
            "taken_s": now,
            "page_size": cache.page_size,
            "max_rows": scheduler.max_rows,
            "num_steps": engine.num_steps,
            "num_prompt_tokens": engine.num_prompt_tokens,
            "num_cached_tokens": engine.num_cached_tokens,
            "num_generated_tokens": engine.num_generated_tokens,
            "num_preemptions": scheduler.num_preemptions,
            "num_queried_tokens": cache.stats.num_queried_tokens,
            "num_hit_tokens": cache.stats.num_hit_tokens,
            "num_evicted_pages": cache.stats.num_evicted_pages,
            "num_running": len(running),
            "num_waiting": scheduler.num_waiting,
            "num_requests": engine.num_requests,
            "num_pages": cache.num_pages,
            "num_free_pages": cache.num_free,
            "num_cached_pages": cache.num_cached,
            "num_used_pages": cache.num_in_use,
            "num_held_pages": cache.num_held,
            "num_prefixes": cache.num_nodes,
        }
        if (states := cache.states) is not None:
            counts |= {
                "num_states": states.num_slots,
                "num_used_states": states.num_private,
                "num_kept_states": states.num_kept,
                "num_evicted_states": states.stats.num_evicted,
                "num_replayed_tokens": states.stats.num_replayed_tokens,
            }
        sessions: list[tuple[Any, ...]] = []
        if engine.sessions is not None:
            counts |= {
                "num_returning_tokens": engine.sessions.num_returning_tokens,
                "num_cached_returning_tokens": engine.sessions.num_cached_tokens,
                "num_suspended_sessions": engine.sessions.residency.num_suspended,
            }
            sessions = [_session(each, engine.sessions) for each in engine.sessions.recent(MAX_SESSIONS)]
        ends = [request.pages.node for request in running if request.pages.node is not None]
        requests = [_request(each, now) for each in islice(chain(running, islice(others, MAX_REQUESTS)), MAX_REQUESTS)]
        steps = [step for step in self._steps if step[0] > after_step]
        prefixes = cache.outline(ends, MAX_PREFIXES)
        names = {each.namespace: engine.namespaces.name(each.namespace) for each in prefixes}
        return RawSnapshot(counts, prefixes, names, requests, sessions, steps)

    def finish(self, raw: RawSnapshot) -> EngineSnapshot:
        """Make the snapshot of copied numbers."""
        return EngineSnapshot(
            model=self._model,
            process_bytes=_process_bytes(),
            prefixes=tuple(self._prefix(each, raw.namespaces[each.namespace]) for each in raw.outline),
            requests=tuple(WatchedRequest(*each) for each in raw.requests),
            sessions=tuple(WatchedSession(*each) for each in raw.sessions),
            steps=tuple(
                WatchedStep(number, started, duration, tuple(map(StepRow._make, rows)))
                for number, started, duration, rows in raw.steps
            ),
            **raw.counts,
        )

    def _prefix(self, node: OutlineNode, namespace: str) -> Prefix:
        return Prefix(
            node.node_id,
            None if node.parent_id == ROOT_ID else node.parent_id,
            node.num_tokens,
            node.num_pages,
            node.num_users,
            node.is_held,
            node.num_children,
            node.last_access,
            self._text(node.node_id, node.head),
            namespace,
        )

    def _text(self, node_id: int, head: array[int]) -> str:
        key = node_id, len(head)
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts = {}
            text = self._texts[key] = self._decode([each & _TOKEN_BITS for each in head])
        return text


def _request(request: Request, now: float) -> tuple[Any, ...]:
    return (
        request.request_id,
        request.status.name.lower(),
        request.spec.principal.name,
        request.num_prompt_tokens,
        request.stats.num_cached_tokens,
        request.num_output_tokens,
        request.max_tokens,
        len(request.pages.page_ids),
        request.spec.constraint is not None,
        request.spec.priority,
        now - request.arrival_time,
        "" if (context := request.program.account.context) is None else context.request_id,
        request.stats.num_replayed_tokens,
    )


def _session(session: Session, sessions: EngineSessions) -> tuple[Any, ...]:
    return (
        session.session_id,
        session.parent_id,
        session.owner,
        sessions.state_of(session),
        session.num_turns,
        session.num_forks,
        session.num_tokens,
        session.num_returning_tokens,
        session.num_cached_tokens,
        session.last_miss or "",
        session.last_seen_s,
        sessions.pages.is_held(session),
        session.key_digest or "",
    )


def _process_bytes() -> int:
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
