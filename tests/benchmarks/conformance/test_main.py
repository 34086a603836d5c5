"""The command on a real server: everything passes, and the exit status says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang_bench.conformance.__main__ import KEY_VARIABLE, address, main
from tests.support.servers.free_port import free_port


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with rt.Runtime() as runtime, running_server(runtime, ServeConfig(port=0, api_key="secret")) as found:
        yield found


def test_our_server_passes_every_check(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    status = main([url])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("pass")] == [f"{len(lines) - 1} pass, 0 FAIL, 0 skip"]
    assert status == 0


def test_a_failed_check_and_no_check_at_all_are_failures(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert main([url, "--only", "welcome has"]) == 1  # without the key
    assert main([url, "--only", "no such claim"]) == 1


def test_a_server_that_is_not_there_fails(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert main([f"ws://127.0.0.1:{port}", "--only", "1.3"]) == 1
    assert "ConnectionRefusedError" in capsys.readouterr().out


def test_addresses_get_the_path_once() -> None:
    assert address("https://host/base/") == "wss://host/base/v1/stream"
    assert address("ws://host:1/v1/stream") == "ws://host:1/v1/stream"
