"""A batch from a file to a file, without a server's store: what `rtlang batch` runs.

The output file has a line for each request that succeeded, in the order in which they ended. It is the journal: a run that finds lines
there goes on with the others. Requests that failed are in the error file, which each run begins anew, and run again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rtlang.serve.batch.batch_lines import (
    MAX_LINES,
    BatchLine,
    FileCheck,
    LineError,
    LineReader,
    LineResult,
    keys_in,
    result_line,
)
from rtlang.serve.batch.file_store import cut_to_lines
from rtlang.serve.batch.line_runner import Ask, LineRunner, Window

_SLICE_BYTES = 256 << 10


class BadFileError(Exception):
    """The input file is no batch."""

    def __init__(self, errors: list[LineError]) -> None:
        super().__init__("; ".join(map(str, errors[:5])) + ("; ..." if len(errors) > 5 else ""))
        self.errors = errors


class FileInUseError(Exception):
    """Another process writes to the output file."""


@dataclass(slots=True)
class Progress:
    """How far a run is.

    Attributes:
        num_done: requests that had a result before.
    """

    total: int = 0
    num_done: int = 0
    completed: int = 0
    failed: int = 0


async def run_file(
    source: Path,
    output: Path,
    errors: Path,
    ask: Ask,
    urls: tuple[str, ...],
    *,
    max_running: int,
    max_line_bytes: int,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Run the requests of a file that have no result yet.

    Raises:
        BadFileError: a line is no request; nothing has run then.
        FileInUseError: another process writes to the output file.
        OSError: a file cannot be read or written.
    """
    progress = Progress()
    with ExitStack() as stack:
        file = stack.enter_context(open(source, "rb"))
        check = FileCheck(MAX_LINES)
        reader = LineReader(file, urls, max_line_bytes)
        while not check.is_over and (lines := reader.slice(_SLICE_BYTES)):
            check.add(lines)
        if check.errors:
            raise BadFileError(check.errors)
        progress.total = check.total
        written = stack.enter_context(open(output, "a+b"))
        try:
            fcntl.flock(written, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileInUseError(f"{output}: another process writes to it") from None
        cut_to_lines(written)
        written.seek(0)
        done = set(keys_in(iter(written)))
        written.seek(0, os.SEEK_END)
        failures = stack.enter_context(open(errors, "wb"))
        file.seek(0)
        reader = LineReader(file, urls, max_line_bytes)

        async def next_lines() -> list[BatchLine]:
            while lines := reader.slice(_SLICE_BYTES):
                found = [each for each in lines if isinstance(each, BatchLine) and each.key not in done]
                progress.num_done += len(lines) - len(found)
                if found:
                    return found
            return []

        async def take(line: BatchLine, result: LineResult) -> None:
            target = written if result.is_success else failures
            target.write(result_line(f"batch_req_{line.key.hex()}", line.custom_id, result))
            target.flush()
            progress.completed += result.is_success
            progress.failed += not result.is_success
            on_progress(progress)

        await LineRunner(ask, take, Window(max_running)).run(next_lines)
        for each in (written, failures):
            os.fsync(each.fileno())
    if not progress.failed:
        errors.unlink(missing_ok=True)
    return progress
