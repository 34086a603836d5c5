"""The sessions of one engine: what the table finds for each request, and what it had of the prefix cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from hashlib import blake2b

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import CacheScope
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.engine.sessions.residency import MAX_WAIT_S, Family, Leaving, Residency
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_pages import SessionPages
from rtlang.engine.sessions.session_table import LEAD_S, Session, SessionTable, Turn, TurnKind

MAX_HEADER_TOKENS = 32
"""Tokens behind the end of the last message of a prompt in which its end is looked for: the header of the reply."""
MAX_RECENT, MAX_RECENT_OWNERS = 64, 64
"""Sessions of one principal that snapshots may show, and principals."""
OVERDUE_SHARE = 0.98
"""A session is overdue when so many of all returns come sooner."""
EVICTED, STATE_EVICTED, REWRITTEN = "evicted", "state evicted", "rewritten"
"""Why returning tokens are computed again: their pages or their state left the pool, or the client wrote the reply in another way."""


class EngineSessions:
    """Follows the requests of one engine. Used on the engine thread.

    Args:
        cache: of the engine.

    Attributes:
        table, residency: the sessions, and those that are worked on.
        num_returning_tokens, num_cached_tokens: sums over all sessions since the start; see `Session`.
        num_forks: sessions that were forked from others.
    """

    def __init__(self, cache: PrefixCache) -> None:
        self.pages = SessionPages(cache)
        self.residency = Residency(cache.num_pages * cache.page_size, self._left)
        self.table = SessionTable(self._forget)
        self.num_returning_tokens = self.num_cached_tokens = self.num_forks = 0
        self._cache, self._page_size = cache, cache.page_size
        self._recent: OrderedDict[str, dict[Session, None]] = OrderedDict()  # by owner, the one seen last at the end

    def begin(
        self,
        principal: Principal,
        prompt_ids: Sequence[int],
        scope: CacheScope,
        eos_ids: Collection[int],
        options: SessionOptions | None,
        now: float,
    ) -> Turn:
        """A request arrives.

        Args:
            scope: of the prompt.
            eos_ids: tokens that end messages.
            options: of the request, if its door gave any.
        """
        border = message_border(prompt_ids, eos_ids)
        turn = self.table.begin(principal.name, principal.namespace, prompt_ids, border, now)
        session = turn.session
        if self.residency.is_full and self.residency.is_resident(session):  # before all that wait for room
            turn.arrival_s = max(session.first_seen_s, now - LEAD_S - MAX_WAIT_S)
        if turn.kind is TurnKind.NEW:
            session.num_shared_tokens = session.num_root_tokens = self._cache.num_in_pages(prompt_ids, scope)
        self.num_forks += turn.kind is TurnKind.FORK
        self._note(session)
        turn.is_of_chat = options is not None
        if options is not None:
            if options.key is not None:
                session.key_digest = blake2b(options.key.encode(), digest_size=4).hexdigest()
            session.keep_s = options.keep_s
        return turn

    def may_start(self, turn: Turn, waited_s: float, now: float, *, is_behind: bool) -> bool:
        """Whether a request that waits has its turn among the sessions; see `Residency`."""
        session = turn.session
        if turn.is_started or not turn.is_of_chat:
            return True
        num_own = session.num_prompt_tokens - session.num_root_tokens
        return self.residency.may_start(session, num_own, waited_s, now, is_behind=is_behind)

    def start(self, turn: Turn) -> None:
        """A request has got a row, perhaps again."""
        if not turn.is_started:
            turn.is_started = True
            turn.session.num_started += 1
            if turn.is_of_chat:
                self.residency.start(turn.session)

    def end(
        self,
        turn: Turn,
        token_ids: Sequence[int],
        num_prompt: int,
        text: str,
        scope: CacheScope,
        options: SessionOptions | None,
        now: float,
        *,
        num_cached: int | None,
        num_replayed: int = 0,
    ) -> None:
        """A request has ended, and its pages are in the tree.

        Args:
            token_ids, num_prompt: of prompt and output, and the number of those of the prompt.
            text: of the output, in which tool calls are looked for.
            num_cached: tokens of its prompt that were cached; None if it was never computed.
            num_replayed: tokens after these whose pages were stored, but no state.
        """
        if not turn.is_open:
            return
        session = turn.session
        marks = () if options is None else options.call_marks
        reply = ReplyKind.CALLS if any(mark in text for mark in marks) else ReplyKind.FINAL
        if turn.num_returning_tokens and num_cached is not None:
            self._count(turn, min(num_cached, turn.num_returning_tokens), num_replayed)
        self.table.end(turn, token_ids[num_prompt:], reply, now)
        self._note(session)
        stays_until = None
        if reply is ReplyKind.CALLS or session.keep_s is not None:
            overdue_s = self.table.returns(session.owner, reply).overdue_s(OVERDUE_SHARE)
            stays_until = now + max(2 * overdue_s, session.keep_s or 0.0)
        if options is not None:
            self.pages.keep(session, token_ids, scope, is_certain=stays_until is not None)
        if turn.is_started:
            session.num_started -= 1
        if turn.is_started and turn.is_of_chat:
            self.residency.end(session, stays_until, now)

    def recent(self, count: int) -> list[Session]:
        """The sessions seen last of each principal, at most `count` in all, the last one first."""
        each_owner = max(1, count // max(1, len(self._recent)))
        found = [each for own in self._recent.values() for each in list(own)[-each_owner:]]
        return sorted(found, key=lambda each: each.last_seen_s, reverse=True)[:count]

    def state_of(self, session: Session) -> str:
        """What a session does: running, waiting, calling (its client runs tools) or answered."""
        if session.num_running:
            return "running" if session.num_started else "waiting"
        return "calling" if session.reply is ReplyKind.CALLS else "answered"

    def _note(self, session: Session) -> None:
        """A session was seen."""
        own = self._recent.setdefault(session.owner, {})
        own.pop(session, None)
        own[session] = None
        self._recent.move_to_end(session.owner)
        if len(own) > MAX_RECENT:
            del own[next(iter(own))]
        if len(self._recent) > MAX_RECENT_OWNERS:
            self._recent.popitem(last=False)

    def _left(self, family: Family, leaving: Leaving) -> None:
        gives_up = leaving is Leaving.SUSPENDED
        if leaving is Leaving.ANSWERED:  # less likely to be continued than what its principal works on
            gives_up = self.residency.is_contested(family.owner)
        for session in family.members:
            self.pages.let_go(session, gives_up=gives_up)

    def _forget(self, session: Session) -> None:
        self.residency.drop(session)
        self._recent.get(session.owner, {}).pop(session, None)
        self.pages.let_go(session)

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
