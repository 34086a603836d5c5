"""The programs of the simulation have the sizes and frequencies that it claims."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang_bench.fleet.simulated_load import OUTPUT_WEIGHT, LoadShape, make_load, zipf

SHAPE = LoadShape(num_replicas=10, num_programs=400, num_templates=7, num_documents=50)


def test_frequencies_follow_zipf() -> None:
    found = np.bincount(zipf(np.random.default_rng(0), 100, 0.9, 200_000), minlength=100)
    expected = np.arange(1, 101) ** -0.9
    expected *= 200_000 / expected.sum()
    assert np.sort(found)[::-1] == pytest.approx(expected, rel=0.15)


def test_sizes_of_programs_add_up() -> None:
    load = make_load(SHAPE, 3)
    assert load.first_calls[-1] == len(load.message_tokens) == len(load.output_tokens)
    alone = 0
    for program, document in enumerate(load.documents):
        calls = range(load.first_calls[program], load.first_calls[program + 1])
        assert 2 <= len(calls) <= 10
        alone += load.template_tokens[load.templates[document]] + load.document_tokens[document]
        alone += sum(load.message_tokens[call] + OUTPUT_WEIGHT * load.output_tokens[call] for call in calls)
    assert load.alone == pytest.approx(alone / SHAPE.num_programs)


def test_arrivals_bring_the_load() -> None:
    load = make_load(SHAPE, 3)
    arrivals = load.arrivals(0.5, 1)
    assert arrivals == sorted(arrivals)
    brought = load.alone * SHAPE.num_programs / (arrivals[-1] * SHAPE.num_replicas)
    assert brought == pytest.approx(0.5, rel=0.2)
    assert make_load(SHAPE, 3) == load
    assert make_load(SHAPE, 4) != load
