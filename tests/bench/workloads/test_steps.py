"""The plain cases have the rows and tokens that their names say, and the figures of a run follow from its times."""

from __future__ import annotations

import pytest

from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.steps import CASES, NUM_OUTPUTS, tokens_per_s
from rtlang.bench.workloads.workload import generations
from rtlang.contract.request_graph import Text
from tests.support.engine.encoders import Letters


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_what_its_name_says(name: str) -> None:
    kind, number = name.split()
    workload = CASES[name](Letters(), seed=3)
    prompts = [node.parts[0] for graph in workload.graphs for node in graph.nodes if isinstance(node, Text)]
    lengths = [len(Letters().start_ids()) + len(Letters().encode(str(text), is_start=True)) for text in prompts]
    outputs = [each.params.max_tokens for graph in workload.graphs for each in generations(graph)]
    if kind == "decode":
        assert outputs == [NUM_OUTPUTS] * int(number)
        assert len(set(prompts)) == int(number)
    else:
        assert (lengths, outputs) == ([int(number)], [1])
    assert CASES[name](Letters(), seed=4).graphs != workload.graphs


def test_figures_are_of_steps_or_of_the_first_token() -> None:
    times = {(0, 1): (1.0, 1.5, 2.0, 12.0), (1, 1): (1.0, 1.5, 2.0, 12.0)}
    decode = Measurement(12.0, (12.0, 12.0), times, dict.fromkeys(times, (1,) * 4), prompt_tokens=32)
    assert tokens_per_s(decode) == 4.0
    prefill = Measurement(2.0, (2.0,), {(0, 1): (2.0,)}, {(0, 1): (1,)}, prompt_tokens=512)
    assert tokens_per_s(prefill) == 256.0
