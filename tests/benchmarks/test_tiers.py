"""A pool of a quarter of the working set gives the texts of a large one, whatever lies below it, damaged files included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang_bench.tiers import PoolRun, SmallPool, measure_small_pool


def test_texts_do_not_depend_on_the_pool_or_on_what_is_below(caplog: pytest.LogCaptureFixture) -> None:
    found = measure_small_pool(
        RuntimeConfig(num_threads=1), num_documents=4, num_tokens=70, num_requests=10, share=0.25
    )
    assert found.is_met
    names = [run.name for run in found.runs]
    assert names == [
        "a pool for all",
        "a small pool",
        "with a tier in memory",
        "with a tier on disk",
        "after a restart",
        "with damaged files",
    ]
    large, bare, memory, _, restarted, damaged = found.runs
    assert len(large.texts) == 10
    assert large.num_evicted_pages == 0
    assert bare.num_host_tokens == bare.num_disk_tokens == 0
    assert memory.num_host_tokens + memory.num_recomputed_pages > 0
    assert restarted.num_disk_tokens + restarted.num_recomputed_pages > 0
    assert "its checksum is wrong" in caplog.text
    assert damaged.num_disk_tokens <= restarted.num_disk_tokens


def test_a_text_that_differs_misses_the_goal() -> None:
    first = PoolRun("large", 90, 1.0, ((1, 2),), 0, 0, 0, 0)
    second = replace(first, name="small", num_pages=9, num_evicted_pages=4)
    assert SmallPool((first, second)).is_met
    assert str(SmallPool((first, second))).count("same texts") == 1
    wrong = SmallPool((first, replace(second, texts=((1, 3),))))
    assert not wrong.is_met
    assert "DIFFERENT TEXTS" in str(wrong)
    assert not SmallPool((first, replace(second, num_evicted_pages=0))).is_met, "its pool was not small"
