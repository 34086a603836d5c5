"""Responses that later requests may continue, in bounded memory.

Each principal has a share of its own: storing many responses drops the oldest ones of the same principal first, then the oldest of all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 64 << 20
_SHARE = 4  # one principal may use at most a quarter


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, and the messages of its conversation up to and with its output, without instructions.

    Attributes:
        num_bytes: size of both as JSON text, approximately.
    """

    response: dict[str, Any]
    messages: tuple[dict[str, Any], ...]
    num_bytes: int


class ResponseStore:
    """The stored responses of a server. Thread-safe.

    Args:
        max_bytes: bound of the sizes of all stored responses together.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[str, str], tuple[StoredResponse, int]] = OrderedDict()
        self._num_bytes = 0
        self._bytes_of: dict[str, int] = {}

    @property
    def num_bytes(self) -> int:
        """Size of all stored responses, as JSON text."""
        return self._num_bytes

    def put(self, owner: str, stored: StoredResponse) -> bool:
        """Store a response of a principal; False if it is larger than the principal's share."""
        size, share = stored.num_bytes, self._max_bytes // _SHARE
        if size > share:
            return False
        key = (owner, stored.response["id"])
        with self._lock:
            if key in self._found:
                self._drop(key)
            self._found[key] = (stored, size)
            self._count(owner, size)
            while self._bytes_of[owner] > share:
                self._drop(next(each for each in self._found if each[0] == owner))
            while self._num_bytes > self._max_bytes:
                self._drop(next(iter(self._found)))
        return True

    def get(self, owner: str, response_id: str) -> StoredResponse | None:
        """The response of a principal; None if it is unknown, was dropped, or belongs to another principal."""
        found = self._found.get((owner, response_id))
        return None if found is None else found[0]

    def remove(self, owner: str, response_id: str) -> bool:
        """Forget a response; whether it was known."""
        with self._lock:
            if (owner, response_id) not in self._found:
                return False
            self._drop((owner, response_id))
        return True

    def _drop(self, key: tuple[str, str]) -> None:
        _, size = self._found.pop(key)
        self._count(key[0], -size)

    def _count(self, owner: str, size: int) -> None:
        self._num_bytes += size
        self._bytes_of[owner] = self._bytes_of.get(owner, 0) + size
        if not self._bytes_of[owner]:
            del self._bytes_of[owner]
