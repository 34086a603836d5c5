"""Access control: the Host header on loopback, browser origins, and bearer tokens. key_table.py knows the keys.

A server on loopback answers only to loopback host names, which stops DNS rebinding. A browser must come from a loopback page or an
allowed origin.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from rtlang.contract.config import ServeConfig

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def host_is_allowed(config: ServeConfig, host: str | None) -> bool:
    """Whether a request with this Host header is allowed; a server that does not listen on loopback allows every host."""
    if config.host not in LOOPBACK_NAMES:
        return True
    return _hostname("//" + (host or "")) in LOOPBACK_NAMES


def origin_is_allowed(config: ServeConfig, origin: str | None) -> bool:
    """Whether a WebSocket with this Origin header may be opened. Clients other than browsers send no such header."""
    return origin is None or origin in config.allowed_origins or _hostname(origin) in LOOPBACK_NAMES


def bearer_key(authorization: str | None) -> str | None:
    """The key in an Authorization header; None without the header, empty if it is not a bearer token."""
    if authorization is None:
        return None
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
