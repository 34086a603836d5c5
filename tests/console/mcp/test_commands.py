"""`rtlang mcp`: over stdio to a client, and the mistakes that end it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rtlang as rt
from rtlang.__main__ import app
from rtlang.contract.errors import McpError

FILE = '''
import rtlang as rt

print("loaded")

@rt.program
def shout(s: rt.State, text: str) -> str:
    """Say it loud."""
    return text.upper()
'''


def test_a_file_is_served_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(FILE)
    with rt.mcp([sys.executable, "-m", "rtlang", "mcp", str(tmp_path / "loud.py")], cwd=Path.cwd()) as tools:
        assert [(each.tool.name, each.tool.description) for each in tools] == [("shout", "Say it loud.")]
        with pytest.raises(McpError, match="invalid arguments"):
            tools.call("shout", words="a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "missing.py"),
        (["loud.py:whisper"], "it has shout"),
        (["loud.py", "--http", "eighty"], "PORT or HOST:PORT"),
        (["loud.py", "--http", "0.0.0.0:80"], "access control"),
        (["loud.py", "--url", "ws://x", "--model", "y"], "--url"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["mcp", *arguments])
    assert done.exit_code == 1
    assert message in done.output
