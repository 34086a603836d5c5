"""CPU attention in matrix tiles: emulated ones, and those of the processor where it has them. Their bits are tested in `test_attention`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention import attention_layout
from rtlang_kernels.cpu.attention.attention_kernel import RELEASE
from rtlang_kernels.cpu.attention.attention_layout import form_of, layout_of, tile_fault
from rtlang_kernels.cpu.codegen.attention.attention_tiles import fits_tiles
from rtlang_kernels.cpu.codegen.attention.page_vectors import BYTES_BFLOAT16, INT8_POOL, PAIRED, WIDENED, PageForm
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED, NO_TILES
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.host.processor import Processor, processor
from tests.support.kernels.attention_cases import Step, Tree, exact, in_int8, make_step, relative_error

pytestmark = pytest.mark.skipif(not processor().has_bf16_dot, reason="the processor has no products of pairs")
HAS_AMX = pytest.mark.skipif(usable_tiles() != AMX, reason="the processor has no matrix tiles")
KINDS = pytest.mark.parametrize("tiles", [EMULATED, pytest.param(AMX, marks=HAS_AMX)], ids=["emulated", "processor"])
SHAPES = [(1, 64, 64), (7, 64, 64), (20, 32, 80), (2, 192, 128)]  # heads per KV head, sizes of keys and values
TREE = Tree([150, 100, 90, 64, 1], [1, 30, 3, 64, 1], [0, 64, 64, 0, 0], 16)

Attend = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@pytest.fixture
def attend(monkeypatch: pytest.MonkeyPatch) -> Attend:
    """Output and lse of a step with a kind of tiles."""

    def run(step: Step, tiles: int, window: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        monkeypatch.setattr(attention_layout, "usable_tiles", lambda: tiles)
        scale, plan = step.q.shape[2] ** -0.5, step.plan("cpu")
        return ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, plan, scale=scale, sliding_window=window)

    return run


def step_of(group: int, head_dim: int, v_head_dim: int) -> Step:
    return make_step(TREE, num_kv_heads=2, group=group, head_dim=head_dim, v_head_dim=v_head_dim, dtype=torch.bfloat16)


@KINDS
@pytest.mark.parametrize(("shape", "is_int8"), [*((shape, False) for shape in SHAPES), (SHAPES[2], True)], ids=str)
def test_tiles_agree_with_float64(attend: Attend, tiles: int, shape: tuple[int, int, int], is_int8: bool) -> None:
    step = in_int8(step_of(*shape)) if is_int8 else step_of(*shape)
    out, lse = attend(step, tiles)
    want, want_lse = exact(step, scale=shape[1] ** -0.5)
    assert relative_error(out, want) < 4e-3
    assert float((lse.double() - want_lse).abs().max()) < 4e-4
    assert not torch.equal(lse, attend(step, NO_TILES)[1])  # tiles were used


@HAS_AMX
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_emulation_has_the_bits_of_the_processor(attend: Attend, shape: tuple[int, int, int]) -> None:
    step = step_of(*shape)
    step.q[5] *= 1e-37  # products below the normal numbers
    step.v_pool[::3] *= 1e-37
    pairs = zip(attend(step, EMULATED), attend(step, AMX), strict=True)
    assert all(torch.equal(emulated, native) for emulated, native in pairs)


@KINDS
@pytest.mark.parametrize(
    ("page_size", "window"),
    [(16, None), (8, 41), pytest.param(16, 41, marks=pytest.mark.long), pytest.param(8, None, marks=pytest.mark.long)],
)
def test_a_line_alone_has_the_bits_that_it_has_among_others(
    attend: Attend, tiles: int, page_size: int, window: int | None
) -> None:
    """Keys of a line alone are not packed."""
    length, tokens = 150, [0, 5, 15, 16, 63, 64, 100, 149]
    step = make_step(
        Tree([length], [length], [0], page_size), num_kv_heads=2, group=1, head_dim=64, dtype=torch.bfloat16
    )
    whole = attend(step, tiles, window)
    args = step.plan_args | {
        "page_table": step.plan_args["page_table"].repeat(len(tokens), 0),
        "seq_lens": np.array(tokens, np.int32) + 1,
        "cu_seqlens_q": np.arange(len(tokens) + 1, dtype=np.int32),
        "shared_lens": np.zeros(len(tokens), np.int32),
    }
    alone = attend(replace(step, q=step.q[tokens], plan_args=args), tiles, window)
    assert all(torch.equal(a, b[tokens]) for a, b in zip(alone, whole, strict=True))


@KINDS
def test_not_a_number_stays_in_its_row(attend: Attend, tiles: int) -> None:
    step = step_of(4, 64, 64)
    clean = attend(step, tiles)[0]
    step.q[10, 3, 7] = float("nan")
    found = attend(step, tiles)[0]
    assert bool(found[10, 3].isnan().all())
    is_clean = torch.ones(found.shape[:2], dtype=torch.bool)
    is_clean[10, 3] = False
    assert torch.equal(found[is_clean], clean[is_clean])


@pytest.mark.parametrize(
    ("form", "fits"),
    [
        (PageForm(PAIRED, 64, 64), True),
        (PageForm(PAIRED, 96, 80), True),
        (PageForm(PAIRED, 80, 80), False),
        (PageForm(PAIRED, 64, 24), False),
        (PageForm(0, 64, 64), False),
    ],
    ids=str,
)
def test_heads_that_fill_tiles_use_them(form: PageForm, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fits_tiles(form) == fits
    monkeypatch.setattr(attention_layout, "usable_tiles", lambda: EMULATED)
    if form.is_paired:
        assert (layout_of(1, 1, 1, form.head_dim, form.v_head_dim)[RELEASE] != 0) == fits


@KINDS
def test_tiles_pass_their_check(tiles: int) -> None:
    assert tile_fault(tiles) is None


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda tiles, first: torch.ones(70 - first, 3, 48) * (1 + 0.01 * tiles), "differ from those of vectors"),
        (lambda tiles, first: torch.ones(70 - first, 3, 48) * (1 + 1e-6 * first), "depends on the number of tokens"),
    ],
    ids=["results", "bits"],
)
def test_wrong_tiles_are_named_and_not_used(
    wrong: Callable[[int, int], torch.Tensor],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(attention_layout, "usable_tiles", lambda: EMULATED)
    monkeypatch.setattr(attention_layout, "_attended", wrong)
    tile_fault.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert layout_of(1, 1, 1, 32, 32)[RELEASE] == 0
        assert text in caplog.text
    finally:
        tile_fault.cache_clear()


def test_a_compiler_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tiles: int, first_token: int) -> torch.Tensor:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(attention_layout, "_attended", fail)
    tile_fault.cache_clear()
    try:
        assert tile_fault(EMULATED) == "RuntimeError: no such instruction"
    finally:
        tile_fault.cache_clear()


@pytest.mark.parametrize(
    ("tiles", "sizes", "features", "kind"),
    [
        (EMULATED, (64, 64), {"has_int8_dot": True, "has_bf16_dot": True}, INT8_POOL + PAIRED),
        (NO_TILES, (64, 64), {"has_int8_dot": True, "has_bf16_dot": True}, BYTES_BFLOAT16),
        (NO_TILES, (64, 64), {"has_int8_dot": True}, BYTES_BFLOAT16),
        (EMULATED, (80, 80), {"has_int8_dot": True, "has_bf16_dot": True}, BYTES_BFLOAT16),
        (EMULATED, (72, 64), {"has_int8_dot": True, "has_bf16_dot": True}, INT8_POOL + PAIRED),
        (NO_TILES, (528, 64), {"has_int8_dot": True}, INT8_POOL + WIDENED),
        (NO_TILES, (64, 64), {"has_avx2": True}, INT8_POOL + WIDENED),
    ],
    ids=str,
)
def test_a_pool_of_int8_uses_products_of_bytes_where_there_are_no_tiles(
    tiles: int, sizes: tuple[int, int], features: dict[str, bool], kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = []

    def geometry(form: PageForm, *rest: int) -> NDArray[np.int64]:
        chosen.append((form, rest[-1]))
        return np.zeros(1, np.int64)

    monkeypatch.setattr(attention_layout, "usable_tiles", lambda: tiles)
    monkeypatch.setattr(attention_layout, "tile_fault", lambda tiles: None)
    monkeypatch.setattr(attention_layout, "processor", lambda: Processor("any", "any", 2, **features))
    monkeypatch.setattr(attention_layout, "geometry", geometry)
    layout_of(1, 1, 1, *sizes, is_int8=True)
    assert chosen == [(PageForm(kind, *sizes), tiles if fits_tiles(chosen[0][0]) else NO_TILES)]


def test_other_processors_and_types_use_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_layout, "usable_tiles", lambda: NO_TILES)
    assert layout_of(1, 1, 1, 32, 32)[RELEASE] == 0
    assert not fits_tiles(form_of(0, 64, 64))
