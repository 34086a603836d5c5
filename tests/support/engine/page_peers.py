"""Two engines' ends of the exchange of pages, without engines: a page server over a tier in memory, and a tier that fetches from it."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.peers.frames import FrameStream
from rtlang.cache.tiers.peers.page_server import PageServer
from rtlang.cache.tiers.peers.peer_tier import PeerTier

PAGE_BYTES = 4096
SECRET, IDENTITY = b"a secret of tests", bytes(range(16))


def digest_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def page_of(number: int, num_bytes: int = PAGE_BYTES) -> bytes:
    return random.Random(number).randbytes(num_bytes)


def store(numbers: Sequence[int]) -> HostTier:
    """A tier in memory with these pages."""
    tier = HostTier(1 << 26)
    for number in numbers:
        tier.put(digest_of(number), memoryview(page_of(number)))
    return tier


@contextmanager
def served(
    tier: HostTier, *, secret: bytes = SECRET, identity: bytes = IDENTITY, instance: bytes = b"server"
) -> Iterator[PageServer]:
    """A server of the pages of a tier."""
    server = PageServer(socket.create_server(("127.0.0.1", 0)), [tier], secret, identity, instance)
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def fetching(
    *addresses: tuple[str, int], secret: bytes = SECRET, clock: list[float] | None = None, state_bytes: int = 0
) -> Iterator[PeerTier]:
    """A tier that has tried once to connect to each address. Its clock is `clock[0]`."""
    now = [0.0] if clock is None else clock
    tier = PeerTier(addresses, secret, IDENTITY, b"client", PAGE_BYTES, lambda: now[0], state_bytes)
    with ExitStack() as stack:
        stack.callback(tier.close)
        tier.connect()
        yield tier


def contents(tier: PeerTier, digests: Sequence[bytes]) -> list[bytes | None]:
    """These pages, as far as the tier gives them."""
    found = [tier.get(digest) for digest in digests]
    return [None if page is None else bytes(page) for page in found]


def stream_to(address: tuple[str, int]) -> FrameStream:
    """A connection to a page server, before the handshake."""
    return FrameStream(socket.create_connection(address, 10.0), 1 << 20)
