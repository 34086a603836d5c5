"""The work of a rank other than 0, here on a thread: it computes what rank 0 says, and ends when it says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.host_runner import HostRunner
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import end_words
from rtlang.model.rank_worker import work
from tests.support.models.model_steps import greedy_tokens

CONFIG = RuntimeConfig(dtype="float32", num_pages=8, num_threads=1, tensor_parallel=2)


def test_a_rank_works_until_rank_0_ends_it(tmp_path: Path) -> None:
    alone = HostRunner(replace(CONFIG, tensor_parallel=1))
    alone.load()
    expected = greedy_tokens(alone, [5, 6, 7], 3)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, CONFIG, 1, tmp_path / "store")
        group = RankGroup.connect(tmp_path / "store", 0, 2)
        runner = HostRunner(CONFIG, group)
        runner.load()
        assert greedy_tokens(runner, [5, 6, 7], 3) == expected
        runner.page_memory.release([(0, 8)])
        assert greedy_tokens(runner, [5, 6, 7], 3) == expected
        group.send(end_words())
        done.result(60)


def test_a_rank_reports_a_model_that_is_not_there(tmp_path: Path) -> None:
    config = RuntimeConfig(model=str(tmp_path / "none"), tensor_parallel=2)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, config, 1, tmp_path / "store")
        group = RankGroup.connect(tmp_path / "store", 0, 2)
        with pytest.raises(ModelLoadError, match="no such directory"):
            done.result(60)
        assert group.size == 2
