"""Addresses, options, the greeting and failures of a connection attempt, shared by the clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.frames import Close
from websockets.typing import Subprotocol

from rtlang.contract.errors import ConfigError, ConnectionLostError, ProtocolError
from rtlang.protocol.event_codec import describe_close, error_from_wire, read_messages
from rtlang.protocol.messages import MAX_DETACH_MS, VERSION, CloseCode
from rtlang.protocol.serialization import Encoding

PATH = "/v1/stream"
CLOSE_TIMEOUT_S = 2.0
MAX_MESSAGE_BYTES = 1 << 28
_SERVER_ENDS = (1001, 1011, 1012, 1013)
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def server_resume_s(resume_s: float | None) -> float | None:
    """A checked `resume_s`.

    Raises:
        ConfigError: it is neither a positive number of seconds up to the longest one, nor None.
    """
    longest = MAX_DETACH_MS / 1000
    is_time = isinstance(resume_s, int | float) and not isinstance(resume_s, bool) and 0 < resume_s <= longest
    if resume_s is not None and not is_time:
        raise ConfigError("resume_s", resume_s, f"expected a positive number of seconds, at most {longest:g}, or None")
    return resume_s


def server_address(url: str) -> str:
    """The address of the WebSocket of a server.

    Raises:
        ConfigError: the URL is invalid.
    """
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


class ServerAddresses:
    """The addresses of the servers that a client may connect to: of one, or of several that serve the same model.

    Args:
        urls: one address, or several, of which the first that answers is used.

    Attributes:
        url: the one that is used.
    Raises:
        ConfigError: an address is invalid, or there is none.
    """

    def __init__(self, urls: str | Sequence[str]) -> None:
        self._addresses = {url: server_address(url) for url in ([urls] if isinstance(urls, str) else urls)}
        if not self._addresses:
            raise ConfigError("url", urls, "expected at least one address of a server")
        self.url = next(iter(self._addresses))

    def __len__(self) -> int:
        return len(self._addresses)

    def address(self, url: str) -> str:
        """The address of the WebSocket at one of the URLs."""
        return self._addresses[url]

    def in_turn(self, *, others_only: bool = False) -> tuple[str, ...]:
        """The URLs in the order in which they are tried: from the one that is used on, or without it."""
        urls = list(self._addresses)
        at = urls.index(self.url)
        return (*urls[at + others_only :], *urls[:at])


class Attempts:
    """The failed attempts of one round through the addresses."""

    def __init__(self) -> None:
        self._failures: list[ConnectionLostError] = []
        self._num_useless = 0

    def note(self, error: ConnectionLostError) -> None:
        """Note that a server cannot be reached."""
        self._failures.append(error)

    def note_useless(self, url: str, reason: str) -> None:
        """Note that a server cannot take the place of the first one."""
        self._failures.append(ConnectionLostError(f"{url}: {reason}"))
        self._num_useless += 1

    @property
    def are_all_useless(self) -> bool:
        """Whether every server answered, and none can take the place of the first one: another round would not help."""
        return self._num_useless == len(self._failures) > 0

    def error(self) -> ConnectionLostError:
        """The error to raise."""
        return ConnectionLostError("; ".join(each.message for each in self._failures))


def may_connect_again(close: Close | None) -> bool:
    """Whether a client with `resume_s` connects again after its connection has ended: it broke, was too slow, or the server ended.

    Args:
        close: the close frame of the server; None if the connection broke without one.
    """
    return close is None or close.code in (CloseCode.SLOW, *_SERVER_ENDS)


def connect_options(api_key: str | None, timeout_s: float) -> dict[str, Any]:
    """Arguments of `connect` of the `websockets` library, besides the address."""
    return {
        "subprotocols": [Subprotocol(Encoding.MSGPACK.value)],
        "additional_headers": {"Authorization": f"Bearer {api_key}"} if api_key is not None else None,
        "compression": None,
        "proxy": None,
        "open_timeout": timeout_s,
        "close_timeout": CLOSE_TIMEOUT_S,
        "max_size": MAX_MESSAGE_BYTES,
    }


def dial_error(url: str, error: BaseException, timeout_s: float) -> ConnectionLostError | None:
    """The error to raise for a failed connection attempt; None if `error` is not a failure of the connection."""
    match error:
        case TimeoutError():
            return ConnectionLostError(f"{url}: no answer within {timeout_s:g} s")
        case InvalidStatus():
            return ConnectionLostError(f"{url}: refused with HTTP status {error.response.status_code}")
        case ConnectionClosed():
            return ConnectionLostError(f"{url}: {describe_close(error)}")
        case OSError() | WebSocketException() | ProtocolError() | ConnectionLostError():
            return ConnectionLostError(f"{url}: {error}")
    return None


def hello() -> bytes:
    """The first message of a client."""
    return Encoding.MSGPACK.pack({"t": "hello", "v": VERSION, "client": "rtlang"})


def greeting(data: str | bytes) -> dict[str, Any]:
    """Parse the server's first message, which must be welcome.

    Raises:
        ConnectionLostError: the server refused. ProtocolError: another message.
    """
    message = read_messages(data)[0]
    if message.get("t") == "error":
        raise ConnectionLostError(error_from_wire(message).message)
    if message.get("t") != "welcome":
        raise ProtocolError(f"t = {message.get('t')!r}: the server's first message must be welcome")
    return message
