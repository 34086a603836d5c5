"""Messages over a socket pair."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.fleet.messages.frames import FrameWriter, read_messages


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_messages_of_any_size_arrive_as_they_were_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = FrameWriter(ends[0], lambda item: {"n": item, "data": b"x" * item, "text": "\ud800"})
    sizes = [*range(300), 32_000, 32_768, 33_000, 3_000_000, 1]
    writer.put(*sizes)
    messages = read_messages(ends[1])
    for size in sizes:
        assert next(messages) == {"n": size, "data": b"x" * size, "text": "?"}
    writer.flush(10.0)
    ends[0].close()
    assert next(messages, None) is None


def test_long_lists_within_a_message_arrive_as_they_were_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    nodes = [
        {"id": number, "parts": ["text", {"ref": number}], "ids": list(range(number % 50))} for number in range(5000)
    ]
    message = {"t": "open", 3: None, "graph": {"nodes": nodes, "inputs": []}, "ids": tuple(range(70_000)), "empty": {}}
    writer = FrameWriter(ends[0])
    writer.put(message, {"t": "next"}, channel=1)
    messages = read_messages(ends[1])
    assert next(messages) == message | {"ids": list(range(70_000))}
    assert next(messages) == {"t": "next"}
    writer.close()


def test_a_long_message_and_many_messages_do_not_delay_those_of_another_client(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    begun, is_full = threading.Event(), threading.Event()

    def pack(item: Any) -> dict[str, Any]:
        if item == "first":
            begun.set()
            is_full.wait(10.0)
        return {"item": item}

    writer = FrameWriter(ends[0], pack)
    writer.put("first", channel=1, client="a")
    assert begun.wait(10.0)
    for channel in range(2, 1000):
        writer.put(f"open {channel}", channel=channel, client="a")
    long_text = "x" * 2_000_000
    writer.put(long_text, "behind", channel=2000, client="b")
    writer.put("short", channel=3000, client="c")
    is_full.set()
    messages = read_messages(ends[1])
    found = [next(messages)["item"] for _ in range(1002)]
    assert found.index("short") < 10
    assert found.index(long_text) < found.index("behind") < 200  # a long message has a frame in each turn
    assert [item for item in found if item.startswith("open")] == [f"open {channel}" for channel in range(2, 1000)]
    writer.close()


def test_the_end_of_the_socket_ends_both_sides(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = FrameWriter(ends[0])
    ends[1].close()
    assert list(read_messages(ends[0])) == []
    writer.put({"n": 1})
    writer.flush(10.0)
    writer.put({"n": 2})  # is dropped


def test_a_socket_that_ends_within_a_message_gives_those_before_it(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = FrameWriter(ends[0])
    writer.put({"n": 1})
    messages = read_messages(ends[1])
    assert next(messages) == {"n": 1}
    writer.flush(10.0)
    ends[0].sendall(b"\0" * 10)
    ends[0].close()
    assert list(messages) == []
