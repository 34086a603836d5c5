"""Where an engine says that its pages are. All else of a connection: test_engine_host.py and test_engine_process.py."""

from __future__ import annotations

import socket

from rtlang.fleet.host.engine_connection import reachable


def test_an_address_of_all_interfaces_is_that_of_the_connection() -> None:
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, ours, theirs:
        with socket.create_connection(listener.getsockname()) as connection:
            assert reachable(("0.0.0.0", 7), connection) == ("127.0.0.1", 7)
            assert reachable(("10.0.0.5", 7), connection) == ("10.0.0.5", 7)
            assert reachable(None, connection) is None
        assert reachable(("::", 7), ours) == ("127.0.0.1", 7), "a child process of this machine"
