"""Connects to a server: `connect` returns a Target whose graphs run there, used like a local runtime.

Loads neither torch nor the engine. remote_runtime.py handles the connection after the handshake.
"""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Subprotocol

from rtlang.client.remote_run import ServerConnection
from rtlang.client.remote_runtime import CLOSE_TIMEOUT_S, RemoteRuntime
from rtlang.contract.errors import ConfigError, ConnectionLostError, ProtocolError
from rtlang.protocol.event_codec import describe_close, error_from_wire, read_messages
from rtlang.protocol.messages import MAX_DETACH_MS, VERSION
from rtlang.protocol.serialization import Encoding

PATH = "/v1/stream"
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_MAX_MESSAGE_BYTES = 1 << 28


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
    address, longest = _address(url), MAX_DETACH_MS / 1000
    is_time = isinstance(resume_s, int | float) and not isinstance(resume_s, bool) and 0 < resume_s <= longest
    if resume_s is not None and not is_time:
        raise ConfigError("resume_s", resume_s, f"expected a positive number of seconds, at most {longest:g}, or None")
    runtime = RemoteRuntime(url, lambda: _dial(url, address, api_key, timeout_s), timeout_s, resume_s)
    runtime.start()
    return runtime


def _dial(url: str, address: str, api_key: str | None, timeout_s: float) -> ServerConnection:
    """Open a connection and exchange hello and welcome; raises ConnectionLostError as `connect` does."""
    exits = contextlib.ExitStack()
    try:
        websocket = exits.enter_context(
            connect_websocket(
                address,
                subprotocols=[Subprotocol(Encoding.MSGPACK.value)],
                additional_headers={"Authorization": f"Bearer {api_key}"} if api_key is not None else None,
                compression=None,
                proxy=None,
                open_timeout=timeout_s,
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=_MAX_MESSAGE_BYTES,
            )
        )
        websocket.send(Encoding.MSGPACK.pack({"t": "hello", "v": VERSION, "client": "rtlang"}))
        welcome = _greeting(websocket.recv(timeout_s))
    except TimeoutError:
        exits.close()
        raise ConnectionLostError(f"{url}: no answer within {timeout_s:g} s") from None
    except InvalidStatus as error:
        exits.close()
        raise ConnectionLostError(f"{url}: refused with HTTP status {error.response.status_code}") from error
    except ConnectionClosed as error:
        exits.close()
        raise ConnectionLostError(f"{url}: {describe_close(error)}") from error
    except (OSError, WebSocketException, ProtocolError, ConnectionLostError) as error:
        exits.close()
        raise ConnectionLostError(f"{url}: {error}") from error
    return ServerConnection(websocket, exits, welcome)


def _address(url: str) -> str:
    allowed = "expected ws://host:port (or wss, http, https) without credentials, query or fragment"
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError):
        raise ConfigError("url", url, allowed) from None
    if not is_good or parts.scheme not in _SCHEMES or parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigError("url", url, allowed)
    path = parts.path.rstrip("/")
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path if path.endswith(PATH) else path + PATH, "", ""))


def _greeting(data: str | bytes) -> dict[str, Any]:
    """Parse the server's first message, which must be welcome."""
    message = read_messages(data)[0]
    if message.get("t") == "error":
        raise ConnectionLostError(error_from_wire(message).message)
    if message.get("t") != "welcome":
        raise ProtocolError(f"t = {message.get('t')!r}: the server's first message must be welcome")
    return message
