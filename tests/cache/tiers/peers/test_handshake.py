"""The handshake: both sides need the secret, and a session's seals are its own."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from rtlang.cache.tiers.peers.frames import FrameStream, PeerError
from rtlang.cache.tiers.peers.handshake import SealKey, greet, welcome
from tests.support.engine.page_peers import IDENTITY, SECRET, digest_of, page_of, served, store, stream_to


def session(secret: bytes) -> tuple[SealKey, SealKey]:
    """The keys of both sides of a new session."""
    ours, theirs = (FrameStream(end, 0) for end in socket.socketpair())
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(welcome, theirs, secret, IDENTITY, b"server")
        key, instance = greet(ours, secret, IDENTITY, b"client")
        assert instance == b"server"
        for stream in (ours, theirs):
            stream.close()
        return key, other.result()


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_both_sides_have_one_key_which_no_other_session_has(secret: bytes) -> None:
    (one, other), (third, _) = session(secret), session(secret)
    page = page_of(0)
    seal = one.seal(digest_of(0), page)
    assert other.is_sealed(digest_of(0), page, seal)
    assert not third.is_sealed(digest_of(0), page, seal)
    assert not other.is_sealed(digest_of(1), page, seal)
    assert not other.is_sealed(digest_of(0), page[:-1] + b"x", seal)
    assert not other.is_sealed(digest_of(0), page, None)


def test_without_the_secret_nothing_is_answered() -> None:
    with served(store([0])) as server:
        for frames in (
            [{"t": "ask", "n": 0}],
            [{"t": "hello", "v": 1, "nonce": bytes(16), "identity": IDENTITY}, {"t": "get", "n": 0}],
            [{"t": "hello", "v": 1, "nonce": bytes(16), "identity": IDENTITY}, {"t": "proof", "mac": bytes(32)}],
            [{"t": "hello", "v": 1, "nonce": bytes(16), "identity": IDENTITY}, {"t": "proof", "mac": None}],
            [{"t": "hello", "v": 1, "nonce": "x", "identity": IDENTITY}],
            [{"t": "hello", "v": 2, "nonce": bytes(16), "identity": IDENTITY}],
        ):
            stream = stream_to(server.address)
            kinds = set()
            with suppress(PeerError):
                for fields in frames:
                    stream.send(fields)
                    kinds.add(stream.receive(10.0)[0]["t"])
            assert kinds <= {"challenge", "refused"}
            with pytest.raises(PeerError):
                stream.receive(10.0)
            stream.close()
        assert server.stats.num_pages == 0
        for secret, identity, reason in ((b"another", IDENTITY, "refused: secret"), (SECRET, bytes(16), "model")):
            stream = stream_to(server.address)
            with pytest.raises(PeerError, match=reason):
                greet(stream, secret, identity, b"me")
            stream.close()
