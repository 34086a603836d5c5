"""GGUF files, memory-mapped: metadata, and tensors as they are stored."""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.block_weight import BlockWeight
from rtlang.model.loading.gguf.header import Header, MetadataValue, TensorEntry, read_header, shown
from rtlang_kernels.contract.low_bit import LowBitWeight

_SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_MAX_SHARDS = 1024
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which older versions of Python do not name
_SHARD_NUMBER, _NUM_SHARDS, _NUM_TENSORS = "split.no", "split.count", "split.tensors.count"


class GgufFile:
    """An open GGUF file, or all files of one that is split. Create it with `open`.

    Attributes:
        metadata: values by key, of the first file. Strings whose bytes are not UTF-8, as tokens may be, have these bytes as lone
            surrogates: `.encode("utf-8", "surrogateescape")` gives all bytes back.
        tensors: where each tensor is, by name.
        paths: the files.
    """

    def __init__(self, maps: Mapping[str, mmap.mmap], headers: Mapping[str, Header]) -> None:
        """Join the files of a model: their bytes and their headers by path, in order. Raises ModelLoadError if they have equal tensors."""
        self.paths = [Path(path) for path in maps]
        self.metadata: Mapping[str, MetadataValue] = MappingProxyType(next(iter(headers.values())).metadata)
        self._maps = dict(maps)
        tensors: dict[str, TensorEntry] = {}
        for path, header in headers.items():
            for name, entry in header.tensors.items():
                if name in tensors:
                    other = Path(tensors[name].path).name
                    raise ModelLoadError(path, f"tensor {shown(name)} is also in {other}: expected it in one file")
                tensors[name] = entry
        self.tensors: Mapping[str, TensorEntry] = MappingProxyType(tensors)

    @classmethod
    def open(cls, path: str | Path) -> GgufFile:
        """Map a file and read its header; of a split one, given any of its files, all of them.

        Raises:
            ModelLoadError: the file cannot be read, breaks the format or is of a version or type that is not read; files are missing.
        """
        first = str(path)
        maps = {first: _mapped(first)}
        headers = {first: read_header(first, maps[first])}
        others = _shards(first, headers[first])
        if others:
            for each in others:
                if each != first:
                    maps[each] = _mapped(each)
                    headers[each] = read_header(each, maps[each])
            maps, headers = ({each: by_path[each] for each in others} for by_path in (maps, headers))  # type: ignore[assignment]
            _check_shards(headers)
        return cls(maps, headers)

    @property
    def num_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(each.num_bytes for each in self.tensors.values())

    def weight(self, name: str, *, expert: int | None = None, rows: NDArray[np.int64] | None = None) -> LowBitWeight:
        """A matrix of quantized weights, times its scale if it has one: `X.scale` of `X.weight`. It stays usable after `close`.

        Args:
            expert: of a stack of matrices, which one.
            rows: int64 [out]: output i is row rows[i] of the matrix; None where it is row i.
        Raises:
            ModelLoadError: there is no such tensor, it holds numbers, or it is no matrix (with `expert`: no stack of matrices).
        """
        entry = self._entry(name)
        if entry.kind.format is None:
            raise ModelLoadError(entry.path, f"tensor {shown(name)} is {entry.kind.name}: expected quantized weights")
        shape, data, scales = entry.shape, self._data(entry), self._scales(entry)
        num_dims = 2 if expert is None else 3
        shape = (1,) * (num_dims - len(shape)) + shape  # ggml leaves out outer dimensions of 1
        if len(shape) != num_dims:
            expected = "[out, in]" if expert is None else "[experts, out, in]"
            raise ModelLoadError(entry.path, f"tensor {shown(name)} has shape {list(shape)}: expected {expected}")
        if expert is not None:
            if not 0 <= expert < shape[0]:
                known = f"expected 0 to {shape[0] - 1}"
                raise ModelLoadError(entry.path, f"tensor {shown(name)}, expert = {expert}: {known}")
            size = entry.num_bytes // shape[0]
            data = data[expert * size : (expert + 1) * size]
            if scales is not None and len(scales) > 1:
                scales = scales[expert : expert + 1]
        num_outputs = shape[-2] if rows is None else len(rows)
        row_scales = None if scales is None else scales.expand(num_outputs)
        return BlockWeight(entry.kind, data, (shape[-2], shape[-1]), rows, row_scales)

    def tensor(self, name: str) -> Tensor:
        """A tensor in the shape and dtype that it is stored in, without a copy; quantized weights are multiplied out to float32.

        A tensor that is not multiplied out lies in a private mapping of the file: changes of it do not reach the file. It stays usable
        after `close`.

        Raises:
            ModelLoadError: there is no such tensor.
        """
        entry = self._entry(name)
        data, shape = self._data(entry), entry.shape
        if entry.kind.dtype is None:
            scales, num_rows = self._scales(entry), math.prod(shape[:-1])
            row_scales = None if scales is None else scales.repeat_interleave(num_rows // len(scales))
            return BlockWeight(entry.kind, data, (num_rows, shape[-1]), None, row_scales).multiplied_out().view(shape)
        if entry.first_byte % entry.kind.block_bytes:  # where general.alignment is smaller than an element
            data = data.copy()
        return torch.from_numpy(data).view(entry.kind.dtype).view(shape)

    def release(self, name: str) -> None:
        """Give back the memory that a tensor takes in this process, after it was copied.

        Its bytes are read from the file again when they are used; changes of them are lost.
        """
        entry = self._entry(name)
        if hasattr(mmap, "MADV_DONTNEED"):
            start = entry.first_byte // mmap.PAGESIZE * mmap.PAGESIZE
            self._maps[entry.path].madvise(mmap.MADV_DONTNEED, start, entry.first_byte + entry.num_bytes - start)

    def close(self) -> None:
        """Let go of the files, which stay mapped as long as weights and tensors of them are in use."""
        self._maps.clear()

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _entry(self, name: str) -> TensorEntry:
        found = self.tensors.get(name)
        if found is None:
            raise ModelLoadError(str(self.paths[0]), f"the file does not contain tensor {shown(name)}")
        return found

    def _scales(self, entry: TensorEntry) -> Tensor | None:
        """The scale of a matrix, or those of a stack of matrices, one each: float32 [1 or experts]."""
        scale = self.tensors.get(f"{entry.name.removesuffix('.weight')}.scale")
        if scale is None or not entry.name.endswith(".weight"):
            return None
        allowed = {1, math.prod(entry.shape[:-2])}
        if scale.kind.dtype is not torch.float32 or math.prod(scale.shape) not in allowed:
            found = f"is {scale.kind.name} {list(scale.shape)}"
            expected = f"F32 [{max(allowed)}], for tensor {shown(entry.name)} of shape {list(entry.shape)}"
            raise ModelLoadError(scale.path, f"tensor {shown(scale.name)} {found}: expected {expected}")
        return self.tensor(scale.name).reshape(-1)

    def _data(self, entry: TensorEntry) -> NDArray[np.uint8]:
        if entry.path not in self._maps:
            raise ModelLoadError(entry.path, f"the file was closed before tensor {shown(entry.name)} was read")
        return np.frombuffer(self._maps[entry.path], np.uint8, entry.num_bytes, entry.first_byte)


def _mapped(path: str) -> mmap.mmap:
    """The bytes of a file, in memory that may be changed without changing the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ModelLoadError(path, "it is no regular file")
            if not status.st_size:
                raise ModelLoadError(path, "the file is empty")
            if sys.platform == "linux":
                # Without the flag, private mappings must not be larger than the machine's memory.
                flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", _NO_RESERVE)
                return mmap.mmap(descriptor, 0, flags, mmap.PROT_READ | mmap.PROT_WRITE)
            else:
                return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a null in the path
        raise ModelLoadError(path, f"the file cannot be read: {error}") from None


def _shards(path: str, header: Header) -> list[str]:
    """All files of a split one, in order, of which one was read; empty if it is not split."""
    count = header.metadata.get(_NUM_SHARDS, 1)
    if count in (0, 1):
        return []
    if not isinstance(count, int) or not 0 < count <= _MAX_SHARDS:
        raise ModelLoadError(path, f"{_NUM_SHARDS} = {count!r:.40}: expected 1 to {_MAX_SHARDS}")
    folder, name = os.path.split(path)
    match = _SHARD.fullmatch(name)
    if match is None or int(match[3]) != count:
        expected = f"...-00001-of-{count:05}.gguf"
        raise ModelLoadError(path, f"{_NUM_SHARDS} = {count}, but the file is named {name}: expected {expected}")
    names = [f"{match[1]}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [each for each in names if not os.path.exists(os.path.join(folder, each))]
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise ModelLoadError(path, f"{len(missing)} of {count} files are missing: {', '.join(missing[:4])}{more}")
    return [os.path.join(folder, each) for each in names]


def _check_shards(headers: Mapping[str, Header]) -> None:
    """Refuse files that are not parts of one model."""
    for index, (path, header) in enumerate(headers.items()):
        for key, expected in ((_SHARD_NUMBER, index), (_NUM_SHARDS, len(headers))):
            if header.metadata.get(key) != expected:
                raise ModelLoadError(path, f"{key} = {header.metadata.get(key)!r:.40}: expected {expected}")
    path, first = next(iter(headers.items()))
    stated, found = first.metadata.get(_NUM_TENSORS), sum(len(each.tensors) for each in headers.values())
    if stated not in (None, found):
        raise ModelLoadError(path, f"{_NUM_TENSORS} = {stated!r:.40}: expected {found}, as many as the files have")
