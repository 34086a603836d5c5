"""Damaged headers end in a ModelLoadError or are read within bounds; nothing else happens, in little memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.container import GgufFile
from tests.support.long_tests import sized
from tests.support.models.gguf_files import QUANTIZED, random_blocks, write_gguf

MAX_BYTES = 64 << 20
NUMBERS = [*range(14), 16, 24, 31, 39, 40, 255, 1 << 10, 1 << 16, 1 << 24]
NUMBERS += [(1 << bits) + extra for bits in (31, 32, 40, 60, 61, 62, 63, 64) for extra in (-32, -1, 0, 1)]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, list[tuple[int, int]]]]:
    """Files, each with the places of the fields of its header: first byte and length."""
    folder = tmp_path_factory.mktemp("originals")
    metadata = {
        "n": 3,
        "negative": -1,
        "large": 1 << 33,
        "f": 1.5,
        "yes": True,
        "text": "some text",
        "tokens": ["a", "bc", "", "déf"],
        "scores": [0.5, 1.5],
        "types": [1, 2, 3, 4],
        "flags": [True, False],
    }
    numbers: dict[str, Any] = {"f32": np.ones((2, 4), np.float32), "i8": np.ones(3, np.int8)}
    blocks = {kind: random_blocks(kind, (2, 256)) for kind in QUANTIZED[::3]}
    shards = write_gguf(folder / "s.gguf", {f"t{i}": np.ones(2, np.float16) for i in range(4)}, tensors_per_file=2)
    paths = [
        *write_gguf(folder / "a.gguf", numbers | blocks | {"experts": random_blocks("Q4_0", (3, 2, 64))}, metadata),
        *write_gguf(folder / "b.gguf", numbers, {"tokens": ["x"] * 40}, alignment=8),
        shards[0],
    ]
    return [(path.read_bytes(), fields_of(path)) for path in paths]


def fields_of(path: Path) -> list[tuple[int, int]]:
    """The places of all fields of a header, as the package reads them."""
    reader = gguf.GGUFReader(path)
    start = reader.data.ctypes.data
    fields = [*reader.fields.values(), *(each.field for each in reader.tensors)]
    return [(part.ctypes.data - start, part.nbytes) for each in fields for part in each.parts if part.nbytes]


def mutated(data: bytes, fields: Sequence[tuple[int, int]], generator: random.Random) -> bytes:
    """A file with one to three faults in its header, or one that is cut off."""
    found = bytearray(data)
    end = fields[-1][0] + fields[-1][1]
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        place, length = generator.choice(fields)
        match generator.randrange(7):
            case 0 | 1 | 2:  # a length, a count, a type or another number
                value = generator.choice([*NUMBERS, len(data), len(data) - place])
                found[place : place + min(length, 8)] = struct.pack("<Q", value % (1 << 64))[: min(length, 8)]
            case 3:
                found[generator.randrange(end) % len(found)] = generator.randrange(256)
            case 4:
                del found[generator.randrange(len(found)) :]
            case 5:  # a field, or some, again or not at all
                other = generator.randrange(end)
                first, last = sorted((place, other))
                found[first:first] = found[first:last] * generator.randint(1, 3)
            case _:
                del found[place : generator.choice([place + length, place + 1, generator.randrange(end)])]
        if not found:
            break
    return bytes(found)


def write(path: Path, data: bytes) -> None:
    """Write a new file: some file systems flush one that is written anew."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def use(path: Path) -> int:
    """Open a file and read all that it claims to have. Returns the number of its tensors."""
    size = path.stat().st_size
    with GgufFile.open(path) as file:
        for name, entry in file.tensors.items():
            assert 0 <= entry.first_byte <= entry.first_byte + entry.num_bytes <= size
            if entry.kind.format is None:
                assert tuple(file.tensor(name).shape) == entry.shape
            elif len(entry.shape) == 2:
                last = entry.shape[0]
                assert tuple(file.weight(name).rows(last - 1, last).codes.shape) == (1, entry.shape[1])
        places = sorted((each.first_byte, each.first_byte + each.num_bytes) for each in file.tensors.values())
        assert all(a[1] <= b[0] for a, b in pairwise(places))
        assert all(isinstance(each, str | int | float | list) for each in file.metadata.values())
        return len(file.tensors)


def test_mutated_headers(originals: list[tuple[bytes, list[tuple[int, int]]]], tmp_path: Path) -> None:
    path = tmp_path / "s-00001-of-00002.gguf"
    for data, _ in originals[:2]:
        path.write_bytes(data)
        assert use(path) > 1
    num_read = longest = 0
    tracemalloc.start()
    try:
        for seed in range(sized(100_000, usual=2_000)):
            generator = random.Random(seed)
            data, fields = originals[seed % len(originals)]
            write(path, mutated(data, fields, generator))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                num_read += use(path) >= 0
            except ModelLoadError as error:
                longest = max(longest, len(str(error)))
            assert tracemalloc.get_traced_memory()[1] - before < MAX_BYTES, seed
    finally:
        tracemalloc.stop()
    assert longest < 1500
    assert num_read > 20  # faults in values only: such files are still read


def test_a_file_that_is_cut_off_anywhere_is_refused(
    originals: list[tuple[bytes, list[tuple[int, int]]]], tmp_path: Path
) -> None:
    data, _ = originals[1]
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with GgufFile.open(path) as file:
        end = max(each.first_byte + each.num_bytes for each in file.tensors.values())
    for length in range(end):
        write(path, data[:length])
        with pytest.raises(ModelLoadError, match=r"cut off|empty|expected at most|the size of the file"):
            GgufFile.open(path)
