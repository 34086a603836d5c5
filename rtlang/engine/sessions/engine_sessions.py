"""The sessions of one engine: finds the session of each request and counts its returning and cached tokens."""

from __future__ import annotations

from collections import Counter, OrderedDict
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
"""Longest reply header, in tokens: the end of the last message is searched for in so many tokens at the end of a prompt."""
MAX_RECENT, MAX_RECENT_OWNERS = 64, 64
"""Bounds for snapshots: sessions of one principal, and principals."""
OVERDUE_SHARE = 0.98
"""A session is overdue once this share of all returns would have come."""
EVICTED, STATE_EVICTED, REWRITTEN = "evicted", "state evicted", "rewritten"
"""Reasons for computing returning tokens again: their pages or their state were evicted, or the client rewrote the reply."""


class EngineSessions:
    """Follows the requests of one engine. Used on the engine thread.

    Args:
        cache: of the engine.

    Attributes:
        table: all known sessions.
        residency: the sessions that the engine works on.
        num_returning_tokens, num_cached_tokens: sums over all sessions since the start; see `Session`.
        num_forks: sessions that were forked from others.
    """

    def __init__(self, cache: PrefixCache) -> None:
        self.pages = SessionPages(cache)
        self.residency = Residency(cache.num_pages * cache.page_size, self._left)
        self.table = SessionTable(self._forget)
        self.num_returning_tokens = self.num_cached_tokens = self.num_forks = 0
        self._cache, self._page_size = cache, cache.page_size
        self._num_waiting: Counter[str] = Counter()  # own tokens of chats that have not started, by owner
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
        """Find the session of a request that arrives.

        Args:
            scope: cache scope of the prompt.
            eos_ids: tokens that end messages.
            options: from the door of the request; None for requests that are no chats.
        """
        border = message_border(prompt_ids, eos_ids)
        turn = self.table.begin(principal.name, principal.namespace, prompt_ids, border, now)
        session = turn.session
        if self.residency.is_full and self.residency.is_resident(session):  # before all that wait for room
            turn.arrival_s = max(session.first_seen_s, now - LEAD_S - MAX_WAIT_S)
        if not self.residency.takes_turns(session.owner):
            turn.service_s = session.service_s
        if turn.kind is TurnKind.NEW:
            session.num_shared_tokens = session.num_root_tokens = self._cache.num_in_pages(prompt_ids, scope)
        self.num_forks += turn.kind is TurnKind.FORK
        self._note(session)
        turn.is_of_chat = options is not None
        if turn.is_of_chat:
            turn.num_own_tokens = max(0, session.num_prompt_tokens - session.num_root_tokens)
            self._num_waiting[session.owner] += turn.num_own_tokens
        if options is not None:
            if options.key is not None:
                session.key_digest = blake2b(options.key.encode(), digest_size=4).hexdigest()
            session.keep_s = options.keep_s
        return turn

    def may_start(
        self, turn: Turn, waited_s: float, token_s: float, now: float, refused: set[tuple[str, bool]]
    ) -> bool:
        """Whether a request that waits has its turn among the sessions; see `Residency`.

        Args:
            token_s: expected time of computing a token of a prompt, 0 if unknown.
            refused: owners of requests that go before it and were refused, and whether their sessions are new; this one is added if it is.
        """
        session = turn.session
        if turn.is_started or not turn.is_of_chat:
            return True
        if waited_s >= self.residency.longest_wait_s(session.owner, self._num_waiting[session.owner], token_s):
            return True
        is_new = turn.kind is TurnKind.NEW
        kind = session.owner, is_new
        if self.residency.may_start(session, turn.num_own_tokens, now, is_new=is_new, is_behind=kind in refused):
            return True
        refused.add(kind)
        return False

    def start(self, turn: Turn) -> None:
        """Note that a request has a row. Repeated calls do nothing."""
        if not turn.is_started:
            turn.is_started = True
            turn.session.num_started += 1
            if turn.is_of_chat:
                self._note_waited(turn)
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
        """Note the end of a request whose pages are in the tree.

        Args:
            token_ids: prompt and output.
            num_prompt: number of prompt tokens in `token_ids`.
            text: output text, searched for the marks of tool calls.
            num_cached: cached prompt tokens; None if the prompt was never computed.
            num_replayed: prompt tokens after them with stored pages but without a stored state.
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
        elif turn.is_of_chat:
            self._note_waited(turn)
        if turn.is_started and turn.is_of_chat:
            self.residency.end(session, stays_until, now)

    def recent(self, count: int) -> list[Session]:
        """The most recent sessions of each principal, at most `count` in all, newest first."""
        each_owner = max(1, count // max(1, len(self._recent)))
        found = [each for own in self._recent.values() for each in list(own)[-each_owner:]]
        return sorted(found, key=lambda each: each.last_seen_s, reverse=True)[:count]

    def state_of(self, session: Session) -> str:
        """State of a session: running, waiting, calling (its client runs tools) or answered."""
        if session.num_running:
            return "running" if session.num_started else "waiting"
        return "calling" if session.reply is ReplyKind.CALLS else "answered"

    def _note_waited(self, turn: Turn) -> None:
        """A request of a chat waits for its turn no longer."""
        owner = turn.session.owner
        self._num_waiting[owner] -= turn.num_own_tokens
        if not self._num_waiting[owner]:
            del self._num_waiting[owner]

    def _note(self, session: Session) -> None:
        """Move a session to the end of the recent ones of its principal."""
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
        if leaving is Leaving.ANSWERED:  # less likely to be continued than the residents of its principal
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
