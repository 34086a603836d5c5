"""A queue in which clients take turns, and so do the channels of one client. Items of one channel stay in order."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class TurnQueue(Generic[_T]):
    """Items by client and channel. Not thread-safe. Every operation takes constant time."""

    def __init__(self) -> None:
        # The next client, and the next channel of each client, is the first one. No empty queues. (A dict would pass over all the places
        # that were taken before to find its first item.)
        self._clients: OrderedDict[Hashable, OrderedDict[int, deque[_T]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._clients)

    def put(self, client: Hashable, channel: int, items: Iterable[_T]) -> None:
        """Add items at the end of a channel."""
        items = deque(items)
        if not items:
            return
        found = self._clients.setdefault(client, OrderedDict()).setdefault(channel, items)
        if found is not items:
            found.extend(items)

    def put_back(self, client: Hashable, channel: int, item: _T) -> None:
        """Add an item at the front of a channel: the rest of one that was taken."""
        self._clients.setdefault(client, OrderedDict()).setdefault(channel, deque()).appendleft(item)

    def take(self) -> tuple[Hashable, int, _T]:
        """Remove and return the client, the channel and the item whose turn it is. There must be one."""
        client, channels = self._clients.popitem(last=False)
        channel, items = channels.popitem(last=False)
        item = items.popleft()
        if items:
            channels[channel] = items
        if channels:
            self._clients[client] = channels
        return client, channel, item
