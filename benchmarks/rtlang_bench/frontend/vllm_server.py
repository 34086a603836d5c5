"""`vllm serve` in a process of its own, from another environment: its API server is that process, its engine a child of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from rtlang.contract.errors import EngineDeadError

START_TIMEOUT_S = 900.0  # the first start compiles the model
KV_GIB = 2


class VllmServer:
    """A server on a free loopback port. Use as a context manager.

    Args:
        python: the Python of an environment in which vLLM is installed.
        directory: the checkpoint.
        num_threads: of its engine.
        options: further arguments of the command.
    Raises:
        EngineDeadError: the server did not start; holds the end of its output.
    """

    def __init__(self, python: str, directory: Path, num_threads: int, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.http_url = f"http://127.0.0.1:{port}"
        command = [python, "-m", "vllm.entrypoints.cli.main", "serve", str(directory)]
        self._command = [*command, "--host", "127.0.0.1", "--port", str(port), *options]
        cores = sorted(os.sched_getaffinity(0))[:num_threads]
        self._environment = {
            **os.environ,
            "VLLM_CPU_KVCACHE_SPACE": str(KV_GIB),
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
            "VLLM_LOGGING_LEVEL": "ERROR",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(num_threads),
        }
        self._environment.pop("PYTHONPATH", None)

    def __enter__(self) -> Self:
        self._printed = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command, stdout=self._printed, stderr=self._printed, env=self._environment, start_new_session=True
        )
        end = time.monotonic() + START_TIMEOUT_S
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                self._printed.seek(0)
                printed = self._printed.read().decode(errors="replace")[-2000:]
                self.__exit__(None, None, None)
                raise EngineDeadError(f"vLLM did not start: {printed}")
            time.sleep(0.5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20.0)
        with contextlib.suppress(ProcessLookupError):
            # Its engine, too, which outlives a server that ends while it starts.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._printed.close()

    @property
    def pid(self) -> int:
        """The id of the process that serves clients."""
        return self._process.pid

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.http_url + "/health", timeout=5.0) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
