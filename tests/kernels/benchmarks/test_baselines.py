"""The baselines compute the same attention; FlashInfer is replaced by a stand-in that computes what its arguments describe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch

from rtlang_kernels.triton.attention import flash_attention, prompt_choice, prompt_trial
from rtlang_kernels_bench import baselines, device_cases
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.pretended_clock import pretended

Level = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
]  # rows, pages of each node, pages, tokens in the last


class Wrapper:
    """Attention over paged KV as FlashInfer's wrappers define it: nodes of rows, whose keys lie in pages."""

    made: ClassVar[list[str]] = []

    def __init__(self, *_: Any, **__: Any) -> None:
        self.levels: list[Level] = []

    def run(self, q: torch.Tensor, kv: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        Wrapper.made.append(type(self).__name__)
        out = torch.empty_like(q)
        for row in range(len(q)):
            keys, values = [], []
            for rows, starts, pages, last in self.levels:
                node = int(torch.searchsorted(rows, row, right=True)) - 1
                held = pages[starts[node] : starts[node + 1]].long()
                count = (len(held) - 1) * kv[0].shape[1] + int(last[node])
                keys.append(kv[0][held].flatten(0, 1)[:count])
                values.append(kv[1][held].flatten(0, 1)[:count])
            group = q.shape[1] // kv[0].shape[2]
            k, v = (torch.cat(part).float().repeat_interleave(group, 1) for part in (keys, values))
            weights = torch.softmax(torch.einsum("hd,khd->hk", q[row].float(), k) * q.shape[2] ** -0.5, -1)
            out[row] = torch.einsum("hk,khd->hd", weights, v).to(q.dtype)
        return out


class BatchDecodeWithPagedKVCacheWrapper(Wrapper):
    def plan(self, starts: Any, pages: Any, last: Any, *heads: int, **_: Any) -> None:
        self.levels = [(torch.arange(len(last) + 1), starts, pages, last)]


class MultiLevelCascadeAttentionWrapper(Wrapper):
    def plan(self, rows: Any, starts: Any, pages: Any, last: Any, *heads: int, **_: Any) -> None:
        self.levels = list(zip(rows, starts, pages, last, strict=True))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("flashinfer")
    module.__spec__ = ModuleSpec("flashinfer", None)
    for wrapper in (BatchDecodeWithPagedKVCacheWrapper, MultiLevelCascadeAttentionWrapper):
        setattr(module, wrapper.__name__, wrapper)
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    monkeypatch.setattr(Wrapper, "made", [])


def peers(shape: str) -> dict[str, float]:
    with use_backend("reference"):
        case = device_cases.attention_case(
            device_cases.tree(shape), (4, 2, 16), torch.float32, torch.device("cpu"), l2_bytes=1
        )
        return baselines.flashinfer(case, pretended, tolerance=1e-5)


def test_flashinfer_gets_the_pages_and_levels_of_the_case(library: None) -> None:
    assert peers("1,2,4_32,16,21") == {"flashinfer": 10.0, "flashinfer cascade": 10.0}
    assert set(Wrapper.made) == {"BatchDecodeWithPagedKVCacheWrapper", "MultiLevelCascadeAttentionWrapper"}
    assert peers("3_20") == {"flashinfer": 10.0}


def test_a_wrong_baseline_is_not_timed(library: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Wrapper.run
    monkeypatch.setattr(Wrapper, "run", lambda self, q, kv: run(self, q, kv) * 1.1)
    assert peers("1,2_16,5") == {}


def test_plain_sampling_follows_the_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.tensor([0.5, 0.3, 0.2])
    logits = (weights.log() * 0.8).expand(20_000, 3).contiguous()
    torch.manual_seed(0)
    sampled: list[torch.Tensor] = []

    def measure(functions: Sequence[Callable[[], Any]]) -> tuple[float, float]:
        sampled.extend(function() for function in functions)
        return 5.0, 0.0

    assert baselines.plain_sampling([logits], 0.8, measure) == {"softmax+multinomial": 5.0}
    shares = torch.bincount(sampled[0], minlength=3) / 20_000
    assert torch.allclose(shares, weights, atol=0.02)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_computes_the_same_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    case = device_cases.attention_case(
        device_cases.tree("1,2,4_32,16,21"), (4, 2, 16), torch.float32, torch.device("cpu"), l2_bytes=1
    )
    with use_backend("reference"):
        assert baselines.flex(case, pretended, tolerance=1e-5) == {"compiled FlexAttention": 10.0}
        assert baselines.flex(case, pretended, tolerance=0.0) == {}


def test_a_definition_is_compiled_and_runs_on_each_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def compile_(function: Callable[..., object], **options: object) -> Callable[..., object]:
        asked.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    sets = [(torch.tensor([1.0]),), (torch.tensor([2.0]),)]
    seen: list[torch.Tensor] = []
    assert baselines.compiled(seen.append, sets, pretended) == {"torch.compile": 10.0}
    assert [float(tensor) for tensor in seen] == [1.0, 2.0]
    assert asked == [seen.append]


def test_a_failing_baseline_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def out_of_memory(functions: object) -> tuple[float, float]:
        raise torch.OutOfMemoryError("61 GiB")

    case = device_cases.attention_case(
        device_cases.tree("1,2_16,5"), (4, 2, 16), torch.float32, torch.device("cpu"), l2_bytes=1
    )
    assert baselines.sdpa(case, out_of_memory) == {}
    assert "baseline gather+SDPA is skipped: 61 GiB" in caplog.text


def test_flashinfer_is_left_out_if_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "find_spec", lambda name: None)
    assert peers("1,2_16,5") == {}


def test_other_candidates_for_prompts_are_timed_and_left_out_if_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates are stand-ins: one computes what ours does, one is wrong."""
    shape = device_cases.TreeShape((2,), (20,), 20)
    with use_backend("triton"):
        case = device_cases.attention_case(shape, (4, 2, 16), torch.bfloat16, torch.device("cpu"), 1)
        monkeypatch.setattr(prompt_trial, "candidates", lambda shape: (["rect_attn", "right", "wrong"], ""))
        monkeypatch.setattr(prompt_trial, "CHOICES", {"right": ("rect_attn", None), "wrong": ("rect_attn", 1)})

        monkeypatch.setattr(flash_attention, "attend", lambda rows, q, k, v, scale, out, lse: out.zero_())
        assert baselines.prompt_kernels(case, pretended, 1e-2) == {"right": pretended([])[0]}
        key = prompt_choice.PromptShape(torch.device("cpu"), torch.bfloat16, 4, 2, 16, case.plan().page_size)
        assert prompt_choice.choice_for(key) == prompt_choice.NOT_CHOSEN
