"""A target that does not wait for credit fails the checks of credit, and no others that it can pass."""

from __future__ import annotations

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from rtlang_bench.conformance.__main__ import main


def test_a_server_that_does_not_wait_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        ScriptedRuntime({"text": "twelve tokens and more"}) as runtime,
        running_server(runtime, ServeConfig(port=0)) as url,
    ):
        assert main([url, "--only", "without credit nothing is delivered"]) == 1
        assert main([url, "--only", "7.4"]) == 0
        assert main([url, "--only", "attach fails with gone"]) == 0
    assert "FAIL  10.1" in capsys.readouterr().out
