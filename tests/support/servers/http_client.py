"""A plain HTTP client for tests of routes: one connection per request."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Answer:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of the server-sent events, without `[DONE]`, which must be the last one."""
        texts = [data for _, data in sse_events(self.body)]
        assert texts[-1] == "[DONE]"
        return [json.loads(text) for text in texts[:-1]]


class HttpClient:
    """Requests to one server."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self.address = urlsplit(url).netloc
        self.headers = {} if key is None else {"authorization": f"Bearer {key}"}

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body=body, headers=self.headers | headers)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, data, **{"content-type": "application/json"} | headers)


def sse_events(body: bytes) -> Iterator[tuple[str | None, str]]:
    """Event name and data of each server-sent event; comments are skipped."""
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            yield fields.get("event"), fields["data"]
