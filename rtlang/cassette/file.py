"""The file of a recording.

The body of the first record is a map with `model` (the identity of the model), `seed` (32 bytes) and `tool_format` (the name of its format
of tool calls, or nil); the bodies of later records are pairs of a key (16 bytes) and a value. records.py describes the records.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any

from rtlang.cassette.records import RecordFile
from rtlang.contract.errors import CassetteError

MAGIC = b"rtlang-cassette 1\n"
MAKER = "rt.record"


class CassetteFile:
    """An open recording: the records that it holds, and an end to which more are written. Thread-safe.

    Args:
        path: the file; created if it does not exist.
        is_written: whether records are added. Without, the file must exist and is only read.
    Raises:
        CassetteError: another process writes to the file, or it is damaged.
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_written: bool) -> None:
        self.path = os.fspath(path)
        self.model: str | None = None
        self.seed = b""
        self.tool_format: str | None = None
        self._values: dict[bytes, Any] = {}
        self._lock = threading.Lock()
        self._file = RecordFile(
            path,
            MAGIC,
            is_written=is_written,
            maker=MAKER,
            user="another process or runtime records",
            new_error=lambda reason: CassetteError(self.path, reason),
        )
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> Any:
        """The value of a key, or None."""
        return self._values.get(key)

    def begin(self, model: str, tool_format: str | None) -> None:
        """Write the first record of a new recording, or check that the existing one was made with this model.

        Raises:
            CassetteError: the recording was made with another model.
        """
        with self._lock:
            if self.model is None:
                seed = secrets.token_bytes(32)
                self._file.append({"model": model, "seed": seed, "tool_format": tool_format})
                self.model, self.seed, self.tool_format = model, seed, tool_format
            elif self.model != model:
                raise CassetteError(
                    self.path, f"recorded with model {self.model}, the runtime serves {model}; use one file per model"
                )

    def put(self, key: bytes, value: Any) -> bool:
        """Add a record, unless there is one with this key; returns whether there was none.

        Raises:
            CassetteError: the file cannot be written; earlier records stay.
        """
        with self._lock:
            if key in self._values:
                return False
            self._file.append([key, value])
            self._values[key] = value
            return True

    def close(self) -> None:
        """Flush the file to the disk and release it. Idempotent."""
        with self._lock:
            self._file.close()

    def _read(self) -> None:
        for body, at in self._file.read():
            match body:
                case {"model": str(model), "seed": bytes(seed)} if self.model is None:
                    self.model, self.seed = model, seed
                    found = body.get("tool_format")
                    self.tool_format = found if isinstance(found, str) else None
                case [bytes(key), value] if self.model is not None:
                    self._values.setdefault(key, value)
                case _:
                    raise CassetteError(self.path, f"the record that ends at byte {at} has an unknown form")
