"""What is read of a server in a process of its own, with a script in the place of `rtlang serve`."""

from __future__ import annotations

import sys

import pytest

from rtlang.bench.server_process import ServerProcess, _samples
from rtlang.contract.errors import EngineDeadError

LISTENING = "import time; print('loading'); print('serving a model at ws://127.0.0.1:9', flush=True); time.sleep(60)"


def process(code: str) -> ServerProcess:
    server = ServerProcess()
    server._command = [sys.executable, "-c", code]
    return server


def test_the_address_is_read_and_the_process_is_ended() -> None:
    with process(LISTENING) as server:
        assert server.url == "ws://127.0.0.1:9"
        assert server.is_running
        assert len(server.processes()) == 1
        assert server.num_resident_bytes() > 1 << 20
        assert server.num_log_bytes > 0
    assert not server.is_running


def test_a_server_that_does_not_start_is_an_error_with_its_output() -> None:
    with pytest.raises(EngineDeadError, match="no such model"), process("raise SystemExit('no such model')"):
        pass


def test_samples_are_read_without_the_prefix() -> None:
    lines = [
        "# HELP x",
        "rtlang_engine_steps_total 3.0",
        'rtlang_request_success_total{finished_reason="stop"} 2.0',
        "",
    ]
    assert dict(_samples(lines)) == {"engine_steps_total": 3.0, 'request_success_total{finished_reason="stop"}': 2.0}
