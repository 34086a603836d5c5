"""What a benchmark says, written the moment it is known: a run that is cut short, or broken, has said all that it found.

Lines go to standard output and to a file; figures go to another one, a JSON object per line. Where one of them takes no more (a full
disk, a reader that has left), that is a failed part, and the run goes on with the others. A part that raises is noted and the run goes
on with the next one; `num_failed` then decides the exit status. `watchdog` ends a process that hangs.
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

GRACE_S = 30.0  # beyond its budget, after which a run is taken to hang
TELLING_S = 5.0  # that saying so may take
HANGS = 3  # exit status of a run that was ended by the watchdog


class Output:
    """Where lines and figures go. A context manager; used from one thread, and at the end by the watchdog's.

    Args:
        text_file, figures_file: paths, created at once; None: not written.
        say: where lines are shown; default: standard output.
    Attributes:
        num_failed: parts that raised, or were said to have failed.
    Raises:
        OSError: a file cannot be created.
        ValueError: both are one file.
    """

    def __init__(
        self,
        text_file: str | os.PathLike[str] | None = None,
        figures_file: str | os.PathLike[str] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.num_failed = 0
        self._tellers: dict[str, Callable[[str], None]] = {"standard output": say or _print}
        self._figures: _File | None = None
        self._files: list[_File] = []
        try:
            if text_file is not None:
                self._files.append(text := _File(text_file))
                self._tellers[text.name] = text.append
            if figures_file is not None:
                self._files.append(figures := _File(figures_file))
                self._figures = figures
            if len(self._files) == 2 and self._files[0].is_as(self._files[1]):
                raise ValueError(f"lines and figures cannot go to one file, {self._files[0].name}")
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
        """Show a line, and write it.

        Raises:
            OSError: nobody takes it.
        """
        for name, tell in list(self._tellers.items()):
            try:
                tell(line)
            except OSError as error:
                if len(self._tellers) == 1:
                    raise
                del self._tellers[name]
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
        """Note that a part failed."""
        self.num_failed += 1
        kind = f"{type(reason).__name__}: " if isinstance(reason, BaseException) else ""
        self.write(f"FAILED {name}: {kind}{' '.join(str(reason).split())}")

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Whatever raises inside is noted under this name, and the program goes on behind it."""
        try:
            yield
        except Exception as error:
            self.fail(name, error)


@contextmanager
def watchdog(output: Output, budget_s: float, leave: Callable[[int], object] = os._exit) -> Iterator[threading.Timer]:
    """While this is open, a timer that ends the process with status HANGS when the budget is over by GRACE_S.

    All that was written is in the files by then.
    """

    def end() -> None:
        reason = f"it hangs: {budget_s:.0f} s and {GRACE_S:.0f} more have passed; the process ends here"
        teller = threading.Thread(target=output.fail, args=("run", reason), daemon=True)
        teller.start()
        teller.join(TELLING_S)  # it may be the output that hangs
        leave(HANGS)

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
    """A file that has each line as soon as it is written. Raises OSError where it cannot be created."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)  # a pipe has no disk to be flushed to

    def is_as(self, other: _File) -> bool:
        """Whether both are one file of a disk."""
        return self._is_regular and os.path.sameopenfile(self._file.fileno(), other._file.fileno())

    def append(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        if self._is_regular:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):  # what could not be written was told
            self._file.close()
