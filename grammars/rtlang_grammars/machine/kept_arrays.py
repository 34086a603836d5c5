"""Arrays in a file under a checksum: what takes longer to work out of a vocabulary than to read.

A file that is not there, not whole or of another kind says nothing; a directory that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGEST_BYTES = 32
_KINDS = (np.dtype("<i4"), np.dtype("<i8"))
Array = NDArray[np.int32] | NDArray[np.int64]


def read(path: Path, magic: bytes) -> list[NDArray[Any]] | None:
    """What was written under the same `magic`; None where that is not there or not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    begin = len(magic) + _DIGEST_BYTES
    payload = memoryview(content)[begin:]
    if not content.startswith(magic) or len(payload) < 8:
        return None
    if hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() != content[len(magic) : begin]:
        return None
    count = int.from_bytes(payload[:8], "little")
    head = np.frombuffer(payload, dtype="<i8", count=2 * count, offset=8).tolist()
    arrays: list[NDArray[Any]] = []
    at = 8 * (1 + 2 * count)
    for kind, length in zip(head[::2], head[1::2], strict=True):
        dtype = _KINDS[kind]
        # Copies: numba compiles everything once more for arrays that may not be written to.
        arrays.append(np.frombuffer(payload, dtype, length, at).astype(dtype.newbyteorder("=")))
        at += -(-length * dtype.itemsize // 8) * 8
    return arrays


def write(path: Path, magic: bytes, arrays: Sequence[Array]) -> None:
    """Write flat arrays, int32 or int64, beside and rename."""
    kinds = [_KINDS.index(each.dtype.newbyteorder("<")) for each in arrays]
    head = [len(arrays), *(x for kind, each in zip(kinds, arrays, strict=True) for x in (kind, len(each)))]
    parts = [np.array(head, dtype="<i8").tobytes()]
    for kind, each in zip(kinds, arrays, strict=True):
        text = each.astype(_KINDS[kind], copy=False).tobytes()
        parts.append(text + bytes(-len(text) % 8))
    payload = b"".join(parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=".kept-", delete=False)  # noqa: SIM115
    except OSError:
        return
    try:
        with file:
            file.write(magic + hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest() + payload)
        os.replace(file.name, path)
    except BaseException as error:  # a full disk, or an interrupt
        with suppress(OSError):
            os.unlink(file.name)
        if not isinstance(error, OSError):
            raise
