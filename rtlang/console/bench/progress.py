"""Progress of a command on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console


@contextmanager
def told(progress: Console) -> Iterator[Callable[[str], None]]:
    """A function that shows a line about the present work."""
    with progress.status("starting") if progress.is_terminal else nullcontext() as status:

        def tell(line: str) -> None:
            if status is not None:
                status.update(line)
            else:
                progress.print(line, soft_wrap=True)

        yield tell
