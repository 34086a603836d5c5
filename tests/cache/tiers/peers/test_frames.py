"""Frames: whole ones arrive, all others end the connection in bounded time and memory."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from rtlang.cache.tiers.peers.frames import MAX_MAP_BYTES, FrameStream, PeerError


@pytest.fixture
def ends() -> Iterator[tuple[FrameStream, socket.socket]]:
    """A stream that takes bodies of 100 bytes, and the other end of its socket."""
    ours, theirs = socket.socketpair()
    stream = FrameStream(ours, 100)
    yield stream, theirs
    stream.close()
    theirs.close()


def test_frames_arrive_as_they_were_sent() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = FrameStream(ours, 0), FrameStream(theirs, 1 << 16)
    for fields, body in (({}, b""), ({"t": "x", "n": 1 << 60}, b"y" * 1000), ({"list": [1, b"2"]}, b"z" * 60_000)):
        sender.send(fields, body)
        assert receiver.receive(10.0) == (fields, memoryview(body))
    sender.close()
    sender.close()
    with pytest.raises(PeerError, match="ended"):
        receiver.receive(10.0)
    with pytest.raises(PeerError, match="sending failed"):
        sender.send({})
    receiver.close()


def test_a_frame_that_comes_byte_by_byte_is_not_awaited_for_long(ends: tuple[FrameStream, socket.socket]) -> None:
    stream, other = ends
    other.sendall(b"\0")
    with pytest.raises(PeerError, match=r"too long|timed out"):
        stream.receive(10.0, 0.0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack("!II", MAX_MAP_BYTES + 1, 0), "too large"),
        (struct.pack("!II", 1, 101), "too large"),
        (struct.pack("!II", 1, 0) + b"\xc1", "MessagePack"),
        (struct.pack("!II", 2, 0) + b"\x81\xa1", "MessagePack"),
        (struct.pack("!II", 4000, 0) + b"\x91" * 4000, "MessagePack"),
        (struct.pack("!II", 0, 0), "MessagePack"),
        (struct.pack("!II", 1, 0) + b"\x01", "no map"),
    ],
)
def test_what_is_no_frame_is_refused(ends: tuple[FrameStream, socket.socket], data: bytes, reason: str) -> None:
    stream, other = ends
    other.sendall(data)
    with pytest.raises(PeerError, match=reason):
        stream.receive(10.0)


def test_a_peer_that_does_not_read_does_not_hold_the_sender(ends: tuple[FrameStream, socket.socket]) -> None:
    stream, _ = ends
    with pytest.raises(PeerError, match="sending failed"):
        stream.send({}, bytes(64 << 20), timeout_s=0.01)
