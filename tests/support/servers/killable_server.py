"""Servers in processes of their own, to be killed. They are forked from one process that has imported what they need."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from rtlang.contract.config import RuntimeConfig, ServeConfig

START_S = 120.0
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["tests.support.servers.killable_server", "rtlang.serve.server", "rtlang.runtime.runtime"]
)


def _serve(pipe: Connection, port: int, model: str, settings: dict[str, Any]) -> None:
    from rtlang.runtime.runtime import Runtime
    from rtlang.serve.server import TokenizerInfo, running_server

    with Runtime(config=RuntimeConfig(**settings)) as runtime:
        info = TokenizerInfo(model, 2048, 1024, None, runtime.model_identity)
        with running_server(runtime, ServeConfig(port=port), info) as url:
            pipe.send(url)
            pipe.poll(None)


class KillableServer:
    """A server of the tiny model at a port."""

    def __init__(self, port: int, model: str = "rtlang:tiny", **settings: Any) -> None:
        self.port, self.model = port, model
        self.settings = {"dtype": "float32", "num_pages": 400, "num_threads": 1, "max_model_len": 1024} | settings
        self.url = f"ws://127.0.0.1:{port}"
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def start(self, *, waits: bool = True) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, self.port, self.model, self.settings), daemon=True
        )
        self._process.start()
        theirs.close()
        if waits:
            self.wait()

    def wait(self) -> None:
        assert self._pipe is not None
        assert self._pipe.poll(START_S), "the server did not start"
        assert self._pipe.recv() == self.url

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            assert self._process.exitcode == -signal.SIGKILL
            self._process = None

    def drain(self) -> None:
        """Let it end as on SIGTERM."""
        assert self._pipe is not None
        self._pipe.close()


@contextmanager
def killable_servers(*servers: KillableServer) -> Iterator[None]:
    """Start these servers at once, and kill them in the end."""
    begun = time.monotonic()
    for server in servers:
        server.start(waits=False)
    try:
        for server in servers:
            server.wait()
        print(f"{len(servers)} servers started in {time.monotonic() - begun:.1f} s")
        yield
    finally:
        for server in servers:
            server.kill()
