"""What a benchmark says, written the moment it is known: a run that is cut short, or broken, has said all that it found.

Lines go to standard output and to a file; figures go to another one, a JSON object per line. A part that raises is noted and the
run goes on with the next one; `num_failed` then decides the exit status. `watchdog` ends a process that hangs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO

GRACE_S = 30.0  # beyond its budget, after which a run is taken to hang
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
    """

    def __init__(
        self,
        text_file: str | os.PathLike[str] | None = None,
        figures_file: str | os.PathLike[str] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.num_failed = 0
        self._say = say or _print
        self._figures: TextIO | None = None
        self._text = _opened(text_file)
        try:
            self._figures = _opened(figures_file)
        except OSError:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._text, self._figures):
            if file is not None:
                file.close()

    def write(self, line: str) -> None:
        """Show a line, and write it."""
        self._say(line)
        _append(self._text, line)

    def figure(self, values: Mapping[str, Any]) -> None:
        """Write figures as one line of JSON."""
        if self._figures is not None:
            _append(self._figures, json.dumps(dict(values)))

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
        output.fail("run", f"it hangs: {budget_s:.0f} s and {GRACE_S:.0f} more have passed; the process ends here")
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


def _opened(path: str | os.PathLike[str] | None) -> TextIO | None:
    return None if path is None else open(path, "w", encoding="utf-8")


def _append(file: TextIO | None, line: str) -> None:
    if file is not None:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
