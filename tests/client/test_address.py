"""Addresses get the path of the WebSocket; what a client cannot use is refused."""

from __future__ import annotations

import pytest

from rtlang.client.address import dial_error, greeting, server_address, server_resume_s
from rtlang.contract.errors import ConfigError, ConnectionLostError, ProtocolError
from rtlang.protocol.serialization import Encoding


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://host:1", "ws://host:1/v1/stream"),
        ("https://host/base/", "wss://host/base/v1/stream"),
        ("ws://host/v1/stream", "ws://host/v1/stream"),
    ],
)
def test_an_address_gets_scheme_and_path(url: str, address: str) -> None:
    assert server_address(url) == address


@pytest.mark.parametrize("url", ["ftp://host", "ws://user@host", "ws://host?key=1", "host", "ws://host:0"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        server_address(url)


@pytest.mark.parametrize("seconds", [0, -1, True, 601])
def test_a_time_to_resume_is_positive_and_bounded(seconds: float) -> None:
    assert server_resume_s(30) == 30
    with pytest.raises(ConfigError, match="resume_s"):
        server_resume_s(seconds)


def test_a_greeting_is_welcome_or_an_error() -> None:
    assert greeting(Encoding.MSGPACK.pack({"t": "welcome", "v": 1})) == {"t": "welcome", "v": 1}
    with pytest.raises(ConnectionLostError, match="wrong"):
        greeting(Encoding.MSGPACK.pack({"t": "error", "code": "protocol", "message": "wrong"}))
    with pytest.raises(ProtocolError, match="welcome"):
        greeting(Encoding.MSGPACK.pack({"t": "pong"}))


def test_failures_of_a_connection_become_one_error_and_others_pass() -> None:
    for error, text in ((TimeoutError(), "no answer within 3 s"), (OSError("refused"), "refused")):
        lost = dial_error("ws://host", error, 3)
        assert isinstance(lost, ConnectionLostError)
        assert lost.message == f"ws://host: {text}"
    assert dial_error("ws://host", KeyError(), 3) is None
