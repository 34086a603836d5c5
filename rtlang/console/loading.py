"""A progress bar while a model's weights are read, where that takes long and someone sees it.

The loader tells its log how far it is, from whatever thread it runs on; here its records become a bar on the terminal, for the time of
a `with`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

LOADER = "rtlang.model.loading.loader"
"""By name: importing it would load torch before there is anything to show."""


@contextmanager
def show_loading(console: Console) -> Iterator[None]:
    """Show on `console` how far loading is; nothing where it is no terminal, or where loading is quick.

    The loader's own lines still go where they went before (with `--verbose`), and nowhere else.
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
    """Moves the bar to the `fraction` of each record that has one; it appears with the first."""

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
