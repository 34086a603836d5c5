"""The sessions of one engine: what the table finds for each request, and what it had of the prefix cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import SessionTable, Turn, TurnKind

MAX_HEADER_TOKENS = 32
"""Tokens behind the end of the last message of a prompt in which its end is looked for: the header of the reply."""
EVICTED, STATE_EVICTED, REWRITTEN = "evicted", "state evicted", "rewritten"
"""Why returning tokens are computed again: their pages or their state left the pool, or the client wrote the reply in another way."""


class EngineSessions:
    """Follows the requests of one engine. Used on the engine thread.

    Attributes:
        table: the sessions.
        num_returning_tokens, num_cached_tokens: sums over all sessions since the start; see `Session`.
        num_forks: sessions that were forked from others.
    """

    def __init__(self, page_size: int) -> None:
        self.table = SessionTable()
        self.num_returning_tokens = self.num_cached_tokens = self.num_forks = 0
        self._page_size = page_size

    def begin(
        self,
        principal: Principal,
        prompt_ids: Sequence[int],
        eos_ids: Collection[int],
        options: SessionOptions | None,
        now: float,
    ) -> Turn:
        """A request arrives.

        Args:
            eos_ids: tokens that end messages.
            options: of the request, if its door gave any.
        """
        border = message_border(prompt_ids, eos_ids)
        turn = self.table.begin(principal.name, principal.namespace, prompt_ids, border, now)
        self.num_forks += turn.kind is TurnKind.FORK
        if options is not None:
            session = turn.session
            if options.key is not None:
                session.key_digest = blake2b(options.key.encode(), digest_size=4).hexdigest()
            session.keep_s = options.keep_s
        return turn

    def end(
        self,
        turn: Turn,
        output_ids: Sequence[int],
        text: str,
        options: SessionOptions | None,
        now: float,
        *,
        num_cached: int | None,
        num_replayed: int = 0,
    ) -> None:
        """A request has ended.

        Args:
            text: of the output, in which tool calls are looked for.
            num_cached: tokens of its prompt that were cached; None if it was never computed.
            num_replayed: tokens after these whose pages were stored, but no state.
        """
        if not turn.is_open:
            return
        marks = () if options is None else options.call_marks
        reply = ReplyKind.CALLS if any(mark in text for mark in marks) else ReplyKind.FINAL
        if turn.num_returning_tokens and num_cached is not None:
            self._count(turn, min(num_cached, turn.num_returning_tokens), num_replayed)
        self.table.end(turn, output_ids, reply, now)

    def _count(self, turn: Turn, num_cached: int, num_replayed: int) -> None:
        session, num_returning = turn.session, turn.num_returning_tokens
        session.num_returning_tokens += num_returning
        session.num_cached_tokens += num_cached
        self.num_returning_tokens += num_returning
        self.num_cached_tokens += num_cached
        if (
            num_returning - num_cached > self._page_size
        ):  # else the end of the last page, which another request may share
            session.last_miss = STATE_EVICTED if num_replayed > self._page_size else EVICTED
        elif turn.is_rewritten:
            session.last_miss = REWRITTEN


def message_border(prompt_ids: Sequence[int], eos_ids: Collection[int]) -> int:
    """The number of tokens of a prompt up to the end of its last message; all, if it ends with none.

    Args:
        eos_ids: tokens that end messages.
    """
    for end in range(len(prompt_ids), max(0, len(prompt_ids) - MAX_HEADER_TOKENS), -1):
        if prompt_ids[end - 1] in eos_ids:
            return end
    return len(prompt_ids)
