"""Connects to a server: `connect` returns a Target whose graphs run there, used like a local runtime.

Loads neither torch nor the engine. remote_runtime.py handles the connection after the handshake.
"""

from __future__ import annotations

import contextlib

from websockets.sync.client import connect as connect_websocket

from rtlang.client.address import connect_options, dial_error, greeting, hello, server_address, server_resume_s
from rtlang.client.remote_cache import CacheRequests, RemoteCache
from rtlang.client.remote_runtime import RemoteRuntime, ServerConnection


def connect(
    url: str, *, api_key: str | None = None, timeout_s: float = 10.0, resume_s: float | None = None
) -> RemoteRuntime:
    """Connect to a server.

    Args:
        url: `ws://host:port` (or wss, http, https), with a path if the server is not at the root.
        api_key: the server's API key, if it requires one.
        timeout_s: maximum wait in seconds for the connection, and later for the answer to each submitted graph.
        resume_s: if the connection breaks, reconnect for up to this many seconds, at most 600; the server keeps all graphs running for
            as long, and they continue where they were. None ends graphs with the connection.
    Raises:
        ConfigError: `url` or `resume_s` is invalid.
        ConnectionLostError: the server is unreachable, refused the connection (wrong key), or did not answer in time.
    """
    address, resume_s = server_address(url), server_resume_s(resume_s)
    cache = RemoteCache(CacheRequests(url, api_key, timeout_s))
    runtime = RemoteRuntime(url, lambda: _dial(url, address, api_key, timeout_s), timeout_s, resume_s, cache)
    runtime.start()
    return runtime


def _dial(url: str, address: str, api_key: str | None, timeout_s: float) -> ServerConnection:
    """Open a connection and exchange hello and welcome; raises ConnectionLostError as `connect` does."""
    exits = contextlib.ExitStack()
    try:
        websocket = exits.enter_context(connect_websocket(address, **connect_options(api_key, timeout_s)))
        websocket.send(hello())
        welcome = greeting(websocket.recv(timeout_s))
    except BaseException as error:
        exits.close()
        lost = dial_error(url, error, timeout_s)
        if lost is None:
            raise
        raise lost from error
    return ServerConnection(websocket, exits, welcome)
