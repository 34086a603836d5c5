"""The plain figures that people compare: how fast a few rows decode, and how fast a prompt is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from rtlang.bench.measure import Measurement
from rtlang.bench.workloads import requests
from rtlang.bench.workloads.workload import Workload

PROMPT_TOKENS, NUM_OUTPUTS = 512, 32
CASES: dict[str, Callable[..., Workload]] = {
    **{f"decode {rows}": partial(requests.decode, num_rows=rows, num_outputs=NUM_OUTPUTS) for rows in (1, 2, 4, 8)},
    f"prefill {PROMPT_TOKENS}": partial(requests.prefill, num_tokens=PROMPT_TOKENS),
}
"""The workload of each figure, from a tokenizer and `seed`, that of its texts."""


def tokens_per_s(run: Measurement) -> float:
    """Tokens a second of a case: of all rows between two steps, their median, or of the prompt until its first token."""
    gaps = run.gaps_s()
    if gaps:
        return len(run.outputs) / median(gaps)
    return run.prompt_tokens / run.first_token_s[0]
