"""The process of another server: a script that listens like `vllm serve` stands for its environment."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang_bench.frontend.vllm_server import VllmServer

SCRIPT = """
import json, os, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        names = ("OMP_NUM_THREADS", "VLLM_CPU_OMP_THREADS_BIND", "PYTHONPATH")
        body = json.dumps({"arguments": sys.argv[1:], "pid": os.getpid()} | {name: os.environ.get(name) for name in names}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
if "--engine" in sys.argv:
    print(subprocess.Popen(["sleep", "100"]).pid, file=open(sys.argv[-1], "w"), flush=True)
host, port = (sys.argv[sys.argv.index(name) + 1] for name in ("--host", "--port"))
HTTPServer((host, int(port)), Handler).serve_forever()
"""


def python_of(folder: Path) -> str:
    """A command that stands for the Python of the other environment."""
    (folder / "server.py").write_text(SCRIPT)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/server.py" "$@"\n')
    command.chmod(0o755)
    return str(command)


@pytest.mark.skipif(sys.platform != "linux", reason="a shell script stands for Python, and cores are Linux's")
def test_the_server_runs_until_the_end_with_its_threads_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "ours")
    with VllmServer(python_of(tmp_path), tmp_path / "model", 1, "--dtype", "bfloat16") as server:
        with urllib.request.urlopen(server.http_url + "/any") as answer:
            found = json.load(answer)
        os.kill(server.pid, 0)
    arguments = " ".join(found["arguments"])
    assert f"serve {tmp_path}/model" in arguments
    assert arguments.endswith("--dtype bfloat16")
    assert found["pid"] == server.pid, "processor time is that of the process that serves clients"
    assert (found["OMP_NUM_THREADS"], found["PYTHONPATH"]) == ("1", None)
    assert found["VLLM_CPU_OMP_THREADS_BIND"].isdecimal(), "one core for one thread"
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="a shell script stands for Python, and groups are of POSIX")
def test_its_engine_ends_with_the_server(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    with VllmServer(python_of(tmp_path), tmp_path, 1, "--engine", str(told)):
        state = Path("/proc", told.read_text().strip(), "stat")
        assert state.exists()
    end = time.monotonic() + 10.0
    while state.exists() and ") Z " not in state.read_text():
        assert time.monotonic() < end, "it runs on"
        os.sched_yield()


def test_an_environment_without_vllm_is_an_error_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(EngineDeadError, match="vllm"), VllmServer(sys.executable, tmp_path, 1):
        pass
