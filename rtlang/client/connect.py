"""Connects to a server: `connect` returns a Target whose graphs run there, used like a local runtime.

Loads neither torch nor the engine. remote_runtime.py handles the connection after the handshake.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from websockets.sync.client import connect as connect_websocket

from rtlang.client.address import ServerAddresses, connect_options, dial_error, greeting, hello, server_resume_s
from rtlang.client.client_session import Link
from rtlang.client.remote_cache import CacheRequests
from rtlang.client.remote_runtime import RemoteRuntime


def connect(
    url: str | Sequence[str], *, api_key: str | None = None, timeout_s: float = 10.0, resume_s: float | None = None
) -> RemoteRuntime:
    """Connect to a server.

    Args:
        url: `ws://host:port` (or wss, http, https), with a path if the server is not at the root. Of several addresses, whose servers serve
            the same model, the first that answers is used; the others take its place when the connection breaks.
        api_key: the server's API key, if it requires one.
        timeout_s: maximum wait in seconds for the connection, and later for the answer to each submitted graph.
        resume_s: if the connection breaks, connect again for up to this many seconds, at most 600, trying the addresses in turn. The server
            keeps all graphs running for as long, and they continue where they were. A server that does not know them, because it was
            started again or is another one, goes on behind the output that has arrived. None ends graphs with the connection.
    Raises:
        ConfigError: `url` or `resume_s` is invalid.
        ConnectionLostError: no server is reachable, accepts the connection (wrong key), or answered in time.
    """
    servers, resume_s = ServerAddresses(url), server_resume_s(resume_s)
    requests = CacheRequests(servers.url, api_key, timeout_s)

    def dial(url: str) -> Link:
        return _dial(url, servers.address(url), api_key, timeout_s)

    runtime = RemoteRuntime(servers, dial, timeout_s, resume_s, requests)
    runtime.start()
    return runtime


def _dial(url: str, address: str, api_key: str | None, timeout_s: float) -> Link:
    """Open a connection and exchange hello and welcome; raises ConnectionLostError as `connect` does."""
    exits = contextlib.ExitStack()
    try:
        websocket = exits.enter_context(connect_websocket(address, **connect_options(api_key, timeout_s)))
        websocket.send(hello())
        return Link(websocket, greeting(websocket.recv(timeout_s)))
    except BaseException as error:
        exits.close()
        lost = dial_error(url, error, timeout_s)
        if lost is None:
            raise
        raise lost from error
