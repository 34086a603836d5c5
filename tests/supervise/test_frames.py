"""Frames over a socket pair."""

from __future__ import annotations

import socket

from rtlang.supervise.frames import FrameWriter, read_frame


def test_messages_arrive_in_order_however_they_are_grouped() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = FrameWriter(ours, lambda item: {"n": item, "data": b"x" * item, "text": "\ud800"})
        writer.put(*range(50))
        for number in range(50, 300):
            writer.put(number)
        writer.put(3_000_000)
        writer.close()
        found: list[int] = []
        while not found or found[-1] != 3_000_000:
            messages = read_frame(theirs)
            assert messages is not None
            assert all(len(message["data"]) == message["n"] and message["text"] == "?" for message in messages)
            found += [message["n"] for message in messages]
        assert found == [*range(300), 3_000_000]


def test_the_end_of_the_socket_ends_both_sides() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        writer = FrameWriter(ours)
        theirs.close()
        assert read_frame(ours) is None
        writer.put({"n": 1})
        writer.flush(10.0)
        writer.put({"n": 2})  # is dropped
