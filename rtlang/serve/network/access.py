"""Access control: the Host header on loopback, browser origins, and bearer tokens. key_table.py knows the keys.

A server on loopback answers only to loopback host names, which stops DNS rebinding. A browser must come from a loopback page or an
allowed origin.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rtlang.contract.config import ServeConfig

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_LOOPBACK_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


def host_is_allowed(config: ServeConfig, host: str | None) -> bool:
    """Whether a request with this Host header is allowed; a server that does not listen on loopback allows every host.

    On loopback it must be a loopback name and an optional port, and nothing else; several headers, joined, are not.
    """
    if config.host not in LOOPBACK_NAMES:
        return True
    return host is not None and _LOOPBACK_HOST.fullmatch(host) is not None


def origin_is_allowed(config: ServeConfig, origin: str | None) -> bool:
    """Whether a WebSocket with this Origin header may be opened. Clients other than browsers send no such header."""
    return origin is None or origin in config.allowed_origins or _hostname(origin) in LOOPBACK_NAMES


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a request comes from a page of this server: its origin is the host that it was sent to."""
    return origin is not None and origin.partition("://")[2] == host


def bearer_key(authorization: str | None) -> str | None:
    """The key in an Authorization header; None without the header, empty if it is not a bearer token."""
    if authorization is None:
        return None
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def request_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """The key of an HTTP request: the bearer token, or else the header `x-api-key`, as clients of the Messages API send it."""
    key = bearer_key(authorization)
    return key or x_api_key or key


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
