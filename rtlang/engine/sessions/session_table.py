"""Finds the session that a request continues, by the tokens of its prompt alone.

A request continues a session if its prompt begins with the prompt and the output of an earlier request, or with that prompt up to the
end of its last message: then the client wrote the reply in another way than it was generated. The longest such beginning counts. If the
session has gone on from there already, the request is a *fork*, a session of its own, as sub-agents are.

Each known beginning is a *point*: a digest (`token_chain.py`) in a dictionary. For each block border of the prompt, from the last one on, a
look-up tries the lengths that points have after it, longest first. So a request costs the hashing of its tokens and at most `MAX_TRIES`
look-ups, however many sessions there are.

Everything belongs to an owner, a principal by name; within it each namespace has digests of its own. Points are bounded per session, per
owner and in all: the oldest of the largest owner goes first, so that nobody displaces others who have less. Pure: time is an argument.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import blake2b

from rtlang.engine.sessions.return_times import HORIZON_S, ReplyKind, ReturnTimes
from rtlang.engine.sessions.token_chain import BLOCK_TOKENS, TokenChain, digest_after

LEAD_S = 30.0
"""Most seconds by which a session goes before new ones that come when it returns."""
MAX_POINTS = 1 << 16
"""Points in all: about 25 MB."""
MAX_OWNER_POINTS = 1 << 13
MAX_SESSION_POINTS = 64
MAX_OWNERS = 1024
MAX_TRIES = 256
"""Look-ups of lengths after block borders for one prompt; only short sequences that share their blocks can need more."""


class TurnKind(Enum):
    """Relation of a request to earlier sessions."""

    NEW = auto()
    CONTINUED = auto()
    FORK = auto()
    SIBLING = auto()  # the same prompt as a request that runs, such as a further choice


@dataclass(slots=True, eq=False)
class Session:
    """A chain of requests. Owned by one `SessionTable`.

    Attributes:
        session_id: from 1 on, in the order of their beginning.
        owner, namespace: the principal by name, and its part of the prefix cache.
        root_id: the first session of the chain of forks, which may be itself.
        parent_id: the session from which it was forked; None if it began with a new prompt.
        num_shared_tokens: tokens at its beginning that it shares with its parent, or without one with the stored sequences.
        num_root_tokens: tokens at its beginning that its root shares with sessions outside the chain.
        num_turns: number of requests without siblings.
        num_forks: sessions that were forked from it.
        num_tokens: length of its longest sequence so far.
        num_prompt_tokens: length of the prompt of its last request.
        num_reply_tokens: length of the output that ended last.
        num_returning_tokens: prompt tokens of all turns that an earlier turn had.
        num_cached_tokens: returning tokens that were in the prefix cache.
        last_miss: reason of the last turn that computed returning tokens again; None if no turn did.
        first_seen_s: start of its first request; of a fork, of its root's.
        last_seen_s: last start or end of a request.
        num_running: requests that have not ended.
        num_started: running requests that have had a row.
        reply: kind of the last reply.
        key_digest: digest of the client's name for it, 8 hex digits; None without a name.
        keep_s: seconds for which the client asked to keep it after a reply; None if it did not ask.
        service_s: engine time spent on it, in seconds.
        points: digests of its known beginnings, the oldest first.
    """

    session_id: int
    owner: str
    namespace: str
    root_id: int
    parent_id: int | None
    first_seen_s: float
    last_seen_s: float
    num_shared_tokens: int = 0
    num_root_tokens: int = 0
    num_turns: int = 0
    num_forks: int = 0
    num_tokens: int = 0
    num_prompt_tokens: int = 0
    num_reply_tokens: int = 0
    num_returning_tokens: int = 0
    num_cached_tokens: int = 0
    last_miss: str | None = None
    num_running: int = 0
    num_started: int = 0
    reply: ReplyKind = ReplyKind.FINAL
    key_digest: str | None = None
    keep_s: float | None = None
    service_s: float = 0.0
    points: deque[bytes] = field(default_factory=deque)

    @property
    def is_expected(self) -> bool:
        """Whether it runs, or its client is to send results of tool calls."""
        return self.num_running > 0 or self.reply is ReplyKind.CALLS


@dataclass(slots=True, eq=False)
class Turn:
    """One request of a session.

    Attributes:
        num_returning_tokens: tokens of the prompt that an earlier request had.
        is_rewritten: whether the client wrote the last reply differently from its tokens.
        idle_s: seconds since the last reply; None for a session without one.
        arrival_s: when it came; of a session that was there before, the time of its beginning, but at most `LEAD_S` earlier.
        num_own_tokens: of its prompt, without what its session shares with others; 0 if it does not answer a chat.
        service_s: seconds of computing for the session before, as far as they count for the order.
        opening: a digest of the first block of its prompt, which sessions with the same system prompt have in common.
        is_of_chat: whether it answers a chat, as its door says.
        is_started: whether it has had a row.
        is_open: whether it has not ended.
    """

    session: Session
    kind: TurnKind
    num_returning_tokens: int
    is_rewritten: bool
    idle_s: float | None
    chain: TokenChain
    arrival_s: float = 0.0
    num_own_tokens: int = 0
    service_s: float = 0.0
    opening: bytes = b""
    is_of_chat: bool = False
    is_started: bool = False
    is_open: bool = True


@dataclass(slots=True, eq=False)
class _Point:
    session: Session
    border: bytes  # the digest at the block border before it
    num_rest: int  # its tokens after that border
    num_tokens: int
    turn: int  # number of the turn of the session
    is_border: bool  # it ends in a prompt, else with an output


class _Owner:
    """The sessions of one principal."""

    __slots__ = ("lengths", "points", "replies", "returns", "sessions")

    def __init__(self) -> None:
        self.points: OrderedDict[bytes, _Point] = OrderedDict()  # the one used last at the end
        self.lengths: dict[bytes, dict[int, int]] = {}  # by digest at a block border: points by their tokens after it
        self.sessions: dict[int, Session] = {}
        self.returns = {kind: ReturnTimes(kind) for kind in ReplyKind}
        self.replies: deque[tuple[float, Session, int]] = deque(maxlen=MAX_OWNER_POINTS)  # time, session, turn

    def settle(self, now: float) -> None:
        """Count the replies that were not continued in time."""
        while self.replies and now - self.replies[0][0] > HORIZON_S:
            _, session, turn = self.replies.popleft()
            if session.num_turns == turn and not session.num_running:
                self.returns[session.reply].note_end()


class SessionTable:
    """The sessions of all principals. Used by one thread at a time.

    Args:
        on_drop: called with each session that is forgotten.
        max_points, max_owner_points: bounds on the memory.

    Attributes:
        num_tries: look-ups of points so far.
    """

    def __init__(
        self,
        on_drop: Callable[[Session], None] = lambda session: None,
        *,
        max_points: int = MAX_POINTS,
        max_owner_points: int = MAX_OWNER_POINTS,
    ) -> None:
        self.num_tries = 0
        self._on_drop = on_drop
        self._max_points, self._max_owner_points = max_points, max_owner_points
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        self._num_points = self._last_id = 0

    def __iter__(self) -> Iterator[Session]:
        """The sessions of all owners, in the order in which the owners were last seen."""
        for owner in self._owners.values():
            yield from owner.sessions.values()

    def returns(self, owner: str, kind: ReplyKind) -> ReturnTimes:
        """The times after which replies to a principal are continued."""
        return self._owner(owner).returns[kind]

    def begin(self, owner: str, namespace: str, prompt_ids: Sequence[int], num_border: int, now: float) -> Turn:
        """A request arrives.

        Args:
            num_border: tokens of the prompt up to the end of its last message, at most all.
        """
        own = self._owner(owner)
        own.settle(now)
        chain = TokenChain(blake2b(f"{namespace}\0{owner}".encode(), key=self._secret, digest_size=16).digest())
        chain.extend(prompt_ids[:num_border])
        border = chain.end()
        chain.extend(prompt_ids[num_border:])
        found = self._find(own, chain, prompt_ids)
        turn = self._place(own, owner, namespace, found, chain, len(prompt_ids), now)
        turn.opening = chain.digests[min(1, len(chain.digests) - 1)]
        chain.trim()
        session = turn.session
        turn.arrival_s = max(session.first_seen_s, now - LEAD_S)
        session.num_running += 1
        session.last_seen_s, session.num_prompt_tokens = now, len(prompt_ids)
        session.num_tokens = max(session.num_tokens, len(prompt_ids))
        if num_border:
            self._add(own, session, border, num_border, is_border=True)
        return turn

    def end(self, turn: Turn, output_ids: Sequence[int], reply: ReplyKind, now: float) -> None:
        """A request has ended with this output, which may be empty. Does nothing if it has ended before."""
        if not turn.is_open:
            return
        turn.is_open = False
        session, chain = turn.session, turn.chain
        session.last_seen_s, session.reply, session.num_reply_tokens = now, reply, len(output_ids)
        own = self._owner(session.owner)
        if own.sessions.get(session.session_id) is not session:  # its owner was forgotten while it ran
            session.num_running -= 1
            return
        own.replies.append((now, session, session.num_turns))
        if output_ids:
            chain.extend(output_ids)
            self._add(own, session, chain.end(), len(chain), is_border=False)
            session.num_tokens = max(session.num_tokens, len(chain))
        session.num_running -= 1
        if not session.points and not session.num_running:
            self._forget(own, session)

    def check(self) -> None:
        """Verify the counts and bounds; for tests."""
        assert sum(len(own.points) for own in self._owners.values()) == self._num_points <= self._max_points
        assert len(self._owners) <= MAX_OWNERS
        for own in self._owners.values():
            assert len(own.points) <= self._max_owner_points
            assert sum(sum(each.values()) for each in own.lengths.values()) == len(own.points)
            for digest, point in own.points.items():
                assert own.sessions[point.session.session_id] is point.session
                assert digest in point.session.points
            for session in own.sessions.values():
                assert session.num_running or session.points
                assert len(session.points) <= MAX_SESSION_POINTS

    def _owner(self, name: str) -> _Owner:
        own = self._owners.get(name)
        if own is None:
            own = self._owners[name] = _Owner()
            if len(self._owners) > MAX_OWNERS:
                _, oldest = self._owners.popitem(last=False)
                self._num_points -= len(oldest.points)
                for session in oldest.sessions.values():
                    self._on_drop(session)
        self._owners.move_to_end(name)
        return own

    def _find(self, own: _Owner, chain: TokenChain, prompt_ids: Sequence[int]) -> _Point | None:
        """The longest known beginning of a prompt."""
        num_tries = 0
        for block in range(len(chain.digests) - 1, -1, -1):
            lengths = own.lengths.get(chain.digests[block])
            if lengths is None:
                continue
            start = block * BLOCK_TOKENS
            rest = prompt_ids[start : start + BLOCK_TOKENS]
            for length in sorted(lengths, reverse=True):
                if length > len(rest):
                    continue
                num_tries += 1
                digest = digest_after(chain.digests[block], rest[:length])
                point = own.points.get(digest)
                if point is not None:
                    own.points.move_to_end(digest)
                if point is not None or num_tries >= MAX_TRIES:
                    self.num_tries += num_tries
                    return point
        self.num_tries += num_tries
        return None

    def _place(
        self,
        own: _Owner,
        owner: str,
        namespace: str,
        found: _Point | None,
        chain: TokenChain,
        num_tokens: int,
        now: float,
    ) -> Turn:
        if found is None:
            session = self._new(own, owner, namespace, None, now)
            return Turn(session, TurnKind.NEW, 0, False, None, chain)
        session = found.session
        is_present = found.turn == session.num_turns
        if is_present and session.num_running and num_tokens == session.num_prompt_tokens:
            return Turn(session, TurnKind.SIBLING, found.num_tokens, False, None, chain)
        if not is_present or session.num_running:
            session.num_forks += 1
            fork = self._new(own, owner, namespace, session, now)
            fork.num_shared_tokens, fork.num_root_tokens = found.num_tokens, session.num_root_tokens
            fork.service_s = session.service_s
            return Turn(fork, TurnKind.FORK, found.num_tokens, False, None, chain)
        idle_s = now - session.last_seen_s
        own.returns[session.reply].note_return(idle_s)
        session.num_turns += 1
        is_rewritten = found.is_border and session.num_reply_tokens > 0 and num_tokens > session.num_prompt_tokens
        return Turn(session, TurnKind.CONTINUED, found.num_tokens, is_rewritten, idle_s, chain)

    def _new(self, own: _Owner, owner: str, namespace: str, parent: Session | None, now: float) -> Session:
        self._last_id += 1
        number, parent_id = self._last_id, None if parent is None else parent.session_id
        root_id, first_seen_s = (number, now) if parent is None else (parent.root_id, parent.first_seen_s)
        session = Session(number, owner, namespace, root_id, parent_id, first_seen_s, now, num_turns=1)
        own.sessions[session.session_id] = session
        return session

    def _add(
        self, own: _Owner, session: Session, end: tuple[bytes, int, bytes], num_tokens: int, *, is_border: bool
    ) -> None:
        """Add a point to a session, or give it to this one if another has it."""
        border, num_rest, digest = end
        if digest in own.points:
            self._drop(own, digest)
        own.points[digest] = _Point(session, border, num_rest, num_tokens, session.num_turns, is_border)
        lengths = own.lengths.setdefault(border, {})
        lengths[num_rest] = lengths.get(num_rest, 0) + 1
        self._num_points += 1
        session.points.append(digest)
        if len(session.points) > MAX_SESSION_POINTS:
            self._drop(own, session.points[0])
        if len(own.points) > self._max_owner_points:
            self._drop(own, next(iter(own.points)))
        elif self._num_points > self._max_points:
            largest = max(self._owners.values(), key=lambda each: len(each.points))
            self._drop(largest, next(iter(largest.points)))

    def _drop(self, own: _Owner, digest: bytes) -> None:
        """Forget a point, and its session if that has no other and does not run."""
        point = own.points.pop(digest)
        self._num_points -= 1
        lengths = own.lengths[point.border]
        lengths[point.num_rest] -= 1
        if not lengths[point.num_rest]:
            del lengths[point.num_rest]
            if not lengths:
                del own.lengths[point.border]
        session = point.session
        session.points.remove(digest)
        if not session.points and not session.num_running:
            self._forget(own, session)

    def _forget(self, own: _Owner, session: Session) -> None:
        if own.sessions.pop(session.session_id, None) is not None:
            self._on_drop(session)
