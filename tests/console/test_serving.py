"""`rtlang serve`: it ends with its engine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rtlang.console import serving
from rtlang.console.serving import FleetChoice, serve_while_alive
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.replicas.fleet import Fleet
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.engine_threads import ThreadLauncher


class Server:
    """Serves until it is stopped."""

    def __init__(self) -> None:
        self.was_stopped = asyncio.Event()

    def stop(self) -> None:
        self.was_stopped.set()

    async def serve(self, *, handle_signals: bool, on_listening: Callable[[], None]) -> None:
        on_listening()
        await self.was_stopped.wait()


def test_the_server_is_stopped_when_its_engine_is_dead() -> None:
    async def serve() -> bool:
        server, target = Server(), ScriptedTarget()
        await serve_while_alive(server, target, target.close)
        return server.was_stopped.is_set()

    assert asyncio.run(serve())


def test_a_signal_while_the_engines_start_ends_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Starting:
        def start(self) -> None:
            signal.raise_signal(signal.SIGUSR1)
            raise ModelLoadError("model", "there is none")

    before = signal.getsignal(signal.SIGUSR1)
    monkeypatch.setattr(serving, "fleet_target", lambda *_, **__: Starting())
    try:
        with pytest.raises(ModelLoadError):
            serving.serve_engine(
                RuntimeConfig(), ServeConfig(), in_process=False, stall_timeout_s=1.0, choice=FleetChoice(replicas=2)
            )
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "the engines are still starting; the update is ignored" in caplog.text


def test_a_signal_replaces_the_engines_once(caplog: pytest.LogCaptureFixture) -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def replace() -> None:
        begun.release()
        assert may_end.wait(60)

    async def serve() -> None:
        server, target = Server(), ScriptedTarget()
        serving = asyncio.create_task(serve_while_alive(server, target, lambda: None, replace))
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.to_thread(begun.acquire)
        os.kill(os.getpid(), signal.SIGUSR1)  # one is under way
        while "already" not in caplog.text:
            await asyncio.sleep(0.01)
        may_end.set()
        target.close()
        await serving

    try:
        asyncio.run(serve())
    finally:
        may_end.set()
    assert not begun.acquire(blocking=False)


def test_a_server_whose_fleet_was_stopped_has_not_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class StoppedServer(Server):
        url = "ws://127.0.0.1:1"

        def __init__(self, target: Fleet, *args: object, **options: object) -> None:
            super().__init__()
            self.target = target

        async def serve(self, *, handle_signals: bool, on_listening: Callable[[], None]) -> None:
            await asyncio.to_thread(self.target.stop, "the fleet was stopped")

    host = EngineHost()
    monkeypatch.setattr(
        serving, "fleet_target", lambda *_, **__: Fleet([ThreadLauncher(host)], RuntimeConfig(num_pages=60))
    )
    monkeypatch.setattr(serving, "Server", StoppedServer)
    choice = FleetChoice(ray="127.0.0.1:1")
    assert serving.serve_engine(RuntimeConfig(), ServeConfig(), in_process=False, stall_timeout_s=9.0, choice=choice)
    assert "the fleet was stopped; the server ends" in capsys.readouterr().out
    host.close()


def test_wrong_settings_of_the_server_are_told_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise AssertionError("a model is loaded")

    monkeypatch.setattr(serving, "EngineProcess", load)
    monkeypatch.setattr(serving, "started", load)
    keys = tmp_path / "keys.toml"
    keys.write_text("[[keys]]\nname = 3")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wrong: dict[str, dict[str, Any]] = {
            "port": {"port": port},
            "keys_file": {"keys_file": str(tmp_path / "none.toml")},
            "keys_file, entry 1, sha256": {"keys_file": str(keys)},
            "tls_certificate": {"tls_certificate": str(tmp_path / "none.pem")},
            "host": {"host": "192.0.2.1", "allow_public": True},
        }
        for field, settings in wrong.items():
            for in_process in (False, True):
                config = ServeConfig(**{"port": 0} | settings)
                with pytest.raises(ConfigError) as refused:
                    serving.serve_engine(RuntimeConfig(), config, in_process=in_process, stall_timeout_s=1.0)
                assert refused.value.field == field
                assert "\n" not in str(refused.value)
