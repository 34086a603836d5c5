"""Decides which operand of a decision wins, as early as that is certain."""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.request_graph import Decide

_KEY_CHARS = 100


class DecisionState:
    """The known values and ratings of the operands of a decision. Learning of one takes about the same time however many there are.

    The outcome of a vote without `need`, and that of "best", is the same in whatever order the operands become known: it is decided
    early only if nothing that is missing can change the winning value. At a tie the value of the earliest operand wins.
    """

    def __init__(self, node: Decide, fixed: int | None = None) -> None:
        self._how, self._need = node.how, node.need
        self._fixed = fixed  # the winner in the run that is repeated
        self._open = set(range(len(node.of)))  # operands without a value that may still have one
        self._values: dict[int, Any] = {}
        self._keys: dict[int, str] = {}  # of the known values of a vote
        self._votes: dict[str, list[int]] = {}  # the known operands by value, each list in their order
        self._by_count: dict[int, set[str]] = {}  # the values by their number of votes
        self._unrated = set(self._open) if node.how == "best" else set()
        self._rates: dict[int, Any] = {}
        self._is_ranking = False
        self._ranking: list[int] | None = None  # the rated operands, the best one last
        self._first: int | None = None

    def know(self, index: int, value: Any, key: str | None = None) -> None:
        """The operand `index` has this value. `key`: its `vote_key`, if that is known."""
        if index in self._open:
            self._open.discard(index)
            self._values[index] = value
            if self._how == "vote":
                key = self._keys[index] = vote_key(value) if key is None else key
                found = self._votes.setdefault(key, [])
                bisect.insort(found, index)
                self._count(key, len(found) - 1, len(found))
            if self._first is None:
                self._first = index

    def rate(self, index: int, by: Any) -> None:
        """The operand `index` is as good as this number."""
        self._unrated.discard(index)
        self._rates[index] = by

    def lose(self, index: int) -> None:
        """The operand `index` failed, or its rating did."""
        self._open.discard(index)
        self._values.pop(index, None)
        key = self._keys.pop(index, None)
        if key is not None:
            found = self._votes[key]
            found.remove(index)
            self._count(key, len(found) + 1, len(found))
            if not found:
                del self._votes[key]
        self._unrated.discard(index)
        self._rates.pop(index, None)
        if self._first == index:
            self._first = None

    def _count(self, key: str, before: int, now: int) -> None:
        """A value has another number of votes."""
        if before:
            self._by_count[before].discard(key)
            if not self._by_count[before]:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, set()).add(key)

    def begin_ranking(self) -> dict[int, Any] | None:
        """The ratings of "best", once all are known: `rank` has to follow, with their `ranking`. None before that, and the second time."""
        if self._how != "best" or self._unrated or not self._rates or self._is_ranking or self._ranking is not None:
            return None
        self._is_ranking = True
        return dict(self._rates)

    def rank(self, ranking: list[int]) -> None:
        """The operands that are rated, the best one last."""
        self._is_ranking, self._ranking = False, ranking

    @property
    def is_lost(self) -> bool:
        """Whether all operands failed."""
        return not self._open and not self._values

    def winner(self) -> int | None:
        """The operand that wins whatever follows; None if that is not certain yet."""
        if self._fixed in self._values:
            return self._fixed
        if self._fixed in self._open:
            return None
        if self._how == "first":
            return self._first
        return self._voted() if self._how == "vote" else self._best()

    def value(self, index: int) -> Any:
        """The value of a known operand."""
        return self._values[index]

    def is_open(self, index: int) -> bool:
        """Whether the operand has no value yet and may still have one."""
        return index in self._open

    def num_needed(self, held: Sequence[int]) -> int:
        """The number of open operands `held` to start, in order, so that the vote can be decided without the rest.

        The fewest with which the leading value wins if all that have started agree with it.
        """
        votes = dict(self._votes)
        leader = max(votes, key=lambda key: (len(votes[key]), -votes[key][0]), default="")
        known = votes.pop(leader, [])
        running = self._open.difference(held)
        rivals = [(len(found), found[0]) for found in votes.values()]
        most_rival = max((count for count, _ in rivals), default=0)
        for num_started in range(len(held)):
            count = len(known) + len(running) + num_started
            rest = held[num_started:]
            most = most_rival + len(rest)
            if self._need is not None and count >= self._need:
                return num_started
            if most < count:
                return num_started
            if most == count:  # the earliest wins a tie
                earliest = min((*known[:1], *running, *held[:num_started]))
                firsts = [first for found, first in rivals if found + len(rest) == count]
                if earliest < min((*firsts, *rest)):
                    return num_started
        return len(held)

    def _best(self) -> int | None:
        if self._unrated or not self._rates or self._is_ranking:
            return None
        if self._ranking is None:
            self._ranking = ranking(self._rates)
        while self._ranking[-1] not in self._rates:  # it was lost
            self._ranking.pop()
        best = self._ranking[-1]
        return best if best in self._values else None

    def _voted(self) -> int | None:
        if not self._votes:
            return None
        count, num_open = max(self._by_count), len(self._open)
        has_enough = self._need is not None and count >= self._need
        if num_open > count and not has_enough:
            return None
        leaders = self._by_count[count]
        leader = min(leaders, key=lambda key: self._votes[key][0])
        earliest = self._votes[leader][0]
        if has_enough or not num_open:
            return earliest
        rival = count if len(leaders) > 1 else max((each for each in self._by_count if each != count), default=0)
        if rival + num_open > count:
            return None
        if rival + num_open == count:  # a tie is possible
            tied = [self._votes[key][0] for key in self._by_count.get(rival, ()) if key != leader]
            if min([*tied, min(self._open)]) < earliest:
                return None
        return earliest


def ranking(rates: Mapping[int, Any]) -> list[int]:
    """The rated operands, the best one last; the earlier one is better at a tie.

    Raises:
        TypeError: some ratings cannot be compared.
    """
    return sorted(rates, key=lambda index: (rates[index], -index))


def vote_key(value: Any) -> str:
    """A short text that equal values of a vote have in common."""
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _KEY_CHARS else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
