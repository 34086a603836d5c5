"""Headers that break the format end in an error that names the field, its value and what is allowed."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.container import GgufFile


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def header(version: int = 3, tensors: int = 0, keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def tensor(name: str, dims: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


FAULTS = {
    "magic": (b"GGML" + bytes(20), r"magic = b'GGML': expected b'GGUF', a GGUF file"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", r"the file is a pointer of git-lfs .* git lfs pull"),
    "version 1": (header(1), r"version = 1: expected 2 or 3; convert the model again with a current llama\.cpp"),
    "version 4": (header(4), r"version = 4: expected 2 or 3$"),
    "big endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), r"version = 3 in big endian: expected a little-endian file"),
    "many tensors": (header(tensors=1 << 63), rf"number of tensors = {1 << 63}: expected at most 0 here"),
    "many keys": (header(keys=1 << 20), rf"number of metadata keys = {1 << 20}: expected at most 0 here"),
    "long key": (
        header(keys=1) + struct.pack("<Q", 1 << 40) + bytes(9),
        r"metadata key 0, length = 1099511627776: expected at most 1024",
    ),
    "key not UTF-8": (header(keys=1) + string(b"\xff") + bytes(9), r"metadata key 0 = b'\\xff': expected UTF-8"),
    "twice": (header(keys=2) + (string("a") + b"\0\0\0\0\1") * 2, r"metadata key 'a' is there twice: expected once"),
    "type": (header(keys=1) + string("a") + struct.pack("<I", 13), r"metadata 'a', type = 13: expected 0 to 12"),
    "cut off": (
        header(keys=1) + string("a") + struct.pack("<I", 10),
        r"metadata 'a': the file ends at byte 37, within the header",
    ),
    "long string": (
        header(keys=1) + string("a") + struct.pack("<IQ", 8, 1 << 31),
        r"metadata 'a', length of string 0 = 2147483648: expected at most 0 here",
    ),
    "nested array": (
        header(keys=1) + string("a") + struct.pack("<IIQ", 9, 9, 1),
        r"metadata 'a', type of items = array: expected strings or numbers",
    ),
    "endless array": (
        header(keys=1) + string("a") + struct.pack("<IIQ", 9, 8, 1 << 60),
        r"metadata 'a', number of items = \d+: expected at most 0 here",
    ),
    "alignment": (
        header(keys=1) + string("general.alignment") + struct.pack("<II", 4, 24),
        r"general\.alignment = 24: expected a power of two up to",
    ),
    "tensor twice": (header(tensors=2) + tensor("t") * 2 + bytes(99), r"tensor 't' is there twice: expected once"),
    "dimensions": (
        header(tensors=1) + tensor("t", (1, 1, 1, 1, 4)) + bytes(99),
        r"'t', number of dimensions = 5: expected at most 4",
    ),
    "no elements": (
        header(tensors=1) + tensor("t", (4, 0)) + bytes(99),
        r"'t', dimensions = \[4, 0\]: expected at least 1",
    ),
    "overflow": (
        header(tensors=1) + tensor("t", (1 << 32, 1 << 32)) + bytes(99),
        rf"'t', dimensions = .* of F32: {1 << 66} bytes, expected at most \d+, the size of the file",
    ),
    "inputs": (
        header(tensors=1) + tensor("t", (96, 2), 12) + bytes(99),
        r"'t', inputs = 96: expected a multiple of 256, the block of Q4_K",
    ),
    "kind": (
        header(tensors=1) + tensor("t", (256,), 16) + bytes(99),
        r"'t', type = IQ2_XXS \(16\): expected one of F32",
    ),
    "unaligned": (
        header(tensors=1) + tensor("t", offset=16) + bytes(99),
        r"'t', offset = 16: expected a multiple of the alignment, 32",
    ),
    "outside": (
        header(tensors=1) + tensor("t", offset=1 << 20) + bytes(99),
        r"'t', offset = 1048576: ends at byte 1048656 of the file, which has \d+; it is cut off or damaged",
    ),
    "overlap": (
        header(tensors=2) + tensor("t", (16,)) + tensor("u", offset=32) + bytes(199),
        r"tensor 'u' starts at byte 128, within tensor 't': expected tensors that do not overlap",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    content, message = FAULTS[fault]
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(ModelLoadError, match=message) as error:
        GgufFile.open(tmp_path / "m.gguf")
    assert error.value.path == str(tmp_path / "m.gguf")


@pytest.mark.skipif(sys.platform != "linux", reason="files with holes may be small on Linux only")
@pytest.mark.parametrize(
    ("start", "message"),
    [
        (header(tensors=1_000_000), "number of tensors = 1000000: expected at most 131072 here"),
        (header(keys=1_000_000), "number of metadata keys = 1000000: expected at most 65536 here"),
        (
            header(keys=1) + string("a") + struct.pack("<IQ", 8, 1 << 31),
            "'a', length of string 0 = 2147483648: expected at most 67108864 here",
        ),
        (
            header(keys=1) + string("a") + struct.pack("<IIQ", 9, 8, 1 << 24),
            "'a', number of items = 16777216: expected at most 8388608 here",
        ),
    ],
)
def test_limits_hold_in_huge_files(start: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(start)
    os.truncate(path, 1 << 40)
    with pytest.raises(ModelLoadError, match=message):
        GgufFile.open(path)


def test_headers_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtlang.model.loading.gguf.header._MAX_HEADER_BYTES", 64)
    path = tmp_path / "m.gguf"
    path.write_bytes(header(keys=2) + (string("a") + struct.pack("<Iq", 11, 1)) + string("b" * 12) + bytes(99))
    with pytest.raises(ModelLoadError, match="metadata key 1: expected a header of at most 64 bytes"):
        GgufFile.open(path)
