"""The token counts of batches, from bodies as the routes give them."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.batch_usage import BatchUsage as Typed

from rtlang.serve.batch.batch_usage import BatchUsage

CHAT = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
RESPONSE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 2},
}
MESSAGE = {"input_tokens": 5, "output_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1}


def test_the_shapes_of_all_routes_are_summed() -> None:
    usage = BatchUsage()
    for body in (CHAT, RESPONSE, MESSAGE):
        usage.add({"usage": body})
    assert usage == BatchUsage(30, 12, 15, 4)
    typed = Typed.model_validate(usage.to_object(), strict=True)
    assert typed.model_dump() == usage.to_object()
    assert typed.total_tokens == 45


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "x",
        {},
        {"usage": None},
        {"usage": {"prompt_tokens": "x", "prompt_tokens_details": 3}},
        {"usage": {"input_tokens": True}},
    ],
)
def test_a_body_without_counts_counts_nothing(body: Any) -> None:
    usage = BatchUsage()
    usage.add(body)
    assert usage == BatchUsage()
