"""The state of control nodes."""

from __future__ import annotations

from rtlang.runtime.nodes.controls import RunningControl


def test_two_controls_share_no_nodes() -> None:
    first, second = RunningControl(0.0), RunningControl(0.0)
    first.node_ids.append(3)
    assert second.node_ids == []
