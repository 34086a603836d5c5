"""Errors of a command: one line, exit code 1, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest
import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.errors import GraphError


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (CommandError("two\nlines \x1b[2J"), "error: two lines \\x1b[2J\n", 1),
        (GraphError(None, "graph", "bad"), "error: graph, graph: bad\n", 1),
        (KeyboardInterrupt(), "error: interrupted\n", 130),
    ],
)
def test_errors_of_users_are_one_line(
    error: BaseException, line: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, one_line_errors():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err == line


def test_bugs_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), one_line_errors():
        raise ZeroDivisionError
