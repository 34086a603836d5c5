"""Attention of prompts on sm_90 against float64: `prompt_attn` in the simulator, `rect_attn` in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rtlang_kernels
from rtlang_kernels import ops
from rtlang_kernels.planning.work_items import schedule
from rtlang_kernels.triton.attention import paged_attention, prompt_attention
from rtlang_kernels.triton.attention.prompt_choice import NOT_CHOSEN, PromptChoice, PromptShape, set_choice
from tests.support.kernels.attention_cases import Tree, exact, make_step, relative_error
from tests.support.kernels.gluon_simulator import Descriptor, SimulatedKernel
from tests.support.kernels.gpu import IS_INTERPRETED, planned
from tests.support.long_tests import is_long

pytestmark = pytest.mark.skipif(not IS_INTERPRETED, reason="simulates a GPU on the CPU")
SOURCE = (Path(rtlang_kernels.__file__).parent / "triton/attention/prompt_kernel.py").read_text(encoding="utf-8")
CPU = torch.device("cpu")
PROMPT = PromptChoice("prompt_attn", None, "tested")


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., float]]:
    """Computes a step with the kernel in the simulator; returns the error of the results."""
    chosen: list[PromptShape] = []

    def compute(
        tree: Tree, *, heads: tuple[int, int, int], seed: int = 0, source: str = SOURCE, sinks: Any = None
    ) -> float:
        num_kv_heads, group, head_dim = heads
        step = make_step(
            tree, num_kv_heads=num_kv_heads, group=group, head_dim=head_dim, dtype=torch.float16, seed=seed
        )
        kernel = SimulatedKernel(source, "prompt_attn", seed)
        monkeypatch.setattr(prompt_attention, "prompt_kernel", lambda: kernel)
        box = partial(
            lambda size, pool, page_size: Descriptor(pool, (size(page_size), 64)), prompt_attention.box_tokens
        )
        monkeypatch.setattr(prompt_attention, "descriptor", box)
        chosen.append(PromptShape(CPU, torch.float16, num_kv_heads * group, num_kv_heads, head_dim, tree.page_size))
        set_choice(chosen[-1], PROMPT)
        plan = planned(step)
        poisoned = torch.full_like(step.q, float("nan"))
        scale = head_dim**-0.5
        out, lse = ops.paged_attention_with_lse(
            step.q, step.k_pool, step.v_pool, plan, scale=scale, out=poisoned, sinks=sinks
        )
        assert plan.work.variants[None, None].class_sizes[-1] > 0, "no item is for the kernel"
        want, want_lse = exact(step, scale=scale, sinks=sinks)
        return max(relative_error(out, want), float((lse.double() - want_lse).abs().max()))

    yield compute
    for shape in chosen:
        set_choice(shape, NOT_CHOSEN)


def prompts(rng: np.random.Generator, num_rows: int, longest: int, fewest: int, page_size: int) -> Tree:
    """Rows that share random prefixes, each with at least `fewest` new tokens; rows may share new tokens."""
    lengths: list[int] = []
    new: list[int] = []
    shared: list[int] = []
    for row in range(num_rows):
        length = int(rng.integers(fewest, longest + 1))
        common = int(rng.integers(0, min(lengths[-1], length) + 1)) // page_size * page_size if row else 0
        lengths.append(length)
        new.append(int(rng.integers(fewest, length + 1)))
        shared.append(common)
    return Tree(lengths, new, shared, page_size)


@pytest.mark.parametrize("seed", range(50 if is_long() else 3))
def test_random_trees_agree_with_float64(
    simulate: Callable[..., float], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    group = int(rng.choice([4, 7, 8, 16]))
    heads = 1 + int(rng.random() < 0.3), group, int(rng.choice([64, 128]))
    tree = prompts(rng, int(rng.integers(1, 3)), 500, 64 // group + 1, int(rng.choice([16, 32, 48, 256])))
    if rng.random() < 0.5:  # share and split as much as possible
        many = partial(schedule, min_shared=1, min_split=64, min_saving_ratio=0.0)
        monkeypatch.setattr(paged_attention, "schedule", many)
    sinks = torch.randn(heads[0] * group) if rng.random() < 0.3 else None
    assert simulate(tree, heads=heads, seed=seed, sinks=sinks) < 2e-3


def moved(line: str, before: str) -> Callable[[str], str]:
    """An edit that moves a line of the loop before another one."""

    def edit(source: str) -> str:
        assert source.count(line) == source.count(before) == 1
        return source.replace(line, "").replace(before, line + before)

    return edit


def replaced(old: str, new: str) -> Callable[[str], str]:
    """An edit of one place."""

    def edit(source: str) -> str:
        assert source.count(old) == 1, source.count(old)
        return source.replace(old, new)

    return edit


SCORES = "    scores = hopper.warpgroup_mma_wait(1, deps=[scores])\n"
# Keys may be released before their product without harm: their stage is written again only after the values of the block before it have
# been released, and these are released last.
MUTATIONS = {
    "values released before their product": moved("    mbarrier.arrive(v_empty.index(last), count=1)\n", SCORES),
    "values past the end not cleared": replaced("    if num_kept < BLOCK_N:\n", "    if num_kept < 0:\n"),
    "half of the bytes expected": replaced("BLOCK_N * HEAD_DIM * 2)", "BLOCK_N * HEAD_DIM)"),
    "one product left after the last wait": replaced(
        "acc, shares, total = hopper.warpgroup_mma_wait(0,", "acc, shares, total = hopper.warpgroup_mma_wait(1,"
    ),
    "turn of the other warpgroup": replaced(
        "mbarrier.wait(turns.index(WARPGROUP), block & 1)", "mbarrier.wait(turns.index(WARPGROUP), block + 1 & 1)"
    ),
    "a key too few seen": replaced("key[None, :] < line_stop[:, None]", "key[None, :] < line_stop[:, None] - 1"),
    "queries not fenced": replaced("other=0.0))\n    hopper.fence_async_shared()\n", "other=0.0))\n"),
    "keys before the beginning seen": replaced("key >= begin - first_position", "key >= 0"),
    "stages of values waited for too late": replaced("(block // STAGES + 1) & 1)", "block // STAGES & 1)"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mistakes_are_found(simulate: Callable[..., float], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_attention, "schedule", partial(schedule, min_split=700))
    tree = Tree([1400], [32], [0], 128)  # splits do not begin at the beginning of a box
    source = MUTATIONS[name](SOURCE)
    for seed in range(3):
        try:
            assert simulate(tree, heads=(1, 8, 128), seed=seed, source=source) < 2e-3
        except AssertionError:
            return
    pytest.fail("not found")
