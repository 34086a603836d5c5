"""Access control: the API key, the Host header on loopback, and browser origins.

A server on loopback answers only to loopback host names, which stops DNS rebinding. A browser must come from a loopback page or an
allowed origin. API keys are compared in constant time.
"""

from __future__ import annotations

import hmac
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


def key_is_valid(config: ServeConfig, key: str | None) -> bool:
    """Whether `key` is the API key; always True if none is configured."""
    return config.api_key is None or hmac.compare_digest((key or "").encode(), config.api_key.encode())


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
