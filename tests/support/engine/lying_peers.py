"""Page servers that know the secret and answer wrongly, late or never."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgpack

from rtlang.cache.tiers.peers.frames import FrameStream, PeerError
from rtlang.cache.tiers.peers.handshake import SealKey, welcome
from tests.support.engine.page_peers import IDENTITY, PAGE_BYTES, SECRET, digest_of, page_of

Answer = Callable[[FrameStream, SealKey, dict[str, Any], memoryview], None]


@contextmanager
def lying(answer: Answer, secret: bytes = SECRET) -> Iterator[tuple[str, int]]:
    """A server that knows the secret and answers each request as `answer` does."""
    listener = socket.create_server(("127.0.0.1", 0))
    streams = []

    def run() -> None:
        with suppress(OSError, PeerError):
            while True:
                stream = FrameStream(listener.accept()[0], 0)
                streams.append(stream)
                key = welcome(stream, secret, IDENTITY, b"liar")
                stream.max_body_bytes = 1 << 20
                with suppress(PeerError, OSError):
                    while True:
                        answer(stream, key, *stream.receive(60.0))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for stream in streams:
            stream.close()
        thread.join()


def says_yes(stream: FrameStream, fields: dict[str, Any], body: memoryview) -> bool:
    """Claim to have all pages; False if something else was asked."""
    if fields["t"] != "ask":
        return False
    stream.send({"t": "has", "n": fields["n"]}, b"\1" * (len(body) // 16))
    return True


def flipped(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        page = bytearray(page_of(0))
        seal = key.seal(bytes(body), page)
        page[100] ^= 4
        stream.send({"t": "page", "n": fields["n"], "seal": seal}, bytes(page))


def other_digest(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        page = page_of(5)
        stream.send({"t": "page", "n": fields["n"], "seal": key.seal(digest_of(5), page)}, page)


def unsealed(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        stream.send({"t": "page", "n": fields["n"], "seal": 7}, page_of(0))


def short(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        page = page_of(0)[:-8]
        stream.send({"t": "page", "n": fields["n"], "seal": key.seal(bytes(body), page)}, page)


def long(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        stream.send({"t": "page", "n": fields["n"]}, bytes(1 << 20))


def truncated(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        packed = msgpack.packb({"t": "page", "n": fields["n"]})
        stream._writing.sendall(struct.pack("!II", len(packed), PAGE_BYTES) + packed + page_of(0)[:1000])
        stream.close()


def garbage(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    stream._writing.sendall(struct.pack("!II", 64, 0) + b"\xc1" * 64)


def list_for_number(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    stream.send({"t": "has", "n": [1]})


def other_number(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    stream.send({"t": "has", "n": fields["n"] + 7}, b"\1" * 8)


def wrong_length(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    stream.send({"t": "has", "n": fields["n"]}, b"\1" * 3)


def page_for_question(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    stream.send({"t": "page", "n": fields["n"], "seal": key.seal(digest_of(0), page_of(0))}, page_of(0))


def answer_for_page(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    if not says_yes(stream, fields, body):
        stream.send({"t": "has", "n": fields["n"]}, b"\1")


def silent(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    """Answers nothing."""


def silent_about_pages(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    says_yes(stream, fields, body)


def slow(stream: FrameStream, key: SealKey, fields: dict[str, Any], body: memoryview) -> None:
    """The first bytes of a page, and then nothing."""
    if not says_yes(stream, fields, body):
        stream._writing.sendall(struct.pack("!II", 20, PAGE_BYTES) + b"\x81")


LIARS = [
    *(flipped, other_digest, unsealed, short, long, truncated, garbage, list_for_number, other_number, wrong_length),
    *(page_for_question, answer_for_page),
]
SILENT = [silent, silent_about_pages, slow]
