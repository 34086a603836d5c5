"""Progress where there is no terminal."""

from __future__ import annotations

import io

from rich.console import Console

from rtlang.console.bench.progress import told


def test_progress_is_lines_where_there_is_no_terminal() -> None:
    file = io.StringIO()
    with told(Console(file=file)) as tell:
        tell("a part")
    assert file.getvalue() == "a part\n"
