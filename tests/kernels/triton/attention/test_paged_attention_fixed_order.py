"""Attention in a fixed order: the bits of a token do not depend on the step that computes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.planning import work_items
from rtlang_kernels.triton.attention import decode_plan
from rtlang_kernels.triton.attention.decode_plan import DecodePlan
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE

PAGE_SIZE, LENGTH, NUM_ROWS, SHARED = 16, 90, 2, 80
SEGMENT = 64
HEADS = {"num_q_heads": 2, "num_kv_heads": 1, "head_dim": 16}
Part = tuple[int, int, int]
"""New tokens of a step: a row, and its positions from the first to before the last."""


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(work_items, "SEGMENT", SEGMENT)
    monkeypatch.setattr(decode_plan, "SEGMENT", SEGMENT)
    with use_backend("triton"):
        yield


class Rows:
    """Rows whose first SHARED keys are the same, with a query for each position."""

    def __init__(self, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)
        num_pages = -(-LENGTH // PAGE_SIZE)
        own = num_pages - SHARED // PAGE_SIZE
        self.table = np.tile(np.arange(num_pages, dtype=np.int32), (NUM_ROWS, 1))
        for row in range(NUM_ROWS):
            self.table[row, -own:] += row * own
        num_slots = int(self.table.max() + 2) * PAGE_SIZE
        size = HEADS["head_dim"]
        self.k, self.v = (
            torch.randn(num_slots, HEADS["num_kv_heads"], size, generator=generator).to(DEVICE, dtype) for _ in range(2)
        )
        self.q = torch.randn(NUM_ROWS, LENGTH, HEADS["num_q_heads"], size, generator=generator).to(DEVICE, dtype)
        self.sinks = torch.randn(HEADS["num_q_heads"], generator=generator).to(DEVICE, dtype)
        self.dtype = dtype

    def plan_args(self, parts: Sequence[Part], *, is_sharing: bool) -> dict[str, Any]:
        """What describes a step to a plan."""
        shared = [0] + [SHARED if is_sharing else 0] * (len(parts) - 1)
        return {
            "page_table": self.table[[row for row, _, _ in parts]],
            "seq_lens": np.array([last for _, _, last in parts], np.int32),
            "cu_seqlens_q": np.cumsum([0, *(last - first for _, first, last in parts)]).astype(np.int32),
            "shared_lens": np.minimum(shared, [first // PAGE_SIZE * PAGE_SIZE for _, first, _ in parts]).astype(
                np.int32
            ),
        }

    def queries(self, parts: Sequence[Part]) -> Tensor:
        """The queries of a step."""
        return torch.cat([self.q[row, first:last] for row, first, last in parts])

    def outputs(
        self, parts: Sequence[Part], *, is_sharing: bool = False, has_fixed_order: bool = True, **options: Any
    ) -> dict[tuple[int, int], Tensor]:
        """The output of each (row, position) of a step, followed by its lse."""
        plan = ops.plan_attention(
            **self.plan_args(parts, is_sharing=is_sharing),
            **HEADS,
            page_size=PAGE_SIZE,
            dtype=self.dtype,
            device=DEVICE,
            has_fixed_order=has_fixed_order,
        )
        q = self.queries(parts)
        out, lse = ops.paged_attention_with_lse(q, self.k, self.v, plan, scale=0.25, **options)
        places = [(row, position) for row, first, last in parts for position in range(first, last)]
        return dict(zip(places, torch.cat([out.float().flatten(1), lse], 1).cpu(), strict=True))


STEPS: list[tuple[list[Part], bool]] = [
    ([(0, 60, 70), (1, 89, 90)], False),  # a chunk across the border of a part, beside a decoding row
    ([(0, 89, 90), (1, 89, 90)], True),  # decoding with a shared prefix
    ([(0, 63, 64)], False),
    ([(0, 80, 90), (1, 82, 90)], True),  # drafts, or the ends of prompts
]


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {"has_sinks": True}),
        (torch.bfloat16, {"sliding_window": 40, "has_sinks": True}),
        pytest.param(torch.bfloat16, {}, marks=pytest.mark.long),
        pytest.param(torch.float32, {"chunk_size": 50, "soft_cap": 5.0}, marks=pytest.mark.long),
    ],
)
def test_a_token_has_the_same_bits_in_every_step(dtype: torch.dtype, options: dict[str, Any]) -> None:
    rows, options = Rows(dtype), dict(options)
    options["sinks"] = rows.sinks if options.pop("has_sinks", False) else None
    want: dict[tuple[int, int], Tensor] = {}
    for row in range(NUM_ROWS):
        want |= rows.outputs([(row, 0, LENGTH)], **options)
    for parts, is_sharing in STEPS:
        for place, found in rows.outputs(parts, is_sharing=is_sharing, **options).items():
            assert torch.equal(found, want[place]), (place, parts)


def test_parts_of_another_length_change_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above would notice parts that follow the load."""
    rows, last = Rows(torch.float32), (0, LENGTH - 1, LENGTH)
    want = rows.outputs([last])
    monkeypatch.setattr(work_items, "SEGMENT", 2 * SEGMENT)
    assert not torch.equal(rows.outputs([last])[last[:2]], want[last[:2]])


@pytest.mark.parametrize("window", [None, 40])
def test_replayed_plans_have_the_same_bits(window: int | None) -> None:
    rows = Rows(torch.float32)
    plan = DecodePlan(
        4,
        4 * (LENGTH // PAGE_SIZE + 65),
        int(rows.table.max()) + 1,
        **HEADS,
        page_size=PAGE_SIZE,
        dtype=torch.float32,
        device=DEVICE,
        windows=((window, None),),
        has_fixed_order=True,
    )
    want: dict[tuple[int, int], Tensor] = {}
    for row in range(NUM_ROWS):
        want |= rows.outputs([(row, 60, LENGTH)], sliding_window=window)
    lens = np.array([62, 85], np.int32)
    for step in range(4):
        steps = [(row, int(lens[row]) - 1, int(lens[row])) for row in range(NUM_ROWS)]
        none = np.zeros(0, np.intp)
        if not (step and plan.grow(none, none, none.astype(np.int32))):
            args = rows.plan_args(steps, is_sharing=False)
            assert plan.set(args["page_table"], args["seq_lens"], args["shared_lens"])
        plan.upload()
        q = torch.zeros(4, HEADS["num_q_heads"], HEADS["head_dim"], device=DEVICE)
        q[:NUM_ROWS] = rows.queries(steps)
        for level in plan.plans[plan.fitting :]:
            out = ops.paged_attention(q, rows.k, rows.v, level, scale=0.25, sliding_window=window)
            for row in range(NUM_ROWS):
                assert torch.equal(out[row].cpu().flatten(), want[row, int(lens[row]) - 1][: out[row].numel()])
        lens += 1
    if window is None:  # the first row begins a part at position 64
        assert (plan.num_sets, plan.num_grown) == (2, 2)
