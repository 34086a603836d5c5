"""Remembered settings are those derived anew, whatever rows come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, Row
from rtlang.model.gpu import sampler_rows
from rtlang.model.gpu.sampler_rows import SamplerRows
from rtlang.model.sampler import changes_logits, sampled_from
from rtlang_kernels.contract.sampler_settings import RowSettings, checked_settings
from rtlang_kernels.triton.sampling.sampler import row_settings

KINDS = (
    (SamplingParams(temperature=0.0), None),
    (SamplingParams(temperature=0.7, top_k=20, logprobs=2), None),
    (SamplingParams(temperature=1.3, top_p=0.9, min_p=0.02), None),
    (SamplingParams(temperature=0.9, presence_penalty=0.5), None),
    (SamplingParams(temperature=0.9, logit_bias=((3, 1.0),), logprobs=0), None),
    (SamplingParams(typical_p=0.5), LogitFilters(truncates=True)),
    (SamplingParams(temperature=0.6), LogitFilters(allowed_token_ids=(1, 2))),
)


def derived(rows: list[Row]) -> RowSettings:
    plain = [sampled_from(row) for row in rows]
    columns = {name: [getattr(row.params, name) for row in plain] for name in ("top_k", "top_p", "min_p")}
    settings = checked_settings(
        len(rows),
        1,
        temperature=[row.temperature for row in plain],
        **columns,
        seeds=[row.seed for row in rows],
        choices=[row.choice for row in rows],
        steps=[row.num_output_tokens for row in rows],
        bitmask=None,
        mask_rows=None,
    )
    return row_settings(settings)


@pytest.mark.parametrize("num_slots", [4, 1024])
def test_settings_are_those_of_each_row(num_slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_rows, "_NUM_SLOTS", num_slots)
    rng, known = random.Random(num_slots), SamplerRows()
    settings_of: dict[int, tuple[SamplingParams, LogitFilters | None, int, int]] = {}
    for step in range(60):
        rows = []
        for request_id in rng.sample(range(step // 4, step // 4 + 12), rng.randrange(1, 9)):
            if request_id not in settings_of or rng.random() < 0.05:  # an id may come again with other settings
                settings_of[request_id] = (*rng.choice(KINDS), rng.getrandbits(64), rng.randrange(3))
            params, filters, seed, choice = settings_of[request_id]
            row = Row(request_id, (1,), step, (0,), 0, True, params, seed, choice, step, filters=filters)
            if rng.random() < 0.2:
                row = row._replace(temperatures=(rng.choice((None, 0.0, 0.4, 2.0)),))
            if rng.random() < 0.2:
                row = row._replace(banned_token_ids=(5,))
            rows += [row] * rng.choice((1, 1, 2))  # drafts are rows of the same request
        found, wanted = known.settle(rows), derived(rows)
        for mine, fresh in zip(found.settings.arrays, wanted.arrays, strict=True):
            assert mine.dtype == fresh.dtype
            assert np.array_equal(mine, fresh)
        assert found.changed == [index for index, row in enumerate(rows) if changes_logits(row)]
        assert list(found.reported) == [
            (index, row.params.logprobs) for index, row in enumerate(rows) if row.params.logprobs is not None
        ]
        assert len(known._known) <= max(num_slots, 2 * len(rows))
