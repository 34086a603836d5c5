"""What keeps a function from being captured as a graph is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rtlang.model.gpu import sync_check
from rtlang.model.gpu.sync_check import obstacle

CPU = torch.device("cpu")
X = torch.arange(12.0).view(3, 4)
LAUNCHES: dict[str, Callable[[], object]] = {
    "arithmetic": lambda: torch.where(X > 3, X @ X.T @ X, X.sum()).softmax(-1),
    "index": lambda: X[torch.tensor([2, 0])],
    "put": lambda: X.clone().index_put_((torch.tensor([1]),), torch.zeros(4)),
    "experts": lambda: torch.topk(X, 2).indices.sort().indices,
    "linear": lambda: torch.nn.functional.linear(X, X),
    "shape": lambda: X.new_zeros(len(X), int(X.shape[1])),
}
READS: dict[str, tuple[Callable[[], object], str]] = {
    "condition": (lambda: 1 if (X > 0).any() else 0, "_local_scalar_dense"),
    "item": (lambda: X.sum().item(), "_local_scalar_dense"),
    "list": (lambda: [int(number) for number in X[0]], "_local_scalar_dense"),
    "nonzero": (lambda: X.nonzero(), "nonzero"),
    "mask": (lambda: X[X > 3], "index"),
    "put by mask": (lambda: X.clone().index_put_((X > 3,), torch.tensor(0.0)), "index_put_"),
    "unique": (lambda: torch.unique(X), "unique"),
    "equal": (lambda: torch.equal(X, X), "equal"),
    "repeats": (lambda: torch.repeat_interleave(torch.tensor([1, 2, 3])), "repeat_interleave"),
}


@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.parametrize("is_inference", [True, False])
def test_what_only_launches_has_no_obstacle(name: str, is_inference: bool) -> None:
    with torch.inference_mode(is_inference):
        assert obstacle(LAUNCHES[name], CPU) is None


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_inference", [True, False])
def test_what_reads_values_back_is_named_with_its_place(name: str, is_inference: bool) -> None:
    function, operator = READS[name]
    with torch.inference_mode(is_inference):
        found = obstacle(function, CPU)
    assert found is not None
    assert operator in found
    assert "(test_sync_check.py:" in found


def test_the_hosts_own_numbers_may_be_read() -> None:
    assert obstacle(READS["item"][0], torch.device("cuda")) is None


def test_an_operator_that_waits_inside_is_named() -> None:
    """As torch says it where its sync debug mode is "error"."""

    def waiting() -> Tensor:
        (X * 2).sum()
        raise RuntimeError("called a synchronizing CUDA operation")

    found = obstacle(waiting, CPU)
    assert found is not None
    assert found.endswith("synchronizes with the device")
    assert "aten::sum" in found

    def broken() -> Tensor:
        raise RuntimeError("an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        obstacle(broken, CPU)


def test_copies_between_host_and_device_are_obstacles() -> None:
    """`meta` stands in for a GPU: it is another device than the host's."""
    meta = torch.device("meta")
    assert obstacle(lambda: torch.ones(2).to(meta), meta) is not None
    assert obstacle(lambda: torch.ones(2, device=meta).copy_(torch.ones(2)), meta) is not None
    assert obstacle(lambda: torch.ones(2, device=meta) + torch.ones(2, device=meta), meta) is None
    assert sync_check.obstacle(lambda: torch.ones(2, device=meta).to(torch.float16), meta) is None
