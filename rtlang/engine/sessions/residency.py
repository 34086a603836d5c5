"""Chooses the sessions that the engine works on: as many as the pool has room for, oldest first. Others wait before they start.

Agents that take turns in a pool that is too small evict each other's pages just before they are needed. So the engine works on sessions
whose own tokens fit into the pool together: these are *resident*. A session becomes resident when one of its requests starts. It leaves
when it has got a final answer, when it is not continued for longer than nearly all others are, or when the residents outgrow the pool: then
the youngest that waits for its client leaves. A session that is not resident waits for room, but no longer than `MAX_WAIT_S`. Source:
Denning 1968, who limits the working sets of processes in the same way.

A new session has little of its own beside its system prompt, and starts as long as that fits. One that was there before has a long prompt
to compute, and returns only when there is room to grow: otherwise it would soon leave again, and wait in many turns in place of one. Where
very many wait, sessions take turns, and each wait is bounded by the time of the prompts that wait.

Forks belong to the session from which they were forked: it is waiting for them. Principals have equal parts of the room while several use
it, and one without a resident never waits. Pure: time is an argument.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count

from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import Session

MAX_WAIT_S = 120.0
"""Longest wait of a session for room."""
ROOM_SHARE = 0.9
"""Share of the pool for the tokens of residents: running requests grow."""
RETURN_SHARE = 0.48
"""Share of the pool that residents fill at most when a session becomes resident again, since residents grow. In simulations, sessions left
more often with larger shares, and waited for longer with smaller ones."""
CROWD, PATIENCE = 1.5, 3.0
"""When prompts with more than `CROWD` times the tokens of their owner's part of the room wait, sessions take turns, since some would wait
too long for the others to end: the one that is resident for longest leaves, and a request waits for at most `PATIENCE` times the time of
computing all prompts that wait. So about a third of the machine's time is spent on prompts that were computed before."""
GRACE_S = 1.0
"""Time for which a session with a final answer may go on without waiting: it may be the sub-agent of one that goes on now."""
RENEWED_S = 1.0
"""Time until an overdue session that has come back and waits is checked again."""


class Leaving(Enum):
    """Why a session is no longer resident."""

    ANSWERED = auto()
    OVERDUE = auto()
    SUSPENDED = auto()


@dataclass(slots=True, eq=False)
class Family:
    """A resident session and its forks.

    Attributes:
        owner: the principal by name.
        arrival_s: when the session began.
        members: its sessions with the tokens that each shares with no other.
        num_tokens: of all members.
        starts: by member, the tokens at its beginning that other sessions have too.
        started: by member, the number of its requests that have started and not ended.
        latest_s: the latest time up to which a member is expected to be continued.
        expires_s: when it leaves if nothing of it starts before.
    """

    root_id: int
    owner: str
    arrival_s: float
    members: dict[Session, int] = field(default_factory=dict)
    starts: dict[Session, int] = field(default_factory=dict)
    num_tokens: int = 0
    started: Counter[Session] = field(default_factory=Counter)
    latest_s: float = 0.0
    expires_s: float = float("inf")

    @property
    def num_started(self) -> int:
        """Requests of all members that have started and not ended."""
        return self.started.total()


class Residency:
    """The resident sessions of one engine. Used by one thread at a time.

    Args:
        num_tokens: of the pool.
        on_leave: called with each family that leaves.

    Attributes:
        num_tokens: own tokens of all residents.
        num_suspended: families that left because there was no room.
    """

    def __init__(
        self, num_tokens: int, on_leave: Callable[[Family, Leaving], None] = lambda family, leaving: None
    ) -> None:
        self.num_tokens = self.num_suspended = 0
        self._room, self._return_room = int(num_tokens * ROOM_SHARE), int(num_tokens * RETURN_SHARE)
        self._on_leave = on_leave
        self._families: dict[int, Family] = {}  # by root session, in the order in which they became resident
        self._answered: OrderedDict[int, tuple[float, Family]] = (
            OrderedDict()
        )  # by root session: until when it counts as resident
        self._by_owner: Counter[str] = Counter()  # tokens
        self._crowded: set[str] = set()  # owners whose sessions take turns
        self._expiring: list[tuple[float, int, Family]] = []
        self._serial = count()

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families.values())

    @property
    def is_full(self) -> bool:
        """Whether a session that is not resident may have to wait."""
        return self.num_tokens > self._return_room

    def takes_turns(self, owner: str) -> bool:
        """Whether so many sessions of an owner wait that they take turns."""
        return owner in self._crowded

    def is_resident(self, session: Session) -> bool:
        """Whether a session is resident, or was until its final answer a moment ago."""
        return session.root_id in self._families or session.root_id in self._answered

    def may_start(self, session: Session, num_own: int, now: float, *, is_new: bool, is_behind: bool) -> bool:
        """Whether there is room for a session, so that its request may start now.

        Args:
            num_own: tokens of its prompt that it shares with no other session.
            is_new: whether it is the first request of its session and of that from which it was forked.
            is_behind: whether another of the same owner that goes before it waits for room, and is new if this one is.
        """
        self._expire(now)
        own = self._by_owner[session.owner]
        if self.is_resident(session) or not own:
            return True
        if is_behind:
            return False
        others = len(self._by_owner) - 1
        if others > 0 and own + num_own <= self._room / (1 + others):
            return True
        return self.num_tokens + num_own <= self._room and (is_new or self.num_tokens <= self._return_room)

    def longest_wait_s(self, owner: str, num_waiting: int, token_s: float) -> float:
        """The time after which a request starts in any case.

        Args:
            num_waiting: own tokens of all prompts of its owner that wait.
            token_s: expected time of computing a token of a prompt, 0 if unknown.
        """
        if not token_s or num_waiting * len(self._by_owner) <= CROWD * self._room:
            self._crowded.discard(owner)
            return MAX_WAIT_S
        self._crowded.add(owner)
        return min(MAX_WAIT_S, PATIENCE * num_waiting * token_s)

    def start(self, session: Session) -> None:
        """Note that a request of a session starts, which makes the session resident."""
        family = self._families.get(session.root_id)
        if family is None:
            family = self._families[session.root_id] = Family(session.root_id, session.owner, session.first_seen_s)
        family.started[session] += 1
        family.expires_s = float("inf")
        if session not in family.members:
            self._take_over(family, session)
        self._set_own(family, session, session.num_prompt_tokens - family.starts[session])

    def end(self, session: Session, stays_until: float | None, now: float) -> None:
        """Note the end of a started request.

        Args:
            stays_until: time until which the session stays resident without being continued; None after a final answer.
        """
        family = self._families.get(session.root_id)
        if family is None or not family.started[session]:
            return
        family.started[session] -= 1
        self._set_own(family, session, session.num_tokens - family.starts[session])
        if stays_until is not None:
            family.latest_s = max(family.latest_s, stays_until)
        elif any(each is not session and each.is_expected for each in family.members):
            if not family.started[session]:  # a sub-agent
                self._remove_member(family, session)
        elif not family.num_started:
            self._remove(family)
            self._answered[session.root_id] = now + GRACE_S, family
            self._answered.move_to_end(session.root_id)
            return
        if not family.num_started:
            family.expires_s = max(family.latest_s, now + RENEWED_S)
            heapq.heappush(self._expiring, (family.expires_s, next(self._serial), family))
        while (
            self.num_tokens > self._room and len(self._families) > 1 and (leaving := self._next_to_leave()) is not None
        ):
            self.num_suspended += 1
            self._leave(leaving, Leaving.SUSPENDED)

    def is_contested(self, owner: str) -> bool:
        """Whether the residents of an owner take more than half of the room."""
        return self._by_owner[owner] > self._room / 2

    def drop(self, session: Session) -> None:
        """Remove a session that the table has forgotten."""
        family = self._families.get(session.root_id)
        if family is not None and session in family.members:
            self._remove_member(family, session)
            if not family.members:
                self._leave(family, Leaving.OVERDUE)

    def check(self) -> None:
        """Verify the sums; for tests."""
        families = self._families.values()
        assert self.num_tokens == sum(each.num_tokens for each in families) == self._by_owner.total()
        assert all(each.num_tokens == sum(each.members.values()) for each in families)
        assert all(each.num_started >= 0 for each in families)
        assert self._crowded <= set(self._by_owner)
        assert set(self._by_owner) <= {each.owner for each in families}

    def _next_to_leave(self) -> Family | None:
        """Of the owner with the most tokens that has one, a family without a started request: the youngest, or in turn if it is crowded."""
        idle = [each for each in self._families.values() if not each.num_started]
        if not idle:
            return None
        owner = max((each.owner for each in idle), key=lambda name: self._by_owner[name])
        own = (each for each in idle if each.owner == owner)
        return next(own) if owner in self._crowded else max(own, key=lambda each: each.arrival_s)

    def _leave(self, family: Family, leaving: Leaving) -> None:
        self._remove(family)
        self._on_leave(family, leaving)

    def _remove(self, family: Family) -> None:
        del self._families[family.root_id]
        self._count(family.owner, -family.num_tokens)

    def _take_over(self, family: Family, session: Session) -> None:
        """A session becomes a member. A fork shares the tokens of its parent, if that is one.

        A fork of a session with a final answer continues after a sub-agent, whose own tokens are not needed any more.
        """
        parent = next((each for each in family.members if each.session_id == session.parent_id), None)
        family.members[session] = 0
        family.starts[session] = session.num_root_tokens if parent is None else session.num_shared_tokens
        if parent is not None and not parent.num_running and parent.reply is ReplyKind.FINAL:
            self._set_own(family, parent, session.num_shared_tokens - family.starts[parent])

    def _remove_member(self, family: Family, session: Session) -> None:
        self._set_own(family, session, 0)
        del family.members[session], family.starts[session], family.started[session]

    def _set_own(self, family: Family, session: Session, num_tokens: int) -> None:
        num_more = max(0, num_tokens) - family.members[session]
        family.members[session] += num_more
        family.num_tokens += num_more
        self._count(family.owner, num_more)

    def _count(self, owner: str, num_more: int) -> None:
        self.num_tokens += num_more
        self._by_owner[owner] += num_more
        if not self._by_owner[owner]:
            del self._by_owner[owner]
            self._crowded.discard(owner)

    def _expire(self, now: float) -> None:
        while self._answered and next(iter(self._answered.values()))[0] <= now:
            root_id, (_, family) = self._answered.popitem(last=False)
            if root_id not in self._families:
                self._on_leave(family, Leaving.ANSWERED)
        while self._expiring and self._expiring[0][0] <= now:
            _, _, family = heapq.heappop(self._expiring)
            is_present = self._families.get(family.root_id) is family
            if not is_present or family.expires_s > now or family.num_started:
                continue
            if any(session.num_running for session in family.members):  # it came back, and waits
                family.expires_s = now + RENEWED_S
                heapq.heappush(self._expiring, (family.expires_s, next(self._serial), family))
            else:
                self._leave(family, Leaving.OVERDUE)
