"""Writes the results of a program over rows to a file as they come, one JSON object per line, and goes on from such a file.

    {"index": 0, "key": "9f86d081884c7d65", "row": {...}, "value": ..., "variables": {...}, "usage": {...}, "error": null}

`index` is the number of the row, `key` identifies it, and `error` has `type` and `message`. A line is written as a whole once its row has
ended, so that an interrupted run loses the rows that were running, and at most the last line is torn.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from rtlang.contract.errors import ParameterError, RtlangError
from rtlang.contract.params import Usage
from rtlang.lang.execution.result import RowResult
from rtlang.lang.program_state.body import Body, in_order
from rtlang.lang.rows.completed_rows import CompletedRows
from rtlang.lang.rows.row_source import Rows, check_rows, checked, is_asynchronous

KeyOf = str | Callable[[Mapping[str, Any]], object] | None
"""What identifies a row: the name of one of its fields, a function of the row, or None for its contents."""


@dataclass(frozen=True, slots=True)
class JsonlSummary:
    """What was written.

    Attributes:
        path: the file.
        num_written: rows that ran and whose lines were written.
        num_skipped: rows that the file had already.
        num_failed: rows among those written that failed.
        usage: tokens of the rows written.
    """

    path: str
    num_written: int
    num_skipped: int
    num_failed: int
    usage: Usage

    def __str__(self) -> str:
        return (
            f"{self.num_written} rows written to {self.path}, {self.num_failed} of them failed; "
            f"{self.num_skipped} were there already"
        )


class JsonlRun:
    """The rows that a file lacks, and the file. Used once.

    Args:
        key: see `KeyOf`.
        retry_errors: whether rows that failed run again; their lines are removed from the file first.
    Raises:
        ParameterError: the rows cannot be read, or `key` is invalid.
    """

    def __init__(self, body: Body, rows: Rows, path: str | os.PathLike[str], key: KeyOf, *, retry_errors: bool) -> None:
        check_rows(rows)
        if not (key is None or callable(key) or (isinstance(key, str) and key)):
            raise ParameterError("key", key, "expected the name of a field, or a function of the row")
        self._body, self._rows, self._key = body, rows, key
        self._path, self._retries_errors = os.fspath(path), retry_errors
        self._num_skipped = 0
        self._done: Counter[int] = Counter()  # digests of the keys that the file has
        self._places: dict[int, tuple[int, str]] = {}  # of rows that run: their index and key by the number of the run
        self._num_started = 0

    def left(self) -> Rows:
        """The rows that the file lacks, read as they are wanted; not before `write` is called."""
        return self._left_async() if is_asynchronous(self._rows) else self._left()

    def write(self, results: CompletedRows[Any]) -> JsonlSummary:
        """Write each result of the rows of `left` as it comes.

        Raises:
            ParameterError: the file has other lines than those of `run_to_jsonl`, or another process writes to it.
            OSError: the file cannot be written. Also the errors of the iteration.
        """
        num_written = num_failed = 0
        usage = Usage()
        with results, self._mended() as file:
            for result in results:
                index, key = self._places.pop(result.index)
                file.write(line_of(result, index, key))
                file.flush()
                num_written += 1
                num_failed += result.error is not None
                usage += result.usage
        return JsonlSummary(self._path, num_written, self._num_skipped, num_failed, usage)

    def _left(self) -> Iterator[Mapping[str, Any]]:
        rows: Any = self._rows
        try:
            for index, row in enumerate(rows):
                if self._is_left(index, row):
                    yield row
        finally:
            if hasattr(rows, "throw"):  # a generator
                rows.close()

    async def _left_async(self) -> AsyncIterator[Mapping[str, Any]]:
        rows: Any = self._rows
        index = 0
        try:
            async for row in rows:
                if self._is_left(index, row):
                    yield row
                index += 1
        finally:
            if hasattr(rows, "athrow"):
                await rows.aclose()

    def _is_left(self, index: int, row: object) -> bool:
        key = self._key_of(index, checked(row, index))
        digest = _digest(key)
        if self._done[digest]:
            self._done[digest] -= 1
            self._num_skipped += 1
            return False
        self._places[self._num_started] = index, key
        self._num_started += 1
        return True

    def _key_of(self, index: int, row: Mapping[str, Any]) -> str:
        key = self._key
        if isinstance(key, str):
            if key not in row:
                raise ParameterError("key", key, f"rows[{index}] has no such field; its fields: {', '.join(row)}")
            found: object = row[key]
        elif key is not None:
            found = key(row)
        else:
            return self._contents_of(index, row)
        if not isinstance(found, (str, int)):
            raise ParameterError("key", found, f"expected a string or an integer for rows[{index}]")
        return str(found)

    def _contents_of(self, index: int, row: Mapping[str, Any]) -> str:
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        body = self._body
        try:
            plain = to_jsonable_python(in_order([body.name, body.args, {**body.kwargs, **row}]))
            text = json.dumps(plain, sort_keys=True)
        except (PydanticSerializationError, TypeError, ValueError) as error:
            raise ParameterError(
                f"rows[{index}]",
                type(row).__name__,
                f"it is identified by its contents as JSON, and {error}; pass key=",
            ) from None
        return f"{_digest(text):016x}"

    def _mended(self) -> BinaryIO:
        """The open file, without a torn last line and the lines of rows that run again; its other keys are in `_done`."""
        file = _opened(self._path)
        try:
            has_errors = False
            start = 0
            file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    file.truncate(start)
                    break
                start += len(line)
                key, has_failed = self._read(number, line)
                if has_failed and self._retries_errors:
                    has_errors = True
                else:
                    self._done[_digest(key)] += 1
            return self._without_errors(file) if has_errors else file
        except BaseException:
            file.close()
            raise

    def _without_errors(self, file: BinaryIO) -> BinaryIO:
        """Write the other lines to a file beside, which takes the place of this one; returns it."""
        part = Path(f"{self._path}.part")
        file.seek(0)
        with part.open("wb") as kept:
            for number, line in enumerate(file, 1):
                if not self._read(number, line)[1]:
                    kept.write(line)
            kept.flush()
            os.fsync(kept.fileno())
        part.replace(self._path)
        mended = _opened(self._path)
        file.close()
        return mended

    def _read(self, number: int, line: bytes) -> tuple[str, bool]:
        """The key of a line, and whether its row has failed."""
        try:
            match json.loads(line):
                case {"index": int(), "key": str(key), "error": error}:
                    return key, error is not None
        except ValueError:
            pass
        raise ParameterError("path", self._path, f"line {number} is not a result of run_to_jsonl; name another file")


def line_of(result: RowResult[Any], index: int, key: str) -> bytes:
    """The line of a result."""
    value = None
    with suppress(Exception):  # the error of the run
        value = result.value
    variables = {}
    for name in result.names:
        with suppress(Exception):  # of a generation, or of an operation on its value
            variables[name] = _plain(result[name])
    error = result.error
    line = {
        "index": index,
        "key": key,
        "row": _plain(result.row),
        "value": _plain(value),
        "variables": variables,
        "usage": asdict(result.usage),
        "error": None if error is None else {"type": type(error).__name__, "message": _message(error)},
    }
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(line).encode() + b"\n"


def _message(error: BaseException) -> str:
    return error.message if isinstance(error, RtlangError) else str(error)


def _plain(value: Any) -> Any:
    """Plain JSON data for any value: models and dates as pydantic writes them, anything else as its text."""
    from pydantic_core import to_json, to_jsonable_python

    try:
        plain = to_jsonable_python(value, fallback=str)
        json.dumps(plain, allow_nan=False)
    except (ValueError, TypeError, RecursionError, OverflowError):
        with suppress(ValueError, TypeError, RecursionError):
            return json.loads(to_json(value, fallback=str, inf_nan_mode="strings"))  # with numbers that JSON has not
        return repr(value)
    return plain


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def _opened(path: str) -> BinaryIO:
    """A file to read and append to, which no other process writes."""
    file = open(path, "a+b")  # noqa: SIM115 - the run closes it
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ParameterError("path", path, "another process writes to this file") from None
    return file
