"""A head that does not answer is given up before Ray ends the process, and one that comes back in time is not."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("ray")

from rtlang.contract.errors import ConnectionLostError
from rtlang.fleet.ray import head_watch
from rtlang.fleet.ray.head_watch import HeadWatch
from tests.support.servers.free_port import free_port
from tests.support.servers.ray_cluster import ray_cluster


def test_a_head_that_has_died_is_given_up_once() -> None:
    told, is_told = list[str](), threading.Event()

    def on_lost(reason: str) -> None:
        told.append(reason)
        is_told.set()

    address = f"127.0.0.1:{free_port()}"
    watch = HeadWatch(address, on_lost, interval_s=0.001, limit_s=0.05)
    watch.start()
    assert is_told.wait(60)
    watch._thread.join(60)
    assert told == [f"the head of the Ray cluster at {address} has not answered for 0 s"]


def test_a_head_that_comes_back_is_not_given_up(caplog: pytest.LogCaptureFixture) -> None:
    num_asked, is_back = 0, threading.Event()

    def check(address: str) -> None:
        nonlocal num_asked
        num_asked += 1
        if num_asked in (2, 3, 4):
            raise ConnectionLostError(f"no Ray cluster at {address}: Connection refused")
        if num_asked == 6:
            is_back.set()

    def on_lost(reason: str) -> None:
        pytest.fail(reason)

    caplog.set_level(logging.WARNING)
    watch = HeadWatch("h:1", on_lost, check=check, interval_s=0.001, limit_s=600.0)
    watch.start()
    assert is_back.wait(60)
    watch.close()
    watch._thread.join(60)
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("no Ray cluster at h:1: Connection refused; programs go on")
    assert second == "the head of the Ray cluster at h:1 answers again"


@pytest.mark.parametrize(("given", "expected"), [(None, 36.0), ("100", 60.0), ("x", 36.0)])
def test_the_patience_is_shorter_than_that_of_ray(
    given: str | None, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "RAY_gcs_rpc_server_reconnect_timeout_s"
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    assert head_watch.patience_s() == expected


def child(command: str) -> int:
    """The process of this name that this process has started."""
    for status in Path("/proc").glob("[0-9]*/status"):
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", status.read_text(encoding="utf-8"), re.MULTILINE))
        if (fields["Name"], fields["PPid"]) == (command, str(os.getpid())):
            return int(fields["Pid"])
    raise LookupError(command)


@pytest.mark.long
def test_a_server_whose_cluster_has_lost_its_head_ends_with_a_status_of_its_own() -> None:
    with ray_cluster(1) as address:
        command = [sys.executable, "-m", "rtlang", "serve", "--port", "0", "--replicas", "1", "--ray", address]
        environment = os.environ | {"RAY_gcs_rpc_server_reconnect_timeout_s": "40"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline().startswith("serving rtlang:tiny")
                os.kill(child("gcs_server"), signal.SIGKILL)
                _, errors = server.communicate(timeout=120)
            finally:
                server.kill()
    assert server.returncode == 70
    assert re.search(rf"the head of the Ray cluster at {address} has not answered for \d+ s", errors)
    assert errors.endswith("error: the engine has failed for good\n")
