"""The GPU benchmark on small shapes in the interpreter, without its clock."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels import ops
from rtlang_kernels.triton.sampling import sampler
from rtlang_kernels_bench import device_bench, device_cases, table
from rtlang_kernels_bench.device_cases import Ceilings, TreeShape
from tests.support.kernels.gpu import DEVICE
from tests.support.kernels.pretended_clock import CEILINGS, pretended

HEADS = (4, 2, 16)


@pytest.fixture(autouse=True)
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")


def test_a_tree_shape_shares_the_tokens_of_its_levels() -> None:
    shape = device_cases.tree("1,2,4_32,16,5")
    case = device_cases.attention_case(shape, HEADS, torch.float32, DEVICE, 1)
    assert case.plan_args["shared_lens"].tolist() == [0, 48, 32, 48]
    assert case.plan_args["seq_lens"].tolist() == [53] * 4
    table = case.plan_args["page_table"]
    assert (table[:, :2] == table[0, :2]).all()
    assert len(np.unique(table)) == 2 + 2 + 4
    assert shape.unique_tokens == 32 + 2 * 16 + 4 * 5
    assert str(shape) == "1,2,4_32,16,5"


def test_lines_are_checked_measured_and_summarised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "CALLS_PER_GRAPH", 2)  # sets of inputs: interpreted calls are slow
    shapes = [TreeShape((2,), (40,)), device_cases.tree("1,3_32,8"), TreeShape((1, 2), (16, 8), 8)]
    lines = list(device_bench.attention_lines(shapes, HEADS, torch.float32, DEVICE, CEILINGS, pretended))
    for case in device_bench.sampling_cases([(2, 100)]):
        lines.append(device_bench.sampling_line(*case, torch.bfloat16, DEVICE, CEILINGS, pretended))
    assert [line.group for line in lines] == ["decode", "trees", "extend"] + ["sampling"] * 6
    assert set(lines[0].peers) == {"SDPA", "gather+SDPA"}
    assert set(lines[1].peers) == {"unshared", "SDPA", "gather+SDPA"}
    assert set(lines[2].peers) == {"unshared"}
    assert all(line.ours_us == 10 and line.floor_us > 0 and line.error < 1e-5 for line in lines)
    text = table.summary(lines)
    assert any(entry.startswith("trees: unshared/ours 1.00, 0 of 1 lost") for entry in text)
    assert all("floor" in table.format_line(line) for line in lines)


def test_lines_of_latent_attention_read_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cases, "CALLS_PER_GRAPH", 1)
    heads, shape = (4, 1, 24), TreeShape((1, 2), (32, 8))
    (line,) = device_bench.attention_lines([shape], heads, torch.bfloat16, DEVICE, CEILINGS, pretended, 16)
    assert line.error < 4e-3
    assert set(line.peers) == {"unshared", "SDPA", "gather+SDPA"}
    case = device_cases.attention_case(shape, heads, torch.bfloat16, DEVICE, 1, 16)
    num_bytes = (32 + 2 * 8) * 24 * 2 + 2 * 4 * (24 + 16) * 2
    assert device_bench.attention_floor_us(case, CEILINGS) == pytest.approx(num_bytes / 1e12 * 1e6)


def test_the_floor_is_the_larger_of_bytes_and_operations() -> None:
    case = device_cases.attention_case(TreeShape((1, 4), (32, 8)), HEADS, torch.float32, DEVICE, 1)
    num_bytes = (32 + 4 * 8) * 2 * 2 * 16 * 4 + 2 * 4 * 4 * 16 * 4
    assert device_bench.attention_floor_us(case, CEILINGS) == pytest.approx(num_bytes / 1e12 * 1e6)
    slow = Ceilings(1e30, 1e9, 2.0, 1)
    assert device_bench.attention_floor_us(case, slow) == pytest.approx(4 * 4 * 16 * 4 * 40 / 1e9 * 1e6)


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    true, calls = ops.paged_attention, []
    monkeypatch.setattr(ops, "paged_attention", lambda *args, **given: true(*args, **given) * 1.01)
    shapes = [TreeShape((2,), (8,))]
    with pytest.raises(ArithmeticError, match="attention"):
        list(device_bench.attention_lines(shapes, HEADS, torch.float32, DEVICE, CEILINGS, calls.append))  # type: ignore[arg-type]
    original, first = sampler.sample_staged, next(device_bench.sampling_cases([(1, 40)]))
    monkeypatch.setattr(sampler, "sample_staged", lambda logits, staged: (original(logits, staged)[0] + 1, None))
    with pytest.raises(ArithmeticError, match="tokens differ"):
        device_bench.sampling_line(*first, torch.float32, DEVICE, CEILINGS, calls.append)  # type: ignore[arg-type]
    assert calls == []
