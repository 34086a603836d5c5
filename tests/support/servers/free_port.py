"""A port for a server of a test that has to know its port before it starts."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of the loopback address that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
