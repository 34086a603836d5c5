"""Addresses of engines that exchange KV pages: parsed from settings, and whether they need a secret."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from rtlang.contract.errors import ConfigError

MIN_SECRET_CHARACTERS = 16


def listen_address(name: str, value: str) -> tuple[str, int]:
    """Host and port of host:port, where port 0 chooses a free one.

    Args:
        name: of the setting.
    Raises:
        ConfigError: the text has another form.
    """
    try:
        parts = urlsplit(f"//{value.strip()}")
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError):
        host = port = None
    if not host or port is None or parts.netloc != value.strip() or "@" in value:
        raise ConfigError(name, value, "expected host:port; a numeric IPv6 host in brackets")
    return host, port


def peer_addresses(name: str, value: str) -> list[tuple[str, int]]:
    """Host and port of every address in a list with commas.

    Raises:
        ConfigError: one has another form, or port 0.
    """
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(name, value, "expected host:port, several separated by commas")
    found = [listen_address(name, each) for each in value.split(",")]
    if any(port == 0 for _, port in found):
        raise ConfigError(name, value, "expected ports from 1 to 65535")
    return list(dict.fromkeys(found))


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach a host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_peers(listen: str | None, peers: str | None, secret: str | None) -> None:
    """Check the settings cache_listen, cache_peers and cache_secret.

    Raises:
        ConfigError: an address has another form, or is not of loopback and there is no secret; or the secret is too short.
    """
    if secret is not None and (not isinstance(secret, str) or len(secret.strip()) < MIN_SECRET_CHARACTERS):
        raise ConfigError("cache_secret", "...", f"expected at least {MIN_SECRET_CHARACTERS} characters")
    named = [] if listen is None else [("cache_listen", listen, [listen_address("cache_listen", listen)])]
    if peers is not None:
        named.append(("cache_peers", peers, peer_addresses("cache_peers", peers)))
    for name, value, addresses in named:
        if secret is None and not all(is_loopback(host) for host, _ in addresses):
            raise ConfigError(name, value, "addresses other than loopback require cache_secret (RTLANG_CACHE_SECRET)")
