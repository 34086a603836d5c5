"""The memory of recurrent states."""

from __future__ import annotations

import mmap

import pytest
import torch

from rtlang.cache import system_memory
from rtlang.model.layers.states import StateMemory, StateShape, state_bytes

SHAPES = (
    StateShape(0, "conv", (6, 3), torch.bfloat16),
    StateShape(0, "recurrent", (2, 4, 4), torch.float32),
    StateShape(3, "conv", (6, 3), torch.bfloat16),
)


def filled(num_slots: int, seed: int) -> StateMemory:
    memory = StateMemory(SHAPES, num_slots)
    generator = torch.Generator().manual_seed(seed)
    for shape in SHAPES:
        tensor = memory.of(shape.layer, shape.name)
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return memory


def test_a_state_goes_as_bytes_from_one_memory_to_another() -> None:
    source, target = filled(5, seed=0), filled(3, seed=1)
    assert source.state_format == target.state_format
    before = [target.of(shape.layer, shape.name).clone() for shape in SHAPES]
    target.write_states([(1, source.read_states([4])[0])])
    for shape, old in zip(SHAPES, before, strict=True):
        new = target.of(shape.layer, shape.name)
        assert torch.equal(new[1], source.of(shape.layer, shape.name)[4])
        assert torch.equal(new[[0, 2]], old[[0, 2]])


def test_bytes_are_counted_over_all_layers() -> None:
    assert state_bytes(SHAPES) == StateMemory(SHAPES, 2).state_bytes == 2 * 6 * 3 * 2 + 2 * 4 * 4 * 4
    assert state_bytes(()) == 0


def test_other_shapes_are_another_format() -> None:
    formats = {
        StateMemory(shapes, 1).state_format
        for shapes in (SHAPES, SHAPES[:2], (StateShape(1, "conv", (6, 3), torch.bfloat16), *SHAPES[1:]))
    }
    assert len(formats) == 3


@pytest.mark.skipif(system_memory._library() is None, reason="the system takes no memory back")
def test_memory_of_unused_slots_goes_back_and_that_of_others_stays() -> None:
    floats = 4 * mmap.PAGESIZE // 4
    memory = StateMemory((StateShape(0, "recurrent", (floats,), torch.float32),), 4)
    states = memory.of(0, "recurrent")
    assert not states.any()
    states.fill_(1.0)
    memory.release_states([1, 3])
    assert torch.equal(states[[0, 2]], torch.ones(2, floats))
    assert states[1].sum() < 2 * floats / 4  # all but the parts of memory pages at its ends
