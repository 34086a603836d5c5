"""A target whose output is wrong fails the checks of its faults."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.events import Event, TextDelta
from rtlang.contract.service.target import Listener
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from rtlang_bench.conformance.__main__ import main


class Forgetful:
    """Hands all on to a scripted runtime, but drops the deltas."""

    tool_format = None
    is_alive = True

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime

    def submit(self, graph: Any, listener: Listener, **options: Any) -> Any:
        def listen(event: Event) -> None:
            if not isinstance(event, TextDelta):
                listener(event)

        return self._runtime.submit(graph, listen, **options)

    def close(self) -> None:
        self._runtime.close()


def test_missing_deltas_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        ScriptedRuntime({"text": "eight tokens"}) as runtime,
        running_server(Forgetful(runtime), ServeConfig(port=0)) as url,
    ):
        assert main([url, "--only", "a generation streams deltas"]) == 1
    assert "the texts differ" in capsys.readouterr().out
