"""The product of texts, tokens and log-probabilities is bounded, inside of blocks too."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import GraphError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Block, Const, Generate, Switch
from rtlang.runtime.result_size import MAX_LOGPROBS_OF_RESULT, check_result_sizes


@pytest.mark.parametrize(
    ("params", "is_allowed"),
    [
        (SamplingParams(n=128, max_tokens=1 << 24), True),
        (SamplingParams(n=128, max_tokens=4096, logprobs=100), False),
        (SamplingParams(n=32, max_tokens=4096, logprobs=1), True),
        (SamplingParams(best_of=128, temperature=1.0, max_tokens=4096, logprobs=2), False),
        (SamplingParams(max_tokens=1 << 24, logprobs=100), True),  # the context is shorter
    ],
)
def test_the_product_is_bounded(params: SamplingParams, is_allowed: bool) -> None:
    node = Generate(0, None, "x", params)
    for nodes in ([node], [Switch(5, None, Const(1), ((1, Block((Generate(6, 5, "x", params),))),), None, "s")]):
        if is_allowed:
            check_result_sizes(nodes, 8192)
        else:
            with pytest.raises(GraphError, match=f"expected at most {MAX_LOGPROBS_OF_RESULT}"):
                check_result_sizes(nodes, 8192)
