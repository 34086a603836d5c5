"""HTTP requests of commands to a server, with errors that a user understands."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rtlang.console.source import CommandError

_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_MAX_BYTES = 16 << 20


class ServerError(CommandError):
    """A server is not reachable or refuses a request. `status` is the HTTP status, None without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerAddress:
    """The HTTP side of a server.

    Args:
        url: as for `rtlang.connect`: ws, wss, http or https, with a path if the server is not at the root.
        api_key: sent in the Authorization header.
    Raises:
        CommandError: the URL is not valid.
    """

    def __init__(self, url: str, api_key: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            is_good = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            is_good = False
        if not is_good or parts.scheme not in _SCHEMES or parts.query or parts.fragment or "@" in parts.netloc:
            raise CommandError(
                f"{url}: expected ws://host:port (or wss, http, https) without credentials, query or fragment"
            )
        path = parts.path.rstrip("/").removesuffix("/v1/stream")
        self.url = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, "", ""))
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, timeout_s: float = 10.0) -> Any:
        """The JSON of a GET request.

        Raises:
            ServerError: the server is not reachable, refuses the request, or answers with something else.
        """
        try:
            return json.loads(self.get_bytes(path, timeout_s))
        except (ValueError, RecursionError):
            raise ServerError(f"{self.url}{path}: the response is not JSON; is this an rtlang server?", 200) from None

    def get_bytes(self, path: str, timeout_s: float = 10.0) -> bytes:
        """The body of the answer to a GET request.

        Raises:
            ServerError: the server is not reachable, or refuses the request.
        """
        request = urllib.request.Request(self.url + path, headers=self._headers)
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                return bytes(response.read(_MAX_BYTES))
        except urllib.error.HTTPError as error:
            message = _message(error.read(_MAX_BYTES)) or error.reason
            raise ServerError(f"{self.url}{path}: {message} (HTTP status {error.code})", error.code) from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise ServerError(f"{self.url}: not reachable: {reason or type(error).__name__}") from None


def _message(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
