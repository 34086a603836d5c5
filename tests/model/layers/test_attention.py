"""Pages of layers with different heads, and one plan per head geometry."""

from __future__ import annotations

import pytest
import torch

from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention
from rtlang_kernels import ops

NARROW, WIDE, UNEVEN = HeadGeometry(4, 2, 8, 8), HeadGeometry(2, 1, 16, 16), HeadGeometry(4, 2, 8, 4)


def one_row(num_tokens: int, page_ids: tuple[int, ...]) -> Batch:
    row = Row(0, tuple(range(num_tokens)), 0, page_ids, 0, True, SamplingParams())
    return Batch.from_step(Step(0, (row,)), 4)


def test_layers_of_different_shape_keep_their_own_memory() -> None:
    geometries = (NARROW, WIDE, NARROW, UNEVEN)
    kv = PagedKV(geometries, num_pages=3, page_size=4, dtype=torch.float32)
    assert [tuple(k.shape) for k in kv.k] == [(12, 2, 8), (12, 1, 16), (12, 2, 8), (12, 2, 8)]
    assert [tuple(v.shape) for v in kv.v] == [(12, 2, 8), (12, 1, 16), (12, 2, 8), (12, 2, 4)]
    for number, (k, v) in enumerate(zip(kv.k, kv.v, strict=True)):
        k.fill_(number)
        v.fill_(number + 0.5)
    assert all(bool((k == number).all()) for number, k in enumerate(kv.k))
    assert all(bool((v == number + 0.5).all()) for number, v in enumerate(kv.v))
    floats = sum(g.num_kv_heads * (g.head_dim + g.v_head_dim) for g in geometries) * 4
    assert PagedKV.bytes_per_page(geometries, 4, torch.float32) == floats * 4


def test_pools_of_int8_hold_lines_with_their_scales() -> None:
    geometries = (HeadGeometry(4, 2, 64, 64), HeadGeometry(4, 2, 11, 4), HeadGeometry(8, 1, 128, 128))
    kv = PagedKV(geometries, num_pages=3, page_size=4, dtype=torch.bfloat16, kv_dtype=torch.int8)
    assert [tuple(k.shape) for k in kv.k] == [(12, 2, 64), (12, 2, 11), (12, 1, 128)]
    assert [tuple(v.shape) for v in kv.v] == [(12, 2, 64), (12, 2, 4), (12, 1, 128)]
    per_token = 2 * (66 + 66) + 2 * (14 + 6) + (130 + 130)
    assert PagedKV.bytes_per_page(geometries, 4, torch.int8) == kv.page_bytes == 4 * per_token
    plain = PagedKV(geometries, num_pages=3, page_size=4, dtype=torch.bfloat16)
    assert kv.page_format != plain.page_format


def test_pages_of_int8_are_copied_and_moved_with_their_scales() -> None:
    """A page gives the same attention where it is copied to, and in another pool that got its bytes."""
    generator = torch.Generator().manual_seed(0)
    geometries = (HeadGeometry(4, 2, 16, 16), HeadGeometry(2, 2, 8, 4))
    kv, other = (PagedKV(geometries, 5, 4, torch.float32, kv_dtype=torch.int8) for _ in range(2))
    kv.copy_pages([])
    for layer, geometry in enumerate(geometries):
        q, k, v = (
            torch.randn(4, heads, size, generator=generator) * 10**layer
            for heads, size in (
                (geometry.num_q_heads, geometry.head_dim),
                (2, geometry.head_dim),
                (2, geometry.v_head_dim),
            )
        )
        want = StepAttention(one_row(4, (3,)), kv).run(layer, q, k, v, scale=0.3)
        kv.copy_pages([(3, 1)])
        (content,) = kv.read_pages([3])
        other.write_pages([(2, content)])
        for pages, page_id in ((kv, 1), (other, 2)):
            step = StepAttention(one_row(4, (page_id,)), pages)
            plan = step.plan(geometry)
            got = ops.paged_attention(q, pages.k[layer], pages.v[layer], plan, scale=0.3)
            assert torch.equal(got, want)


def test_copies_reach_every_layer() -> None:
    kv = PagedKV((NARROW, WIDE), num_pages=3, page_size=4, dtype=torch.float32)
    for tensor in (*kv.k, *kv.v):
        tensor[:4] = 1.0
    kv.copy_pages([(0, 2)])
    for tensor in (*kv.k, *kv.v):
        assert bool((tensor[8:] == 1.0).all())
        assert bool((tensor[4:8] == 0.0).all())


def test_a_layer_writes_its_tokens_and_attends_causally() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(6, heads, size, generator=generator) for heads, size in ((4, 8), (2, 8), (2, 4)))
    kv = PagedKV((NARROW, UNEVEN), num_pages=4, page_size=4, dtype=torch.float32)
    out = StepAttention(one_row(6, (3, 1)), kv).run(1, q, k, v, scale=0.3)
    assert torch.equal(kv.k[1][12:16], k[:4])
    assert torch.equal(kv.v[1][4:6], v[4:])
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1),
        k.transpose(0, 1).repeat_interleave(2, 0),
        v.transpose(0, 1).repeat_interleave(2, 0),
        is_causal=True,
        scale=0.3,
    ).transpose(0, 1)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


def test_a_latent_layer_writes_its_line_once_and_attends_to_it() -> None:
    """Beside a layer with as large heads whose values are stored on their own."""
    generator = torch.Generator().manual_seed(0)
    latent, plain = HeadGeometry(4, 1, 12, 8, is_latent=True), HeadGeometry(4, 1, 12, 8)
    kv = PagedKV((plain, latent), num_pages=4, page_size=4, dtype=torch.float32)
    assert kv.page_bytes == PagedKV.bytes_per_page((plain, latent), 4, torch.float32) == 4 * 4 * (12 + 8 + 12)
    assert (
        PagedKV((latent, latent), 4, 4, torch.float32).page_format != PagedKV((plain,), 4, 4, torch.float32).page_format
    )
    q, rotated, c = (torch.randn(6, heads, size, generator=generator) for heads, size in ((4, 12), (1, 4), (1, 8)))
    lines = torch.cat([c, rotated], -1)
    got = StepAttention(one_row(6, (3, 1)), kv).run(1, q, rotated, c, scale=0.3)
    assert torch.equal(kv.k[1][12:16], lines[:4])
    assert torch.equal(kv.v[1][4:6], c[4:])
    want = StepAttention(one_row(6, (3, 1)), kv).run(0, q, lines, c, scale=0.3)
    assert torch.equal(got, want)
    heads = [each.expand(-1, 4, -1).transpose(0, 1) for each in (lines, c)]
    expected = torch.nn.functional.scaled_dot_product_attention(q.transpose(0, 1), *heads, is_causal=True, scale=0.3)
    torch.testing.assert_close(got, expected.transpose(0, 1), rtol=1e-4, atol=1e-5)


def test_latent_pages_in_int8_are_refused_by_name() -> None:
    geometries = (WIDE, HeadGeometry(4, 1, 12, 8, is_latent=True))
    with pytest.raises(ConfigError, match="kv_dtype = 'int8': not supported for latent attention"):
        PagedKV.bytes_per_page(geometries, 4, torch.int8)
    with pytest.raises(ConfigError, match="kv_dtype = 'int8': not supported for latent attention"):
        PagedKV(geometries, 3, 4, torch.float32, kv_dtype=torch.int8)


def test_layers_with_equal_heads_share_a_plan() -> None:
    kv = PagedKV((NARROW, WIDE), num_pages=4, page_size=4, dtype=torch.float32)
    step = StepAttention(one_row(6, (3, 1)), kv)
    assert step.plan(NARROW) is step.plan(HeadGeometry(4, 2, 8, 8))
    assert step.plan(NARROW) is not step.plan(WIDE)
