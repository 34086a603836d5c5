"""The application as a whole: paths and methods without a route are answered in the shape of the OpenAI API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with serving() as server:
        yield HttpClient(server.url)


def test_unknown_paths_and_methods_are_answered_with_an_error_body(client: HttpClient) -> None:
    answer = client.get("/nowhere")
    assert (answer.status, answer.json["error"]["type"]) == (404, "not_found_error")
    assert "/nowhere" in answer.json["error"]["message"]
    answer = client.post("/version", {})
    assert (answer.status, answer.json["error"]["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert client.get("/v1/stream").status == 404
