"""FlashAttention-3 through the interface of fa3-fwd, whose function is computed by the reference in these tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.triton.attention import flash_attention
from rtlang_kernels.triton.attention.flash_attention import find_build, flash_reason
from rtlang_kernels.triton.attention.prompt_choice import NOT_CHOSEN, PromptChoice, PromptShape, set_choice
from tests.support.kernels.attention_cases import Tree, exact, make_step, relative_error
from tests.support.kernels.gpu import IS_INTERPRETED, planned

pytestmark = pytest.mark.skipif(not IS_INTERPRETED, reason="replaces the package")
FLAGS = (
    *("BACKWARD", "SPLIT", "PAGEDKV", "APPENDKV", "LOCAL", "SOFTCAP", "PACKGQA", "FP16", "FP8", "VARLEN", "CLUSTER"),
    *("HDIM64", "HDIM96", "HDIM128", "HDIM192", "HDIM256", "SM8x"),
)
DISABLED = ("BACKWARD", "PAGEDKV", "LOCAL", "FP16")  # in fa3-fwd 0.0.3
CALLS: list[tuple[int, ...]] = []


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
) -> Any:
    """The function of fa3-fwd 0.0.3, with its parameters: the mask is aligned to the last query and key."""
    assert softmax_scale is not None
    assert causal
    assert return_attn_probs
    assert all(each.is_contiguous() for each in (q, k, v))
    assert all(each.dtype == torch.int32 for each in (cu_seqlens_q, cu_seqlens_k))
    lengths = cu_seqlens_q.diff(), cu_seqlens_k.diff()
    assert (max_seqlen_q, max_seqlen_k) == (int(lengths[0].max()), int(lengths[1].max()))
    CALLS.append(tuple(lengths[0].tolist()))
    out, lse = torch.empty_like(q), torch.empty(q.shape[1], len(q), dtype=torch.float32)
    for row in range(len(cu_seqlens_q) - 1):
        tokens, keys = (slice(int(cu[row]), int(cu[row + 1])) for cu in (cu_seqlens_q, cu_seqlens_k))
        group = q.shape[1] // k.shape[1]
        wide_k, wide_v = (each[keys].double().repeat_interleave(group, 1) for each in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q[tokens].double(), wide_k) * softmax_scale
        count = scores.shape[2] - scores.shape[1]
        scores.masked_fill_(torch.ones(scores.shape[1:]).triu(count + 1).bool(), float("-inf"))
        out[tokens] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), wide_v).to(q.dtype)
        lse[:, tokens] = scores.logsumexp(-1).float()
    return out, lse


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bool]]:
    """Installs the stand-in; yields its build flags."""
    flags = {f"FLASHATTENTION_DISABLE_{name}": name in DISABLED for name in FLAGS}
    interface, config = ModuleType("fa3_fwd_interface"), ModuleType("fa3_fwd_config")
    interface.flash_attn_varlen_func = flash_attn_varlen_func  # type: ignore[attr-defined]
    config.CONFIG = {"build_flags": flags}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fa3_fwd_interface", interface)
    monkeypatch.setitem(sys.modules, "fa3_fwd_config", config)
    find_build.cache_clear()
    CALLS.clear()
    yield flags
    find_build.cache_clear()


# Rows with few and many new tokens, in any order; rows share keys across rows that leave, and new tokens of one another.
TREES = [
    Tree([90, 95, 100, 40], [1, 40, 33, 1], [0, 64, 48, 32], 16),
    Tree([70, 70, 33, 64], [50, 1, 2, 64], [0, 64, 16, 32], 16),
    Tree([64], [64], [0], 16),
    Tree([40, 45], [1, 2], [0, 32], 16),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_rows_with_many_tokens_go_to_the_package(package: dict[str, bool], tree: Tree) -> None:
    step = make_step(tree, num_kv_heads=1, group=2, head_dim=64, dtype=torch.bfloat16)
    shape = PromptShape(torch.device("cpu"), torch.bfloat16, 2, 1, 64, 16)
    set_choice(shape, PromptChoice("rect_attn", 32, "tested"))
    try:
        plan = planned(step)
        for _ in range(2):  # two layers
            out, lse = ops.paged_attention_with_lse(step.q, step.k_pool, step.v_pool, plan, scale=0.125)
        capped = ops.paged_attention(step.q, step.k_pool, step.v_pool, plan, scale=0.125, soft_cap=20.0)
    finally:
        set_choice(shape, NOT_CHOSEN)
    many = tuple(count for count in tree.q_lens if count >= 32)
    assert [many] * (2 if many else 0) == CALLS
    want, want_lse = exact(step, scale=0.125)
    assert relative_error(out, want) < 1e-2
    assert float((lse.double() - want_lse).abs().max()) < 2e-3
    assert relative_error(capped, exact(step, scale=0.125, soft_cap=20.0)[0]) < 1e-2


def test_a_build_says_what_it_does_not_support(package: dict[str, bool]) -> None:
    bf16, fp16 = torch.bfloat16, torch.float16
    assert flash_reason(128, 128, bf16, bf16) is None
    assert "fa3-fwd was built for (torch.bfloat16,)" in str(flash_reason(128, 128, fp16, fp16))
    assert "types" in str(flash_reason(128, 128, bf16, torch.float8_e4m3fn))
    assert "head sizes (192, 128)" in str(flash_reason(192, 128, bf16, bf16))
    assert "head sizes (80, 80)" in str(flash_reason(80, 80, bf16, bf16))
    package["FLASHATTENTION_DISABLE_VARLEN"] = True
    find_build.cache_clear()
    assert "several lengths" in str(flash_reason(128, 128, bf16, bf16))


def test_without_the_package_nothing_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_attention, "INTERFACE", "no_such_module")
    find_build.cache_clear()
    assert "no_such_module" in str(flash_reason(128, 128, torch.bfloat16, torch.bfloat16))
    rows: Any = None
    with pytest.raises(RuntimeError, match="fa3-fwd cannot be loaded"):
        flash_attention.attend(rows, *[torch.zeros(1)] * 3, 1.0, *[torch.zeros(1)] * 2)
    find_build.cache_clear()
