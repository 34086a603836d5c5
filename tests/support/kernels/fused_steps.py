"""What tests of fused steps need beside the attention of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tests.support.kernels.attention_cases import Step


def places(step: Step) -> tuple[Tensor, Tensor]:
    """Position and slot of every token of a step."""
    positions, slots, size = [], [], step.tree.page_size
    for row, (length, q_len) in enumerate(zip(step.tree.seq_lens, step.tree.q_lens, strict=True)):
        for position in range(length - q_len, length):
            positions.append(position)
            slots.append(int(step.plan_args["page_table"][row, position // size]) * size + position % size)
    return torch.tensor(positions), torch.tensor(slots)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
