"""Connects to a server or to a fleet on Ray: `rtlang.connect`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtlang.client import connect as client
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.errors import ConfigError

if TYPE_CHECKING:
    from rtlang.fleet.ray.frontend import RayFleet

RAY_SCHEME = "ray://"


def connect(
    url: str | Sequence[str], *, api_key: str | None = None, timeout_s: float = 10.0, resume_s: float | None = None
) -> RemoteRuntime:
    """Connect to a server, or to a fleet on Ray.

    Args:
        url: the addresses of servers, see `rtlang.client.connect.connect`; or `ray://FLEET`, or `ray://HOST:PORT/FLEET`, for a fleet on
            Ray. The value is then a `rtlang.fleet.ray.frontend.RayFleet`, a `Target` as well.
        api_key, timeout_s, resume_s: see `rtlang.client.connect.connect`. Not used with Ray, which decides who may connect; its engines are
            waited for as long as the fleet exists.
    Raises:
        ConfigError: `url` or `resume_s` is invalid, or an option is not used with Ray.
        ConnectionLostError: no server is reachable, accepts the connection (wrong key), or answered in time.
    """
    if not isinstance(url, str) and len(url) == 1:
        (url,) = url
    if not isinstance(url, str) or not url.startswith(RAY_SCHEME):
        return client.connect(url, api_key=api_key, timeout_s=timeout_s, resume_s=resume_s)
    for name, value in (("api_key", api_key), ("resume_s", resume_s)):
        if value is not None:
            raise ConfigError(name, "(given)", f"not used with {RAY_SCHEME} addresses")
    return _fleet_on_ray(url)  # type: ignore[return-value]


def _fleet_on_ray(url: str) -> RayFleet:
    try:
        from rtlang.fleet.ray.frontend import connect_fleet
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "grpc"):
            raise
        raise ConfigError("url", url, "requires Ray: pip install 'rtlang[ray]'") from None
    return connect_fleet(url)
