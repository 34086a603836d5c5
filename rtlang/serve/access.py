"""Who may talk to a server: the key, the Host header on loopback, and the origins of browsers.

A server on loopback answers only to loopback names, so that a page which points its own name at 127.0.0.1 reaches nothing; a browser
must come from a loopback page or an origin on the list; and where there is a key, it is compared in constant time.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from rtlang.contract.config import ServeConfig

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def host_is_allowed(config: ServeConfig, host: str | None) -> bool:
    """Whether a request with this Host header may be answered. Beyond loopback every name is."""
    if config.host not in LOOPBACK_NAMES:
        return True
    return _hostname("//" + (host or "")) in LOOPBACK_NAMES


def origin_is_allowed(config: ServeConfig, origin: str | None) -> bool:
    """Whether a WebSocket with this Origin header may be opened. Without the header it is no browser."""
    return origin is None or origin in config.allowed_origins or _hostname(origin) in LOOPBACK_NAMES


def bearer_key(authorization: str | None) -> str | None:
    """The key in an Authorization header; None where there is no such header."""
    if authorization is None:
        return None
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def key_is_right(config: ServeConfig, key: str | None) -> bool:
    """Whether `key` opens the server; True where it has none."""
    return config.api_key is None or hmac.compare_digest((key or "").encode(), config.api_key.encode())


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
