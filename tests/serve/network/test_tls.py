"""TLS of a server, with certificates that the test makes."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError
from rtlang.serve.network.tls import tls_context
from tests.support.servers.serving import serving


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A self-signed certificate of localhost and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = ["openssl", *options.split(), "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return str(certificate), str(key)


def get(url: str, context: ssl.SSLContext) -> bytes:
    parts = urlsplit(url)
    with (
        socket.create_connection(("127.0.0.1", parts.port or 0), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as peer,
    ):
        peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return peer.recv(4096)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls_context(ServeConfig()) is None


def test_clients_that_trust_the_certificate_are_served(files: tuple[str, str]) -> None:
    certificate, key = files
    with serving(tls_certificate=certificate, tls_key=key) as server:
        assert server.url.startswith("wss://")
        assert get(server.url, ssl.create_default_context(cafile=certificate)).startswith(b"HTTP/1.1 200")
        with pytest.raises(ssl.SSLCertVerificationError):
            get(server.url, ssl.create_default_context())


def test_a_client_certificate_can_be_required(files: tuple[str, str]) -> None:
    certificate, key = files
    with serving(tls_certificate=certificate, tls_key=key, tls_client_ca=certificate) as server:
        context = ssl.create_default_context(cafile=certificate)
        with contextlib.suppress(ssl.SSLError, ConnectionError):  # refused while the client still sends
            assert get(server.url, context) == b""
        context.load_cert_chain(certificate, key)
        assert get(server.url, context).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_shake_hands_is_dropped(files: tuple[str, str]) -> None:
    certificate, key = files
    with (
        serving(tls_certificate=certificate, tls_key=key, tls_handshake_timeout_s=0.05) as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=20) as silent,
    ):
        with contextlib.suppress(ConnectionError):
            assert silent.recv(1) == b""
        assert get(server.url, ssl.create_default_context(cafile=certificate)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"tls_certificate": "none.pem"}, "tls_certificate"),
        ({"tls_certificate": "text.pem"}, "tls_certificate"),
        ({"tls_certificate": "text.pem", "tls_key": "none.pem"}, "tls_certificate, tls_key"),
    ],
)
def test_files_that_are_not_certificates_are_refused(
    settings: dict[str, str], parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.pem").write_text("no certificate", encoding="utf-8")
    with pytest.raises(ConfigError, match="PEM") as raised:
        tls_context(ServeConfig(**settings))  # type: ignore[arg-type]
    assert raised.value.field == parameter


@pytest.mark.parametrize("name", ["tls_key", "tls_client_ca"])
def test_other_files_need_a_certificate(name: str) -> None:
    with pytest.raises(ConfigError, match="requires tls_certificate"):
        ServeConfig(**{name: "x.pem"})  # type: ignore[arg-type]


def test_the_answer_to_a_body_that_is_too_long_reaches_a_client_that_sends_first(files: tuple[str, str]) -> None:
    certificate, key = files
    with serving(tls_certificate=certificate, tls_key=key, max_frame_bytes=1000) as server:
        port = urlsplit(server.url).port or 0
        context = ssl.create_default_context(cafile=certificate)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as peer,
        ):
            body = b"x" * (8 << 20)
            head = (
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            )
            peer.sendall(head % len(body))
            peer.sendall(body)
            assert peer.recv(4096).startswith(b"HTTP/1.1 413")
