"""Output of a benchmark, written line by line, so that an interrupted run leaves all of its results.

Text goes to standard output and to a file; figures go to another file, one JSON object per line. If one of them fails (a full
disk, a closed pipe), that counts as a failed part, and the run continues with the others. An exception in a part is reported and the run
continues with the next part; `num_failed` decides the exit status. `watchdog` ends a process that hangs.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

GRACE_S = 30.0  # beyond the budget, after which a run counts as hanging
REPORT_S = 5.0  # limit for reporting the hang
HANG_STATUS = 3  # exit status of a run that the watchdog ended


class Output:
    """Destinations of text and figures. A context manager; used from one thread, and at the end by the watchdog's.

    Args:
        text_file, figures_file: paths, created at once; None: not written.
        echo: shows a line; default: prints it.
    Attributes:
        num_failed: number of failed parts.
    Raises:
        OSError: a file cannot be created.
        ValueError: both paths are the same file.
    """

    def __init__(
        self,
        text_file: str | os.PathLike[str] | None = None,
        figures_file: str | os.PathLike[str] | None = None,
        echo: Callable[[str], None] | None = None,
    ) -> None:
        self.num_failed = 0
        self._sinks: dict[str, Callable[[str], None]] = {"standard output": echo or _print}
        self._figures: _File | None = None
        self._files: list[_File] = []
        try:
            if text_file is not None:
                self._files.append(text := _File(text_file))
                self._sinks[text.name] = text.append
            if figures_file is not None:
                self._files.append(figures := _File(figures_file))
                self._figures = figures
            if len(self._files) == 2 and self._files[0].is_same(self._files[1]):
                raise ValueError(f"text_file, figures_file = {self._files[0].name}: two different files are allowed")
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()

    def write(self, line: str) -> None:
        """Show a line and write it to the text file.

        Raises:
            OSError: no destination is left.
        """
        for name, sink in list(self._sinks.items()):
            try:
                sink(line)
            except OSError as error:
                if len(self._sinks) == 1:
                    raise
                del self._sinks[name]
                self.fail(f"writing to {name}", error)

    def figure(self, values: Mapping[str, Any]) -> None:
        """Write figures as one line of JSON."""
        if self._figures is not None:
            try:
                self._figures.append(json.dumps(dict(values)))
            except OSError as error:
                name, self._figures = self._figures.name, None
                self.fail(f"writing to {name}", error)

    def fail(self, name: str, reason: object) -> None:
        """Report a failed part."""
        self.num_failed += 1
        kind = f"{type(reason).__name__}: " if isinstance(reason, BaseException) else ""
        self.write(f"FAILED {name}: {kind}{' '.join(str(reason).split())}")

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Report an exception inside as a failure of this part, and continue after it."""
        try:
            yield
        except Exception as error:
            self.fail(name, error)


@contextmanager
def watchdog(
    output: Output, budget_s: float, exit_process: Callable[[int], object] = os._exit
) -> Iterator[threading.Timer]:
    """While open, run a timer that ends the process with status HANG_STATUS once the budget is exceeded by GRACE_S.

    All lines written so far are in the files by then.
    """

    def end() -> None:
        reason = f"hangs: exceeded its budget of {budget_s:.0f} s by {GRACE_S:.0f} s; ending the process"
        reporter = threading.Thread(target=output.fail, args=("run", reason), daemon=True)
        reporter.start()
        reporter.join(REPORT_S)  # the output itself may hang
        exit_process(HANG_STATUS)

    timer = threading.Timer(budget_s + GRACE_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class _File:
    """A file that is flushed after each line. Raises OSError if it cannot be created."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)  # pipes cannot be synced

    def is_same(self, other: _File) -> bool:
        """Whether both are the same file on disk."""
        return self._is_regular and os.path.sameopenfile(self._file.fileno(), other._file.fileno())

    def append(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        if self._is_regular:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):  # failed writes were reported
            self._file.close()
