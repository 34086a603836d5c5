"""The gaps beside one attack on a server without a model. No timing decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from rtlang_bench.serve.thread_figures import thread_figures


def test_an_attack_gives_a_gap_and_slow_constraints_a_time() -> None:
    with (
        ScriptedRuntime(default="some text", checks=False) as runtime,
        running_server(runtime, ServeConfig(port=0)) as url,
    ):
        server: Any = SimpleNamespace(url=url)
        gap, constraint = thread_figures(server, ["slow_constraints"])
    assert (gap.name, constraint.name) == ("held_by_slow_constraints", "constraint_beside_slow_ones")
    assert "6 graphs" in gap.note
    assert gap.value > 0
