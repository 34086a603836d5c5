"""Who may talk to a server."""

from __future__ import annotations

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.serve.network.access import bearer_key, host_is_allowed, is_own_page, origin_is_allowed

LOOPBACK = ServeConfig()
PUBLIC = ServeConfig(host="0.0.0.0", api_key="secret", allowed_origins=("https://app.example",))


@pytest.mark.parametrize("host", ["localhost", "localhost:8420", "127.0.0.1:1", "[::1]:8420", "LOCALHOST:1"])
def test_loopback_answers_to_its_own_names(host: str) -> None:
    assert host_is_allowed(LOOPBACK, host)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost, evil", "[", "0.0.0.0"]
)
def test_loopback_answers_to_no_other_name(host: str | None) -> None:
    assert not host_is_allowed(LOOPBACK, host)


def test_any_host_name_is_allowed_beyond_loopback() -> None:
    assert host_is_allowed(PUBLIC, "gpu-7.example:80")


@pytest.mark.parametrize("origin", [None, "http://localhost:3000", "http://127.0.0.1", "https://app.example"])
def test_programs_and_listed_pages_may_connect(origin: str | None) -> None:
    assert origin_is_allowed(PUBLIC, origin)


@pytest.mark.parametrize(
    "origin", ["null", "", "https://evil.example", "https://app.example.evil", "http://localhost.evil", "http://["]
)
def test_other_pages_may_not(origin: str) -> None:
    assert not origin_is_allowed(PUBLIC, origin)


def test_the_key_is_read_from_a_bearer_header() -> None:
    assert bearer_key(None) is None
    assert bearer_key("Bearer secret") == "secret"
    assert bearer_key("bearer  secret ") == "secret"
    assert bearer_key("Basic secret") == ""


@pytest.mark.parametrize(
    "host",
    ["evil.example@localhost", "localhost/evil", "localhost:", "localhost:80:80", "localhost.", " localhost", "[::1", "::1",
     "localhost:８０", "localhost, localhost", "127.0.0.1\n"],
)  # fmt: skip
def test_a_host_header_is_a_name_and_a_port_and_nothing_else(host: str) -> None:
    assert not host_is_allowed(LOOPBACK, host)


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("https://models.example", "models.example", True),
        ("http://10.0.0.7:8420", "10.0.0.7:8420", True),
        ("http://10.0.0.7:3000", "10.0.0.7:8420", False),
        ("https://models.example.evil", "models.example", False),
        ("null", "models.example", False),
        ("models.example", "models.example", False),
        (None, None, False),
    ],
)
def test_a_page_of_the_server_itself_has_its_host_as_origin(
    origin: str | None, host: str | None, expected: bool
) -> None:
    assert is_own_page(origin, host) is expected
