"""Frames become whole messages, whatever their fragments and the pieces in which they arrive."""

from __future__ import annotations

import asyncio
import random

from websockets.client import ClientProtocol
from websockets.http11 import Request
from websockets.uri import parse_uri

from rtlang.protocol.limits import MAX_FRAGMENTS
from rtlang.serve.network.socket_frames import Message, SocketFrames, TooManyFragments


def opened(loop: asyncio.AbstractEventLoop, max_bytes: int = 1 << 20) -> tuple[SocketFrames, ClientProtocol]:
    """An open socket, and the other side as the library's client."""
    frames, client = SocketFrames(loop, max_bytes, lambda: None), ClientProtocol(parse_uri("ws://localhost/"))
    client.send_request(client.connect())
    (request,) = frames.receive(b"".join(client.data_to_send()))
    assert isinstance(request, Request)
    frames.websocket.send_response(frames.websocket.accept(request))
    for data in frames.websocket.data_to_send():
        client.receive_data(data)
    client.events_received()
    return frames, client


def test_messages_come_whole_from_any_pieces() -> None:
    rng = random.Random(7)
    loop = asyncio.new_event_loop()
    try:
        frames, client = opened(loop)
        sent: list[Message] = []
        for _ in range(50):
            parts = [rng.randbytes(rng.choice((0, 1, 100, 5000))) for _ in range(rng.randint(1, 5))]
            is_text = rng.random() < 0.5
            if is_text:
                parts = [part.hex().encode() for part in parts]
            send = client.send_text if is_text else client.send_binary
            send(parts[0], fin=len(parts) == 1)
            for at, part in enumerate(parts[1:], 1):
                if rng.random() < 0.3:
                    client.send_ping(b"in between")
                client.send_continuation(part, fin=at == len(parts) - 1)
            sent.append(Message(b"".join(parts), is_text))
        data = b"".join(client.data_to_send())
        received = []
        while data:
            cut = rng.randint(1, 3000)
            received += list(frames.receive(data[:cut]))
            data = data[cut:]
        assert received == sent
    finally:
        loop.close()


def test_a_message_in_too_many_fragments_is_told_and_a_long_one_closes_the_socket() -> None:
    loop = asyncio.new_event_loop()
    try:
        frames, client = opened(loop)
        client.send_text(b"", fin=False)
        for _ in range(MAX_FRAGMENTS):
            client.send_continuation(b"", fin=False)
        assert isinstance(list(frames.receive(b"".join(client.data_to_send())))[-1], TooManyFragments)
        frames, client = opened(loop, max_bytes=10)
        client.send_text(b"x" * 11)
        assert list(frames.receive(b"".join(client.data_to_send()))) == []
        assert frames.websocket.close_code == 1009 or frames.websocket.close_sent is not None
    finally:
        loop.close()
