"""Responses and conversations that later requests continue, in bounded memory.

Each principal has a share of its own: storing much drops the oldest entries of the same principal first, then the oldest of all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

MAX_BYTES = 64 << 20
_SHARE = 4  # one principal may use at most a quarter


class Stored(Protocol):
    """An entry of a store."""

    @property
    def key(self) -> str:
        """The id by which it is found."""

    @property
    def num_bytes(self) -> int:
        """Its size as JSON text, approximately."""


_Entry = TypeVar("_Entry", bound=Stored)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, and the items of its conversation up to and with its output, without instructions.

    Attributes:
        items: the items before it, its input and its output.
        num_input: the number of items before the output.
        num_bytes: size of all as JSON text, approximately.
    """

    response: dict[str, Any]
    items: tuple[dict[str, Any], ...]
    num_input: int
    num_bytes: int

    @property
    def key(self) -> str:
        """See `Stored`."""
        return str(self.response["id"])


class EntryStore(Generic[_Entry]):
    """The stored entries of a server. Thread-safe.

    Args:
        max_bytes: bound of the sizes of all entries together.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._found: OrderedDict[tuple[str, str], _Entry] = OrderedDict()  # the oldest first
        self._keys_of: dict[str, OrderedDict[str, None]] = {}  # of each principal, the oldest first
        self._num_bytes = 0
        self._bytes_of: dict[str, int] = {}

    @property
    def num_bytes(self) -> int:
        """Size of all entries, as JSON text."""
        return self._num_bytes

    def put(self, owner: str, entry: _Entry) -> bool:
        """Store an entry of a principal, in place of one with its key; False if it is larger than the principal's share."""
        size, share = entry.num_bytes, self._max_bytes // _SHARE
        if size > share:
            return False
        key = (owner, entry.key)
        with self._lock:
            if key in self._found:
                self._drop(key)
            self._found[key] = entry
            self._keys_of.setdefault(owner, OrderedDict())[entry.key] = None
            self._count(owner, size)
            while self._bytes_of[owner] > share:
                self._drop((owner, next(iter(self._keys_of[owner]))))
            while self._num_bytes > self._max_bytes:
                self._drop(next(iter(self._found)))
        return True

    def get(self, owner: str, key: str) -> _Entry | None:
        """The entry of a principal; None if it is unknown, was dropped, or belongs to another principal."""
        return self._found.get((owner, key))

    def of(self, owner: str) -> list[_Entry]:
        """All entries of a principal, the oldest first."""
        with self._lock:
            return [self._found[owner, key] for key in self._keys_of.get(owner, ())]

    def remove(self, owner: str, key: str) -> bool:
        """Forget an entry; whether it was known."""
        with self._lock:
            if (owner, key) not in self._found:
                return False
            self._drop((owner, key))
        return True

    def _drop(self, key: tuple[str, str]) -> None:
        owner, name = key
        self._count(owner, -self._found.pop(key).num_bytes)
        keys = self._keys_of[owner]
        del keys[name]
        if not keys:
            del self._keys_of[owner]

    def _count(self, owner: str, size: int) -> None:
        self._num_bytes += size
        self._bytes_of[owner] = self._bytes_of.get(owner, 0) + size
        if not self._bytes_of[owner]:
            del self._bytes_of[owner]


class ResponseStore(EntryStore[StoredResponse]):
    """The stored responses of a server."""
