"""Opens the target or the journal of a command, with a progress bar for loading model weights, on terminals and for slow loads only.

The loader reports progress in its log records, from any thread; `show_loading` turns them into a bar on the terminal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from rtlang.cassette.journal_texts import is_journal, texts_of_journal
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ParameterError
from rtlang.contract.pictures.run_diff import RunTexts
from rtlang.contract.service.target import Target
from rtlang.fleet.connect import RAY_SCHEME, connect
from rtlang.lang.diff import read_runs

if TYPE_CHECKING:
    from rtlang.cassette.journal import Journal
    from rtlang.runtime.runtime import Runtime

LOADER = "rtlang.model.loader"
"""Logger name; importing the module would load torch first."""

RESUME_S = 30.0
"""How long the commands try to connect again."""


def started(config: RuntimeConfig) -> Runtime:
    """A started `rtlang.Runtime`; shows loading progress on a terminal."""
    from rtlang.runtime.process import precompile, process_settings

    with show_loading(Console(stderr=True)), process_settings.loading():
        precompile.start_background_compile(config)
        from rtlang.runtime.runtime import Runtime  # loads torch, while another process compiles

        return Runtime(config=config).start()


def connected(urls: Sequence[str], api_key: str | None) -> Target:
    """A connection to the first of these servers that answers, or to a fleet on Ray; see `rtlang.connect`.

    Raises:
        ConfigError, ConnectionLostError: see `rtlang.connect`.
    """
    resume_s = None if len(urls) == 1 and urls[0].startswith(RAY_SCHEME) else RESUME_S
    return connect(urls, api_key=api_key, resume_s=resume_s)


class OnChange(Enum):
    """What a run does where the program differs from its journal."""

    ERROR = "error"
    RECOMPUTE = "recompute"


def journaled(
    path: Path,
    open_target: Callable[[], Target],
    program: str,
    arguments: Mapping[str, Any],
    on_change: Any = "error",
    wait_s: float | None = None,
) -> Journal:
    """A journal of a run, on a runtime that is opened if it is needed. `on_change`, `wait_s`: see `rtlang.journal`.

    Raises:
        CommandError: the file cannot be opened. JournalError: see `rtlang.journal`.
    """
    from rtlang.cassette.surface import journal

    described = json.dumps(dict(arguments), sort_keys=True, default=repr)
    try:
        return journal(path, open_target, program=program, arguments=described, on_change=on_change, wait_s=wait_s)
    except OSError as error:
        raise CommandError(f"--journal {path}: {error.strerror or error}") from None


def saved_rows(path: Path) -> list[tuple[str | None, RunTexts]]:
    """What the nodes of saved runs, or of a journal, gave: for each run a digest of its arguments, and texts by path.

    Raises:
        CommandError: the file cannot be read, or is neither. JournalError: the journal is damaged, or a process writes to it.
    """
    try:
        return [texts_of_journal(path)] if is_journal(path) else read_runs(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except ParameterError as error:
        raise CommandError(f"{path}: expected a file of rtlang run --save or --journal; {error.allowed}") from None


@contextmanager
def show_loading(console: Console) -> Iterator[None]:
    """Show loading progress on `console`, unless it is no terminal or loading is fast.

    The loader's log lines are still handled as configured (shown with `--verbose` only).
    """
    if not console.is_terminal:
        yield
        return
    logger = logging.getLogger(LOADER)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    handler = _Bar(bar)
    was_shown, level, propagates = logger.isEnabledFor(logging.INFO), logger.level, logger.propagate
    logger.addHandler(handler)
    if not was_shown:
        logger.setLevel(logging.INFO)
        logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
        bar.stop()


class _Bar(logging.Handler):
    """Moves the bar to the `fraction` of each log record that has one; the first one shows the bar."""

    def __init__(self, bar: Progress) -> None:
        super().__init__()
        self._bar = bar

    def emit(self, record: logging.LogRecord) -> None:
        fraction = getattr(record, "fraction", None)
        if fraction is None:
            return
        if not self._bar.tasks:
            self._bar.start()
            self._bar.add_task("loading weights", total=1.0)
        self._bar.update(self._bar.tasks[0].id, completed=fraction)
        if fraction >= 1.0:
            self._bar.stop()
