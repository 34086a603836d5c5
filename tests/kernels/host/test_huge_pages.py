"""Copies of tensors in huge pages."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from rtlang_kernels.host import huge_pages
from rtlang_kernels.host.huge_pages import PAGE_BYTES, in_huge_pages

needs_huge_pages = pytest.mark.skipif(huge_pages._CHUNKS is None, reason="the system has no huge pages on request")


@pytest.fixture(autouse=True)
def own_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mappings of this test only."""
    if huge_pages._CHUNKS is not None:
        monkeypatch.setattr(huge_pages, "_CHUNKS", huge_pages._Chunks())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("shape", [(7,), (3, 5, 2), (1024, 600), (0, 4), ()])
def test_copies_are_equal_contiguous_and_aligned(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randint(-100, 100, (*shape, 2)).to(dtype)[..., 0]
    copies = [in_huge_pages(tensor) for _ in range(3)]
    for copy in copies:
        assert copy.dtype == dtype
        assert copy.is_contiguous()
        assert torch.equal(copy, tensor)
        if tensor.numel():
            assert copy.data_ptr() % 64 == 0
            copy.zero_()  # overlaps no other copy


@needs_huge_pages
def test_a_mapping_goes_with_its_last_tensor() -> None:
    first, second = in_huge_pages(torch.ones(300_000)), in_huge_pages(torch.ones(300_000))
    assert abs(second.data_ptr() - first.data_ptr()) == 1_200_000  # of one mapping
    huge_pages._CHUNKS = huge_pages._Chunks()
    address = first.data_ptr()
    del first
    gc.collect()
    assert _is_mapped(address)
    assert float(second.sum()) == 300_000
    del second
    gc.collect()
    assert not _is_mapped(address)


@needs_huge_pages
def test_a_large_tensor_begins_at_a_page_border() -> None:
    assert in_huge_pages(torch.zeros(20_000_000)).data_ptr() % PAGE_BYTES == 0


@needs_huge_pages
def test_the_system_backs_them_with_huge_pages() -> None:
    state = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not state.exists() or "[never]" in state.read_text(encoding="ascii"):
        pytest.skip("huge pages are switched off")
    before = _huge_bytes()
    kept = in_huge_pages(torch.ones(16_000_000))
    if _huge_bytes() == before:
        pytest.skip("the system has no free huge page")
    assert _huge_bytes() - before > kept.nbytes // 2


@needs_huge_pages
def test_a_refusal_leaves_small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(mmap.mmap):
        def madvise(self, *_: int) -> None:
            raise OSError(22, "Invalid argument")

    stand_in = SimpleNamespace(**{name: getattr(mmap, name) for name in dir(mmap)} | {"mmap": Refusing})
    monkeypatch.setattr(huge_pages, "mmap", stand_in)
    assert float(in_huge_pages(torch.ones(1000)).sum()) == 1000


def test_systems_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "_CHUNKS", None)
    tensor = torch.arange(12).view(3, 4).T
    copy = in_huge_pages(tensor)
    assert copy.is_contiguous()
    assert torch.equal(copy, tensor)


def _is_mapped(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if low <= address < high:
            return True
    return False


def _huge_bytes() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("AnonHugePages"))
