"""The engine's process alone: it ends with its socket, and says what is wrong with its settings."""

from __future__ import annotations

import socket
import threading
from typing import Any

from rtlang.supervise.frames import FrameWriter, read_messages
from rtlang.supervise.worker import Worker


def run_worker(settings: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What a worker says until its end, with these settings, or with a socket that ends before."""
    ours, theirs = socket.socketpair()
    with ours:
        worker = threading.Thread(target=Worker(theirs).run)
        worker.start()
        if settings is None:
            ours.shutdown(socket.SHUT_WR)
        else:
            FrameWriter(ours).put({"t": "config", "settings": settings})
            messages = [next(read_messages(ours))]
        worker.join(60)
        assert not worker.is_alive()
        theirs.close()
        return [] if settings is None else messages


def test_wrong_settings_are_reported() -> None:
    (message,) = run_worker({"model": "/nowhere"})
    assert (message["t"], message["code"]) == ("failed", "model_load")
    assert "/nowhere" in message["message"]


def test_a_socket_that_ends_at_once_ends_the_worker() -> None:
    assert run_worker(None) == []
