"""A reused plan equals a fresh one, step after step, and reports when it cannot be reused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.planning.tile_sizes import SM_90, GpuProperties
from rtlang_kernels.planning.work_items import ITEM_ROW, NUM_TOKENS, P0, P1, TOKEN
from rtlang_kernels.triton.attention import decode_plan
from rtlang_kernels.triton.attention.decode_plan import MAX_GROWTH, DecodePlan, Window
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE

PAGE_SIZE, HEADS, GROUP, DIM = 16, 2, 2, 16


def made(
    num_tokens: int, windows: tuple[Window, ...] = ((None, None),), table_words: int = 4096, group: int = GROUP
) -> DecodePlan:
    return DecodePlan(
        num_tokens,
        table_words,
        spare_page=99,
        page_size=PAGE_SIZE,
        num_q_heads=HEADS * group,
        num_kv_heads=HEADS,
        head_dim=DIM,
        dtype=torch.float32,
        device=DEVICE,
        windows=windows,
    )


class Batch:
    """Rows over a prefix of two pages that all share, in scattered pages, growing one key a step."""

    def __init__(self, rows: int, own: list[int]) -> None:
        self.free = np.random.default_rng(0).permutation(90).tolist()
        shared = [self.free.pop(), self.free.pop()]
        self.pages = [list(shared) for _ in range(rows)]
        self.seq_lens = np.array([2 * PAGE_SIZE + length for length in own], np.int32)
        self.shared_lens = np.array([0] + [2 * PAGE_SIZE] * (rows - 1), np.int32)
        self.fill()

    def fill(self) -> tuple[list[int], list[int], list[int]]:
        rows, columns, ids = [], [], []
        for row, (pages, length) in enumerate(zip(self.pages, self.seq_lens, strict=True)):
            while len(pages) * PAGE_SIZE < length:
                rows.append(row)
                columns.append(len(pages))
                pages.append(self.free.pop())
                ids.append(pages[-1])
        return rows, columns, ids

    @property
    def table(self) -> np.ndarray:
        width = max(map(len, self.pages))
        return np.array([pages + [0] * (width - len(pages)) for pages in self.pages], np.int32)

    def step(self, plan: DecodePlan) -> bool:
        self.seq_lens = self.seq_lens + np.int32(1)
        rows, columns, ids = self.fill()
        return plan.grow(np.array(rows, np.intp), np.array(columns, np.intp), np.array(ids, np.int32))


def seen_by(plan: DecodePlan, window: int = 0) -> list[np.ndarray]:
    """Number of times each token's items hold each position, from the device arrays."""
    host, count = plan._buffer.host, plan._rows
    items = host[f"items{window}"][: host[f"header{window}"][3]]
    seen = [np.zeros(4096 if not len(items) else int(items[:, P1].max()) + 1, int) for _ in range(count)]
    for item in items:
        for token in range(item[TOKEN], item[TOKEN] + item[NUM_TOKENS]):
            pages = slice(item[P0] // PAGE_SIZE, -(-item[P1] // PAGE_SIZE))
            assert np.array_equal(plan._table[token, pages], plan._table[item[ITEM_ROW], pages])
            seen[token][item[P0] : item[P1]] += 1
    return seen


def check_launches(plan: DecodePlan) -> None:
    """The launches of the planned step cover its items, and no earlier plan does."""
    host = plan._buffer.host
    sizes = np.diff(host["header0"][:4])
    merged = int(host["header0"][4])
    fits = []
    for each in plan.plans:
        variant = each.work.variants[None, None]
        is_launched = all(size <= room for size, room in zip(sizes, variant.class_sizes, strict=True))
        fits.append(is_launched and merged <= variant.num_merged)
    assert fits.index(True) == plan.fitting
    assert all(fits[plan.fitting :])


@pytest.mark.parametrize("rows", [1, 3, 8, 48])
def test_rows_without_sharing_need_one_launch(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch and no merge if no row is split; other classes only for shared prefixes."""
    monkeypatch.setattr(decode_plan, "gpu_properties", lambda device: GpuProperties(SM_90, 8, 50 << 20))
    plan = made(rows, table_words=rows * 200)
    table = 1 + np.arange(rows * 40, dtype=np.int32).reshape(rows, 40)
    nothing = np.zeros(rows, np.int32)
    assert plan.set(table, np.full(rows, 600, np.int32), nothing)
    check_launches(plan)
    first = plan.plans[plan.fitting].work.variants[None, None]
    assert sum(size > 0 for size in first.class_sizes) == 1
    assert plan.fitting == (0 if rows >= 8 else 1)
    assert (first.num_merged == 0) == (plan.fitting == 0)
    fitting = plan.fitting
    assert plan.grow(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.int32))
    assert plan.fitting == fitting
    if rows == 48:
        table[:, :20] = table[0, :20]
        shared = np.full(rows, 320, np.int32)
        shared[0] = 0
        assert plan.set(table, np.full(rows, 600, np.int32), shared)
        check_launches(plan)
        assert plan.fitting == len(plan.plans) - 1 == 2


@pytest.mark.parametrize("rows", [2, 5])
def test_every_launch_level_computes_the_same_result(rows: int) -> None:
    plan = made(rows)
    table = np.random.default_rng(1).permutation(rows * 3).astype(np.int32).reshape(rows, 3)
    lengths = np.arange(rows, dtype=np.int32) * 7 + 12
    assert plan.set(table, lengths, np.zeros(rows, np.int32))
    assert plan.fitting == 0
    plan.upload()
    generator = torch.Generator().manual_seed(0)
    pools = torch.randn(2, 100 * PAGE_SIZE, HEADS, DIM, generator=generator).to(DEVICE)
    q = torch.randn(rows, HEADS * GROUP, DIM, generator=generator).to(DEVICE)
    outs = []
    for each in plan.plans:
        out = torch.full_like(q, torch.nan)
        outs.append(ops.paged_attention(q, pools[0], pools[1], each, scale=0.25, out=out).cpu())
    for row in range(rows):
        slots = torch.from_numpy(plan.plan.slots(0, 0, 0)).new_tensor(
            [int(table[row, t // PAGE_SIZE]) * PAGE_SIZE + t % PAGE_SIZE for t in range(lengths[row])]
        )
        k, v = (pool[slots].double().cpu().repeat_interleave(GROUP, 1) for pool in pools)
        weights = torch.softmax(torch.einsum("hd,khd->hk", q[row].double().cpu(), k) * 0.25, -1)
        want = torch.einsum("hk,khd->hd", weights, v)
        for out in outs:
            assert float((out[row] - want).norm() / want.norm()) < 1e-5


def test_a_grown_plan_tiles_the_visible_positions_of_each_row() -> None:
    batch, plan = Batch(5, [1, 7, 16, 30, 200]), made(8)
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens)
    for turn in range(MAX_GROWTH + 1):
        for row, counts in enumerate(seen_by(plan)):
            length = int(batch.seq_lens[row])
            assert (counts[:length] == 1).all(), (turn, row)
            assert not counts[length:].any()
        host = plan._buffer.host
        places = batch.seq_lens - 1
        assert host["positions"][:5].tolist() == places.tolist()
        pages = [batch.pages[row][place // PAGE_SIZE] for row, place in enumerate(places)]
        assert host["slots"][:5].tolist() == [
            page * PAGE_SIZE + place % PAGE_SIZE for page, place in zip(pages, places, strict=True)
        ]
        assert (host["slots"][5:] // PAGE_SIZE == 99).all()
        assert len(set(host["slots"].tolist())) == 8
        if turn == MAX_GROWTH:
            break
        assert batch.step(plan)
    assert not batch.step(plan), "pieces are uneven by now"
    assert (plan.num_sets, plan.num_grown) == (1, MAX_GROWTH)


def test_attention_over_a_grown_plan_is_exact() -> None:
    batch, plan = Batch(3, [3, 14, 40]), made(4)
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens)
    for _ in range(4):
        assert batch.step(plan)
    plan.upload()
    generator = torch.Generator().manual_seed(0)
    pools = torch.randn(2, 100 * PAGE_SIZE, HEADS, DIM, generator=generator)
    q = torch.randn(4, HEADS * GROUP, DIM, generator=generator)
    out = ops.paged_attention(q.to(DEVICE), *(pool.to(DEVICE) for pool in pools), plan.plan, scale=0.25)
    with use_backend("reference"):
        fresh = ops.plan_attention(
            page_table=batch.table,
            seq_lens=batch.seq_lens,
            cu_seqlens_q=np.arange(4, dtype=np.int32),
            shared_lens=batch.shared_lens,
            page_size=PAGE_SIZE,
            num_q_heads=HEADS * GROUP,
            num_kv_heads=HEADS,
            head_dim=DIM,
            dtype=torch.float32,
        )
        want = ops.paged_attention(q[:3], pools[0], pools[1], fresh, scale=0.25)
    assert float((out[:3].cpu() - want).norm() / want.norm()) < 1e-5


@pytest.mark.parametrize("heads", [(32, 8), (14, 2), (32, 32), (32, 4)], ids=str)
@pytest.mark.parametrize("rows", [2, 8, 24, 64, 128, 256])
@pytest.mark.parametrize("shared", [0, 256, 4096, 32768])
def test_rows_over_a_prefix_fit_a_large_gpu(
    monkeypatch: pytest.MonkeyPatch, heads: tuple[int, int], rows: int, shared: int
) -> None:
    """A plan for many multiprocessors: a prefix has many splits, each with a partial result per row."""
    monkeypatch.setattr(decode_plan, "gpu_properties", lambda device: GpuProperties(SM_90, 132, 50 << 20))
    pages = shared // PAGE_SIZE + 16
    plan = DecodePlan(
        rows,
        rows * (pages + MAX_GROWTH),
        spare_page=0,
        page_size=PAGE_SIZE,
        num_q_heads=heads[0],
        num_kv_heads=heads[1],
        head_dim=128,
        dtype=torch.bfloat16,
        device=DEVICE,
    )
    table = np.arange(rows * pages, dtype=np.int32).reshape(rows, pages)
    table[:, : shared // PAGE_SIZE] = table[0, : shared // PAGE_SIZE]
    lengths = shared + np.random.default_rng(0).integers(1, 256, rows).astype(np.int32)
    assert plan.set(table, lengths, np.array([0] + [shared] * (rows - 1), np.int32))
    items = plan._buffer.host["items0"][: plan._buffer.host["header0"][3]]
    assert (int(items[:, NUM_TOKENS].max()) > 1) == (shared > 0)
    check_launches(plan)
    for row, counts in enumerate(seen_by(plan)):
        assert (counts[: lengths[row]] == 1).all()
        assert not counts[lengths[row] :].any()


@pytest.mark.parametrize("group", [1, 7])
@pytest.mark.parametrize("q_lens", [[4], [1, 3, 1], [8, 1, 5]], ids=str)
@pytest.mark.parametrize("window", [None, 40])
def test_rows_with_several_tokens_attend_as_in_a_fresh_plan(q_lens: list[int], group: int, window: int | None) -> None:
    """Each token sees the ones before it in its row, over a prefix that rows share, wherever the row's tokens begin."""
    batch = Batch(len(q_lens), [length + 14 * row for row, length in enumerate(q_lens)])
    starts = np.cumsum([0, *q_lens], dtype=np.int32)
    num_tokens, heads = int(starts[-1]), HEADS * group
    plan = made(16, ((window, None),), group=group)
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens, starts)
    places = np.concatenate([np.arange(n - q, n) for n, q in zip(batch.seq_lens, q_lens, strict=True)])
    host = plan._buffer.host
    assert host["positions"][:num_tokens].tolist() == places.tolist()
    rows = np.repeat(np.arange(len(q_lens)), q_lens)
    pages = batch.table[rows, places // PAGE_SIZE]
    assert host["slots"][:num_tokens].tolist() == (pages * PAGE_SIZE + places % PAGE_SIZE).tolist()
    assert (host["slots"][num_tokens:] // PAGE_SIZE == 99).all()
    nothing = np.zeros(0, np.intp)
    assert not plan.grow(nothing, nothing, np.zeros(0, np.int32)), "only rows of one token grow by one key"
    plan.upload()
    generator = torch.Generator().manual_seed(0)
    pools = torch.randn(2, 100 * PAGE_SIZE, HEADS, DIM, generator=generator)
    q = torch.randn(16, heads, DIM, generator=generator)
    there = q.to(DEVICE), *(pool.to(DEVICE) for pool in pools)
    level = plan.plans[plan.fitting]
    out = ops.paged_attention(*there, level, scale=0.25, sliding_window=window)
    with use_backend("reference"):
        fresh = ops.plan_attention(
            page_table=batch.table,
            seq_lens=batch.seq_lens,
            cu_seqlens_q=starts,
            shared_lens=batch.shared_lens,
            page_size=PAGE_SIZE,
            num_q_heads=heads,
            num_kv_heads=HEADS,
            head_dim=DIM,
            dtype=torch.float32,
        )
        want = ops.paged_attention(q[:num_tokens], *pools, fresh, scale=0.25, sliding_window=window)
    assert float((out[:num_tokens].cpu() - want).norm() / want.norm()) < 1e-5


def test_a_step_of_too_many_tokens_is_rejected() -> None:
    batch, plan = Batch(2, [4, 3]), made(6)
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens, np.array([0, 4, 6], np.int32))
    assert not plan.set(batch.table, batch.seq_lens, batch.shared_lens, np.array([0, 4, 7], np.int32))


def test_a_window_is_replanned_once_it_hides_a_key() -> None:
    batch, plan = Batch(2, [2, 5]), made(2, ((None, None), (40, None)))
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens)
    assert batch.seq_lens.max() == 37
    steps = 0
    while batch.step(plan):
        steps += 1
    assert steps == 3
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens)
    for row, counts in enumerate(seen_by(plan, 1)):
        length = int(batch.seq_lens[row])
        assert (counts[max(0, length - 40) : length] == 1).all()
    assert not batch.step(plan)


def test_rows_that_share_their_last_key_cannot_grow() -> None:
    plan = made(2)
    table = np.array([[3, 4, 5], [3, 4, 5]], np.int32)
    assert plan.set(table, np.array([48, 48], np.int32), np.array([0, 48], np.int32))
    nothing = np.zeros(0, np.intp)
    shared = [item for item in plan._buffer.host["items0"][: plan._buffer.host["header0"][3]] if item[NUM_TOKENS] > 1]
    assert bool(shared) != plan.grow(nothing, nothing, np.zeros(0, np.int32))


def test_a_step_beyond_the_capacity_is_rejected() -> None:
    batch = Batch(3, [1, 2, 3])
    assert not made(2).set(batch.table, batch.seq_lens, batch.shared_lens)
    assert not made(4, table_words=8).set(batch.table, batch.seq_lens, batch.shared_lens)
    small = made(4, table_words=9)
    assert small.set(batch.table, batch.seq_lens, batch.shared_lens)
    for _ in range(13):
        assert batch.step(small)
    assert not batch.step(small), "a fourth page has no place"


@pytest.mark.parametrize("growth", [0, 9])
def test_the_page_table_width_comes_from_the_header(growth: int) -> None:
    batch, plan = Batch(2, [15, 1]), made(2)
    assert plan.set(batch.table, batch.seq_lens, batch.shared_lens)
    for _ in range(growth):
        assert batch.step(plan)
    plan.upload()
    there = plan.plan.work.variants[None, None]
    width = int(there.header[5])
    table = there.page_table.flatten()[: 2 * width].view(2, width).cpu().numpy()
    assert table[0, : len(batch.pages[0])].tolist() == batch.pages[0]
    assert isinstance(plan.plan, AttentionPlan)
