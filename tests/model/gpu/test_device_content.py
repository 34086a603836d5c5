"""Pages and states of a device as bytes: those that a pool on the host gives for the same tensors, whenever the copies happen."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.model.gpu import device_content
from rtlang.model.gpu.accelerator import CudaAccelerator, InterpretedAccelerator
from rtlang.model.gpu.device_content import DeviceContent, DevicePages, DeviceStates, contents_of
from rtlang.model.layers.attention import HeadGeometry, PagedKV
from rtlang.model.layers.states import StateMemory, StateShape

pytest.importorskip("triton")  # there is none for some platforms

from tests.support.kernels.late_copies import LateCopies

NUM_PAGES = 7
GEOMETRIES = {
    "one": (torch.float32, None, (HeadGeometry(4, 2, 16, 16),) * 3),
    "several": (torch.bfloat16, None, (HeadGeometry(4, 2, 8, 8), HeadGeometry(2, 1, 5, 3), HeadGeometry(4, 2, 8, 8))),
    "latent": (torch.float32, None, (HeadGeometry(4, 1, 12, 8, is_latent=True),) * 2),
    "float8": (torch.bfloat16, torch.float8_e4m3fn, (HeadGeometry(2, 1, 3, 3), HeadGeometry(4, 2, 16, 16))),
}
SHAPES = (
    StateShape(0, "conv", (6, 3), torch.bfloat16),
    StateShape(0, "recurrent", (2, 4, 4), torch.float32),
    StateShape(3, "conv", (5, 1), torch.uint8),
)


def filled(name: str, seed: int) -> PagedKV:
    dtype, kv_dtype, geometries = GEOMETRIES[name]
    kv = PagedKV(geometries, NUM_PAGES, 4, dtype, kv_dtype=kv_dtype)
    generator = torch.Generator().manual_seed(seed)
    for tensor in kv.tensors:
        content = tensor.view(torch.uint8)
        content.copy_(torch.randint(0, 256, content.shape, generator=generator, dtype=torch.uint8))
    return kv


@pytest.mark.parametrize("name", GEOMETRIES)
def test_pages_have_the_bytes_of_a_pool_on_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches of two pages, which happen when they are waited for."""
    source, target, expected = filled(name, 0), filled(name, 1), filled(name, 1)
    monkeypatch.setattr(device_content, "_BATCH_BYTES", 2 * source.page_bytes)
    late = LateCopies()
    there, other = DevicePages(source, late), DevicePages(target, late)
    assert there.page_bytes == source.page_bytes
    assert "interpreter" in there.page_format
    rng = random.Random(0)
    for count in (1, 2, 5, 0, NUM_PAGES):
        page_ids = rng.sample(range(NUM_PAGES), count)
        found = there.read_pages(page_ids)
        assert np.array_equal(found, source.read_pages(page_ids))
        targets = rng.sample(range(NUM_PAGES), count)
        other.write_pages(zip(targets, found, strict=True))
        expected.write_pages(zip(targets, found, strict=True))
        for ours, theirs in zip(target.tensors, expected.tensors, strict=True):
            assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8))
    assert late.num_copies > 8


def test_states_have_the_bytes_of_those_on_the_host() -> None:
    source, target = StateMemory(SHAPES, 5), StateMemory(SHAPES, 3)
    generator = torch.Generator().manual_seed(0)
    for tensor in (*source.tensors, *target.tensors):
        tensor.copy_(torch.randint(0, 200, tensor.shape, generator=generator))
    late = LateCopies()
    there, other = DeviceStates(source, late), DeviceStates(target, late)
    assert there.state_bytes == source.state_bytes
    content = there.read_states([4, 0])
    assert np.array_equal(content, source.read_states([4, 0]))
    kept = target.read_states([0])
    other.write_states([(1, content[0]), (2, content[1])])
    assert np.array_equal(target.read_states([1, 2]), content)
    assert np.array_equal(target.read_states([0]), kept)


def test_a_write_that_was_abandoned_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kv = filled("one", 0)
    monkeypatch.setattr(device_content, "_BATCH_BYTES", 2 * kv.page_bytes)
    content = DeviceContent(kv.tensors, LateCopies())
    before = kv.read_pages(range(NUM_PAGES))

    def pages() -> Iterator[tuple[int, NDArray[np.uint8]]]:
        for page_id in range(5):
            if page_id == 3:  # the first two pages are launched: they are written before this returns
                content.abandon_writes()
                assert not kv.read_pages([0, 1]).any()
            yield page_id, np.zeros(kv.page_bytes, dtype=np.uint8)

    content.write(pages())
    assert np.array_equal(kv.read_pages(range(2, NUM_PAGES)), before[2:])
    content.write([(6, before[0])])
    assert np.array_equal(kv.read_pages([6])[0], before[0])


def test_a_closed_memory_refuses_copies_and_holds_nothing() -> None:
    kv = filled("one", 0)
    content = DeviceContent(kv.tensors, InterpretedAccelerator())
    found = content.read([1])
    content.close()
    for copy in (lambda: content.read([1]), lambda: content.write([(1, found[0])])):
        with pytest.raises(RuntimeError, match="the runner of this memory is closed"):
            copy()


def test_memory_for_copies_is_there_before_the_first_one_if_there_are_tiers() -> None:
    kv = filled("one", 0)
    for config, num_lanes in ((RuntimeConfig(), 0), (RuntimeConfig(cache_host_bytes=1), 2)):
        pages, states = contents_of(kv, None, InterpretedAccelerator(), config)
        assert (len(pages._content._writers), states) == (num_lanes, None)
    no_layers = DeviceContent([], InterpretedAccelerator())
    assert no_layers.read([3, 4]).shape == (2, 0)
    no_layers.write([(3, np.zeros(0, dtype=np.uint8))])


def test_a_gpu_copies_on_a_stream_of_its_own_after_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls to torch, in order: there need be no GPU."""
    calls: list[tuple[object, ...]] = []

    class Stream:
        def __init__(self, device: object) -> None:
            pass

        def wait_stream(self, other: object) -> None:
            calls.append(("waits for", other))

        def __enter__(self) -> None:
            calls.append(("enter",))

        def __exit__(self, *error: object) -> None:
            calls.append(("leave",))

    class Event:
        def __init__(self, *, blocking: bool) -> None:
            assert blocking

        def record(self, stream: object) -> None:
            calls.append(("record", type(stream)))

        def synchronize(self) -> None:
            calls.append(("synchronize",))

    for name, value in {
        "current_device": lambda: 0,
        "get_device_name": lambda device: "a GPU",
        "set_device": lambda device: None,
        "current_stream": lambda device: "steps",
        "Stream": Stream,
        "stream": lambda stream: stream,
        "Event": Event,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    accelerator = CudaAccelerator()
    accelerator.enter()
    wait = accelerator.beside(lambda: calls.append(("work",)))
    order = [("enter",), ("waits for", "steps"), ("work",), ("record", Stream), ("leave",)]
    assert calls == order
    wait()
    assert calls == [*order, ("synchronize",)]
