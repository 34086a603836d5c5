"""The KV pool: views, copies and sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang.cache.pool import KVPool

LAYERS, PAGES, PAGE_SIZE, HEADS, HEAD_DIM = 3, 5, 4, 2, 8


def make_pool(v_head_dim: int, dtype: torch.dtype = torch.float32) -> KVPool:
    return KVPool(LAYERS, PAGES, PAGE_SIZE, HEADS, HEAD_DIM, v_head_dim, dtype, "cpu")


def by_page(view: torch.Tensor) -> torch.Tensor:
    return view.view(PAGES, PAGE_SIZE, *view.shape[1:])


@pytest.mark.parametrize("v_head_dim", [8, 6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_layer_has_its_own_keys_and_values(v_head_dim: int, dtype: torch.dtype) -> None:
    pool = make_pool(v_head_dim, dtype)
    for layer in range(LAYERS):
        assert pool.k(layer).shape == (PAGES * PAGE_SIZE, HEADS, HEAD_DIM)
        assert pool.v(layer).shape == (PAGES * PAGE_SIZE, HEADS, v_head_dim)
        assert pool.k(layer).dtype is pool.v(layer).dtype is dtype
        assert pool.k(layer).is_contiguous()
        assert pool.v(layer).is_contiguous()
        assert not pool.k(layer).any()
        pool.k(layer).fill_(2 * layer + 1)
        pool.v(layer).fill_(2 * layer + 2)
    for layer in range(LAYERS):
        assert (pool.k(layer) == 2 * layer + 1).all()
        assert (pool.v(layer) == 2 * layer + 2).all()
    assert pool.k(0).data_ptr() % 64 == 0


@pytest.mark.parametrize("v_head_dim", [8, 6])
def test_copied_pages_are_read_before_any_is_written(v_head_dim: int) -> None:
    pool = make_pool(v_head_dim)
    for layer in range(LAYERS):
        pool.k(layer).copy_(torch.arange(pool.k(layer).numel()).view_as(pool.k(layer)) + 1000 * layer)
        pool.v(layer).copy_(-torch.arange(pool.v(layer).numel()).view_as(pool.v(layer)) - 1000 * layer)
    views = [view for layer in range(LAYERS) for view in (pool.k(layer), pool.v(layer))]
    before = [by_page(view).clone() for view in views]
    pool.copy_pages([])
    pool.copy_pages([(4, 2), (0, 1), (1, 2), (2, 0)])
    for view, old in zip(views, before, strict=True):
        expected = old[[2, 0, 1, 3, 4]]
        torch.testing.assert_close(by_page(view), expected, rtol=0, atol=0)


@pytest.mark.parametrize("v_head_dim", [8, 6])
def test_bytes_per_page_is_what_the_tensors_take(v_head_dim: int) -> None:
    pool = make_pool(v_head_dim, torch.bfloat16)
    taken = sum(view.nbytes for layer in range(LAYERS) for view in (pool.k(layer), pool.v(layer)))
    per_page = KVPool.bytes_per_page(LAYERS, PAGE_SIZE, HEADS, HEAD_DIM, v_head_dim, torch.bfloat16)
    assert per_page * PAGES == taken
    assert pool.num_slots == PAGES * PAGE_SIZE


def test_values_of_a_latent_pool_are_parts_of_its_keys() -> None:
    pool = KVPool(LAYERS, PAGES, PAGE_SIZE, 1, HEAD_DIM, 6, torch.bfloat16, "cpu", is_latent=True)
    sizes = LAYERS, PAGE_SIZE, 1, HEAD_DIM, 6, torch.bfloat16
    assert pool.page_bytes == KVPool.bytes_per_page(*sizes, is_latent=True) == LAYERS * PAGE_SIZE * HEAD_DIM * 2
    for layer in range(LAYERS):
        pool.k(layer).copy_(torch.arange(pool.k(layer).numel()).view_as(pool.k(layer)) + 1000 * layer)
        assert pool.v(layer).shape == (PAGES * PAGE_SIZE, 1, 6)
        assert pool.v(layer).data_ptr() == pool.k(layer).data_ptr()
        assert torch.equal(pool.v(layer), pool.k(layer)[..., :6])
    before = [by_page(pool.k(layer)).clone() for layer in range(LAYERS)]
    pool.copy_pages([(4, 2), (2, 0)])
    content = np.empty(pool.page_bytes, np.uint8)
    pool.read_page(1, content)
    pool.write_page(3, content)
    for layer, old in enumerate(before):
        assert torch.equal(by_page(pool.k(layer)), old[[2, 1, 4, 1, 4]])
        assert torch.equal(by_page(pool.v(layer)), old[[2, 1, 4, 1, 4]][..., :6])
