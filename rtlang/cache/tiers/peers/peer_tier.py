"""The tier of the pages that other engines have.

A thread keeps the connections: it looks up the names of the peers, connects, and tries again after rests. So a request never waits for a
peer that is not there. All connected peers are asked at once for all pages of a prompt, and what they answer is remembered until the pages
are loaded. Pages that are going to be loaded are requested some ahead of the page that is awaited.

A peer decides nothing but time: an answer that does not come in time ends its connection, and a page that it has not got, or whose seal is
wrong, is computed.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from rtlang.cache.tiers.peers.page_server import MAX_ASKED
from rtlang.cache.tiers.peers.peer import FIRST_REST_S, MAX_REST_S, Peer
from rtlang.cache.tiers.tier import TierStats

logger = logging.getLogger(__name__)

ANSWER_S = 1.0
"""Seconds for the answers to one question."""
PAGE_S = 3.0
"""Seconds for the next page of a load."""
LOOKUP_S = 30.0
"""Seconds between two lookups of the names of the peers."""
AHEAD_BYTES, MAX_AHEAD = 8 << 20, 32
"""Bytes and number of the pages that are requested ahead."""
MAX_KNOWN = 1 << 15
"""Pages whose places are remembered."""

Address = tuple[str, int]


def addresses_of(host: str, port: int) -> list[Address]:
    """All addresses of a name.

    Raises:
        OSError: the name is unknown.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((str(each[4][0]), int(each[4][1])) for each in found))


class PeerTier:
    """See `RemoteTier`.

    Args:
        peers: (host, port) of page servers, besides those of `set_peers`; a name may have several addresses, and one may be that of this
            process, which is left out.
        secret, identity, instance: see `greet`.
        page_bytes: of every page.
        clock: seconds, monotonic; of rests.
        state_bytes: of every state; 0 for a model without states.
    """

    name = "peer"
    is_persistent = False

    def __init__(
        self,
        peers: Sequence[Address],
        secret: bytes,
        identity: bytes,
        instance: bytes,
        page_bytes: int,
        clock: Callable[[], float] = time.monotonic,
        state_bytes: int = 0,
    ) -> None:
        self.stats = TierStats()
        self._configured = self._named = tuple(peers)
        self._secret, self._identity, self._instance = secret, identity, instance
        self._sizes, self._clock = {page_bytes, state_bytes} - {0}, clock
        self._peers: dict[Address, Peer] = {}  # replaced, never changed
        self._next_lookup = 0.0
        self._num_ahead = max(2, min(MAX_AHEAD, AHEAD_BYTES // max(1, page_bytes)))
        self._lock, self._count_lock = threading.Lock(), threading.Lock()
        self._known: OrderedDict[bytes, Peer] = OrderedDict()
        self._expected: deque[bytes] = deque()  # not requested yet
        self._coming: dict[bytes, tuple[Peer, Future[memoryview | None]]] = {}
        self._wakes = threading.Event()
        self._is_closed = False

    def open(self) -> None:
        """See `CacheTier.open`; connects on a thread of its own, since a peer may take long."""
        threading.Thread(target=self._keep_connected, name="cache-peers", daemon=True).start()

    def set_peers(self, peers: Sequence[Address]) -> None:
        """Replace the peers besides those of the constructor; they are connected soon."""
        named = tuple(dict.fromkeys((*self._configured, *peers)))
        if named != self._named:
            self._named, self._next_lookup = named, 0.0
            self._wakes.set()

    def connect(self) -> float:
        """Connect the peers whose rest is over. Returns the seconds until the next one is to be tried."""
        now = self._clock()
        if now >= self._next_lookup:
            self._next_lookup = now + LOOKUP_S  # before the names are read
            self._look_up()
        for peer in self._peers.values():
            if self._is_closed or peer.is_connected or self._clock() < peer.next_try:
                continue
            instance = peer.connect()
            others = {each.instance for each in self._peers.values() if each is not peer}
            if instance in {self._instance, *others} - {None}:
                peer.close(MAX_REST_S)  # this process, or one that has two addresses
        if self._is_closed:
            self._disconnect()
        times = [self._next_lookup, *(peer.next_try for peer in self._peers.values() if not peer.is_connected)]
        return max(0.0, min(times) - self._clock())

    def has(self, digest: bytes) -> bool:
        """See `CacheTier.has`: whether a connected peer had it when `ask` was called last."""
        peer = self._known.get(digest)
        return peer is not None and peer.is_connected

    def ask(self, digests: Sequence[bytes]) -> None:
        """See `RemoteTier.ask`."""
        peers = [peer for peer in self._peers.values() if peer.is_connected]
        end = time.monotonic() + ANSWER_S
        for start in range(0, len(digests), MAX_ASKED):
            asked = digests[start : start + MAX_ASKED]
            num_found = 0
            for peer, answer in [(peer, peer.ask(asked)) for peer in peers]:
                num_found = max(num_found, self._note(peer, asked, self._answer(peer, answer, end)))
            if num_found < len(asked):
                break

    def put(self, digest: bytes, page: memoryview) -> None:
        """See `CacheTier.put`; peers fetch what they need themselves."""

    def get(self, digest: bytes) -> memoryview | None:
        """See `CacheTier.get`."""
        with self._lock:
            coming = self._coming.pop(digest, None)
            if coming is None:
                peer = self._known.get(digest)
                if peer is None:
                    return None
                with suppress(ValueError):
                    self._expected.remove(digest)
                coming = peer, peer.get(digest)
            self._request_ahead()
        peer, future = coming
        try:
            page = future.result(PAGE_S)
        except TimeoutError:
            peer.fail(f"no page came within {PAGE_S:g} s")
            page = None
        with self._lock:
            if page is None:
                self._known.pop(digest, None)
            else:
                self.stats.num_loaded += 1
        return page

    def expect(self, digests: Sequence[bytes]) -> None:
        """See `RemoteTier.expect`."""
        with self._lock:
            self._coming.clear()
            self._expected = deque(digests)

    def touch(self, digests: Sequence[bytes]) -> None:
        """See `CacheTier.touch`; peers count uses themselves."""

    def clear(self) -> None:
        """See `CacheTier.clear`: forgets which pages peers have."""
        with self._lock:
            self._known.clear()
            self._expected.clear()
            self._coming.clear()

    def close(self) -> None:
        """See `CacheTier.close`."""
        self._is_closed = True
        self._wakes.set()
        self._disconnect()
        self.clear()

    def _disconnect(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def _keep_connected(self) -> None:
        while not self._is_closed:
            try:
                seconds = self.connect()
            except Exception:
                logger.exception("connecting to the peers of the cache failed")
                seconds = LOOKUP_S
            self._wakes.wait(min(seconds, FIRST_REST_S) if self._peers else seconds)
            self._wakes.clear()

    def _look_up(self) -> None:
        """Find the addresses of all names. Peers whose address is gone stay while they are connected."""
        found = dict[Address, Peer]()
        for name in self._named:
            try:
                addresses = addresses_of(*name)
            except OSError as error:
                logger.warning("the peer %s:%d of the cache is unknown: %s", *name, error)
                continue
            found |= {address: self._peers.get(address) or self._peer(address) for address in addresses}
        self._peers = found | {address: peer for address, peer in self._peers.items() if peer.is_connected}

    def _peer(self, address: Address) -> Peer:
        return Peer(
            address,
            self._secret,
            self._identity,
            self._instance,
            self._sizes,
            self._clock,
            self._note_bad,
            self._count_connected,
        )

    def _answer(self, peer: Peer, answer: Future[bytes | None], end: float) -> bytes | None:
        try:
            return answer.result(max(0.0, end - time.monotonic()))
        except TimeoutError:
            peer.fail(f"it did not answer within {ANSWER_S:g} s")
            return None

    def _note(self, peer: Peer, asked: Sequence[bytes], found: bytes | None) -> int:
        """Remember which pages a peer has; pages that several have stay with the first one. Returns how many it has in a row."""
        if found is None:
            return 0
        if len(found) != len(asked):
            peer.fail("its answer has another length than the question")
            return 0
        num_in_row = next((i for i, is_there in enumerate(found) if not is_there), len(found))
        with self._lock:
            for digest, is_there in zip(asked, found, strict=True):
                if is_there:
                    known = self._known.get(digest)
                    if known is None or not known.is_connected:
                        self._known[digest] = peer
                    self._known.move_to_end(digest)
                elif self._known.get(digest) is peer:
                    del self._known[digest]
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return num_in_row

    def _request_ahead(self) -> None:
        while self._expected and len(self._coming) < self._num_ahead:
            digest = self._expected.popleft()
            peer = self._known.get(digest)
            if peer is None:  # in another tier, or nowhere: what follows may not be needed
                continue
            self._coming[digest] = peer, peer.get(digest)

    def _count_connected(self) -> None:
        with self._count_lock:
            self.stats.num_connected = sum(peer.is_connected for peer in self._peers.values())

    def _note_bad(self) -> None:
        self.stats.num_bad += 1
