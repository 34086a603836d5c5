"""Sums, gathers and messages between ranks, which are threads here."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.model.parallel.group import RankGroup
from tests.support.models.rank_threads import RankThreads, rank_threads


@pytest.fixture(scope="module", params=[2, 3])
def ranks(request: pytest.FixtureRequest) -> Iterator[RankThreads]:
    with rank_threads(request.param) as threads:
        yield threads


def part(rank: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(rank))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sum_is_the_sum_of_all_parts_on_every_rank(ranks: RankThreads, dtype: torch.dtype) -> None:
    parts = [part(rank, 5, 7).to(dtype) for rank in range(ranks.size)]
    expected = torch.stack([each.double() for each in parts]).sum(0)
    for total in ranks.run(lambda group: group.all_reduce(parts[group.rank].clone())):
        torch.testing.assert_close(total.double(), expected, rtol=1e-2 if dtype is torch.bfloat16 else 1e-6, atol=1e-2)


def test_the_bits_of_a_sum_do_not_depend_on_the_rest_of_the_tensor(ranks: RankThreads) -> None:
    parts = [part(rank, 64, 33) for rank in range(ranks.size)]
    whole = ranks.run(lambda group: group.all_reduce(parts[group.rank].clone()))
    for row in (0, 31, 63):
        alone = ranks.run(lambda group, row=row: group.all_reduce(parts[group.rank][row].clone()))  # type: ignore[misc]
        for mine, all_rows in zip(alone, whole, strict=True):
            assert torch.equal(mine, all_rows[row])
    assert all(torch.equal(each, whole[0]) for each in whole)


def test_gathered_parts_and_those_of_rank_0(ranks: RankThreads) -> None:
    parts = [part(rank, 4, 3) for rank in range(ranks.size)]
    for joined in ranks.run(lambda group: group.all_gather(parts[group.rank])):
        assert torch.equal(joined, torch.cat(parts, -1))
    for first in ranks.run(lambda group: group.broadcast(parts[group.rank].clone())):
        assert torch.equal(first, parts[0])


@pytest.mark.parametrize("num_words", [0, 1, 1022, 1023, 1024, 5000])
def test_the_words_of_rank_0_reach_every_other_rank(ranks: RankThreads, num_words: int) -> None:
    message = np.arange(num_words, dtype=np.int32)

    def exchange(group: RankGroup) -> np.ndarray:
        if group.is_first:
            group.send(message)
            return message
        return group.receive()

    assert all(np.array_equal(found, message) for found in ranks.run(exchange))


def test_the_ranks_agree_on_the_smallest_number(ranks: RankThreads) -> None:
    assert ranks.run(lambda group: group.smallest(100 - group.rank)) == [101 - ranks.size] * ranks.size


def test_a_rank_that_does_not_answer_is_noticed_in_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(RankGroup.connect, tmp_path / "store", 1, 2, timeout_s=0.5)
        group = RankGroup.connect(tmp_path / "store", 0, 2, timeout_s=0.5)
        assert other.result(60).rank == 1
        with pytest.raises(RuntimeError, match="Timed out"):
            group.all_reduce(torch.ones(3))


class PretendedNccl:
    """Notes what would be launched on GPUs."""

    Options = SimpleNamespace

    def __init__(self, store: Any, rank: int, size: int, options: Any) -> None:
        self.timeout, self.calls = options._timeout, list[str]()

    def _note(self, name: str) -> PretendedNccl:
        self.calls.append(name)
        return self

    def allreduce(self, tensors: list[torch.Tensor], options: Any = None) -> PretendedNccl:
        return self._note("allreduce")

    def broadcast(self, tensors: list[torch.Tensor], options: Any) -> PretendedNccl:
        return self._note("broadcast")

    def wait(self) -> None:
        self.calls[-1] += ", ordered"

    def abort(self) -> None:
        self.calls.append("abort")


def test_gpus_exchange_activations_with_nccl_and_messages_with_gloo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.distributed, "ProcessGroupNCCL", PretendedNccl, raising=False)
    group = RankGroup.connect(tmp_path / "store", 0, 1, "cuda", timeout_s=7.0)
    nccl = group._data
    assert isinstance(nccl, PretendedNccl)
    assert nccl.timeout.total_seconds() == 7.0
    group.all_reduce(torch.ones(3))
    group.broadcast(torch.ones(3))
    group.send(np.ones(2000, dtype=np.int32))
    assert group.smallest(4) == 4
    group.abort()
    assert nccl.calls == ["allreduce, ordered", "broadcast, ordered", "abort"]
