"""Rules for single requests in place of the router of a real fleet, written anew as Ray Serve's are published."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from random import Random

from rtlang.fleet.routing.router import CAPACITY_TOKENS, ProgramWork, Router
from rtlang.fleet.routing.sent_index import SentIndex

IMBALANCED_THRESHOLD = 10
LEAST_MATCH = 0.1


class PowerOfTwo(Router):
    """The one of two replicas that has fewer requests: the default of Ray Serve."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._draws = Random(seed)
        self._num_requests: dict[str, int] = {}

    def add(self, name: str, capacity_tokens: int | None = None) -> None:
        """See `Router.add`."""
        super().add(name, capacity_tokens)
        self._num_requests[name] = 0

    def remove(self, name: str) -> None:
        """See `Router.remove`."""
        super().remove(name)
        del self._num_requests[name]

    def choose(self, work: ProgramWork, among: Collection[str] | None = None) -> str:
        """See `Router.choose`."""
        names = [name for name in self._num_requests if among is None or name in among]
        if not names:
            raise LookupError("there is no replica to choose from")
        name = self._chosen(names, work)
        self._num_requests[name] += 1
        return name

    def ended(self, name: str, work: ProgramWork) -> None:
        """See `Router.ended`."""
        if self._num_requests.get(name):
            self._num_requests[name] -= 1

    def _chosen(self, names: list[str], work: ProgramWork) -> str:
        two = names if len(names) < 2 else self._draws.sample(names, 2)
        return min(two, key=self._num_requests.__getitem__)


class PrefixAffinity(PowerOfTwo):
    """Ray Serve's prefix affinity: of the replicas that were sent the longest part of the prompt the one with fewer requests.

    If the part is less than 0.1 of the prompt, the replica to which the fewest blocks were sent; while the numbers of requests differ by
    more than 10, power of two.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._sent = SentIndex()

    def add(self, name: str, capacity_tokens: int | None = None) -> None:
        """See `Router.add`."""
        super().add(name, capacity_tokens)
        self._sent.add(name, capacity_tokens or CAPACITY_TOKENS)

    def remove(self, name: str) -> None:
        """See `Router.remove`."""
        super().remove(name)
        self._sent.remove(name)

    def _chosen(self, names: list[str], work: ProgramWork) -> str:
        name = self._by_prefix(names, work)
        self._sent.note(name, work.digests, work.tokens_per_block)
        return name

    def _by_prefix(self, names: list[str], work: ProgramWork) -> str:
        numbers = [self._num_requests[name] for name in names]
        if max(numbers) - min(numbers) > IMBALANCED_THRESHOLD:
            return super()._chosen(names, work)
        path = self._sent.match(work.digests)
        held = {name: max((match.held_by(name) for match in path), default=0) for name in names}
        longest = max(held.values())
        if longest and longest >= LEAST_MATCH * len(work.digests):
            return min([name for name in names if held[name] == longest], key=self._num_requests.__getitem__)
        return min(names, key=self._sent.num_tokens)


class Exchangeable(Router):
    """A router that hands everything on to another one, which can be exchanged while nothing runs."""

    def __init__(self, rule: Router) -> None:
        super().__init__()
        self._rule = rule

    def exchange(self, rule: Router) -> None:
        """Use another, new rule."""
        for name in self.names:
            rule.add(name)
        self._rule = rule

    def add(self, name: str, capacity_tokens: int | None = None) -> None:
        """See `Router.add`."""
        super().add(name, capacity_tokens)
        self._rule.add(name, capacity_tokens)

    def remove(self, name: str) -> None:
        """See `Router.remove`."""
        super().remove(name)
        self._rule.remove(name)

    def report(self, name: str, waiting: float, on_their_way: Iterable[ProgramWork] = ()) -> None:
        """See `Router.report`."""
        self._rule.report(name, waiting, on_their_way)

    def choose(self, work: ProgramWork, among: Collection[str] | None = None) -> str:
        """See `Router.choose`."""
        return self._rule.choose(work, among)

    def ended(self, name: str, work: ProgramWork) -> None:
        """See `Router.ended`."""
        self._rule.ended(name, work)
