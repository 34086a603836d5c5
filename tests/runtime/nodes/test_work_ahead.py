"""The work of nodes that have not begun."""

from __future__ import annotations

from rtlang.contract.graph import Apply, Arg, Generate, Ref, Text
from rtlang.contract.params import SamplingParams
from rtlang.runtime.nodes.work_ahead import WorkAhead


def test_work_leaves_once() -> None:
    ahead = WorkAhead({"question": "q" * 40})
    ahead.add((Text(0, None, (Arg("question"),)), Apply(2, "upper", (Ref(1),))))
    ahead.add((Generate(1, 0, None, SamplingParams(max_tokens=9, ignore_eos=True)),))
    assert ahead.total == (10, 9)
    for node_id in (0, 0, 2):
        ahead.leave(node_id)
    assert ahead.total == (0, 9)
    ahead.leave(1)
    assert ahead.total == (0, 0)
